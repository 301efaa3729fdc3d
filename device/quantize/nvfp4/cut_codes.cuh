#pragma once
// NVFP4, codes of E2M1 to nearest by cutting values to f16, where that gives the same code: two values by one instruction. Every
// function compiles for the host too.
//
// Bits of the f16 of |v| / 2^14 with what lies below them cut off; a code is an f16 of one bit of mantissa, subnormal below 1:
//
//     15   14 ... 12   11 10    9    8   7 ... 0
//    sign    0 0 0     code of v     r   dropped         v below 7; code + r: the next code where v is at least half way
//
// So a tie always gives the larger code, but nearest even gives the smaller one at 0.25, 1.25, 2.5 and 5. Such a v is an element
// times a c (nvfp4.h), rounded, and a group has only eight c but for powers of two: codes_may_be_cut() says that none of them has an
// element with such a product. The caller knows that the largest |v| of a block is below 7, from where on code + r is no code, and
// no NaN.

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device::nvfp4 {

inline constexpr float kCutScale = 0x1p-14f;  // v is to be multiplied by it
// The largest |v| of a block that is cut is below it. Under a scale that is neither subnormal nor limited it is about 6.375 at most.
inline constexpr float kCutBelow = 6.5f;

// The f16 of two values, cut, the first in the low half. Each is below 2^-11.
ASSAY_BOTH std::uint32_t cut_pair(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t halves;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(second), "f"(first));
  return halves;
#else
  std::uint32_t halves = 0;
  for (const float value : {second, first}) {
    const std::uint32_t bits = bits_of_float(value), magnitude = bits & kF32Magnitude;
    const std::uint32_t normal = (magnitude >> 13) - (112u << 10);
    const auto subnormal = static_cast<std::uint32_t>(float_of_bits(magnitude) * 0x1p24f);
    halves = halves << 16 | (bits >> 16 & 0x8000u) | (magnitude >> 23 > 112 ? normal : subnormal);
  }
  return halves;
#endif
}

// Bytes 1 and 3 of `a` and of `b`: a1 b1 a3 b3.
ASSAY_BOTH std::uint32_t upper_bytes(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, 0x7351);
#else
  return (a >> 8 & 0xFFu) | (b & 0xFF00u) | (a >> 8 & 0xFF'0000u) | (b & 0xFF00'0000u);
#endif
}

// The codes with their signs, the first lowest, of 8 values v * kCutScale.
ASSAY_BOTH std::uint32_t cut_codes(const float (&v)[8]) {
  const std::uint32_t even = upper_bytes(cut_pair(v[0], v[4]), cut_pair(v[2], v[6]));  // codes 0 2 4 6, a byte each
  const std::uint32_t odd = upper_bytes(cut_pair(v[1], v[5]), cut_pair(v[3], v[7]));
  const std::uint32_t even_codes = (even + 0x0101'0101u) >> 1, odd_codes = odd * 8 + 0x0808'0808u;
  const std::uint32_t low = (even_codes & 0x0707'0707u) | (even >> 4 & ~0x0707'0707u);
  const std::uint32_t high = (odd_codes & 0x7070'7070u) | (odd & ~0x7070'7070u);
  return (low & 0x0F0F'0F0Fu) | (high & 0xF0F0'F0F0u);
}

// Whether no element of 16 bits has a product with a c of the group, rounded to f32, where nearest even and cut_codes() differ: at
// 2^k and at 1.25 times 2^k. The scales of a binade are m / 8; 16 is as good as 8. The f16 or bf16 next to 2^k / c is the only candidate (with 11 bits for
// both types), as a product of others is off by more than the rounding. 2^-100 to 2^100: no c is subnormal, overflows or is limited.
ASSAY_BOTH bool codes_may_be_cut(float inverse) {
  if (!(inverse >= 0x1p-100f && inverse <= 0x1p100f)) return false;
  std::uint32_t least = 1;  // 0: a product is a tie
  for (int m = 8; m <= 16; ++m) {
    const float divisor = multiply(static_cast<float>(m) * 0.125f, inverse), c = reciprocal(divisor);
    for (const float tie : {1.0f, 1.25f}) {
      const float element = float_of_bits((bits_of_float(multiply(tie, divisor)) + 0x1000u) & ~0x1FFFu);
      const std::uint32_t apart = (bits_of_float(multiply(element, c)) ^ bits_of_float(tie)) & 0x7F'FFFFu;
      least = apart < least ? apart : least;
    }
  }
  return least != 0;
}

}  // namespace assay::device::nvfp4
