#pragma once
// FP8 block scaling, column sums of a tile for dbias, in the order of reference/recipes/dbias.h.

#include <cstdint>

#include "device/quantize/fp8_block/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// Stores the unchanged patch to raw [128][128]. Of 16-bit elements the lower 64 rows have neighbouring 64 B exchanged, so that
// the two halves of a warp in sum_columns() read different banks.
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

// By 4 warps: sums of columns 2 * pair and 2 * pair + 1, each half of 64 rows alone and then both together, as dbias.h specifies.
// Lanes 0 to 15 of a warp have the first half and get the sum.
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
  const float2 second = {__shfl_down_sync(kAllLanes, sum.x, 16), __shfl_down_sync(0xFFFFFFFFu, sum.y, 16)};
  return {add(sum.x, second.x), add(sum.y, second.y)};
}

// Sums of the tile's columns to a.tile_sums, by warps 0 to 3.
template <Format X, bool kAligned>
__device__ __forceinline__ void store_sums(const Fp8BlockTiles& a, const WindowTile& tile, const Place& place, const void* raw) {
  int pair;
  const float2 sum = sum_columns<X>(raw, place.lane, place.warp, pair);
  float* const to = a.tile_sums + std::int64_t{tile.number} * a.columns + place.first_column + 2 * pair;
  if (place.lane < 16) {
    if (kAligned && 2 * pair + 1 < place.columns) {
      *reinterpret_cast<float2*>(to) = sum;
    } else {
      if (2 * pair < place.columns) *to = sum.x;
      if (2 * pair + 1 < place.columns) to[1] = sum.y;
    }
  }
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
