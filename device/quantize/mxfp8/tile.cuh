#pragma once
// MXFP8, one tile of 128 x 128 elements per block of threads: x is read once, and everything requested of it
// (rowwise and columnwise codes and scales, column sums for dbias) comes from that one reading. It does every call;
// those of 16-bit x without dbias, 2-D tiles and odd addresses have faster kernels (rows.cuh, blocks.cuh).
//
//   traffic   16-bit x: 2 B read, 1 B written per element and direction, 1 B of scale per 32; dbias adds 4 B written
//             per 128:  3.03, 4.06 and 4.09 B/element. 32-bit x: 2 B more
//   bound     HBM for one tensor, at over eight tenths of the rate of a copy: a block reads, sums and only then
//             writes. In ragged problems the rows that the last tile of a group lacks, whose warps idle: with groups
//             of about 128 rows, and dbias, half of the rate is left
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
// which changes neither an amax nor a sum, and whose scale is 0, the padding of swizzled scales. A tile owns just one
// swizzled tile of 512 scales in each direction.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/formats/raise.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {

// Which kernel: that of tiles does all, the others what their files say.
enum class Mxfp8Way { tiles, rows, blocks };

struct Mxfp8Tiles {
  const void* x;  // [rows.capacity, columns]
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also where there are no columns
  std::uint32_t blocks;        // of the launch
  Mxfp8Way way;
  float zero;                  // see multiply_with_zero()
  bool swizzled;
  bool two_dimensional;
  bool aligned;        // x and codes allow vectors of 4 elements in every row
  bool scale_vectors;  // the scale buffers begin at multiples of 4 bytes
  const float* noop;
  std::uint8_t* row_data;  // each of these may be null: not wanted
  std::uint8_t* column_data;
  std::uint8_t* row_scale;
  std::uint8_t* column_scale;
  float* tile_sums;  // [tiles of rows, columns]
  std::uint32_t* status;
};

// bf16.cu, f16.cu and f32.cu.
void launch_mxfp8_bf16(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);
void launch_mxfp8_f16(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);
void launch_mxfp8_f32(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);

#if defined(__CUDACC__)

namespace mxfp8 {

constexpr int kTile = 128;
constexpr int kBlock = 32;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Blocks on an SM: without FP8 instructions the codes take registers to make.
constexpr int blocks_an_sm(int with_instructions) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return with_instructions / 2;
#else
  return with_instructions;
#endif
}

// What a kernel is compiled for. It may be given less than that.
enum Parts : unsigned { kRowPart = 1, kColumnPart = 2, kDbiasPart = 4 };

struct Shared {
  float sums[2][kTile];                             // of a half of 64 rows
  std::uint32_t column_scale[kTile / kBlock][32];  // 4 columns per word
};

// The 32 rows x 4 columns of a lane.
template <Format X>
struct Strip {
  static constexpr int kWords = 4 / Element<X>::kPerWord;
  std::uint32_t word[kBlock][kWords];

  __device__ __forceinline__ float value(int row, int column) const {
    return Element<X>::widen(word[row][column / Element<X>::kPerWord], column % Element<X>::kPerWord);
  }
};

// The address of the next row. The compiler is kept from computing all addresses of a strip ahead: there are 32 of
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
      const bool wanted = inside && columns_inside > 0;
      if constexpr (kBytes == 2) {
        const uint2 both = wanted ? __ldcs(reinterpret_cast<const uint2*>(row)) : uint2{0, 0};
        strip.word[i][0] = both.x, strip.word[i][1] = both.y;
      } else {
        const uint4 all = wanted ? __ldcs(reinterpret_cast<const uint4*>(row)) : uint4{0, 0, 0, 0};
        strip.word[i][0] = all.x, strip.word[i][1] = all.y, strip.word[i][2] = all.z, strip.word[i][3] = all.w;
      }
    } else {
#pragma unroll
      for (int w = 0; w < Strip<X>::kWords; ++w) strip.word[i][w] = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!inside || c >= columns_inside) continue;
        if constexpr (kBytes == 4) {
          strip.word[i][c] = __ldcs(reinterpret_cast<const unsigned int*>(row) + c);
        } else {
          const std::uint32_t code = __ldcs(reinterpret_cast<const unsigned short*>(row) + c);
          strip.word[i][c / 2] |= code << (16 * (c % 2));
        }
      }
    }
  }
}

// Between lanes kStep apart: each keeps one half of what both have, the lane with that bit the upper.
template <Format X, int kStep, int kHalf, int kCount>
__device__ __forceinline__ void exchange_halves(std::uint32_t (&maximum)[kCount], int lane) {
  const bool upper = lane & kStep;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? maximum[i] : maximum[i + kHalf], kStep);
    maximum[i] = raise<X>(upper ? maximum[i + kHalf] : maximum[i], other);
  }
}

// Amax bits of rows 4 (lane % 8) ... 4 (lane % 8) + 3 over the 8 lanes that share a block. Each exchange halves the
// rows that a lane still looks after.
template <Format X>
__device__ __forceinline__ void row_amaxes(const Strip<X>& strip, int lane, std::uint32_t (&amax_bits)[4]) {
  using E = Element<X>;
  // Two rows per word where elements have 16 bits.
  constexpr int kRows = E::kPerWord, kCount = kBlock / kRows;
  std::uint32_t maximum[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t of_row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      of_row[r] = 0;
#pragma unroll
      for (int w = 0; w < Strip<X>::kWords; ++w) of_row[r] = raise<X>(of_row[r], strip.word[i * kRows + r][w]);
    }
    if constexpr (kRows == 2) {
      maximum[i] = raise<X>(__byte_perm(of_row[0], of_row[1], 0x5410), __byte_perm(of_row[0], of_row[1], 0x7632));
    } else {
      maximum[i] = of_row[0];
    }
  }
  exchange_halves<X, 4, kCount / 2>(maximum, lane);
  exchange_halves<X, 2, kCount / 4>(maximum, lane);
  exchange_halves<X, 1, kCount / 8>(maximum, lane);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const std::uint32_t of_row = without_sign<X>(maximum[r / kRows]);
    amax_bits[r] = kRows == 1 ? E::amax_bits(of_row) : E::amax_bits(r % 2 == 0 ? of_row & 0xFFFFu : of_row >> 16);
  }
}

// Amax bits of the 4 columns of a lane.
template <Format X>
__device__ __forceinline__ void column_amaxes(const Strip<X>& strip, std::uint32_t (&amax_bits)[4]) {
  using E = Element<X>;
#pragma unroll
  for (int w = 0; w < Strip<X>::kWords; ++w) {
    std::uint32_t upper = 0, lower = 0;  // two chains, for less waiting
#pragma unroll
    for (int i = 0; i < kBlock / 2; ++i) {
      upper = raise<X>(upper, strip.word[i][w]);
      lower = raise<X>(lower, strip.word[i + kBlock / 2][w]);
    }
    const std::uint32_t maximum = without_sign<X>(raise<X>(upper, lower));
    if constexpr (E::kPerWord == 2) {
      amax_bits[2 * w] = E::amax_bits(maximum & 0xFFFFu);
      amax_bits[2 * w + 1] = E::amax_bits(maximum >> 16);
    } else {
      amax_bits[w] = E::amax_bits(maximum);
    }
  }
}

// E of a block, spec mxfp8-1.2: the product is rounded to nearest before its exponent is rounded up.
template <Format F>
__device__ __forceinline__ std::uint32_t scale_of(std::uint32_t amax_bits) {
  constexpr std::uint32_t kReciprocal = F == Format::e4m3 ? 0x3B12'4925u : 0x3792'4925u;  // of the largest code
  return encode_e8m0(multiply(float_of_bits(amax_bits), float_of_bits(kReciprocal)));
}

template <bool kAligned>
__device__ __forceinline__ void store_codes(std::uint8_t* to, std::uint32_t codes, int columns_inside) {
  if constexpr (kAligned) {
    if (columns_inside > 0) __stcs(reinterpret_cast<unsigned int*>(to), codes);
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (c < columns_inside) __stcs(to + c, static_cast<std::uint8_t>(codes >> (8 * c)));
    }
  }
}

// The first `count` of 4 neighbouring scales.
__device__ __forceinline__ void store_scales(std::uint8_t* to, std::uint32_t scales, int count, bool vectors) {
  if (vectors && count >= 4) {
    __stcs(reinterpret_cast<std::uint32_t*>(to), scales);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < count) __stcs(to + i, static_cast<std::uint8_t>(scales >> (8 * i)));
  }
}

struct Tile {
  std::uint32_t first_row;  // of the group, in the buffer
  std::uint32_t rows;       // of the group, 1 or more
  std::uint32_t tile;       // in the group
  std::uint32_t number;     // the tiles of all groups counted through
};

// Where the strip of a thread lies, and what of it lies inside. kFull: the tile has 128 rows and 128 columns, and
// nothing asks where it ends.
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
    rows_inside =
        kFull ? kBlock : static_cast<int>(min(tile.rows - tile.tile * kTile, std::uint32_t{kTile})) - warp * kBlock;
    columns_inside = kFull ? 4 : static_cast<int>(min(a.columns - column, std::int64_t{4}));
    begin = first_row * a.columns + column;
  }
};

// Codes and scales of a strip.
template <Format X, Format F, unsigned kParts, bool kAligned, bool kFull>
__device__ __forceinline__ void quantize_strip(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile,
                                               const Place<kFull>& place, const Strip<X>& strip, Shared& shared) {
  using RowLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  using ColumnLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::columnwise>;
  const int lane = place.lane, warp = place.warp, rows_inside = place.rows_inside,
            columns_inside = place.columns_inside;
  const std::int64_t column = place.column, begin = place.begin;

  // Amaxes: of 4 rows over the block that the lane belongs to, and of its 4 columns. In 2-D mode one for all of a 32 x
  // 32 tile.
  std::uint32_t row_amax[4], column_amax[4];
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

  if constexpr (kParts & kRowPart) {
    std::uint32_t scales = 0, multipliers[2] = {0, 0};  // of the lane's 4 rows
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t scale = scale_of<F>(row_amax[r]);
      const std::uint32_t multiplier = bits_of_float(e8m0_quantize_multiplier(scale)) >> 16;  // exact: a power of two
      scales |= scale << (8 * r);
      multipliers[r / 2] |= multiplier << (16 * (r % 2));
    }
    if (a.row_scale != nullptr) {
      // From 4 rows of a block to the 4 blocks of one row: row 4 (lane % 8) + lane / 8.
      const int block = lane / 8, row = 4 * (lane % 8) + block;
      std::uint32_t of_block[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) of_block[b] = __shfl_sync(kAllLanes, scales, lane % 8 + 8 * b);
      const unsigned pick = 0x40u + 0x11u * static_cast<unsigned>(block);
      std::uint32_t of_row = __byte_perm(__byte_perm(of_block[0], of_block[1], pick),
                                         __byte_perm(of_block[2], of_block[3], pick), 0x5410);
      const std::int64_t pitch = RowLayout::pitch(0, a.columns);
      if (a.swizzled) {
        if (row >= rows_inside) of_row = 0;  // in 2-D mode the rows that are missing share a scale too
        const std::int64_t at = (tile.number * (pitch / 4) + column_tile) * 512 + row * 16 + warp * 4;
        store_scales(a.row_scale + at, of_row, 4, a.scale_vectors);
      } else if (row < rows_inside) {
        const std::int64_t block_number = std::int64_t{column_tile} * 4;
        const std::int64_t at = (std::int64_t{tile.number} * kTile + warp * kBlock + row) * pitch + block_number;
        const std::int64_t left = ceil_div(a.columns, kBlock) - block_number;
        store_scales(a.row_scale + at, of_row, static_cast<int>(min(left, std::int64_t{4})), a.scale_vectors);
      }
    }
    if (a.row_data != nullptr) {
      std::uint8_t* to = a.row_data + begin;
#pragma unroll
      for (int i = 0; i < kBlock; ++i, advance(to, a.columns)) {
        const std::uint32_t both = __shfl_sync(kAllLanes, multipliers[i / 2 % 2], (lane & 24) | i / 4);
        const float multiplier = float_of_bits(i % 2 == 0 ? both << 16 : both & 0xFFFF'0000u);
        const std::uint32_t codes = encode_fp8x4<F>(multiply_with_zero(strip.value(i, 0), multiplier, a.zero),
                                                    multiply_with_zero(strip.value(i, 1), multiplier, a.zero),
                                                    multiply_with_zero(strip.value(i, 2), multiplier, a.zero),
                                                    multiply_with_zero(strip.value(i, 3), multiplier, a.zero));
        if (i < rows_inside) store_codes<kAligned>(to, codes, columns_inside);
      }
    }
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
    if (a.column_scale != nullptr) {
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
    if (a.column_data != nullptr) {
      std::uint8_t* to = a.column_data + begin;
#pragma unroll
      for (int i = 0; i < kBlock; ++i, advance(to, a.columns)) {
        const std::uint32_t codes = encode_fp8x4<F>(multiply_with_zero(strip.value(i, 0), multiplier[0], a.zero),
                                                    multiply_with_zero(strip.value(i, 1), multiplier[1], a.zero),
                                                    multiply_with_zero(strip.value(i, 2), multiplier[2], a.zero),
                                                    multiply_with_zero(strip.value(i, 3), multiplier[3], a.zero));
        if (i < rows_inside) store_codes<kAligned>(to, codes, columns_inside);
      }
    }
  }
}

// One tile by all threads of a block.
template <Format X, Format F, unsigned kParts, bool kAligned, bool kFull>
__device__ __forceinline__ void quantize_tile(const Mxfp8Tiles& a, const Tile& tile, std::uint32_t column_tile,
                                              Shared& shared) {
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
        __stcs(a.tile_sums + std::int64_t{tile.number} * a.columns + at,
               add(shared.sums[0][of_thread], shared.sums[1][of_thread]));
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

}  // namespace mxfp8

#endif  // __CUDACC__

}  // namespace assay::device
