#pragma once
// FP8 block scaling, thread layout: the tile of 128 x 128 elements that a block of 256 threads has, and the patch of 8 x 8
// elements that a thread holds in registers.
//
//                 column group 0   1   ...   15         a column group: 8 columns
//                 +--------------+----+-----+----+
//   row group 0   | thread 0     | 1  | ... | 15 |      lanes 0 to 15 of warp 0
//   row group 1   | thread 16    | 17 | ... | 31 |      lanes 16 to 31 of warp 0
//   row group 2   | thread 32    | 33 | ... | 47 |      warp 1
//   ...           |              |    |     |    |
//   row group 15  | thread 240   |    | ... | 255|      a row group: 8 rows
//                 +--------------+----+-----+----+
//
// So the 128 elements of a row lie in 16 lanes, and those of a column in 16 threads of 8 warps.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/layout/window_tiles.cuh"
#include "device/quantize/fp8_block/call.h"
#include "device/quantize/matrix_patch.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

constexpr int kBlock = 128;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Tiles per SM, which determines the registers of a thread. Without FP8 instructions the conversion needs more registers.
template <Format X>
constexpr int tiles_per_sm() {
  if (Element<X>::kBytes == 4) return 2;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return 3;
#else
  return 4;
#endif
}

// The 8 x 8 elements of a thread.
template <Format X>
using Patch = MatrixPatch<X, 8>;

// The part of a tile that a thread has.
struct Place {
  int thread, lane, warp;
  int column_group, row_group;  // the row group in the tile
  std::int64_t first_column;    // of the tile
  int rows, columns;            // of the tile, inside the group and the matrix
  std::int64_t patch_begin;     // the patch's first element in the matrix
  std::int64_t patch_row;       // its first row there

  // `unit`: the row group of the block at which the tile begins.
  __device__ __forceinline__ Place(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile, int unit = 0)
      : thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        warp(thread / 32),
        column_group(thread % 16),
        row_group(thread / 16 - unit) {
    find(a, tile, column_tile);
  }
  // Where a warp has one row group, and half a warp a tile (quantize_wide.cuh).
  __device__ __forceinline__ Place(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile, int own_lane,
                                   int own_warp)
      : thread(static_cast<int>(threadIdx.x)), lane(own_lane), warp(own_warp), column_group(own_lane % 16), row_group(own_warp) {
    find(a, tile, column_tile);
  }

 private:
  __device__ __forceinline__ void find(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile) {
    const std::int64_t first_row = std::int64_t{tile.first_row} + std::int64_t{tile.tile} * kBlock;
    first_column = std::int64_t{column_tile} * kBlock;
    rows = static_cast<int>(min(tile.rows - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
    columns = static_cast<int>(min(a.columns - first_column, std::int64_t{kBlock}));
    patch_begin = (first_row + row_group * 8) * a.columns + first_column + column_group * 8;
    patch_row = first_row + row_group * 8;
  }
};

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
