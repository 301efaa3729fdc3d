#pragma once
// MXFP8, one tile of 128 x 128 elements per block of threads: x is read once, and everything requested of it
// (rowwise and columnwise codes and scales, column sums for dbias) comes from that one reading. It takes every call;
// 16-bit x without dbias, 2-D tiles and unaligned addresses has faster kernels (quantize_rows.cuh, quantize_blocks.cuh).
//
//   traffic   16-bit x: 2 B read, 1 B written per element and direction, 1 B of scale per 32; dbias adds 4 B written
//             per 128:  3.03, 4.06 and 4.09 B/element. 32-bit x: 2 B more
//   bound     HBM for one tensor, at over eight tenths of the rate of a copy: a block reads, sums and only then
//             writes. In ragged problems also the missing rows of the last tile of a group, whose warps are idle: with
//             groups of about 128 rows, and dbias, half of that rate
//   layout    4 warps; a warp holds 32 rows of 128 columns, a lane 4 columns of all its 32 rows: a column's block of
//             32 lies within a lane, a row's block in 8 lanes. All 32 loads of a lane (8 B each, 256 B of a row at
//             once) are in flight together: 8 KiB per warp, and 4 tiles per SM (16-bit x).
//   rowwise   amax over 8 lanes by shuffles that halve, each time, the rows that a lane handles: a lane ends with 4
//             rows, makes their scales, and the 8 lanes share the multipliers (16 bits hold a power of two). 128 B of
//             codes per store
//   columnwise  amax, scale and codes within a lane; data are not transposed. 128 B of codes per store
//   dbias     a lane adds its 32 rows from where the warp above it in the half of 64 rows ended
//   order     amax is a maximum of magnitudes: no order can change it. dbias: the order of reference/recipes/dbias.h
//   matches   reference/recipes/mxfp8.h
//
// A tile is never shared between groups. Rows and columns past the end of a group or of the matrix are held as +0,
// which changes neither an amax nor a sum, and whose scale is 0, the padding of swizzled scales. A tile has exactly one
// swizzled tile of 512 scales in each direction.

#include <cstdint>

#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/quantize/mxfp8/amax.cuh"
#include "device/quantize/mxfp8/thread_layout.cuh"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"
#include "device/support/vectors.h"

#if defined(__CUDACC__)

namespace assay::device::mxfp8 {

// Blocks on an SM: without FP8 instructions the conversion needs more registers.
constexpr int blocks_per_sm(int with_instructions) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return with_instructions / 2;
#else
  return with_instructions;
#endif
}

// The parts that a kernel is compiled for. A call may request fewer.
enum Parts : unsigned { kRowPart = 1, kColumnPart = 2, kDbiasPart = 4 };

struct Shared {
  alignas(16) float sums[2][kTile];                // of a half of 64 rows
  std::uint32_t column_scale[kTile / kBlock][32];  // 4 columns per word
};
ASSAY_HOLDS_VECTORS(float4, Shared, sums);

template <bool kAligned>
__device__ __forceinline__ void store_codes(std::uint8_t* to, std::uint32_t codes, int columns_inside) {
  if constexpr (kAligned) {
    if (columns_inside > 0) *reinterpret_cast<unsigned int*>(to) = codes;
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (c < columns_inside) to[c] = static_cast<std::uint8_t>(codes >> (8 * c));
    }
  }
}

// The first `count` of 4 neighbouring scales.
__device__ __forceinline__ void store_scales(std::uint8_t* to, std::uint32_t scales, int count, bool vectors) {
  if (vectors && count >= 4) {
    *reinterpret_cast<std::uint32_t*>(to) = scales;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < count) to[i] = static_cast<std::uint8_t>(scales >> (8 * i));
  }
}

// The steps of a strip.

// Amaxes: of 4 rows over the block that the lane belongs to, and of its 4 columns. In 2-D mode one for all of a 32 x 32 tile.
template <Format X, unsigned kParts>
__device__ __forceinline__ void find_amaxes(const Mxfp8Tiles& a, const Strip<X>& strip, int lane, std::uint32_t (&row_amax)[4],
                                            std::uint32_t (&column_amax)[4]) {
  if (kParts & kColumnPart || a.two_dimensional) column_amaxes(strip, column_amax);
  if (a.two_dimensional) {
    std::uint32_t all = max(max(column_amax[0], column_amax[1]), max(column_amax[2], column_amax[3]));
#pragma unroll
    for (int step = 1; step < 8; step *= 2) all = max(all, __shfl_xor_sync(kAllLanes, all, step));
#pragma unroll
    for (int i = 0; i < 4; ++i) row_amax[i] = column_amax[i] = all;
  } else if constexpr (kParts & kRowPart) {
    row_amaxes(strip, lane, row_amax);
  }
}

// `scales`: of the lane's 4 rows, a byte each.
template <bool kFull>
__device__ __forceinline__ void store_row_scales(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile,
                                                 const Place<kFull>& place, std::uint32_t scales) {
  using RowLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  const int lane = place.lane, warp = place.warp, rows_inside = place.rows_inside;
  // From 4 rows of a block to the 4 blocks of one row: row 4 (lane % 8) + lane / 8.
  const int block = lane / 8, row = 4 * (lane % 8) + block;
  std::uint32_t of_block[4];
#pragma unroll
  for (int b = 0; b < 4; ++b) of_block[b] = __shfl_sync(kAllLanes, scales, lane % 8 + 8 * b);
  const unsigned pick = 0x40u + 0x11u * static_cast<unsigned>(block);
  std::uint32_t of_row =
      __byte_perm(__byte_perm(of_block[0], of_block[1], pick), __byte_perm(of_block[2], of_block[3], pick), 0x5410);
  const std::int64_t pitch = RowLayout::pitch(0, a.columns);
  if (a.swizzled) {
    if (row >= rows_inside) of_row = 0;  // in 2-D mode missing rows have a scale too
    const std::int64_t at = (tile.number * (pitch / 4) + column_tile) * 512 + row * 16 + warp * 4;
    store_scales(a.row_scale + at, of_row, 4, a.scale_vectors);
  } else if (row < rows_inside) {
    const std::int64_t block_number = std::int64_t{column_tile} * 4;
    const std::int64_t at = (std::int64_t{tile.number} * kTile + warp * kBlock + row) * pitch + block_number;
    const std::int64_t left = ceil_div(a.columns, kBlock) - block_number;
    store_scales(a.row_scale + at, of_row, static_cast<int>(min(left, std::int64_t{4})), a.scale_vectors);
  }
}

// `multipliers`: of the lane's 4 rows, the upper 16 bits of each. The 8 lanes of a block have those of its 32 rows.
template <Format X, Format F, bool kAligned, bool kFull>
__device__ __forceinline__ void store_row_codes(const Mxfp8Tiles& a, const Place<kFull>& place, const Strip<X>& strip,
                                                const std::uint32_t (&multipliers)[2]) {
  std::uint8_t* to = a.row_data + place.begin;
#pragma unroll
  for (int i = 0; i < kBlock; ++i, advance(to, a.columns)) {
    const std::uint32_t both = __shfl_sync(kAllLanes, multipliers[i / 2 % 2], (place.lane & 24) | i / 4);
    const float multiplier = float_of_bits(i % 2 == 0 ? both << 16 : both & 0xFFFF'0000u);
    const std::uint32_t codes = encode_fp8x4<F>(
        multiply_with_zero(strip.value(i, 0), multiplier, a.zero), multiply_with_zero(strip.value(i, 1), multiplier, a.zero),
        multiply_with_zero(strip.value(i, 2), multiplier, a.zero), multiply_with_zero(strip.value(i, 3), multiplier, a.zero));
    if (i < place.rows_inside) store_codes<kAligned>(to, codes, place.columns_inside);
  }
}

// `scales`: of the lane's 4 columns, a byte each.
template <bool kFull>
__device__ __forceinline__ void store_column_scales(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile,
                                                    const Place<kFull>& place, std::uint32_t scales, Shared& shared) {
  using ColumnLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::columnwise>;
  const int lane = place.lane, warp = place.warp, rows_inside = place.rows_inside, columns_inside = place.columns_inside;
  const std::int64_t column = place.column;
  if (a.swizzled) {
    // A thread per column: its 4 blocks of rows are neighbours.
    if (columns_inside < 4) scales &= (1u << (8 * (max(columns_inside, 0) & 3))) - 1;
    shared.column_scale[warp][lane] = scales;
    __syncthreads();
    const int of_tile = static_cast<int>(threadIdx.x);
    std::uint32_t of_column = 0;
#pragma unroll
    for (int b = 0; b < kTile / kBlock; ++b) {
      const std::uint32_t four = shared.column_scale[b][of_tile / 4];
      of_column |= (four >> (8 * (of_tile % 4)) & 0xFFu) << (8 * b);
    }
    const std::int64_t group = std::int64_t{tile.number - tile.tile} * 4 * ColumnLayout::factor(a.columns);
    const std::int64_t at = group + (column_tile * ColumnLayout::tiles_j(tile.rows, a.columns) + tile.tile) * 512 +
                            of_tile % 32 * 16 + of_tile / 32 * 4;
    store_scales(a.column_scale + at, of_column, 4, a.scale_vectors);
  } else if (rows_inside > 0) {
    const std::int64_t at = (std::int64_t{tile.number} * 4 + warp) * ColumnLayout::pitch(0, a.columns) + column;
    store_scales(a.column_scale + at, scales, columns_inside, a.scale_vectors);
  }
}

template <Format X, Format F, bool kAligned, bool kFull>
__device__ __forceinline__ void store_column_codes(const Mxfp8Tiles& a, const Place<kFull>& place, const Strip<X>& strip,
                                                   const float (&multiplier)[4]) {
  std::uint8_t* to = a.column_data + place.begin;
#pragma unroll
  for (int i = 0; i < kBlock; ++i, advance(to, a.columns)) {
    const std::uint32_t codes = encode_fp8x4<F>(multiply_with_zero(strip.value(i, 0), multiplier[0], a.zero),
                                                multiply_with_zero(strip.value(i, 1), multiplier[1], a.zero),
                                                multiply_with_zero(strip.value(i, 2), multiplier[2], a.zero),
                                                multiply_with_zero(strip.value(i, 3), multiplier[3], a.zero));
    if (i < place.rows_inside) store_codes<kAligned>(to, codes, place.columns_inside);
  }
}

template <Format X, Format F, unsigned kParts, bool kAligned, bool kFull>
__device__ __forceinline__ void quantize_strip(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile,
                                               const Place<kFull>& place, const Strip<X>& strip, Shared& shared) {
  std::uint32_t row_amax[4], column_amax[4];
  find_amaxes<X, kParts>(a, strip, place.lane, row_amax, column_amax);

  if constexpr (kParts & kRowPart) {
    std::uint32_t scales = 0, multipliers[2] = {0, 0};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t scale = scale_of<F>(row_amax[r]);
      const std::uint32_t multiplier = bits_of_float(e8m0_quantize_multiplier(scale)) >> 16;  // exact: a power of two
      scales |= scale << (8 * r);
      multipliers[r / 2] |= multiplier << (16 * (r % 2));
    }
    if (a.row_scale != nullptr) store_row_scales(a, tile, column_tile, place, scales);
    if (a.row_data != nullptr) store_row_codes<X, F, kAligned>(a, place, strip, multipliers);
  }

  if constexpr (kParts & kColumnPart) {
    std::uint32_t scales = 0;
    float multiplier[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const std::uint32_t scale = scale_of<F>(column_amax[c]);
      multiplier[c] = e8m0_quantize_multiplier(scale);
      scales |= scale << (8 * c);
    }
    if (a.column_scale != nullptr) store_column_scales(a, tile, column_tile, place, scales, shared);
    if (a.column_data != nullptr) store_column_codes<X, F, kAligned>(a, place, strip, multiplier);
  }
}

// One tile by all threads of a block. dbias stays in the body: as a function it changes the machine code.
template <Format X, Format F, unsigned kParts, bool kAligned, bool kFull>
__device__ __forceinline__ void quantize_tile(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile, Shared& shared) {
  const Place<kFull> place(a, tile, column_tile);
  const int lane = place.lane, warp = place.warp;
  Strip<X> strip;
  load_strip<X, kAligned>(strip, static_cast<const unsigned char*>(a.x) + place.begin * Element<X>::kBytes, a.columns,
                          place.rows_inside, place.columns_inside);

  if constexpr (kParts & kDbiasPart) {
    if (a.tile_sums != nullptr) {
      const int half = warp / 2;
      auto* const of_lane = reinterpret_cast<float4*>(&shared.sums[half][lane * 4]);
      float sum[4] = {0, 0, 0, 0};
      const auto add_rows = [&] {
#pragma unroll
        for (int i = 0; i < kBlock; ++i) {
#pragma unroll
          for (int c = 0; c < 4; ++c) sum[c] = add(sum[c], strip.value(i, c));
        }
        *of_lane = float4{sum[0], sum[1], sum[2], sum[3]};
      };
      if (warp % 2 == 0) add_rows();
      __syncthreads();
      if (warp % 2 == 1) {
        const float4 before = *of_lane;
        sum[0] = before.x, sum[1] = before.y, sum[2] = before.z, sum[3] = before.w;
        add_rows();
      }
      __syncthreads();
      const int of_thread = static_cast<int>(threadIdx.x);
      const std::int64_t at = std::int64_t{column_tile} * kTile + of_thread;
      if (at < a.columns) {
        a.tile_sums[std::int64_t{tile.number} * a.columns + at] = add(shared.sums[0][of_thread], shared.sums[1][of_thread]);
      }
    }
  }
  quantize_strip<X, F, kParts, kAligned, kFull>(a, tile, column_tile, place, strip, shared);
}

template <Format X, Format F, unsigned kParts, bool kAligned>
__global__ void __launch_bounds__(kThreads, Element<X>::kBytes == 2 ? 4 : 2) quantize_tiles(const Mxfp8Tiles a) {
  if (is_skipped(a.noop)) return;
  __shared__ Shared shared;
  __shared__ LocateTile<kTile> locate;
  Tile tile;
  tile.number = blockIdx.x / a.column_tiles;
  const std::uint32_t column_tile = blockIdx.x - tile.number * a.column_tiles;
  GroupTile<0> found;
  if (!locate_tile(a.rows, tile.number, locate, a.status, found) || a.columns == 0) return;
  tile.first_row = found.first_row, tile.rows = found.rows, tile.tile = found.tile;
  const bool full = tile.rows - tile.tile * kTile >= kTile && a.columns >= (std::int64_t{column_tile} + 1) * kTile;
  if (kAligned && full) {
    quantize_tile<X, F, kParts, kAligned, kAligned>(a, tile, column_tile, shared);
  } else {
    quantize_tile<X, F, kParts, kAligned, false>(a, tile, column_tile, shared);
  }
}

template <Format X, Format F>
void launch_parts(const Mxfp8Tiles& tiles, cudaStream_t stream) {
  const bool rows = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  const bool columns = tiles.column_data != nullptr || tiles.column_scale != nullptr;
  void (*kernel)(Mxfp8Tiles) = quantize_tiles<X, F, kRowPart | kColumnPart | kDbiasPart, false>;
  if (tiles.aligned) {
    kernel = tiles.tile_sums != nullptr ? quantize_tiles<X, F, kRowPart | kColumnPart | kDbiasPart, true>
             : rows && columns          ? quantize_tiles<X, F, kRowPart | kColumnPart, true>
             : rows                     ? quantize_tiles<X, F, kRowPart, true>
                                        : quantize_tiles<X, F, kColumnPart, true>;
  }
  launch_kernel("mxfp8: quantize_tiles", kernel, tiles.blocks, kThreads, 0, stream, tiles);
}

}  // namespace assay::device::mxfp8

#endif  // __CUDACC__
