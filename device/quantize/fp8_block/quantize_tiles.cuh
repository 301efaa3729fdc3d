#pragma once
// FP8 block scaling, one tile of 128 x 128 elements per block of threads: x is read once, and everything requested
// of it (rowwise and columnwise codes and scales, column sums for dbias) comes from that one reading.
//
//   traffic   16-bit x: 2 B read, 1 B written per element and direction, 4 B of scale per 128 (1x128) or per 16384;
//             dbias adds 4 B written per 128:  3.03, 4.06 and 4.09 B/element for 1x128
//   ceiling   HBM: one aligned tensor reaches about nine tenths of the rate of a copy. More tiles per SM (6, with x
//             kept in shared memory to save registers) are not faster.
//   layout    256 threads; a thread holds 8 rows x 8 columns in registers: 16 threads side by side make the 128
//             columns, 16 groups of them the 128 rows. All 8 loads of a thread (16 B each) are in flight at once; 4
//             tiles per SM.
//   rowwise   amax of a row over 16 lanes by shuffles; 8 codes per lane, 128 B of each row in one store
//   columnwise  amax of a column within a thread, then over 16 groups through shared memory; codes of 8 rows packed in
//             a thread, transposed through shared memory (16 KiB, 8-byte chunks exchanged by xor to avoid bank
//             conflicts), stored as 128 B of each column
//   dbias     the unchanged tile in shared memory; a thread adds 64 rows of two columns, one after the other
//   order     amax is a maximum of magnitudes: no order can change it. dbias has that of reference/recipes/dbias.h
//   caches    plain loads and stores, here and in all of device/quantize: with evict-first ones (ld.cs, st.cs) L2 keeps what an
//             earlier kernel left there, and has few lines for what this one writes: 3 to 10 % slower, as if the card had two
//             states (docs/measured.md)
//   launch    while the kernel before ends (early_launch.cuh): up to 1 us less for each of two calls in a row
//   matches   reference/recipes/fp8_block.h
//
// A tile is never shared between groups (window_tiles.cuh says which tiles a block has: one, but where groups meet).
// Rows and columns past the end of a group or of the matrix are held as +0, which changes neither an amax nor a sum (a
// sum of column values starts from +0 and so is never -0).

#include <cstdint>

#include "device/layout/scale_layout.cuh"
#include "device/quantize/fp8_block/amax.cuh"
#include "device/quantize/fp8_block/column_sums.cuh"
#include "device/quantize/fp8_block/swiglu.cuh"
#include "device/quantize/fp8_block/thread_layout.cuh"
#include "device/quantize/fp8_block/transposed_stores.cuh"
#include "device/support/early_launch.cuh"
#include "device/support/launch_check.h"
#include "device/support/noop.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// Shared memory of a tile, in this order: the raw tile or (later) the codes; then maxima of columns of each warp.
template <Format X, bool kSquare, unsigned kParts>
struct Shared {
  static constexpr int kRawBytes = kParts & kDbiasPart ? kBlock * kBlock * Element<X>::kBytes : 0;
  static constexpr int kCodeBytes = kParts & kColumnPart ? kBlock * kBlock : 0;
  static constexpr int kTileBytes = kRawBytes > kCodeBytes ? kRawBytes : kCodeBytes;
  static constexpr int kMaximaBytes = !kSquare && kParts & kColumnPart ? kWarps * kBlock * Element<X>::kBytes : 0;
  static constexpr int kBytes = kTileBytes + kMaximaBytes;
  static_assert(kTileBytes % 16 == 0);  // maxima are stored as vectors
};

// In shared memory, one per block.
struct TileScratch {
  std::uint32_t warp_amax[kWarps];
  __align__(16) float column_scale[kBlock];
};

// Codes of columns in shared memory for quantize_tiles(): 8 rows of a column at a time.
struct TileCodes {
  uint2* chunks;
  __device__ __forceinline__ void put(int column, int chunk, const uint2& codes) const {
    chunks[code_chunk(column, chunk)] = codes;
  }
};

// The steps of a tile, in order: load, (raw copy for sums,) scales from amaxes, sums, row codes, column codes.

// The parts of a call that are requested, of those that the kernel is compiled for.
template <unsigned kParts>
struct Requested {
  bool rows, columns, sums;
  __device__ __forceinline__ explicit Requested(const Fp8BlockTiles& a)
      : rows(kParts & kRowPart && (a.row_data != nullptr || a.row_scale != nullptr)),
        columns(kParts & kColumnPart && (a.column_data != nullptr || a.column_scale != nullptr)),
        sums(kParts & kDbiasPart && a.tile_sums != nullptr) {}
};

// Scale of 1x128 of row (lane >> 1) & 7 of the thread's 8, if rows are requested.
template <Format X, unsigned kParts>
__device__ __forceinline__ float find_row_scale(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                                const Place& place, const Requested<kParts>& requested, const Patch<X>& patch) {
  using E = Element<X>;
  using RowLayout = ScaleLayoutOf<Recipe::block_1x128, Direction::rowwise>;
  float scale = 1;
  if (requested.rows) {
    scale = scale_from_amax(row_amax_bits(patch, place.lane), a.max, a.pow2, a.epsilon, E::kMaxBits);
    const int row = place.row_group * 8 + (place.lane >> 1 & 7);
    if (a.row_scale != nullptr && place.lane % 2 == 0 && row < place.rows) {
      const std::int64_t base = RowLayout::factor(a.columns) * tile.before;
      const std::int64_t pitch = RowLayout::pitch(tile.rows, a.columns);
      a.row_scale[base + column_tile * pitch + tile.tile * kBlock + row] = reciprocal(scale);
    }
  }
  return scale;
}

// Scales of 1x128. Returns that of find_row_scale(); those of columns go to scratch.column_scale.
template <Format X, unsigned kParts>
__device__ __forceinline__ float find_line_scales(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                                  const Place& place, const Requested<kParts>& requested, const Patch<X>& patch,
                                                  unsigned char* maxima, TileScratch& scratch) {
  using E = Element<X>;
  using ColumnLayout = ScaleLayoutOf<Recipe::block_1x128, Direction::columnwise>;
  const float scale = find_row_scale<X>(a, tile, column_tile, place, requested, patch);
  if constexpr (kParts & kColumnPart) {
    if (requested.columns) {
      store_column_maxima(patch, place.lane, place.warp, reinterpret_cast<uint4*>(maxima));
    }
  }
  if constexpr (kParts & (kColumnPart | kDbiasPart)) __syncthreads();
  if constexpr (kParts & kColumnPart) {
    if (requested.columns && place.warp >= kWarps / 2) {  // the other warps sum columns meanwhile
      const int column = place.thread - kThreads / 2;
      const std::uint32_t amax_bits = column_amax_bits<X>(maxima, column);
      const float own = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, E::kMaxBits);
      scratch.column_scale[column] = own;
      if (a.column_scale != nullptr && column < place.columns) {
        a.column_scale[ColumnLayout::pitch(tile.rows, a.columns) * tile.number + place.first_column + column] = reciprocal(own);
      }
    }
  }
  return scale;
}

// The scale of 128x128 of a tile, in both directions. Called by one thread.
template <unsigned kParts>
__device__ __forceinline__ void store_tile_scale(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                                 const Requested<kParts>& requested, float scale) {
  using RowLayout = ScaleLayoutOf<Recipe::block_128x128, Direction::rowwise>;
  using ColumnLayout = ScaleLayoutOf<Recipe::block_128x128, Direction::columnwise>;
  const float inverse = reciprocal(scale);
  if (requested.rows && a.row_scale != nullptr) {
    a.row_scale[RowLayout::pitch(tile.rows, a.columns) * tile.number + column_tile] = inverse;
  }
  if (requested.columns && a.column_scale != nullptr) {
    const std::int64_t base = ColumnLayout::factor(a.columns) * tile.before;
    a.column_scale[base + column_tile * ColumnLayout::pitch(tile.rows, a.columns) + tile.tile] = inverse;
  }
}

// The scale of 128x128, the same in all threads.
template <Format X, unsigned kParts>
__device__ __forceinline__ float find_tile_scale(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                                 const Place& place, const Requested<kParts>& requested, const Patch<X>& patch,
                                                 TileScratch& scratch) {
  const float scale =
      scale_from_amax(tile_amax_bits(patch, place, scratch.warp_amax), a.max, a.pow2, a.epsilon, Element<X>::kMaxBits);
  if (place.thread == kThreads - 1) {
    store_tile_scale(a, tile, column_tile, requested, scale);
  }
  return scale;
}

// Rowwise codes of the patch, straight to memory.
template <Format X, Format F, bool kSquare, bool kAligned>
__device__ __forceinline__ void store_row_codes(const Fp8BlockTiles& a, const Place& place, const Patch<X>& patch, float scale) {
  std::uint8_t* to = a.row_data + place.patch_begin;
#pragma unroll
  for (int i = 0; i < 8; ++i, to += a.columns) {
    const float s = kSquare ? scale : __shfl_sync(kAllLanes, scale, (place.lane & 16) | i << 1);
    float product[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) product[c] = multiply_with_zero(patch.value(i, c), s, a.zero);
    const uint2 codes = {encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
                         encode_fp8x4<F>(product[4], product[5], product[6], product[7])};
    if (place.row_group * 8 + i >= place.rows) continue;
    if constexpr (kAligned) {
      if (place.column_group * 8 < place.columns) *reinterpret_cast<uint2*>(to) = codes;
    } else {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (place.column_group * 8 + c < place.columns)
          to[c] = static_cast<std::uint8_t>((c < 4 ? codes.x : codes.y) >> (8 * (c % 4)));
      }
    }
  }
}

// Columnwise codes of the patch, 8 rows of a column at a time, to `column_codes`.
template <Format X, Format F, bool kSquare, class Codes>
__device__ __forceinline__ void put_column_codes(const Fp8BlockTiles& a, const Place& place, const Patch<X>& patch, float scale,
                                                 const float* column_scale, bool any_rows, const Codes& column_codes) {
  float scales[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) scales[c] = kSquare ? scale : column_scale[place.column_group * 8 + c];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    if (!any_rows) break;
    float product[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) product[i] = multiply_with_zero(patch.value(i, c), scales[c], a.zero);
    column_codes.put(place.column_group * 8 + c, place.row_group,
                     uint2{encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
                           encode_fp8x4<F>(product[4], product[5], product[6], product[7])});
  }
}

// The elements of a thread.
template <Format X, unsigned kParts, bool kAligned>
__device__ __forceinline__ void load_tile(const Fp8BlockTiles& a, const Place& place, Patch<X>& patch) {
  if constexpr (kParts & kGatedPart) {
    // Gate lies before up, in rows twice as long: as many elements further as there are before the patch's row.
    const std::int64_t gate = place.patch_begin + place.patch_row * a.columns;
    load_gated_patch<X, kAligned, 8>(patch, static_cast<const unsigned char*>(a.x) + gate * Element<X>::kBytes, a.columns,
                                     place.rows - place.row_group * 8, place.columns - place.column_group * 8);
  } else {
    load_patch<X, kAligned>(patch, static_cast<const unsigned char*>(a.x) + place.patch_begin * Element<X>::kBytes, a.columns,
                            place.rows - place.row_group * 8, place.columns - place.column_group * 8);
  }
}

// One tile by all threads of a block, except for the columns' codes, which go to `column_codes` without a barrier.
// `raw` receives a copy of the tile's elements if dbias is requested; TileCodes may use the same memory afterwards. `maxima`
// has Shared::kMaximaBytes.
template <Format X, Format F, bool kSquare, unsigned kParts, bool kAligned, class Codes>
__device__ __forceinline__ void quantize_tile(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                              unsigned char* raw, unsigned char* maxima, TileScratch& scratch,
                                              const Codes& column_codes) {
  const Place place(a, tile, column_tile);
  Patch<X> patch;
  load_tile<X, kParts, kAligned>(a, place, patch);
  const Requested<kParts> requested(a);
  if constexpr (kParts & kDbiasPart) {
    if (requested.sums) store_raw(patch, place.row_group * 8, place.column_group, reinterpret_cast<uint4*>(raw));
  }

  float scale;
  if constexpr (kSquare) {
    scale = find_tile_scale(a, tile, column_tile, place, requested, patch, scratch);
  } else {
    scale = find_line_scales(a, tile, column_tile, place, requested, patch, maxima, scratch);
  }

  if constexpr (kParts & kDbiasPart) {
    if (requested.sums && place.warp < kWarps / 2) store_sums<X, kAligned>(a, tile, place, raw);
  }

  const bool any_rows = place.warp * 16 < place.rows;  // of this warp
  if (requested.rows && a.row_data != nullptr && any_rows) store_row_codes<X, F, kSquare, kAligned>(a, place, patch, scale);

  if constexpr (kParts & kColumnPart) {
    // Column scales are complete, and no thread reads the raw tile any more: the codes may use its memory.
    if constexpr (!kSquare || kParts & kDbiasPart) __syncthreads();
    if (requested.columns && a.column_data != nullptr) {
      put_column_codes<X, F, kSquare>(a, place, patch, scale, scratch.column_scale, any_rows, column_codes);
    }
  }
}

template <Format X, Format F, bool kSquare, unsigned kParts, bool kAligned>
__global__ void __launch_bounds__(kThreads, tiles_per_sm<X>()) quantize_tiles(const __grid_constant__ Fp8BlockTiles a) {
  // Scales that are kept by tiles of rows need no other sum than the tile's number.
  constexpr Recipe kRecipe = kSquare ? Recipe::block_128x128 : Recipe::block_1x128;
  constexpr Direction kSummed = kSquare ? Direction::columnwise : Direction::rowwise;
  __shared__ WindowTiles<typename ScaleLayoutOf<kRecipe, kSummed>::Measure> tiles;
  using Memory = Shared<X, kSquare, kParts>;
  __shared__ TileScratch scratch;
  extern __shared__ __align__(16) unsigned char shared[];

  wait_for_earlier_kernels();
  if (is_skipped(a.noop)) return;  // all threads of a block return together
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
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  }
  launch_kernel_early("quantize_tiles", kernel, tiles.blocks, kThreads, kBytes, stream, tiles);
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
