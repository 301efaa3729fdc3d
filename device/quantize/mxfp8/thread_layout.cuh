#pragma once
// MXFP8, thread layout: the tile of 128 x 128 elements that a block of 128 threads has, and the strip of 32 rows x 4 columns
// that a lane holds in registers.
//
//                columns 0 .. 3    4 .. 7     ...   124 .. 127
//   rows  0- 31 | lane 0          | lane 1   | ... | lane 31   |   warp 0       columnwise block: 32 rows of a column,
//   rows 32- 63 | lane 0          | lane 1   | ... | lane 31   |   warp 1           within a lane
//   rows 64- 95 | lane 0          | lane 1   | ... | lane 31   |   warp 2       rowwise block: 32 columns of a row,
//   rows 96-127 | lane 0          | lane 1   | ... | lane 31   |   warp 3           in 8 lanes

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/quantize/mxfp8/call.h"

#if defined(__CUDACC__)

namespace assay::device::mxfp8 {

constexpr int kTile = 128;
constexpr int kBlock = 32;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// The 32 rows x 4 columns of a lane.
template <Format X>
struct Strip {
  static constexpr int kWords = 4 / Element<X>::kPerWord;
  std::uint32_t word[kBlock][kWords];

  __device__ __forceinline__ float value(int row, int column) const {
    return Element<X>::widen(word[row][column / Element<X>::kPerWord], column % Element<X>::kPerWord);
  }
};

// The address of the next row. The asm keeps the compiler from computing all addresses of a strip in advance: there are 32 of
// each kind, and they would take the registers that the strip needs.
template <class T>
__device__ __forceinline__ void advance(T*& row, std::int64_t bytes) {
  row += bytes;
  asm volatile("" : "+l"(row));
}

// `x` is the strip's first element, `columns` the distance between rows; rows and columns of the strip that lie
// inside.
template <Format X, bool kAligned>
__device__ __forceinline__ void load_strip(Strip<X>& strip, const void* x, std::int64_t columns, int rows_inside,
                                           int columns_inside) {
  constexpr int kBytes = Element<X>::kBytes;
  const auto* row = static_cast<const unsigned char*>(x);
#pragma unroll
  for (int i = 0; i < kBlock; ++i, advance(row, columns * kBytes)) {
    const bool inside = i < rows_inside;
    if constexpr (kAligned) {  // the columns are a multiple of 4: all inside or none
      const bool present = inside && columns_inside > 0;
      if constexpr (kBytes == 2) {
        const uint2 both = present ? *reinterpret_cast<const uint2*>(row) : uint2{0, 0};
        strip.word[i][0] = both.x, strip.word[i][1] = both.y;
      } else {
        const uint4 all = present ? *reinterpret_cast<const uint4*>(row) : uint4{0, 0, 0, 0};
        strip.word[i][0] = all.x, strip.word[i][1] = all.y, strip.word[i][2] = all.z, strip.word[i][3] = all.w;
      }
    } else {
#pragma unroll
      for (int w = 0; w < Strip<X>::kWords; ++w) strip.word[i][w] = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!inside || c >= columns_inside) continue;
        if constexpr (kBytes == 4) {
          strip.word[i][c] = reinterpret_cast<const unsigned int*>(row)[c];
        } else {
          const std::uint32_t code = reinterpret_cast<const unsigned short*>(row)[c];
          strip.word[i][c / 2] |= code << (16 * (c % 2));
        }
      }
    }
  }
}

struct Tile {
  std::uint32_t first_row;  // of the group, in the buffer
  std::uint32_t rows;       // of the group, 1 or more
  std::uint32_t tile;       // in the group
  std::uint32_t number;     // numbered through all groups
};

// Where the strip of a thread lies, and how much of it lies inside. kFull: the tile has 128 rows and 128 columns, and
// bounds are not checked.
template <bool kFull>
struct Place {
  int lane, warp;
  std::int64_t column;
  int rows_inside, columns_inside;
  std::int64_t begin;  // of the strip in the matrix

  __device__ __forceinline__ Place(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile) {
    lane = static_cast<int>(threadIdx.x) % 32;
    warp = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t first_row = std::int64_t{tile.first_row} + std::int64_t{tile.tile} * kTile + warp * kBlock;
    column = std::int64_t{column_tile} * kTile + lane * 4;
    rows_inside = kFull ? kBlock : static_cast<int>(min(tile.rows - tile.tile * kTile, std::uint32_t{kTile})) - warp * kBlock;
    columns_inside = kFull ? 4 : static_cast<int>(min(a.columns - column, std::int64_t{4}));
    begin = first_row * a.columns + column;
  }
};

}  // namespace assay::device::mxfp8

#endif  // __CUDACC__
