#pragma once
// The group of a tile of rows, on the device. A kernel over a ragged matrix is launched for the most tiles that
// its capacity allows; each block finds its own rows. Two ways:
//
//   locate_tile   for a block that handles one tile: reads the splits, sums them over the block, and returns the group,
//                 its rows, and the sums over the groups before it. 2 barriers; none for up to 32 groups.
//   GroupTable    for a block that handles many tiles, or all groups: the same sums of every group, kept in
//                 shared memory, with a binary search.
//
// The sums are of measures of a group's row count: its rows, its tiles, and what the recipes' scale offsets count (see
// scale_layout.cuh). Rows and sums are 32 bits: check_rows() refuses buffers of more than kMaxRows rows.
//
// Every block detects faults (a negative split, splits that sum to more than the buffer's rows) and then does nothing; block 0
// reports them in the status word.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"

namespace assay::device {

inline constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - (std::int64_t{1} << 18);  // padding must fit as well

// The most tiles of `tile_rows` rows of any splits, for the launch: each group may add one that is not full. At
// least 1 with splits, so that a block checks them.
inline std::int64_t max_tiles(const Rows& rows, std::int64_t tile_rows) {
  if (rows.splits == nullptr) return (rows.capacity + tile_rows - 1) / tile_rows;
  if (rows.groups == 0) return 0;
  const std::int64_t groups = rows.groups < rows.capacity ? rows.groups : rows.capacity;
  const std::int64_t tiles = rows.capacity / tile_rows + groups;
  return tiles == 0 ? 1 : tiles;
}

#if defined(__CUDACC__)

// splits[t], unchecked, by an ordinary load.
__device__ inline std::int64_t load_split(const Rows& rows, int t) {
  return rows.splits_are_int32 ? reinterpret_cast<const std::int32_t*>(rows.splits)[t] : rows.splits[t];
}

// Measures of a group of `rows` rows.
struct RowCount {
  static __device__ std::uint32_t of(std::uint32_t rows) { return rows; }
};
template <unsigned kUnit>
struct RoundedUp {  // ru(rows, unit)
  static __device__ std::uint32_t of(std::uint32_t rows) { return (rows + kUnit - 1) / kUnit * kUnit; }
};
template <unsigned kBlock>
struct Blocks {  // cd(rows, block)
  static __device__ std::uint32_t of(std::uint32_t rows) { return (rows + kBlock - 1) / kBlock; }
};
template <unsigned kBlock, unsigned kUnit>
struct BlocksRoundedUp {  // ru(cd(rows, block), unit)
  static __device__ std::uint32_t of(std::uint32_t rows) { return RoundedUp<kUnit>::of(Blocks<kBlock>::of(rows)); }
};

// What locate_tile found. before[i]: the sum of measure i over the groups before.
template <int kMeasures>
struct GroupTile {
  std::uint32_t group;      // 0, ..., groups - 1
  std::uint32_t first_row;  // of the group, in the buffer
  std::uint32_t rows;       // of the group, 1 or more
  std::uint32_t tile;       // in the group
  std::uint32_t before[kMeasures == 0 ? 1 : kMeasures];
};

namespace group_detail {

// Sums over groups: [0] rows, held at capacity + 1 once past it, so that nothing wraps; [1] and on: measures.
template <class... Measures>
struct Sums {
  static constexpr int kCount = 1 + static_cast<int>(sizeof...(Measures));
  std::uint32_t value[kCount];

  static __device__ Sums zero() {
    Sums sums;
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums.value[i] = 0;
    return sums;
  }
  static __device__ Sums of(std::uint32_t rows) { return Sums{{rows, Measures::of(rows)...}}; }

  __device__ void add(const Sums& other, std::uint32_t max_rows) {
    value[0] = min(value[0] + other.value[0], max_rows + 1);
#pragma unroll
    for (int i = 1; i < kCount; ++i) value[i] += other.value[i];
  }
};

// Inclusive over the lanes of a warp.
template <class SumsOfGroups>
__device__ SumsOfGroups scan_warp(SumsOfGroups sums, std::uint32_t max_rows) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    SumsOfGroups lower;
#pragma unroll
    for (int i = 0; i < SumsOfGroups::kCount; ++i) lower.value[i] = __shfl_up_sync(0xFFFFFFFFu, sums.value[i], step);
    if (lane >= step) sums.add(lower, max_rows);
  }
  return sums;
}

// Rows of group t; an invalid split counts as 0 and sets its bits in `faults`.
__device__ inline std::uint32_t read_split(const Rows& rows, int t, unsigned& faults) {
  const std::int64_t split = rows.splits_are_int32 ? __ldg(reinterpret_cast<const int*>(rows.splits) + t)
                                                   : __ldg(reinterpret_cast<const long long*>(rows.splits) + t);
  if (split < 0) faults |= kStatusNegativeSplit;
  if (split > rows.capacity) faults |= kStatusSplitsExceedRows;
  return split < 0 || split > rows.capacity ? 0u : static_cast<std::uint32_t>(split);
}

__device__ inline void tell(std::uint32_t* status, unsigned faults) {
  if (status != nullptr && faults != 0 && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) atomicOr(status, faults);
}

// Scratch for the sums of a block of up to 1024 threads.
template <class SumsOfGroups>
struct BlockScratch {
  SumsOfGroups of_warp[32];
  unsigned faults[32];
};

// All threads of a block (one-dimensional, whole warps): the sums over the groups before this thread's own `count`
// groups, which begin at `first`, and the sums over all groups. False, in every thread: the splits are invalid.
template <class SumsOfGroups>
__device__ bool scan_block(const Rows& rows, BlockScratch<SumsOfGroups>& scratch, std::uint32_t* status, int& first, int& last,
                           SumsOfGroups& before, SumsOfGroups& total) {
  const auto max_rows = static_cast<std::uint32_t>(rows.capacity);
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int each = (rows.groups + threads - 1) / threads;
  first = min(thread * each, rows.groups);
  last = min(first + each, rows.groups);

  unsigned faults = 0;
  SumsOfGroups own = SumsOfGroups::zero();
  for (int t = first; t < last; ++t) own.add(SumsOfGroups::of(read_split(rows, t, faults)), max_rows);
  const SumsOfGroups through = scan_warp(own, max_rows);
#pragma unroll
  for (int i = 0; i < SumsOfGroups::kCount; ++i) {  // exclusive: lane 0 has nothing before it
    const std::uint32_t lower = __shfl_up_sync(0xFFFFFFFFu, through.value[i], 1);
    before.value[i] = thread % 32 == 0 ? 0 : lower;
  }
  faults = __reduce_or_sync(0xFFFFFFFFu, faults);
  if (thread % 32 == 31) {
    scratch.of_warp[warp] = through;
    scratch.faults[warp] = faults;
  }
  __syncthreads();

  faults = 0;
  total = SumsOfGroups::zero();
  SumsOfGroups of_warps_before = SumsOfGroups::zero();
  for (int w = 0; w < threads / 32; ++w) {
    if (w == warp) of_warps_before = total;
    total.add(scratch.of_warp[w], max_rows);
    faults |= scratch.faults[w];
  }
  before.add(of_warps_before, max_rows);
  if (total.value[0] > max_rows) faults |= kStatusSplitsExceedRows;
  if (thread == 0) tell(status, faults);
  return faults == 0;
}

}  // namespace group_detail

// Shared memory that locate_tile needs: declare one `__shared__` and pass it. It may be used again after the next barrier.
template <int kTileRows, class... Measures>
struct LocateTile {
  using Sums = group_detail::Sums<Blocks<kTileRows>, Measures...>;
  group_detail::BlockScratch<Sums> scratch;
  GroupTile<static_cast<int>(sizeof...(Measures))> found;
};

// Finds the group of tile number `tile` (tiles are numbered through all groups; the same for the whole block) and the sums of
// `Measures` over the groups before. Called by all threads of a one-dimensional block of whole warps. False, in every thread:
// there is no such tile, or the splits are invalid; the block then has nothing to do.
template <int kTileRows, class... Measures>
__device__ bool locate_tile(const Rows& rows, std::uint32_t tile, LocateTile<kTileRows, Measures...>& shared,
                            std::uint32_t* status, GroupTile<static_cast<int>(sizeof...(Measures))>& found) {
  using Sums = typename LocateTile<kTileRows, Measures...>::Sums;
  constexpr int kMeasures = static_cast<int>(sizeof...(Measures));
  const auto max_rows = static_cast<std::uint32_t>(rows.capacity);

  if (rows.splits == nullptr) {
    found.group = 0;
    found.first_row = 0;
    found.rows = max_rows;
    found.tile = tile;
#pragma unroll
    for (int i = 0; i < kMeasures; ++i) found.before[i] = 0;
    return tile < Blocks<kTileRows>::of(max_rows);
  }

  if (rows.groups <= 32) {  // each warp alone: lane t holds group t
    unsigned faults = 0;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::uint32_t own_rows = lane < rows.groups ? group_detail::read_split(rows, lane, faults) : 0;
    const Sums own = Sums::of(own_rows);
    const Sums through = group_detail::scan_warp(own, max_rows);
    faults = __reduce_or_sync(0xFFFFFFFFu, faults);
    if (__shfl_sync(0xFFFFFFFFu, through.value[0], 31) > max_rows) faults |= kStatusSplitsExceedRows;
    if (faults != 0) {
      if (threadIdx.x == 0) group_detail::tell(status, faults);
      return false;
    }
    const unsigned after = __ballot_sync(0xFFFFFFFFu, through.value[1] > tile);  // the first such group holds the tile
    if (after == 0) return false;
    const int owner = __ffs(static_cast<int>(after)) - 1;
    const auto before = [&](int i) { return __shfl_sync(0xFFFFFFFFu, through.value[i] - own.value[i], owner); };
    found.group = static_cast<std::uint32_t>(owner);
    found.first_row = before(0);
    found.rows = __shfl_sync(0xFFFFFFFFu, own_rows, owner);
    found.tile = tile - before(1);
#pragma unroll
    for (int i = 0; i < kMeasures; ++i) found.before[i] = before(2 + i);
    return true;
  }

  int first, last;
  Sums sums, total;
  if (!group_detail::scan_block(rows, shared.scratch, status, first, last, sums, total)) return false;
  if (tile >= total.value[1]) return false;
  unsigned no_faults = 0;
  for (int t = first; t < last && sums.value[1] <= tile; ++t) {  // of all threads' groups, just one holds the tile
    const std::uint32_t own_rows = group_detail::read_split(rows, t, no_faults);
    const Sums own = Sums::of(own_rows);
    if (tile - sums.value[1] < own.value[1]) {
      shared.found.group = static_cast<std::uint32_t>(t);
      shared.found.first_row = sums.value[0];
      shared.found.rows = own_rows;
      shared.found.tile = tile - sums.value[1];
#pragma unroll
      for (int i = 0; i < kMeasures; ++i) shared.found.before[i] = sums.value[2 + i];
    }
    sums.add(own, max_rows);
  }
  __syncthreads();
  found = shared.found;
  return true;
}

// The sums of every group, in shared memory: sum<0> is rows (first row of each group), sum<1 + i> measure i; entry t is
// over the groups before t, entry `groups` over all. 4 KiB for each measure and for the rows.
template <class... Measures>
struct GroupTable {
  using Sums = group_detail::Sums<Measures...>;
  static constexpr int kCount = Sums::kCount;
  std::uint32_t sums[kCount][kMaxGroups + 1];
  group_detail::BlockScratch<Sums> scratch;

  // Called by all threads of a one-dimensional block of whole warps; ends with a barrier. False, in every thread: the splits are
  // invalid and the table holds nothing.
  __device__ bool build(const Rows& rows, std::uint32_t* status) {
    if (rows.splits == nullptr) {
      if (threadIdx.x == 0) {
        const Sums all = Sums::of(static_cast<std::uint32_t>(rows.capacity));
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          sums[i][0] = 0;
          sums[i][1] = all.value[i];
        }
      }
      __syncthreads();
      return true;
    }
    const auto max_rows = static_cast<std::uint32_t>(rows.capacity);
    int first, last;
    Sums running, total;
    if (!group_detail::scan_block(rows, scratch, status, first, last, running, total)) return false;
    unsigned no_faults = 0;
    for (int t = first; t < last; ++t) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[i][t] = running.value[i];
      running.add(Sums::of(group_detail::read_split(rows, t, no_faults)), max_rows);
    }
    if (threadIdx.x == 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[i][rows.groups] = total.value[i];
    }
    __syncthreads();
    return true;
  }

  __device__ std::uint32_t first_row(int t) const { return sums[0][t]; }
  __device__ std::uint32_t rows(int t) const { return sums[0][t + 1] - sums[0][t]; }
  // Sum of measure i (0: the first template argument) over the groups before t.
  __device__ std::uint32_t before(int i, int t) const { return sums[1 + i][t]; }
  __device__ std::uint32_t total(int i, int groups) const { return sums[1 + i][groups]; }

  // The group that holds item number `item` of measure i, such as a tile: the last t with before(i, t) <= item. `item` is below
  // total(i, groups).
  __device__ int find(int i, std::uint32_t item, int groups) const {
    int low = 0, high = groups;  // before(low) <= item < before(high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (sums[1 + i][middle] <= item) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
  // The group that holds a row: the same over first_row.
  __device__ int find_row(std::uint32_t row, int groups) const {
    int low = 0, high = groups;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (sums[0][middle] <= row) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

#endif  // __CUDACC__

}  // namespace assay::device
