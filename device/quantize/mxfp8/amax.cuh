#pragma once
// MXFP8, largest magnitudes of a strip and the scales of blocks. A maximum of magnitudes: no order can change it.

#include <cstdint>

#include "device/formats/absmax.cuh"
#include "device/quantize/mxfp8/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::mxfp8 {

// Between lanes kStep apart: each keeps one half of what both have, the lane with that bit the upper.
template <Format X, int kStep, int kHalf, int kCount>
__device__ __forceinline__ void exchange_halves(std::uint32_t (&maximum)[kCount], int lane) {
  const bool upper = lane & kStep;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? maximum[i] : maximum[i + kHalf], kStep);
    maximum[i] = accumulate_absmax<X>(upper ? maximum[i + kHalf] : maximum[i], other);
  }
}

// Amax bits of rows 4 (lane % 8) ... 4 (lane % 8) + 3 over the 8 lanes that share a block. Each exchange halves the
// rows that a lane still reduces.
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
      for (int w = 0; w < Strip<X>::kWords; ++w) of_row[r] = accumulate_absmax<X>(of_row[r], strip.word[i * kRows + r][w]);
    }
    if constexpr (kRows == 2) {
      maximum[i] = accumulate_absmax<X>(__byte_perm(of_row[0], of_row[1], 0x5410), __byte_perm(of_row[0], of_row[1], 0x7632));
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
      upper = accumulate_absmax<X>(upper, strip.word[i][w]);
      lower = accumulate_absmax<X>(lower, strip.word[i + kBlock / 2][w]);
    }
    const std::uint32_t maximum = without_sign<X>(accumulate_absmax<X>(upper, lower));
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

}  // namespace assay::device::mxfp8

#endif  // __CUDACC__
