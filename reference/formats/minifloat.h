#pragma once
// Layer (a) of the rounding rule, written once for every format with a sign, an exponent and a mantissa.
//
// A magnitude code is its exponent field above its mantissa field, so codes count upward through subnormals, binades and
// infinity without a gap, and a mantissa that rounds up to 2^MB carries into the exponent by itself. Source: recipes.md 1.2.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace assay::scalar {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();  // 0x7FC00000

// 2^n exactly; n in [-1022, 1023].
inline double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// The exponent field of a double is floor(log2 a) + 1023 when a is normal, as every f32 but 0 is once it is widened.
// 0 gives -1023.
inline int floor_log2(double a) { return static_cast<int>(std::bit_cast<std::uint64_t>(a) >> 52) - 1023; }

// Nearest integer to x >= 0; a half goes to the even neighbour.
inline int round_half_even(double x) {
  const int below = static_cast<int>(x);
  const double rest = x - below;
  const bool up = (rest > 0.5) | ((rest == 0.5) & (below % 2 != 0));
  return below + up;
}

// Code of the magnitude a >= 0 with MB mantissa bits; infinity rounds as 2^128 would:
//
//   emin = 1 - bias
//   e    = max(floor(log2 a), emin)            the binade; subnormals share the lowest
//   q    = RNE(a / 2^(e-MB))                   0 .. 2^(MB+1)
//   code = min((e-emin) * 2^MB + q, top)       `top`: the code of the largest finite value, or of infinity
inline std::uint32_t encode_magnitude(double a, int mantissa_bits, int bias, std::uint32_t top) {
  const double finite = std::min(a, 0x1p128);
  const int emin = 1 - bias;
  const int e = std::max(floor_log2(finite), emin);
  const int q = round_half_even(finite * power_of_two(mantissa_bits - e));
  return std::min(static_cast<std::uint32_t>(((e - emin) << mantissa_bits) + q), top);
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

// |x| as a double, which holds every float and every quotient above exactly.
inline double magnitude(float x) { return std::fabs(static_cast<double>(x)); }

}  // namespace assay::scalar
