#pragma once
// FP8 block scaling, largest magnitudes of a tile: of rows, of columns, of all. A maximum of magnitudes: no order can change it.

#include <cstdint>

#include "device/quantize/fp8_block/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// Amax bits of the 8 rows that 16 lanes share: this lane's result is that of row (lane >> 1) & 7. Each exchange
// halves the rows that a lane still reduces.
template <Format X>
__device__ __forceinline__ std::uint32_t row_amax_bits(const Patch<X>& patch, int lane) {
  using E = Element<X>;
  std::uint32_t maximum[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    maximum[i] = 0;
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum[i] = E::accumulate_absmax(maximum[i], patch.word[i][w]);
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
      const std::uint32_t other = __shfl_xor_sync(kAllLanes, high8 ? pair[q] : pair[q + 2], 8);
      pair[q] = E::merge(high8 ? pair[q + 2] : pair[q], other);
    }
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, high4 ? pair[0] : pair[1], 4);
    std::uint32_t both = E::merge(high4 ? pair[1] : pair[0], other);
    both = E::merge(both, __shfl_xor_sync(kAllLanes, both, 2));
    both = E::merge(both, __shfl_xor_sync(kAllLanes, both, 1));
    return E::amax_bits(high2 ? both >> 16 : both & 0xFFFFu);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t other = __shfl_xor_sync(kAllLanes, high8 ? maximum[i] : maximum[i + 4], 8);
      maximum[i] = E::merge(high8 ? maximum[i + 4] : maximum[i], other);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t other = __shfl_xor_sync(kAllLanes, high4 ? maximum[i] : maximum[i + 2], 4);
      maximum[i] = E::merge(high4 ? maximum[i + 2] : maximum[i], other);
    }
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, high2 ? maximum[0] : maximum[1], 2);
    std::uint32_t one = E::merge(high2 ? maximum[1] : maximum[0], other);
    one = E::merge(one, __shfl_xor_sync(kAllLanes, one, 1));
    return E::amax_bits(one);
  }
}

// Maxima of the 8 columns of a thread.
template <Format X>
__device__ __forceinline__ void find_column_maxima(const Patch<X>& patch, std::uint32_t (&maximum)[Patch<X>::kWords]) {
#pragma unroll
  for (int w = 0; w < Patch<X>::kWords; ++w) {
    maximum[w] = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) maximum[w] = Element<X>::accumulate_absmax(maximum[w], patch.word[i][w]);
  }
}

// The same of 16-bit x, to `maxima` [row groups][columns], where threads are numbered along the rows.
template <Format X>
__device__ __forceinline__ void store_unit_maxima(const Patch<X>& patch, int thread, std::uint16_t* maxima) {
  std::uint32_t maximum[4];
  find_column_maxima(patch, maximum);
  reinterpret_cast<uint4*>(maxima)[thread] = uint4{maximum[0], maximum[1], maximum[2], maximum[3]};
}

// Maxima of the 8 columns of a lane, and of the lane 16 away (8 rows away), to the warp's row of `maxima`
// [kWarps][128] elements.
template <Format X>
__device__ __forceinline__ void store_column_maxima(const Patch<X>& patch, int lane, int warp, uint4* maxima) {
  using E = Element<X>;
  constexpr int kWords = Patch<X>::kWords;
  std::uint32_t maximum[kWords];
  find_column_maxima(patch, maximum);
#pragma unroll
  for (int w = 0; w < kWords; ++w) maximum[w] = E::merge(maximum[w], __shfl_xor_sync(kAllLanes, maximum[w], 16));
  if (lane < 16) {
#pragma unroll
    for (int v = 0; v < kWords / 4; ++v) {
      maxima[(warp * 16 + lane) * (kWords / 4) + v] =
          uint4{maximum[4 * v], maximum[4 * v + 1], maximum[4 * v + 2], maximum[4 * v + 3]};
    }
  }
}

// Amax bits of a column, from `maxima` [kCount][kColumns].
template <Format X, int kCount = kWarps, int kColumns = kBlock>
__device__ __forceinline__ std::uint32_t column_amax_bits(const void* maxima, int column) {
  using E = Element<X>;
  std::uint32_t maximum = 0;
#pragma unroll
  for (int w = 0; w < kCount; ++w) {
    std::uint32_t of_warp;
    if constexpr (E::kBytes == 2) {
      of_warp = static_cast<const std::uint16_t*>(maxima)[w * kColumns + column];
    } else {
      of_warp = static_cast<const std::uint32_t*>(maxima)[w * kColumns + column];
    }
    maximum = max(maximum, of_warp);
  }
  return E::amax_bits(maximum);
}

// Amax bits of the elements of a thread.
template <Format X>
__device__ __forceinline__ std::uint32_t patch_amax_bits(const Patch<X>& patch) {
  std::uint32_t maximum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum = Element<X>::accumulate_absmax(maximum, patch.word[i][w]);
  }
  return Element<X>::amax_bits(maximum);
}

// Amax bits of the whole tile, the same in all threads. `warp_amax` is [kWarps]; has a barrier.
template <Format X>
__device__ __forceinline__ std::uint32_t tile_amax_bits(const Patch<X>& patch, const Place& place, std::uint32_t* warp_amax) {
  const std::uint32_t of_warp = __reduce_max_sync(kAllLanes, patch_amax_bits(patch));
  if (place.lane == 0) warp_amax[place.warp] = of_warp;
  __syncthreads();
  std::uint32_t amax_bits = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) amax_bits = max(amax_bits, warp_amax[w]);
  return amax_bits;
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
