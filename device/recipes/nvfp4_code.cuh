#pragma once
// The arithmetic of NVFP4 that has no other home (recipes.md 5.1, 5.4, 5.5): codes of E2M1 eight at a time, and the
// Hadamard transform as integers. Every function compiles for the host too.

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device::nvfp4 {

// ---- Codes ---------------------------------------------------------------------------------------------------------
//
// The code of a magnitude a <= 6 is one line of slope 2, 1 or 1/2, rounded to an integer: 2a below 2, a + 2 up to 4,
// a/2 + 4 up to 6; lines and codes are largest where the slope is least, so the code is the least of the three. Adding
// 2^23 - 2 to a gives the first two at once: f32 has an ulp of 1/2 below 2^23 and of 1 above, so that the sum's bits
// count 0.5, 1, 1.5, 2, 3, 4 one after the other. a/2 + 2^23 is the third. What is counted is even where the code is:
// ties agree.

inline constexpr std::uint32_t kBitsOfCodeZero = 0x4AFF'FFFCu;  // of 2^23 - 2
inline constexpr float kLargest = 6;

ASSAY_BOTH float at_most(float a, float most) {  // a NaN becomes `most`
#ifdef __CUDA_ARCH__
  return fminf(a, most);
#else
  return a < most ? a : most;
#endif
}
ASSAY_BOTH float magnitude(float x) {
#ifdef __CUDA_ARCH__
  return fabsf(x);  // a part of the instruction that reads it
#else
  return float_of_bits(bits_of_float(x) & kF32Magnitude);
#endif
}

// kBitsOfCodeZero plus the code's magnitude of a value v: nearest even; NaN gives 6.
ASSAY_BOTH std::uint32_t count_nearest(float v) {
  const float a = at_most(magnitude(v), kLargest);
  const float low = add(a, 8388606.0f), high = multiply_with_zero(a, 0.5f, 8388608.0f);  // an fma
  return bits_of_float(at_most(low, high));
}

// The same, stochastic (recipes.md 5.5): a byte / 256 of the step to the next code is added, and then the code below
// taken.
ASSAY_BOTH std::uint32_t count_stochastic(float v, std::uint32_t byte) {
  const float a = magnitude(v);
  // The power of two in a, at least 1, times 2^-9: above 8 all is cut to 6 anyway.
  const std::uint32_t power = bits_of_float(a) & kF32Infinity;
  const float part = float_of_bits((power > kF32One ? power : kF32One) - (9u << 23));
  const float steps = add(float_of_bits(0x4B00'0000u | byte), -8388608.0f);       // the byte as it is
  const float t = at_most(multiply_with_zero(steps, part, a), kLargest);         // fma; the product is exact
  // Of bits above 2^23 - 2 toward zero: the sum of t and 2^23 - 2, cut.
#ifdef __CUDA_ARCH__
  const float low = __fadd_rz(t, 8388606.0f), high = __fmaf_rz(t, 0.5f, 8388608.0f);
#else
  const double low_sum = static_cast<double>(t) + 8388606.0, high_sum = static_cast<double>(t) * 0.5 + 8388608.0;
  const float low = low_sum < 8388608.0 ? static_cast<float>(__builtin_floor(low_sum * 2) / 2)
                                        : static_cast<float>(__builtin_floor(low_sum));
  const float high = static_cast<float>(__builtin_floor(high_sum));
#endif
  return bits_of_float(at_most(low, high));
}

// Eight counts as eight nibbles, the first lowest: sums of counts times powers of 16, less the surplus of all.
ASSAY_BOTH std::uint32_t pack_counts(const std::uint32_t (&count)[8]) {
  std::uint32_t packed = count[7];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 6; i >= 0; --i) packed = packed * 16 + count[i];
  return packed - kBitsOfCodeZero * 0x1111'1111u;
}

// ---- Hadamard transform --------------------------------------------------------------------------------------------
//
// hadamard.h: 16 products of bf16 and +-1/4 in one step, cut toward zero at 25 fraction bits below the largest
// exponent. A term is then an integer below 2^26 in units of 2^(e - 27), where e is the largest exponent of the x; the
// 16 sums are sums and differences of such integers, exact in 32 bits.

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
  const std::uint32_t below = largest - term_exponent(x);  // x = 0: the significand is 0, whatever the shift
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
  const std::uint32_t bits =
      exponent >= 1 ? static_cast<std::uint32_t>(exponent - 1) * 0x0080'0000u + significand : significand;
  return bits == 0 ? 0 : encode_bf16(float_of_bits(sign | bits));
}

// Where one of the 16 is an infinity or NaN, terms are +-1 for infinities and 0 for all else: sums that all agree.
ASSAY_BOTH std::int32_t special_term(std::uint32_t x) {
  return (x & 0x7FFF) != 0x7F80 ? 0 : x & 0x8000 ? -1 : 1;
}
ASSAY_BOTH std::uint32_t finish_special_sum(std::int32_t sum, std::int32_t infinities, bool has_nan) {
  if (has_nan || (sum != infinities && sum != -infinities)) return 0x7FFF;
  return sum < 0 ? 0xFF80 : 0x7F80;
}

}  // namespace assay::device::nvfp4
