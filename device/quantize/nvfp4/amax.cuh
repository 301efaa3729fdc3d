#pragma once
// NVFP4, the largest magnitudes of a warp's square: of a row's block, a column's, a tile of 16 x 16, the lane's own. A
// maximum of magnitudes: no order can change it.

#include <cstdint>

#include "device/formats/absmax.cuh"
#include "device/formats/convert.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// accumulate_absmax() of 16-bit elements, but a NaN stays: with its sign ignored, it is larger than all numbers as an integer too.
template <Format X>
__device__ __forceinline__ std::uint32_t accumulate_absmax_or_nan(std::uint32_t maximum, std::uint32_t word) {
  static_assert(Element<X>::kPerWord == 2);
#if __CUDA_ARCH__ >= 860
  if constexpr (X == Format::bf16) {
    asm("max.NaN.xorsign.abs.bf16x2 %0, %0, %1;" : "+r"(maximum) : "r"(word));
  } else {
    asm("max.NaN.xorsign.abs.f16x2 %0, %0, %1;" : "+r"(maximum) : "r"(word));
  }
  return maximum;
#else
  const std::uint32_t a = maximum & 0x7FFF'7FFFu, b = word & 0x7FFF'7FFFu;
  return max(a & 0xFFFFu, b & 0xFFFFu) | max(a >> 16, b >> 16) << 16;
#endif
}

// NaNs: passed over, as the amax of a block asks for; or kept, for a test that no element is one.
enum class Nans { passed_over, kept };
template <Format X, Nans kNans>
__device__ __forceinline__ std::uint32_t accumulate(std::uint32_t maximum, std::uint32_t word) {
  if constexpr (kNans == Nans::kept) return accumulate_absmax_or_nan<X>(maximum, word);
  return accumulate_absmax<X>(maximum, word);
}

// Amax bits of rows 2h and 2h + 1 of the lane's 4, h = g % 2, over the block that the lane shares with another.
template <Format X, Nans kNans = Nans::passed_over>
__device__ __forceinline__ uint2 row_amaxes(const Patch<X>& patch, const Lane& lane) {
  using E = Element<X>;
  std::uint32_t maximum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = 0;
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum[i] = accumulate<X, kNans>(maximum[i], patch.word[i][w]);
  }
  const bool upper = lane.g % 2;
  if constexpr (E::kPerWord == 2) {
    std::uint32_t pair[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      pair[i] = accumulate<X, kNans>(__byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x5410),
                                     __byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x7632));
    }
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? pair[0] : pair[1], 4);
    const std::uint32_t own = without_sign<X>(accumulate<X, kNans>(upper ? pair[1] : pair[0], other));
    return {E::amax_bits(own & 0xFFFFu), E::amax_bits(own >> 16)};
  } else {
    const std::uint32_t first = __shfl_xor_sync(kAllLanes, upper ? maximum[0] : maximum[2], 4);
    const std::uint32_t second = __shfl_xor_sync(kAllLanes, upper ? maximum[1] : maximum[3], 4);
    return {E::amax_bits(accumulate<X, kNans>(upper ? maximum[2] : maximum[0], first)),
            E::amax_bits(accumulate<X, kNans>(upper ? maximum[3] : maximum[1], second))};
  }
}

// Amax bits of columns 2q and 2q + 1 of the lane's 8 over the 16 rows.
template <Format X, Nans kNans = Nans::passed_over>
__device__ __forceinline__ uint2 column_amaxes(const Patch<X>& patch, const Lane& lane) {
  using E = Element<X>;
  constexpr int kWords = Patch<X>::kWords;
  std::uint32_t maximum[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    maximum[w] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) maximum[w] = accumulate<X, kNans>(maximum[w], patch.word[i][w]);
  }
  // Each exchange halves the columns that a lane still reduces.
  const bool upper2 = lane.q & 2, upper1 = lane.q & 1;
#pragma unroll
  for (int w = 0; w < kWords / 2; ++w) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper2 ? maximum[w] : maximum[w + kWords / 2], 2);
    maximum[w] = accumulate<X, kNans>(upper2 ? maximum[w + kWords / 2] : maximum[w], other);
  }
#pragma unroll
  for (int w = 0; w < kWords / 4; ++w) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper1 ? maximum[w] : maximum[w + kWords / 4], 1);
    maximum[w] = without_sign<X>(accumulate<X, kNans>(upper1 ? maximum[w + kWords / 4] : maximum[w], other));
  }
  if constexpr (E::kPerWord == 2) {
    return {E::amax_bits(maximum[0] & 0xFFFFu), E::amax_bits(maximum[0] >> 16)};
  } else {
    return {E::amax_bits(maximum[0]), E::amax_bits(maximum[1])};
  }
}

// Amax bits of the lane's own elements.
template <Format X, Nans kNans = Nans::passed_over>
__device__ __forceinline__ std::uint32_t own_amax(const Patch<X>& patch) {
  using E = Element<X>;
  std::uint32_t maximum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) maximum = accumulate<X, kNans>(maximum, patch.word[i][w]);
  }
  maximum = without_sign<X>(maximum);
  return E::amax_bits(E::kPerWord == 2 ? max(maximum & 0xFFFFu, maximum >> 16) : maximum);
}

// Amax bits of the tile of 16 x 16 that the lane belongs to.
template <Format X, Nans kNans = Nans::passed_over>
__device__ __forceinline__ std::uint32_t tile_amax(const Patch<X>& patch) {
  std::uint32_t maximum = own_amax<X, kNans>(patch);
#pragma unroll
  for (int step = 1; step < 8; step *= 2) maximum = max(maximum, __shfl_xor_sync(kAllLanes, maximum, step));
  return maximum;
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
