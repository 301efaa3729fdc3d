#pragma once
// NVFP4, the Hadamard transform as sums of integers (spec nvfp4-3.1). Every function compiles for the host too.
//
// hadamard.h: 16 products of bf16 and +-1/4 in one step, cut toward zero at 25 fraction bits below the largest
// exponent. A term is then an integer below 2^26 in units of 2^(e - 27), where e is the largest exponent of the x; the
// 16 sums are sums and differences of such integers, exact in 32 bits.

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device::nvfp4 {

// The exponent that a finite x has for this purpose, biased by 127: that of subnormals is that of the least normals.
// 0: x is 0.
ASSAY_BOTH std::uint32_t term_exponent(std::uint32_t x) {
  const std::uint32_t exponent = x >> 7 & 0xFF;
  return (x & 0x7FFF) == 0 ? 0 : exponent == 0 ? 1 : exponent;
}
ASSAY_BOTH bool is_special(std::uint32_t x) { return (x & 0x7F80) == 0x7F80; }
ASSAY_BOTH bool is_nan_term(std::uint32_t x) { return (x & 0x7FFF) > 0x7F80; }

// x as an integer, with its sign; `largest` is the largest term_exponent of the 16.
ASSAY_BOTH std::int32_t term(std::uint32_t x, std::uint32_t largest) {
  const std::uint32_t significand = (x & 0x7F) | ((x & 0x7F80) != 0 ? 0x80u : 0u);
  const std::uint32_t below = largest - term_exponent(x);  // x = 0: the significand is 0 for any shift
  const std::uint32_t cut = below < 31 ? (significand << 18) >> below : 0;
  return x & 0x8000 ? -static_cast<std::int32_t>(cut) : static_cast<std::int32_t>(cut);
}

// A sum of terms as f32, truncated, and that as bf16, to nearest even.
ASSAY_BOTH std::uint32_t finish_sum(std::int32_t sum, std::uint32_t largest) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 0x8000'0000u : 0;
  const std::uint32_t magnitude = sum < 0 ? 0u - static_cast<std::uint32_t>(sum) : static_cast<std::uint32_t>(sum);
#ifdef __CUDA_ARCH__
  const int top = 31 - __clz(static_cast<int>(magnitude));
#else
  const int top = 31 - __builtin_clz(magnitude);
#endif
  // The value is magnitude * 2^(largest - 127 - 27); its exponent, biased:
  const int exponent = static_cast<int>(largest) - 27 + top;
  if (exponent >= 255) return encode_bf16(float_of_bits(sign | kF32Infinity));
  // The significand: with 23 fraction bits, or counting 2^-149 where the value is subnormal.
  const int shift = exponent >= 1 ? top - 23 : 5 - static_cast<int>(largest);
  const std::uint32_t significand = shift >= 0 ? magnitude >> shift : magnitude << -shift;
  const std::uint32_t bits = exponent >= 1 ? static_cast<std::uint32_t>(exponent - 1) * 0x0080'0000u + significand : significand;
  return bits == 0 ? 0 : encode_bf16(float_of_bits(sign | bits));
}

// Where one of the 16 is an infinity or NaN, terms are +-1 for infinities and 0 otherwise; all sums then agree.
ASSAY_BOTH std::int32_t special_term(std::uint32_t x) { return (x & 0x7FFF) != 0x7F80 ? 0 : x & 0x8000 ? -1 : 1; }
ASSAY_BOTH std::uint32_t finish_special_sum(std::int32_t sum, std::int32_t infinities, bool has_nan) {
  if (has_nan || (sum != infinities && sum != -infinities)) return 0x7FFF;
  return sum < 0 ? 0xFF80 : 0x7F80;
}

}  // namespace assay::device::nvfp4
