#pragma once
// NVFP4, codes of E2M1 (spec nvfp4-1.1, nvfp4-4.1): to nearest and stochastic, eight to a word. Every function compiles for
// the host too.
//
// The code of a magnitude a <= 6 is one line of slope 2, 1 or 1/2, rounded to an integer: 2a below 2, a + 2 up to 4,
// a/2 + 4 up to 6; lines and codes are largest where the slope is least, so the code is the least of the three. Adding
// 2^23 - 2 to a gives the first two at once: f32 has an ulp of 1/2 below 2^23 and of 1 above, so that the sum's bits
// count 0.5, 1, 1.5, 2, 3, 4 one after the other. a/2 + 2^23 is the third. What is counted is even where the code is:
// ties agree.

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device::nvfp4 {

inline constexpr std::uint32_t kBitsOfCodeZero = 0x4AFF'FFFCu;  // of 2^23 - 2
inline constexpr float kLargest = 6;

ASSAY_BOTH float at_most(float a, float limit) {  // a NaN becomes `limit`
#ifdef __CUDA_ARCH__
  return fminf(a, limit);
#else
  return a < limit ? a : limit;
#endif
}
ASSAY_BOTH float magnitude(float x) {
#ifdef __CUDA_ARCH__
  return fabsf(x);  // free: part of the instruction that reads it
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

// The same, stochastic (spec nvfp4-4.1): a byte / 256 of the step to the next code is added, and then the code below
// taken.
ASSAY_BOTH std::uint32_t count_stochastic(float v, std::uint32_t byte) {
  const float a = magnitude(v);
  // The power of two in a, at least 1, times 2^-9: above 8 all is cut to 6 anyway.
  const std::uint32_t power = bits_of_float(a) & kF32Infinity;
  const float part = float_of_bits((power > kF32One ? power : kF32One) - (9u << 23));
  const float steps = add(float_of_bits(0x4B00'0000u | byte), -8388608.0f);  // the byte as it is
  const float t = at_most(multiply_with_zero(steps, part, a), kLargest);     // fma; the product is exact
  // Of bits above 2^23 - 2 toward zero: the sum of t and 2^23 - 2, cut.
#ifdef __CUDA_ARCH__
  const float low = __fadd_rz(t, 8388606.0f), high = __fmaf_rz(t, 0.5f, 8388608.0f);
#else
  const double low_sum = static_cast<double>(t) + 8388606.0, high_sum = static_cast<double>(t) * 0.5 + 8388608.0;
  const float low =
      low_sum < 8388608.0 ? static_cast<float>(__builtin_floor(low_sum * 2) / 2) : static_cast<float>(__builtin_floor(low_sum));
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

}  // namespace assay::device::nvfp4
