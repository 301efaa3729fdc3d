#pragma once
// NVFP4, stores of codes and scales: how they lie in shared memory, where neighbours of different lanes are combined, and
// from there to memory, in rows, transposed columns and matrices of scales.

#include <cstdint>

#include "device/layout/scale_layout.cuh"
#include "device/quantize/nvfp4/call.h"
#include "device/quantize/nvfp4/thread_layout.cuh"
#include "device/support/vectors.h"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// Codes and scales of a tile before they are stored. The order of rows and columns avoids bank conflicts.
struct Stage {
  uint4 row_codes[kSquares][kTile * 2 + 4];       // [square][slot of row][2 units of 16 B]; squares begin in different banks
  std::uint32_t column_codes[kTileColumns * 16];  // [column][16 words]
  uint2 row_scales[kTile];                        // [row][8 blocks]
  uint2 column_scales[kTileColumns];              // [column][8 blocks]

  // Of 16 rows, those that are 4 apart are neighbours. Its own inverse.
  static __device__ __forceinline__ int row_slot(int row) { return (row & ~15) | (row & 3) << 2 | (row >> 2 & 3); }
  static __device__ __forceinline__ int column_word(int column, int word) {
    return column * 16 + ((word >> 1 ^ (column >> 3 & 7)) << 1 | (word & 1));
  }
};
ASSAY_HOLDS_VECTORS(uint2, Stage, column_codes);

// A line of 0 or more times its length.
__device__ __forceinline__ std::int64_t times(int line, std::int64_t length) {
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(line) * static_cast<std::uint64_t>(length));
}

// The first `count` bytes of 16.
__device__ __forceinline__ void store_unit(std::uint8_t* to, const uint4& unit, int count) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (count >= 16 && address % 16 == 0) {
    *reinterpret_cast<uint4*>(to) = unit;
    return;
  }
  const std::uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (count >= 4 * w + 4 && address % 4 == 0) {
      reinterpret_cast<std::uint32_t*>(to)[w] = words[w];
      continue;
    }
#pragma unroll
    for (int i = 4 * w; i < 4 * w + 4; ++i) {
      if (i < count) to[i] = static_cast<std::uint8_t>(words[w] >> (8 * (i % 4)));
    }
  }
}

// A column of codes of `bytes` bytes to where only bytes are known to be aligned, by 16 lanes: whole words, each put
// together from two of the stage; and by the first 8 of the lanes the bytes at both ends.
__device__ __forceinline__ void store_column(const Stage& stage, int column, std::uint8_t* to, int bytes, int lane) {
  const int past = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) & 3);
  const int first = 4 * lane - past;  // byte of the column where the lane's word begins
  const std::uint32_t own = stage.column_codes[Stage::column_word(column, lane)];
  const std::uint32_t before = stage.column_codes[Stage::column_word(column, max(lane - 1, 0))];
  if (first >= 0 && first + 4 <= bytes) {
    *reinterpret_cast<std::uint32_t*>(to + first) = __funnelshift_l(before, own, 8 * past);
  }
  if (lane >= 8) return;
  const int end = ((past + bytes) & ~3) - past;  // of whole words; below 0: the first bytes are all
  const int byte = lane < 4 ? lane : end + lane - 4;
  const bool stored = lane < 4 ? past != 0 && byte < 4 - past : end >= 0;
  if (stored && byte < bytes) {
    to[byte] = static_cast<std::uint8_t>(stage.column_codes[Stage::column_word(column, byte / 4)] >> (8 * (byte % 4)));
  }
}

// Scales of block numbers first ... first + 3 of line `begin + own` of a group's stored matrix, `blocks` of which are used. `begin`
// is the same for all threads, so that they multiply only their own line, which is below 2^32.
__device__ __forceinline__ void store_scales(std::uint8_t* group, std::int64_t begin, int own, std::int64_t first,
                                             std::int64_t blocks, std::int64_t pitch, bool inside, bool swizzled,
                                             std::uint32_t scales) {
  if (first >= pitch || (!swizzled && !inside)) return;
  std::uint8_t* const to = swizzled ? group + swizzled_scale_index(begin + own, first, pitch / 4)
                                    : group + (begin * pitch + first) + times(own, pitch);
  const std::int64_t left = blocks - first;
  if ((swizzled || left >= 4) && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
    *reinterpret_cast<std::uint32_t*>(to) = scales;
    return;
  }
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    if (swizzled || b < left) to[b] = static_cast<std::uint8_t>(scales >> (8 * b));
  }
}

// The same of eight.
__device__ __forceinline__ void store_scales(std::uint8_t* group, std::int64_t begin, int own, std::int64_t first,
                                             std::int64_t blocks, std::int64_t pitch, bool inside, bool swizzled, uint2 scales) {
  if (!swizzled && inside && blocks - first >= 8) {
    std::uint8_t* const to = group + (begin * pitch + first) + times(own, pitch);
    if (reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
      *reinterpret_cast<uint2*>(to) = scales;
      return;
    }
  }
  store_scales(group, begin, own, first, blocks, pitch, inside, swizzled, scales.x);
  store_scales(group, begin, own, first + 4, blocks, pitch, inside, swizzled, scales.y);
}

enum Parts : unsigned { kRowPart = 1, kColumnPart = 2 };

static_assert(kThreads == kTile + kTileColumns && kThreads == 4 * kSquareColumns);

// By all threads of a block.
template <unsigned kParts>
__device__ __forceinline__ void store_stage(const Nvfp4Tiles& a, const Tile& at, const Stage& stage, bool with_rows,
                                            bool with_columns) {
  using RowLayout = ScaleLayoutOf<Recipe::nvfp4, Direction::rowwise>;
  using ColumnLayout = ScaleLayoutOf<Recipe::nvfp4, Direction::columnwise>;
  const int thread = static_cast<int>(threadIdx.x % kThreads);
  if ((kParts & kRowPart) && with_rows && a.row_data != nullptr) {
    std::uint8_t* const tile = a.row_data + (at.group_first + at.first_row * a.columns + at.first_column) / 2;
#pragma unroll
    for (int part = 0; part < kSquares; ++part) {
      const int index = part * kThreads + thread, slot = index >> 2, unit = index & 3, row = Stage::row_slot(slot);
      if (row < at.rows) {
        store_unit(tile + times(row, a.columns / 2) + 16 * unit, stage.row_codes[unit >> 1][slot * 2 + (unit & 1)],
                   at.columns / 2 - 16 * unit);
      }
    }
  }
  if (with_columns && a.column_data != nullptr) {
    std::uint8_t* const to = a.column_data + (at.group_first + at.first_column * at.of_group.rows + at.first_row) / 2;
    const std::uint32_t pitch = at.of_group.rows / 2;
    if ((reinterpret_cast<std::uintptr_t>(to) | pitch) % 16 == 0 && at.rows % 32 == 0) {
      const auto* const pairs = reinterpret_cast<const uint2*>(stage.column_codes);
#pragma unroll
      for (int part = 0; part < kSquares; ++part) {
        const int column = part * kSquareColumns + (thread >> 2), unit = thread & 3;
        if (column >= at.columns || 32 * unit >= at.rows) continue;
        const uint2 low = pairs[Stage::column_word(column, 4 * unit) / 2];
        const uint2 high = pairs[Stage::column_word(column, 4 * unit + 2) / 2];
        reinterpret_cast<uint4*>(to + times(column, pitch))[unit] = uint4{low.x, low.y, high.x, high.y};
      }
    } else {
#pragma unroll
      for (int part = 0; part < kTileColumns * 16 / kThreads; ++part) {
        const int column = part * (kThreads / 16) + thread / 16;
        if (column < at.columns) store_column(stage, column, to + std::int64_t{pitch} * column, at.rows / 2, thread % 16);
      }
    }
  }
  if (thread < kTile) {
    if ((kParts & kRowPart) && with_rows && a.row_scale != nullptr) {
      const std::int64_t pitch = RowLayout::pitch(at.of_group.rows, a.columns);
      std::uint8_t* const group = a.row_scale + std::int64_t{at.of_group.tiles_before} * kTile * pitch;
      store_scales(group, at.first_row, thread, at.first_column / kBlock, ceil_div(a.columns, kBlock), pitch, thread < at.rows,
                   a.swizzled, stage.row_scales[thread]);
    }
  } else if (with_columns && a.column_scale != nullptr) {
    const int column = thread - kTile;
    const std::int64_t pitch = ColumnLayout::pitch(at.of_group.rows, a.columns);
    std::uint8_t* const group = a.column_scale + std::int64_t{at.of_group.columns_before} * ColumnLayout::factor(a.columns);
    store_scales(group, at.first_column, column, at.first_row / kBlock, ceil_div(at.of_group.rows, kBlock), pitch,
                 column < at.columns, a.swizzled, stage.column_scales[column]);
  }
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
