#pragma once
// NVFP4, what a lane (thread_layout.cuh) holds of x: its 4 x 8 elements, with zeros and NaNs made canonical, and their signs,
// which go into the codes unchanged.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/quantize/matrix_patch.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// Rows 4q ... 4q + 3 and columns 8g ... 8g + 7 of a square.
template <Format X>
using Patch = MatrixPatch<X, 4>;

// The elements of a word, times 1, plus a zero each.
template <Format X>
__device__ __forceinline__ void add_zeros(std::uint32_t& word, std::uint32_t zeros) {
#ifdef __CUDA_ARCH__
  if constexpr (X == Format::bf16) {
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(word) : "r"(0x3F80'3F80u), "r"(zeros));
  } else if constexpr (X == Format::f16) {
    asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(word) : "r"(0x3C00'3C00u), "r"(zeros));
  } else {
    word = bits_of_float(add(float_of_bits(word), float_of_bits(zeros)));
  }
#else  // the host's NaN would keep its sign
  constexpr int kBits = 8 * Element<X>::kBytes;
  constexpr std::uint32_t kNan = X == Format::f32 ? 0x7FFF'FFFFu : 0x7FFFu;
  constexpr std::uint32_t kInfinity = X == Format::f32 ? 0x7F80'0000u : X == Format::bf16 ? 0x7F80u : 0x7C00u;
  std::uint32_t sums = 0;
  for (int at = 0; at < 32; at += kBits) {
    constexpr std::uint32_t kAll = 2 * kNan + 1;
    const std::uint32_t code = word >> at & kAll, zero = zeros >> at & kAll, magnitude = code & kNan;
    sums |= (magnitude > kInfinity ? kNan : magnitude == 0 ? code & zero : code) << at;
  }
  word = sums;
#endif
}

// Adds +0 or -0, which determines the sign of an exact -0 (multiply_with_zero). A NaN becomes the positive NaN of arithmetic. The
// sign of every element is then that of its code.
template <Format X>
__device__ __forceinline__ void settle_signs(Patch<X>& patch, float zero) {
  const std::uint32_t sign = bits_of_float(zero), zeros = Element<X>::kPerWord == 2 ? sign | sign >> 16 : sign;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < Patch<X>::kWords; ++w) add_zeros<X>(patch.word[i][w], zeros);
  }
}

template <Format X>
__device__ __forceinline__ std::uint32_t settled(std::uint32_t word, float zero) {
  Patch<X> patch{};
  patch.word[0][0] = word;
  settle_signs(patch, zero);
  return patch.word[0][0];
}

// Signs of 8 neighbours of a row as the top bits of 8 nibbles, the first lowest.
template <Format X>
__device__ __forceinline__ std::uint32_t row_signs(const std::uint32_t (&word)[Patch<X>::kWords]) {
  if constexpr (Element<X>::kPerWord == 2) {  // bytes 1 and 3 of words have them: elements 0 2 1 3 and 4 6 5 7
    const std::uint32_t low = __byte_perm(word[0], word[1], 0x7351), high = __byte_perm(word[2], word[3], 0x7351);
    const std::uint32_t even = __byte_perm(low, high, 0x5410), odd = __byte_perm(low, high, 0x7632);
    return (even >> 4 & 0x0808'0808u) | (odd & 0x8080'8080u);
  } else {
    std::uint32_t signs = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) signs |= (word[i] >> 31) << (4 * i + 3);
    return signs;
  }
}

// Signs of 4 rows of columns 2k and 2k + 1, likewise: the rows of the first column lowest.
template <Format X>
__device__ __forceinline__ std::uint32_t column_signs(const Patch<X>& patch, int k) {
  if constexpr (Element<X>::kPerWord == 2) {
    constexpr std::uint32_t kSigns = 0x8000'8000u;
    std::uint32_t signs = patch.word[0][k];
#pragma unroll
    for (int i = 1; i < 4; ++i) signs = (patch.word[i][k] & kSigns) | (signs >> 4 & ~kSigns);
    return signs & 0x8888'8888u;
  } else {
    std::uint32_t signs = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      signs |= (patch.word[i][2 * k] >> 31) << (4 * i + 3) | (patch.word[i][2 * k + 1] >> 31) << (4 * i + 19);
    }
    return signs;
  }
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
