#pragma once
// The tiles of a ragged matrix by windows of the buffer: window w has the tiles that begin at rows 128 w ... 128 w + 127.
// A launch has as many windows as a dense matrix has tiles, for any splits, so no block is launched for a tile that the
// splits do not have. In a long group every window has one tile; where groups meet it has more, at most one of each group.
//
// Every block detects invalid splits, and groups whose rows are not a multiple of the promised number, and then has no tiles;
// block 0 reports them in the status word.

#include <cstdint>

#include "device/layout/group_table.cuh"

namespace assay::device {

inline constexpr int kWindowRows = 128;

// Windows of a launch. At least 1 where there are splits, so that a block checks them.
inline std::int64_t window_count(const Rows& rows) {
  if (rows.splits != nullptr && rows.groups == 0) return 0;
  const std::int64_t windows = (rows.capacity + kWindowRows - 1) / kWindowRows;
  return rows.splits != nullptr && windows == 0 ? 1 : windows;
}

#if defined(__CUDACC__)

struct WindowTile {
  std::uint32_t first_row;  // of the group, in the buffer
  std::uint32_t rows;       // of the group, 1 or more
  std::uint32_t tile;       // in the group
  std::uint32_t number;     // numbered through all groups
  std::uint32_t before;     // sum of Measure over the groups before
  std::uint32_t group;
};

// In shared memory, one per block. See scale_layout.cuh for Measure.
template <class Measure>
struct WindowTiles {
  using Sums = group_detail::Sums<Blocks<kWindowRows>, Measure>;
  group_detail::BlockScratch<Sums> scratch;
  unsigned count;
  WindowTile list[kWindowRows];
  unsigned broken;  // is the promise

  // How many tiles there are, the same in all threads; they are list[0], list[1], ... None where the rows of a group are
  // no multiple of `rows_multiple` (kStatusUnalignedRows). Called by all threads of a one-dimensional block of whole
  // warps; one barrier for up to 32 groups, else two.
  __device__ unsigned find(const Rows& rows, std::uint32_t window, std::uint32_t* status, std::uint32_t rows_multiple = 1) {
    const auto max_rows = static_cast<std::uint32_t>(rows.capacity);
    if (rows.splits == nullptr) {
      if (rows_multiple != 1 && max_rows % rows_multiple != 0) {
        if (threadIdx.x == 0) group_detail::tell(status, kStatusUnalignedRows);
        return 0;
      }
      if (window >= Blocks<kWindowRows>::of(max_rows)) return 0;
      if (threadIdx.x == 0) list[0] = {0, max_rows, window, window, 0, 0};
      __syncthreads();
      return 1;
    }

    if (rows.groups <= 32) {  // each warp alone: lane t holds group t
      unsigned faults = 0;
      const int lane = static_cast<int>(threadIdx.x % 32);
      const std::uint32_t own_rows = lane < rows.groups ? group_detail::read_split(rows, lane, faults) : 0;
      const Sums own = Sums::of(own_rows);
      const Sums through = group_detail::scan_warp(own, max_rows);
      faults = __reduce_or_sync(0xFFFFFFFFu, faults);
      if (__shfl_sync(0xFFFFFFFFu, through.value[0], 31) > max_rows) faults |= kStatusSplitsExceedRows;
      if (rows_multiple != 1 && faults == 0 && __any_sync(0xFFFFFFFFu, own_rows % rows_multiple != 0)) {
        faults = kStatusUnalignedRows;
      }
      if (faults != 0) {
        if (threadIdx.x == 0) group_detail::tell(status, faults);
        return 0;
      }
      Sums before;
#pragma unroll
      for (int i = 0; i < Sums::kCount; ++i) before.value[i] = through.value[i] - own.value[i];
      WindowTile found;
      const bool has = find_in_group(before, own_rows, lane, window, found);
      const unsigned holders = __ballot_sync(0xFFFFFFFFu, has);
      if (threadIdx.x < 32 && has) list[__popc(holders & ((1u << lane) - 1))] = found;
      __syncthreads();
      return static_cast<unsigned>(__popc(holders));
    }

    if (threadIdx.x == 0) count = 0;
    if (rows_multiple != 1 && threadIdx.x == 0) broken = 0;
    int first, last;
    Sums running, total;
    if (!group_detail::scan_block(rows, scratch, status, first, last, running, total)) return 0;
    unsigned no_faults = 0;
    if (rows_multiple != 1) {
      for (int t = first; t < last; ++t) {
        if (group_detail::read_split(rows, t, no_faults) % rows_multiple != 0) atomicOr(&broken, 1u);
      }
    }
    for (int t = first; t < last && running.value[0] < (window + 1) * kWindowRows; ++t) {
      const std::uint32_t own_rows = group_detail::read_split(rows, t, no_faults);
      WindowTile found;
      if (find_in_group(running, own_rows, t, window, found)) list[atomicAdd(&count, 1u)] = found;  // in any order
      running.add(Sums::of(own_rows), max_rows);
    }
    __syncthreads();
    if (rows_multiple != 1 && broken != 0) {
      if (threadIdx.x == 0) group_detail::tell(status, kStatusUnalignedRows);
      return 0;
    }
    return count;
  }

 private:
  // The tile of a group that begins in the window, if one does: tiles begin 128 rows apart, so there is at most one.
  static __device__ bool find_in_group(const Sums& before, std::uint32_t rows, int group, std::uint32_t window,
                                       WindowTile& found) {
    const std::uint32_t begin = window * kWindowRows, first_row = before.value[0];
    const std::uint32_t tile = first_row >= begin ? 0 : (begin - first_row + kWindowRows - 1) / kWindowRows;
    const std::uint32_t row = tile * kWindowRows;  // in the group
    found = {first_row, rows, tile, before.value[1] + tile, before.value[2], static_cast<std::uint32_t>(group)};
    return row < rows && first_row + row < begin + kWindowRows;
  }
};

#endif  // __CUDACC__

}  // namespace assay::device
