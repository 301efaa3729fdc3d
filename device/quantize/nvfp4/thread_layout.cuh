#pragma once
// NVFP4, thread layout: the sizes of tiles and blocks, the tile of a block of threads and its group, the
// squares of 16 x 64 of a warp within the tile, one after the other, and the lane's place in one.
//
//             columns 0 .. 63   64 .. 127
//   rows   0- 15 | warp 0, first  | warp 0, second |
//   rows  16- 31 | warp 1, first  | warp 1, second |
//   ...          |                |                |
//   rows 112-127 | warp 7, first  | warp 7, second |
//
//               columns 0 .. 7    8 .. 15          48 .. 55   56 .. 63         g = lane / 4: columns 8g .. 8g + 7
//   rows  0- 3 | lane 0          | lane 4  | ... | lane 24   | lane 28   |     q = lane % 4: rows 4q .. 4q + 3
//   rows  4- 7 | lane 1          | lane 5  | ... | lane 25   | lane 29   |
//   rows  8-11 | lane 2          | lane 6  | ... | lane 26   | lane 30   |     a row's block of 16: 2 lanes, 4 apart
//   rows 12-15 | lane 3          | lane 7  | ... | lane 27   | lane 31   |     a column's block of 16: 4 neighbouring lanes

#include <cstdint>

#include "device/quantize/nvfp4/call.h"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

constexpr int kTile = 128;
constexpr int kBlock = 16;
constexpr int kThreads = 256;
constexpr int kTileColumns = 128;
constexpr int kSquareColumns = 64;
constexpr int kSquares = kTileColumns / kSquareColumns;  // of a warp
constexpr int kBlocksPerSm = 5;  // of 16-bit elements: 48 registers per thread; with 40, for 6 blocks, rows spill
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

struct Lane {
  int lane, q, g;
  __device__ Lane()
      : lane(static_cast<int>(threadIdx.x % 32)),
        q(static_cast<int>(threadIdx.x % 4)),
        g(static_cast<int>(threadIdx.x % 32 / 4)) {}
};

// Where a square lies, and how much of the lane's patch lies inside.
struct Place {
  int square;
  int row, column;  // the patch's first, in the tile
  int rows_inside, columns_inside;
};

// A tile of 128 rows x 128 columns.
struct Tile {
  // `number`: of 128 rows, numbered through all groups; `tile`: in the group.
  std::uint32_t group, number, tile;
  Nvfp4Group of_group;
  std::int64_t group_first;              // the group's first element
  std::int64_t first_row, first_column;  // in the group
  int rows, columns;                     // inside

  // False: there is no such tile. With splits, if the whole call is skipped, nothing has been stored.
  __device__ __forceinline__ bool find(const Nvfp4Tiles& a, std::uint32_t block, bool skipped) {
    number = block / a.column_tiles;
    const std::uint32_t column_tile = block - number * a.column_tiles;
    if (a.rows.splits == nullptr) {
      group = 0;
      of_group = {0, static_cast<std::uint32_t>(a.rows.capacity), 0, 0};
    } else {
      group = __ldg(a.group_of_tile + number);
      if (skipped || group == kNvfp4NoGroup) return false;
      const uint4 words = __ldg(reinterpret_cast<const uint4*>(a.groups + group));
      of_group = {words.x, words.y, words.z, words.w};
    }
    tile = number - of_group.tiles_before;
    group_first = std::int64_t{of_group.first_row} * a.columns;
    first_row = std::int64_t{tile} * kTile;
    first_column = std::int64_t{column_tile} * kTileColumns;
    rows = static_cast<int>(min(of_group.rows - tile * kTile, std::uint32_t{kTile}));
    columns = static_cast<int>(min(a.columns - first_column, std::int64_t{kTileColumns}));
    return true;
  }

  // The lane's part of one of the warp's squares.
  __device__ __forceinline__ Place square(const Lane& lane, int square) const {
    const int warp = static_cast<int>(threadIdx.x / 32);
    Place place;
    place.square = square;
    place.row = warp * kBlock + 4 * lane.q;
    place.column = kSquareColumns * square + 8 * lane.g;
    place.rows_inside = rows - place.row;
    place.columns_inside = columns - place.column;
    return place;
  }
  __device__ __forceinline__ std::int64_t begin(const Place& place, std::int64_t all_columns) const {
    return group_first + (first_row + place.row) * all_columns + first_column + place.column;
  }
  __device__ __forceinline__ std::int64_t column_begin(const Place& place) const {
    return group_first + (first_column + place.column) * of_group.rows + first_row + place.row;
  }
};

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
