#pragma once
// The tiles of a ragged matrix by stacks and passes: for blocks of threads that take the tiles of 128 rows one below another. A
// stack is a share of the rows that the groups have in all, in whole windows of 128 rows: it has the tiles that begin there. A
// pass is what a block computes at a time: one tile, or the tiles of several groups of at most 128 rows, each of them whole. In a
// pass such a tile begins at a unit of 8 rows, so that 8 rows of a thread are of one tile:
//
//   unit    0     1     2     3     4     5     6     7     ...   15
//         | 20 rows of group 3 ..| 16 of group 5 |  9 rows of 6  |         one pass of 3 tiles (group 4 is empty)
//   starts  1     0     0     1     0     1     0     0     ...
//
// A group of at most kWholeRows rows is not divided: all its tiles are of the stack that has its first row. Where a stack begins in a
// longer group, its first pass is the tile above, which the stack above has too (the lead): columns of transposed codes then go on
// where that stack leaves them, in the middle of a line.
//
// Every block detects invalid splits and then has no passes; block 0 reports them in the status word.

#include <cstdint>

#include "device/layout/window_tiles.cuh"

namespace assay::device {

// How the windows are shared out: the first `tall` stacks have seven eighths of them, the others the rest, so that a launch whose
// tall stacks all run at once does not wait for the slowest of them. `tall` is at least 1; without others, tall stacks have all.
struct Stacks {
  std::uint32_t tall, count;

#if defined(__CUDACC__)
  // Of a stack, or of the one behind the last: its first window of `windows`.
  __device__ __forceinline__ std::uint32_t first_window(std::uint32_t stack, std::uint32_t windows) const {
    const std::uint32_t of_tall = tall == count ? windows : windows - windows / 8;
    if (stack <= tall) return static_cast<std::uint32_t>(std::uint64_t{of_tall} * stack / tall);
    return of_tall + static_cast<std::uint32_t>(std::uint64_t{windows - of_tall} * (stack - tall) / (count - tall));
  }
#endif
};

#if defined(__CUDACC__)

constexpr std::uint32_t kWholeRows = 1024;
constexpr int kUnitRows = 8;
constexpr int kPassUnits = kWindowRows / kUnitRows;

// kTiles: the most that a pass can have, 1 or kPassUnits.
template <int kTiles>
struct TilePass {
  unsigned starts;          // a bit for each unit where a tile begins; 0: there is no such pass
  WindowTile tile[kTiles];  // as many as `starts` has bits
  unsigned unit[kTiles];    // the first of each

  // Which tile has a unit. Units behind the last tile count as its own, beyond its rows.
  __device__ __forceinline__ unsigned index_of(int own_unit) const { return __popc(starts & ((2u << own_unit) - 1)) - 1; }
};

// In shared memory, one per block. See scale_layout.cuh for Measure, TilePass for kTiles.
template <class Measure, int kTiles>
struct TilePasses {
  using Pass = TilePass<kTiles>;
  using Sums = group_detail::Sums<Blocks<kWindowRows>, Measure>;
  // The next tile: of a group, or past its last one.
  struct Position {
    std::uint32_t group, first_row, rows, tile, number, before;  // number: of the group's first tile
  };
  static constexpr unsigned kSlots = 3;  // one is planned while warps read the pass before it, and late ones the pass before that

  group_detail::BlockScratch<Sums> scratch;
  Position next;
  std::uint32_t begin_row, end_row;  // of the stack, in the buffer
  Pass slot[kSlots];

  // False, in every thread: the stack has no tiles. Called by all threads of a one-dimensional block of whole warps; ends with a
  // barrier unless it gives false.
  __device__ bool begin(const Rows& rows, std::uint32_t stack, const Stacks& stacks, std::uint32_t* status) {
    const auto max_rows = static_cast<std::uint32_t>(rows.capacity);
    const auto share = [&](std::uint32_t all_rows, std::uint32_t& from, std::uint32_t& to) {
      const std::uint32_t windows = Blocks<kWindowRows>::of(all_rows);
      from = stacks.first_window(stack, windows) * kWindowRows;
      to = stacks.first_window(stack + 1, windows) * kWindowRows;
    };
    std::uint32_t from, to;
    if (rows.splits == nullptr) {
      share(max_rows, from, to);
      if (from == to) return false;
      if (threadIdx.x == 0) next = {0, 0, max_rows, first_tile(max_rows, from), 0, 0};
    } else {
      int first, last;
      Sums running, total;
      if (!group_detail::scan_block(rows, scratch, status, first, last, running, total)) return false;
      share(total.value[0], from, to);
      if (from == to) return false;
      unsigned no_faults = 0;
      for (int t = first; t < last && running.value[0] <= from; ++t) {  // of all groups, just one has the row
        const std::uint32_t own_rows = group_detail::read_split(rows, t, no_faults), past = from - running.value[0];
        if (past < own_rows) {
          next = {static_cast<std::uint32_t>(t), running.value[0], own_rows,
                  first_tile(own_rows, past),    running.value[1], running.value[2]};
        }
        running.add(Sums::of(own_rows), max_rows);
      }
    }
    if (threadIdx.x == 0) {
      begin_row = from;
      end_row = to;
    }
    __syncthreads();
    return true;
  }

  // Whether the stack has all tiles of a tile's group.
  __device__ __forceinline__ bool has_group_of(const WindowTile& tile) const {
    if (tile.rows <= kWholeRows) return true;
    return tile.first_row >= begin_row && tile.first_row + (tile.rows - 1) / kWindowRows * kWindowRows < end_row;
  }
  // Whether a tile is of the stack above.
  __device__ __forceinline__ bool is_lead(const WindowTile& tile) const {
    return tile.rows > kWholeRows && tile.first_row + tile.tile * kWindowRows < begin_row;
  }

  // The next pass. Called by one warp, always the same one; others see it after a barrier.
  __device__ void plan(const Rows& rows, Pass& pass) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Position at = next_of_lane_0(lane);
    if (at.tile * kWindowRows >= at.rows) to_next_group(rows, lane, at);
    unsigned starts = 0;
    if (at.rows != 0 && at.first_row + (at.rows <= kWholeRows ? 0 : at.tile * kWindowRows) < end_row) {
      if (kTiles != 1 && at.rows <= kWindowRows) {
        starts = plan_groups(rows, lane, at, pass);
      } else {
        starts = 1;
        if (lane == 0) {
          pass.tile[0] = {at.first_row, at.rows, at.tile, at.number + at.tile, at.before, at.group};
          pass.unit[0] = 0;
        }
        ++at.tile;
      }
    }
    if (lane == 0) {
      pass.starts = starts;
      next = at;
    }
  }

 private:
  // The tile of a group that a stack begins with, if it begins at row `past` of the group; behind the last one: none.
  static __device__ __forceinline__ std::uint32_t first_tile(std::uint32_t rows, std::uint32_t past) {
    const std::uint32_t tiles = Blocks<kWindowRows>::of(rows), tile = Blocks<kWindowRows>::of(past);
    if (past == 0 || tile == tiles) return tile;
    return rows <= kWholeRows ? tiles : tile - 1;
  }

  // Lane 0 alone reads and writes `next`, so that no lane is early or late.
  __device__ __forceinline__ Position next_of_lane_0(int lane) const {
    Position at = {};
    if (lane == 0) at = next;
    return {__shfl_sync(0xFFFFFFFFu, at.group, 0),  __shfl_sync(0xFFFFFFFFu, at.first_row, 0),
            __shfl_sync(0xFFFFFFFFu, at.rows, 0),   __shfl_sync(0xFFFFFFFFu, at.tile, 0),
            __shfl_sync(0xFFFFFFFFu, at.number, 0), __shfl_sync(0xFFFFFFFFu, at.before, 0)};
  }

  static __device__ __forceinline__ std::uint32_t rows_of_group(const Rows& rows, std::uint32_t t) {
    unsigned no_faults = 0;
    const auto groups = static_cast<std::uint32_t>(rows.splits == nullptr ? 0 : rows.groups);
    return t < groups ? group_detail::read_split(rows, static_cast<int>(t), no_faults) : 0;
  }

  // To the next group that has rows; `at.rows` is 0 if there is none.
  static __device__ __forceinline__ void to_next_group(const Rows& rows, int lane, Position& at) {
    at.first_row += at.rows;
    at.number += Blocks<kWindowRows>::of(at.rows);
    at.before += Measure::of(at.rows);
    at.tile = 0;
    at.rows = 0;
    const auto groups = static_cast<std::uint32_t>(rows.splits == nullptr ? 0 : rows.groups);
    for (std::uint32_t first = at.group + 1; first < groups; first += 32) {
      const std::uint32_t own = rows_of_group(rows, first + static_cast<unsigned>(lane));
      const unsigned holders = __ballot_sync(0xFFFFFFFFu, own != 0);
      if (holders == 0) continue;
      const int holder = __ffs(static_cast<int>(holders)) - 1;
      at.group = first + static_cast<unsigned>(holder);
      at.rows = __shfl_sync(0xFFFFFFFFu, own, holder);
      return;
    }
  }

  // As many groups as a pass has room for, from the one of `at`, which is small enough. `at` is then past the last of them.
  __device__ __forceinline__ unsigned plan_groups(const Rows& rows, int lane, Position& at, Pass& pass) const {
    Position own;  // lane t looks at the t-th group from there
    own.group = at.group + static_cast<unsigned>(lane);
    own.rows = lane == 0 ? at.rows : rows_of_group(rows, own.group);
    const std::uint32_t units = min(Blocks<kUnitRows>::of(own.rows), kPassUnits + 1u), measure = Measure::of(own.rows);
    std::uint32_t through_rows = own.rows, through_units = units, through_measure = measure;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower_rows = __shfl_up_sync(0xFFFFFFFFu, through_rows, step);
      const std::uint32_t lower_units = __shfl_up_sync(0xFFFFFFFFu, through_units, step);
      const std::uint32_t lower_measure = __shfl_up_sync(0xFFFFFFFFu, through_measure, step);
      if (lane < step) continue;
      through_rows += lower_rows;
      through_units += lower_units;
      through_measure += lower_measure;
    }
    own.first_row = at.first_row + through_rows - own.rows;
    const bool has = own.rows != 0 && through_units <= kPassUnits && own.first_row < end_row;
    const unsigned holders = __ballot_sync(0xFFFFFFFFu, has), index = __popc(holders & ((1u << lane) - 1));
    own.number = at.number + index;
    own.before = at.before + through_measure - measure;
    if (has) {
      pass.tile[index] = {own.first_row, own.rows, 0, own.number, own.before, own.group};
      pass.unit[index] = through_units - units;
    }
    const int last = 63 - __clzll(holders);
    at.group = __shfl_sync(0xFFFFFFFFu, own.group, last);
    at.first_row = __shfl_sync(0xFFFFFFFFu, own.first_row, last);
    at.rows = __shfl_sync(0xFFFFFFFFu, own.rows, last);
    at.number = __shfl_sync(0xFFFFFFFFu, own.number, last);
    at.before = __shfl_sync(0xFFFFFFFFu, own.before, last);
    at.tile = 1;
    return __reduce_or_sync(0xFFFFFFFFu, has ? 1u << (through_units - units) : 0u);
  }
};

#endif  // __CUDACC__

}  // namespace assay::device
