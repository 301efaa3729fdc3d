#pragma once
// FP8 block scaling, one tile of 128 x 128 elements per block of threads: x is read once, and everything requested
// of it (rowwise and columnwise codes and scales, column sums for dbias) comes from that one reading.
//
//   traffic   16-bit x: 2 B read, 1 B written per element and direction, 4 B of scale per 128 (1x128) or per 16384;
//             dbias adds 4 B written per 128:  3.03, 4.06 and 4.09 B/element for 1x128
//   ceiling   HBM: one aligned tensor goes at about nine tenths of the rate of a copy. More tiles per SM (6, with x
//             kept in shared memory for few registers) go no faster.
//   layout    256 threads; a thread holds 8 rows x 8 columns in registers: 16 threads side by side make the 128
//             columns, 16 groups of them the 128 rows. All 8 loads of a thread (16 B each) are in flight at once; 4
//             tiles per SM.
//   rowwise   amax of a row over 16 lanes by shuffles; 8 codes per lane, 128 B of each row in one store
//   columnwise  amax of a column within a thread, then over 16 groups through shared memory; codes of 8 rows packed in
//             a thread, transposed through shared memory (16 KiB, 8-byte chunks exchanged by xor so that no two lanes
//             of a store meet in a bank), stored as 128 B of each column
//   dbias     the tile as it came, in shared memory; a thread walks 64 rows of two columns, one after the other
//   order     amax is a maximum of magnitudes: no order can change it. dbias has that of reference/recipes/dbias.h
//   stores    scales and sums as streaming as the codes: plain stores of 1 % of the bytes cost 8 % of the time of
//             1x128 rowwise
//   matches   reference/recipes/fp8_block.h
//
// A tile is never shared between groups (window_tiles.cuh says which tiles a block has: one, but where groups meet).
// Rows and columns past the end of a group or of the matrix are held as +0, which changes neither an amax nor a sum (a
// sum of column values starts from +0 and so is never -0).

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/layout/window_tiles.cuh"
#include "device/quantize/matrix_patch.cuh"
#include "device/support/launch.cuh"
#include "device/support/launch_check.h"
#include "device/support/noop.cuh"

namespace assay::device {

struct Fp8BlockTiles {
  const void* x;  // [rows.capacity, columns]
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also where there are no columns
  std::uint32_t blocks;        // of the launch: windows of 128 rows times column_tiles
  float max;                   // largest value of the codes
  float epsilon;
  float zero;  // see multiply_with_zero()
  bool pow2;
  bool aligned;  // x and rowwise data allow vectors in every row
  const float* noop;
  std::uint8_t* row_data;  // each of these may be null: not wanted
  std::uint8_t* column_data;
  float* row_scale;
  float* column_scale;
  float* tile_sums;  // [tiles of rows, columns]
  std::uint32_t* status;
  std::uint32_t rows_multiple;  // of every group: relied on and checked, or 1
};

// What a kernel is compiled for. It may be given less than that.
enum Fp8BlockParts : unsigned { kRowPart = 1, kColumnPart = 2, kDbiasPart = 4 };

// 1x128.cu and 128x128.cu.
void launch_fp8_block_1x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);
void launch_fp8_block_128x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);

#if defined(__CUDACC__)

namespace fp8_block {

constexpr int kBlock = 128;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Tiles that share an SM; registers are shared out accordingly. Without FP8 instructions the codes take registers to
// make.
template <Format X>
constexpr int tiles_an_sm() {
  if (Element<X>::kBytes == 4) return 2;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return 3;
#else
  return 4;
#endif
}

// Shared memory of a tile, in this order: the raw tile or (later) the codes; then maxima of columns of each warp.
template <Format X, bool kSquare, unsigned kParts>
struct Shared {
  static constexpr int kRawBytes = kParts & kDbiasPart ? kBlock * kBlock * Element<X>::kBytes : 0;
  static constexpr int kCodeBytes = kParts & kColumnPart ? kBlock * kBlock : 0;
  static constexpr int kTileBytes = kRawBytes > kCodeBytes ? kRawBytes : kCodeBytes;
  static constexpr int kMaximaBytes = !kSquare && kParts & kColumnPart ? kWarps * kBlock * Element<X>::kBytes : 0;
  static constexpr int kBytes = kTileBytes + kMaximaBytes;
};

// The 8 x 8 elements of a thread.
template <Format X>
using Patch = MatrixPatch<X, 8>;

// Amax bits of the 8 rows that 16 lanes share: this lane's result is that of row (lane >> 1) & 7. Each exchange
// halves the rows that a lane still looks after.
template <Format X>
__device__ __forceinline__ std::uint32_t row_amax_bits(const Patch<X>& patch, int lane) {
  using E = Element<X>;
  std::uint32_t maximum[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    maximum[i] = 0;
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum[i] = E::raise(maximum[i], patch.word[i][w]);
  }
  const bool high8 = lane & 8, high4 = lane & 4, high2 = lane & 2;
  if constexpr (E::kPerWord == 2) {
    // Rows 2q and 2q + 1 in the halves of pair[q].
    std::uint32_t pair[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      pair[q] = E::merge(__byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x5410),
                         __byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x7632));
    }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high8 ? pair[q] : pair[q + 2], 8);
      pair[q] = E::merge(high8 ? pair[q + 2] : pair[q], other);
    }
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high4 ? pair[0] : pair[1], 4);
    std::uint32_t both = E::merge(high4 ? pair[1] : pair[0], other);
    both = E::merge(both, __shfl_xor_sync(0xFFFFFFFFu, both, 2));
    both = E::merge(both, __shfl_xor_sync(0xFFFFFFFFu, both, 1));
    return E::amax_bits(high2 ? both >> 16 : both & 0xFFFFu);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high8 ? maximum[i] : maximum[i + 4], 8);
      maximum[i] = E::merge(high8 ? maximum[i + 4] : maximum[i], other);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high4 ? maximum[i] : maximum[i + 2], 4);
      maximum[i] = E::merge(high4 ? maximum[i + 2] : maximum[i], other);
    }
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high2 ? maximum[0] : maximum[1], 2);
    std::uint32_t one = E::merge(high2 ? maximum[1] : maximum[0], other);
    one = E::merge(one, __shfl_xor_sync(0xFFFFFFFFu, one, 1));
    return E::amax_bits(one);
  }
}

// Maxima of the 8 columns of a lane, and of the lane 16 away (8 rows away), to the warp's row of `maxima`
// [kWarps][128] elements.
template <Format X>
__device__ __forceinline__ void store_column_maxima(const Patch<X>& patch, int lane, int warp, uint4* maxima) {
  using E = Element<X>;
  constexpr int kWords = Patch<X>::kWords;
  std::uint32_t maximum[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    maximum[w] = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) maximum[w] = E::raise(maximum[w], patch.word[i][w]);
  }
#pragma unroll
  for (int w = 0; w < kWords; ++w) maximum[w] = E::merge(maximum[w], __shfl_xor_sync(0xFFFFFFFFu, maximum[w], 16));
  if (lane < 16) {
#pragma unroll
    for (int v = 0; v < kWords / 4; ++v) {
      maxima[(warp * 16 + lane) * (kWords / 4) + v] =
          uint4{maximum[4 * v], maximum[4 * v + 1], maximum[4 * v + 2], maximum[4 * v + 3]};
    }
  }
}

template <Format X>
__device__ __forceinline__ std::uint32_t column_amax_bits(const void* maxima, int column) {
  using E = Element<X>;
  std::uint32_t maximum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    std::uint32_t of_warp;
    if constexpr (E::kBytes == 2) {
      of_warp = static_cast<const std::uint16_t*>(maxima)[w * kBlock + column];
    } else {
      of_warp = static_cast<const std::uint32_t*>(maxima)[w * kBlock + column];
    }
    maximum = max(maximum, of_warp);
  }
  return E::amax_bits(maximum);
}

// The patch as it came into raw [128][128]. Of 16-bit elements the lower 64 rows have neighbouring 64 B exchanged, so
// that the two halves of a warp in sum_columns() read different banks.
template <Format X>
__device__ __forceinline__ void store_raw(const Patch<X>& patch, int first_row, int column_group, uint4* raw) {
  constexpr int kVectors = Patch<X>::kWords / 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = first_row + i;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int place = kVectors == 1 ? column_group ^ (row >> 6) << 2 : column_group * kVectors + v;
      raw[row * 16 * kVectors + place] =
          uint4{patch.word[i][4 * v], patch.word[i][4 * v + 1], patch.word[i][4 * v + 2], patch.word[i][4 * v + 3]};
    }
  }
}

// By 4 warps: sums of columns 2 * pair and 2 * pair + 1, each half of 64 rows by itself and then the two together, as
// dbias.h has it. Lanes 0 to 15 of a warp have the first half and get the sum.
template <Format X>
__device__ __forceinline__ float2 sum_columns(const void* raw, int lane, int warp, int& pair) {
  using E = Element<X>;
  pair = warp * 16 + lane % 16;
  const int half = lane / 16;
  float2 sum = {0, 0};
#pragma unroll 8
  for (int i = 0; i < 64; ++i) {
    const int row = half * 64 + i;
    if constexpr (E::kBytes == 2) {
      const std::uint32_t word = static_cast<const std::uint32_t*>(raw)[row * 64 + (pair ^ half << 4)];
      sum.x = add(sum.x, E::widen(word, 0));
      sum.y = add(sum.y, E::widen(word, 1));
    } else {
      const float2 both = static_cast<const float2*>(raw)[row * 64 + pair];
      sum.x = add(sum.x, both.x);
      sum.y = add(sum.y, both.y);
    }
  }
  const float2 second = {__shfl_down_sync(0xFFFFFFFFu, sum.x, 16), __shfl_down_sync(0xFFFFFFFFu, sum.y, 16)};
  return {add(sum.x, second.x), add(sum.y, second.y)};
}

// Codes in shared memory, [128 columns][128 rows]: of column c, the 8 rows of chunk k lie at chunk k ^ (c / 8) % 16.
__device__ __forceinline__ int code_chunk(int column, int chunk) { return column * 16 + (chunk ^ (column >> 3)); }

// Columns of codes to memory that allows only bytes: whole aligned 8 bytes where there are, 16 lanes a column, each
// put together from two neighbouring chunks; the bytes at both ends one by one, 8 lanes a column. `to` is the tile's
// first code.
__device__ __forceinline__ void store_columns_unaligned(const unsigned char* shared, std::uint8_t* to,
                                                        std::uint32_t pitch, int rows, int columns, int thread) {
  const auto* chunks = reinterpret_cast<const uint2*>(shared);
  const auto past_multiple = [&](const std::uint8_t* column) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(column) & 7);
  };

  const int j = thread % 16;
  std::uint8_t* destination = to + static_cast<std::int64_t>(thread / 16) * pitch;
#pragma unroll 4
  for (int column = thread / 16; column < columns; column += 16, destination += std::int64_t{pitch} * 16) {
    const int past = past_multiple(destination), first = 8 * j - past;  // row of the lowest of this lane's 8 bytes
    const uint2 own = chunks[code_chunk(column, j)], before = chunks[code_chunk(column, max(j - 1, 0))];
    const bool far = past >= 4;
    const std::uint32_t low = far ? before.x : before.y, middle = far ? before.y : own.x, high = far ? own.x : own.y;
    const uint2 codes = {__funnelshift_l(low, middle, 8 * past),
                         __funnelshift_l(middle, high, 8 * past)};  // modulo 32
    if (first >= 0 && first + 8 <= rows) __stcs(reinterpret_cast<uint2*>(destination + first), codes);
  }

  const int k = thread % 8;
  destination = to + static_cast<std::int64_t>(thread / 8) * pitch;
#pragma unroll 4
  for (int column = thread / 8; column < columns; column += 32, destination += std::int64_t{pitch} * 32) {
    const int past = past_multiple(destination), end = rows + past;
    const int head = k - past, tail = (end & ~7) + k - past;
    const auto store = [&](int row) { destination[row] = shared[code_chunk(column, row >> 3) * 8 + (row & 7)]; };
    if (past != 0 && head >= 0 && head < rows) store(head);
    if (tail < rows && (past == 0 || end >= 8)) store(tail);
  }
}

// In shared memory, one per block.
struct TileScratch {
  std::uint32_t warp_amax[kWarps];
  __align__(16) float column_scale[kBlock];
};

// Codes of columns in shared memory for quantize_tiles(): 8 rows of a column at a time.
struct TileCodes {
  uint2* chunks;
  __device__ __forceinline__ void begin() const {}
  __device__ __forceinline__ void put(int column, int chunk, const uint2& codes) const {
    chunks[code_chunk(column, chunk)] = codes;
  }
};

// One tile by all threads of a block, but for the columns' codes, which are left to `column_codes` without a barrier.
// `raw` has the tile as it came, if dbias is requested; TileCodes may have the same place. `maxima` are
// Shared::kMaximaBytes.
template <Format X, Format F, bool kSquare, unsigned kParts, bool kAligned, class Codes>
__device__ __forceinline__ void quantize_tile(const Fp8BlockTiles& a, const WindowTile& tile,
                                              std::uint32_t column_tile, unsigned char* raw, unsigned char* maxima,
                                              TileScratch& scratch, const Codes& column_codes) {
  using E = Element<X>;
  constexpr Recipe kRecipe = kSquare ? Recipe::block_128x128 : Recipe::block_1x128;
  using RowLayout = ScaleLayoutOf<kRecipe, Direction::rowwise>;
  using ColumnLayout = ScaleLayoutOf<kRecipe, Direction::columnwise>;
  std::uint32_t* const warp_amax = scratch.warp_amax;
  float* const column_scale = scratch.column_scale;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int column_group = thread % 16, row_group = thread / 16;
  const std::int64_t first_row = std::int64_t{tile.first_row} + std::int64_t{tile.tile} * kBlock;
  const std::int64_t first_column = std::int64_t{column_tile} * kBlock;
  const int rows = static_cast<int>(min(tile.rows - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
  const int columns = static_cast<int>(min(a.columns - first_column, std::int64_t{kBlock}));

  Patch<X> patch;
  const std::int64_t patch_begin = (first_row + row_group * 8) * a.columns + first_column + column_group * 8;
  load_patch<X, kAligned>(patch, static_cast<const unsigned char*>(a.x) + patch_begin * E::kBytes, a.columns,
                          rows - row_group * 8, columns - column_group * 8);

  const bool with_rows = kParts & kRowPart && (a.row_data != nullptr || a.row_scale != nullptr);
  const bool with_columns = kParts & kColumnPart && (a.column_data != nullptr || a.column_scale != nullptr);
  const bool with_sums = kParts & kDbiasPart && a.tile_sums != nullptr;
  if constexpr (kParts & kDbiasPart) {
    if (with_sums) store_raw(patch, row_group * 8, column_group, reinterpret_cast<uint4*>(raw));
  }

  // Scales. 1x128: `scale` is of row (lane >> 1) & 7 of this thread's 8, and those of columns go to column_scale.
  float scale = 1;
  if constexpr (!kSquare) {
    if (with_rows) {
      scale = scale_from_amax(row_amax_bits(patch, lane), a.max, a.pow2, a.epsilon, E::kMaxBits);
      const int row = row_group * 8 + (lane >> 1 & 7);
      if (a.row_scale != nullptr && lane % 2 == 0 && row < rows) {
        const std::int64_t base = RowLayout::factor(a.columns) * tile.before;
        const std::int64_t pitch = RowLayout::pitch(tile.rows, a.columns);
        __stcs(a.row_scale + base + column_tile * pitch + tile.tile * kBlock + row, reciprocal(scale));
      }
    }
    if constexpr (kParts & kColumnPart) {
      if (with_columns) {
        store_column_maxima(patch, lane, warp, reinterpret_cast<uint4*>(maxima));
      }
    }
    if constexpr (kParts & (kColumnPart | kDbiasPart)) __syncthreads();
    if constexpr (kParts & kColumnPart) {
      if (with_columns && warp >= kWarps / 2) {  // the other warps sum columns meanwhile
        const int column = thread - kThreads / 2;
        const std::uint32_t amax_bits = column_amax_bits<X>(maxima, column);
        const float own = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, E::kMaxBits);
        column_scale[column] = own;
        if (a.column_scale != nullptr && column < columns) {
          __stcs(a.column_scale + ColumnLayout::pitch(tile.rows, a.columns) * tile.number + first_column + column,
                 reciprocal(own));
        }
      }
    }
  } else {
    std::uint32_t maximum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int w = 0; w < Patch<X>::kWords; ++w) maximum = E::raise(maximum, patch.word[i][w]);
    }
    const std::uint32_t of_warp = __reduce_max_sync(0xFFFFFFFFu, E::amax_bits(maximum));
    if (lane == 0) warp_amax[warp] = of_warp;
    __syncthreads();
    std::uint32_t amax_bits = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) amax_bits = max(amax_bits, warp_amax[w]);
    scale = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, E::kMaxBits);
    if (thread == kThreads - 1) {
      const float inverse = reciprocal(scale);
      if (with_rows && a.row_scale != nullptr) {
        __stcs(a.row_scale + RowLayout::pitch(tile.rows, a.columns) * tile.number + column_tile, inverse);
      }
      if (with_columns && a.column_scale != nullptr) {
        const std::int64_t base = ColumnLayout::factor(a.columns) * tile.before;
        __stcs(a.column_scale + base + column_tile * ColumnLayout::pitch(tile.rows, a.columns) + tile.tile, inverse);
      }
    }
  }

  if constexpr (kParts & kDbiasPart) {
    if (with_sums && warp < kWarps / 2) {
      int pair;
      const float2 sum = sum_columns<X>(raw, lane, warp, pair);
      float* const to = a.tile_sums + std::int64_t{tile.number} * a.columns + first_column + 2 * pair;
      if (lane < 16) {
        if (kAligned && 2 * pair + 1 < columns) {
          __stcs(reinterpret_cast<float2*>(to), sum);
        } else {
          if (2 * pair < columns) __stcs(to, sum.x);
          if (2 * pair + 1 < columns) __stcs(to + 1, sum.y);
        }
      }
    }
  }

  const bool any_rows = warp * 16 < rows;  // of this warp
  if (with_rows && a.row_data != nullptr && any_rows) {
    std::uint8_t* to = a.row_data + patch_begin;
#pragma unroll
    for (int i = 0; i < 8; ++i, to += a.columns) {
      const float s = kSquare ? scale : __shfl_sync(0xFFFFFFFFu, scale, (lane & 16) | i << 1);
      float product[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) product[c] = multiply_with_zero(patch.value(i, c), s, a.zero);
      const uint2 codes = {encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
                           encode_fp8x4<F>(product[4], product[5], product[6], product[7])};
      if (row_group * 8 + i >= rows) continue;
      if constexpr (kAligned) {
        if (column_group * 8 < columns) __stcs(reinterpret_cast<uint2*>(to), codes);
      } else {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          if (column_group * 8 + c < columns)
            to[c] = static_cast<std::uint8_t>((c < 4 ? codes.x : codes.y) >> (8 * (c % 4)));
        }
      }
    }
  }

  if constexpr (kParts & kColumnPart) {
    // Column scales are there, and no thread reads the raw tile any more: the codes may take its place.
    if constexpr (!kSquare || kParts & kDbiasPart) __syncthreads();
    if (with_columns && a.column_data != nullptr) {
      column_codes.begin();
      float scales[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) scales[c] = kSquare ? scale : column_scale[column_group * 8 + c];
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (!any_rows) break;
        float product[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) product[i] = multiply_with_zero(patch.value(i, c), scales[c], a.zero);
        column_codes.put(column_group * 8 + c, row_group,
                         uint2{encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
                               encode_fp8x4<F>(product[4], product[5], product[6], product[7])});
      }
    }
  }
}

// Where column `first_column` of a tile's codes goes: the group's columns of tile.rows codes begin where its rows do.
__device__ __forceinline__ std::uint8_t* column_codes_of(const Fp8BlockTiles& a, const WindowTile& tile,
                                                         std::uint32_t column_tile) {
  return a.column_data + std::int64_t{tile.first_row} * a.columns + std::int64_t{column_tile} * kBlock * tile.rows +
         std::int64_t{tile.tile} * kBlock;
}

__device__ __forceinline__ void store_columns(const Fp8BlockTiles& a, const WindowTile& tile,
                                              std::uint32_t column_tile, const unsigned char* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = static_cast<int>(min(tile.rows - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
  const int columns = static_cast<int>(min(a.columns - std::int64_t{column_tile} * kBlock, std::int64_t{kBlock}));
  std::uint8_t* const to = column_codes_of(a, tile, column_tile);
  if (((reinterpret_cast<std::uintptr_t>(to) | tile.rows) & 15) != 0) {
    return store_columns_unaligned(shared, to, tile.rows, rows, columns, thread);
  }
  const int vector = thread % 8;
#pragma unroll
  for (int pass = 0; pass < 4; ++pass) {
    const int column = pass * 32 + thread / 8, exchange = column >> 3;
    uint4 v = reinterpret_cast<const uint4*>(shared)[column * 8 + (vector ^ exchange >> 1)];
    if (exchange & 1) v = uint4{v.z, v.w, v.x, v.y};
    if (column < columns && vector * 16 < rows) {
      __stcs(reinterpret_cast<uint4*>(to + static_cast<std::int64_t>(column) * tile.rows) + vector, v);
    }
  }
}

template <Format X, Format F, bool kSquare, unsigned kParts, bool kAligned>
__global__ void __launch_bounds__(kThreads, tiles_an_sm<X>())
    quantize_tiles(const __grid_constant__ Fp8BlockTiles a) {
  // Scales that are kept by tiles of rows need no other sum than the tile's number.
  constexpr Recipe kRecipe = kSquare ? Recipe::block_128x128 : Recipe::block_1x128;
  constexpr Direction kSummed = kSquare ? Direction::columnwise : Direction::rowwise;
  __shared__ WindowTiles<typename ScaleLayoutOf<kRecipe, kSummed>::Measure> tiles;
  using Memory = Shared<X, kSquare, kParts>;
  __shared__ TileScratch scratch;
  extern __shared__ __align__(16) unsigned char shared[];

  if (is_skipped(a.noop)) return;  // the threads of a block leave together
  const std::uint32_t window = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - window * a.column_tiles;
  unsigned left = tiles.find(a.rows, window, a.status, kParts & kColumnPart ? a.rows_multiple : 1);
  if (left == 0 || a.columns == 0) return;
  while (true) {
    const WindowTile& tile = tiles.list[--left];
    quantize_tile<X, F, kSquare, kParts, kAligned>(a, tile, column_tile, shared, shared + Memory::kTileBytes, scratch,
                                                   TileCodes{reinterpret_cast<uint2*>(shared)});
    if constexpr (kParts & kColumnPart) {
      if (a.column_data != nullptr) {
        __syncthreads();
        store_columns(a, tile, column_tile, shared);
      }
    }
    if (left == 0) return;
    __syncthreads();  // shared memory is used again
  }
}

template <Format X, Format F, bool kSquare, unsigned kParts, bool kAligned>
void launch(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  constexpr int kBytes = Shared<X, kSquare, kParts>::kBytes;
  const auto kernel = quantize_tiles<X, F, kSquare, kParts, kAligned>;
  if constexpr (kBytes > 40 * 1024) {  // beside what is declared in the kernel, past the 48 KiB that need no attribute
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "cudaFuncSetAttribute");
  }
  launch_kernel("quantize_tiles", kernel, tiles.blocks, kThreads, kBytes, stream, tiles);
}

}  // namespace fp8_block

#endif  // __CUDACC__

}  // namespace assay::device
