#pragma once
// FP8 block scaling of one large tensor of 16 bits in both directions, in blocks of 256 x 256 elements.
//
//   traffic   as quantize_tiles.cuh
//   ceiling   HBM: lines that one block reads or writes close together in time lie side by side: 512 B of each row of x and 256 B of
//             each column of codes, in place of 256 and 128: 0.93 to 0.94 of a copy in place of 0.91 (h200_plain_accesses.json). For
//             groups, and for fewer than 8 turns of blocks, quantize_tiles.cuh is as fast or faster
//   layout    512 threads; a step is two tiles of 128 x 128 side by side, in patches of 8 x 8 a thread; a block makes two steps, one
//             below the other
//
//                      columns 0-127        128-255
//                   +-----------------+-----------------+
//             warp 0| lanes 0 to 15   | lanes 16 to 31  |  rows 0-7
//             warp 1|                 |                 |  rows 8-15
//             ...   |                 |                 |
//            warp 15|                 |                 |  rows 120-127
//                   +-----------------+-----------------+
//
//   rowwise   as quantize_tiles.cuh
//   columnwise  codes of both steps stay in shared memory (64 KiB), then 256 B of each column leave at once
//   matches   reference/recipes/fp8_block.h

#include <cstdint>

#include "device/quantize/fp8_block/quantize_tiles.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

constexpr int kWideThreads = 512, kWideWarps = kWideThreads / 32, kWideColumns = 2 * kBlock, kSteps = 2;

// Shared memory of a block, in this order: codes of two steps, then for 1x128 the maxima of the columns of each warp.
template <bool kSquare>
struct WideShared {
  static constexpr int kCodeBytes = kSteps * kBlock * kWideColumns;
  static constexpr int kMaximaBytes = kSquare ? 0 : kWideWarps * kWideColumns * 2;
  static constexpr int kBytes = kCodeBytes + kMaximaBytes;
};

struct WideScratch {
  std::uint32_t warp_amax[kSteps][2][kWideWarps];
  __align__(16) float column_scale[kWideColumns];
};

// Codes of columns in shared memory, 8 rows of a column at a time: of the tile `side` (0 or 1) of step `step`.
struct WideCodes {
  uint2* chunks;
  int side, step;
  __device__ __forceinline__ void put(int column, int chunk, const uint2& codes) const {
    chunks[code_chunk<kSteps * kBlock>(side * kBlock + column, step * 16 + chunk)] = codes;
  }
};

// Scales of columns of 1x128, by a thread for each: to scratch.column_scale and to memory.
template <Format X>
__device__ __forceinline__ void find_wide_column_scales(const Fp8BlockTiles& a, const WindowTile& tile, std::int64_t first_column,
                                                        const std::uint16_t* maxima, WideScratch& scratch) {
  using Layout = ScaleLayoutOf<Recipe::block_1x128, Direction::columnwise>;
  const int column = static_cast<int>(threadIdx.x);
  if (column >= kWideColumns) return;
  const float own = scale_from_amax(column_amax_bits<X, kWideWarps, kWideColumns>(maxima, column), a.max, a.pow2, a.epsilon,
                                    Element<X>::kMaxBits);
  scratch.column_scale[column] = own;
  if (a.column_scale != nullptr && first_column + column < a.columns) {
    a.column_scale[Layout::pitch(tile.rows, a.columns) * tile.number + first_column + column] = reciprocal(own);
  }
}

// The scale of 128x128 of the thread's tile. Has a barrier.
template <Format X>
__device__ __forceinline__ float find_wide_tile_scale(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                                      const Place& place, const Patch<X>& patch,
                                                      std::uint32_t (&warp_amax)[2][kWideWarps]) {
  std::uint32_t amax_bits = patch_amax_bits(patch);
#pragma unroll
  for (int away = 8; away != 0; away /= 2) amax_bits = max(amax_bits, __shfl_xor_sync(kAllLanes, amax_bits, away));
  const int side = place.lane / 16;
  if (place.column_group == 0) warp_amax[side][place.warp] = amax_bits;
  __syncthreads();
#pragma unroll
  for (const std::uint32_t of_warp : warp_amax[side]) amax_bits = max(amax_bits, of_warp);
  const float scale = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, Element<X>::kMaxBits);
  if (place.warp == 0 && place.column_group == 0)
    store_tile_scale(a, tile, column_tile, Requested<kRowPart | kColumnPart>(a), scale);
  return scale;
}

// A step: the tile of rows `tile` in the two tiles of columns from `column_tile` on, by all threads of a block. Codes of columns go to
// shared memory, without a barrier.
template <Format X, Format F, bool kSquare>
__device__ __forceinline__ void quantize_step(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile, int step,
                                              unsigned char* shared, WideScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x % 32), side = lane / 16;
  // Where there is no second tile, both halves of a warp have the first one, and write the same.
  const std::uint32_t own_tile = min(column_tile + static_cast<std::uint32_t>(side), a.column_tiles - 1);
  const Place place(a, tile, own_tile, lane, static_cast<int>(threadIdx.x / 32));
  Patch<X> patch;
  load_tile<X, kRowPart | kColumnPart, true>(a, place, patch);

  float scale;
  if constexpr (kSquare) {
    scale = find_wide_tile_scale(a, tile, own_tile, place, patch, scratch.warp_amax[step]);
  } else {
    auto* const maxima = reinterpret_cast<std::uint16_t*>(shared + WideShared<kSquare>::kCodeBytes);  // [kWideWarps][256]
    scale = find_row_scale<X>(a, tile, own_tile, place, Requested<kRowPart | kColumnPart>(a), patch);
    store_unit_maxima(patch, place.thread, maxima);
    __syncthreads();
    const std::int64_t first_column = std::int64_t{column_tile} * kBlock;
    find_wide_column_scales<X>(a, tile, first_column, maxima, scratch);
  }
  if (a.row_data != nullptr) store_row_codes<X, F, kSquare, true>(a, place, patch, scale);
  if constexpr (!kSquare) __syncthreads();  // scales of columns are complete
  if (a.column_data == nullptr) return;
  put_column_codes<X, F, kSquare>(a, place, patch, scale, scratch.column_scale + side * kBlock, true,
                                  WideCodes{reinterpret_cast<uint2*>(shared), side, step});
}

template <Format X, Format F, bool kSquare>
__global__ void __launch_bounds__(kWideThreads, 2) quantize_wide(const __grid_constant__ Fp8BlockTiles a) {
  __shared__ WideScratch scratch;
  extern __shared__ __align__(16) unsigned char shared[];

  wait_for_earlier_kernels();
  if (is_skipped(a.noop)) return;  // all threads of a block return together
  const std::uint32_t pairs = (a.column_tiles + 1) / 2, line = blockIdx.x / pairs, column_tile = 2 * (blockIdx.x - line * pairs);
  const auto rows = static_cast<std::uint32_t>(a.rows.capacity);
  const auto tile_of = [&](std::uint32_t number) { return WindowTile{0, rows, number, number, 0, 0}; };
  const WindowTile first = tile_of(kSteps * line);
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) {
    const WindowTile tile = tile_of(first.tile + static_cast<std::uint32_t>(step));
    if (tile.tile * kBlock < rows) quantize_step<X, F, kSquare>(a, tile, column_tile, step, shared, scratch);
  }
  if (a.column_data == nullptr) return;
  __syncthreads();
  const GroupColumns group = columns_of(a, first);
  const int inside = static_cast<int>(min(rows - first.tile * kBlock, static_cast<std::uint32_t>(kSteps * kBlock)));
  const int columns = static_cast<int>(min(a.columns - std::int64_t{column_tile} * kBlock, std::int64_t{kWideColumns}));
  store_columns_aligned<kSteps * kBlock, kWideColumns, kWideThreads>(shared, column_codes_of(a, first, column_tile, group),
                                                                     group.pitch, inside, columns);
}

template <Format X, Format F, bool kSquare>
void launch_wide(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  constexpr int kBytes = WideShared<kSquare>::kBytes;
  const auto kernel = quantize_wide<X, F, kSquare>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  const std::uint32_t lines = tiles.blocks / tiles.column_tiles;
  const std::uint32_t blocks = (lines + kSteps - 1) / kSteps * ((tiles.column_tiles + 1) / 2);
  launch_kernel_early("quantize_wide", kernel, blocks, kWideThreads, kBytes, stream, tiles);
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
