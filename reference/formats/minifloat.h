#pragma once
// Layer (a) of the rounding rule, written once for every format with a sign, an exponent and a mantissa.
//
// A magnitude code is its exponent field above its mantissa field, so codes count upward through subnormals, binades and
// infinity without a gap, and a mantissa that rounds up to 2^MB carries into the exponent by itself. spec formats-1.2.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace assay::scalar {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();  // 0x7FC00000

// 2^n exactly; n in [-1022, 1023].
inline double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// |x| = significand * 2^exponent, exactly, with 24 bits of significand; floor(log2 |x|) is exponent + 23 but for f32's own
// subnormals, which lie below every exponent that matters here. Infinity is decomposed as 2^128, which saturates as infinity does.
struct Magnitude {
  std::uint32_t significand;
  int exponent;
};
inline Magnitude magnitude(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t fraction = bits & 0x007F'FFFF;
  const int field = static_cast<int>((bits >> 23) & 0xFF);
  return {field == 0 ? fraction : fraction | 0x0080'0000, std::max(field, 1) - 150};
}

// Nearest integer to significand / 2^shift, shift >= 1; a half goes to the even neighbour.
inline std::uint32_t divide_half_even(std::uint32_t significand, int shift) {
  const int limited = std::min(shift, 31);  // from 26 on the quotient is below a half for any shift
  const std::uint32_t whole = significand >> limited;
  const std::uint32_t rest = significand - (whole << limited);
  const std::uint32_t half = 1u << (limited - 1);
  const bool up = rest > half || (rest == half && whole % 2 == 1);
  return whole + (up ? 1 : 0);
}

// Code of a = |x| with MB mantissa bits:
//
//   emin = 1 - bias
//   e    = max(floor(log2 a), emin)            the binade; subnormals share the lowest
//   q    = RNE(a / 2^(e-MB))                   0 .. 2^(MB+1)
//   code = min((e-emin) * 2^MB + q, top)       `top`: the code of the largest finite value, or of infinity
inline std::uint32_t encode_magnitude(float x, int mantissa_bits, int bias, std::uint32_t top) {
  const Magnitude a = magnitude(x);
  const int emin = 1 - bias;
  const int e = std::max(a.exponent + 23, emin);
  const std::uint32_t q = divide_half_even(a.significand, (e - mantissa_bits) - a.exponent);
  return std::min((static_cast<std::uint32_t>(e - emin) << mantissa_bits) + q, top);
}

// Value of a finite magnitude code with exponent field E and mantissa field m:
//
//   E == 0:  m * 2^(1-bias-MB)                 subnormal
//   else:    (2^MB + m) * 2^(E-bias-MB)
inline float decode_magnitude(std::uint32_t code, int mantissa_bits, int bias) {
  const int exponent = static_cast<int>(code >> mantissa_bits);
  const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  if (exponent == 0) return static_cast<float>(mantissa * power_of_two(1 - bias - mantissa_bits));
  return static_cast<float>(((1 << mantissa_bits) + mantissa) * power_of_two(exponent - bias - mantissa_bits));
}

}  // namespace assay::scalar
