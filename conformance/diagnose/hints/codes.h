#pragma once
// Special codes of a floating-point format.

#include <cstdint>

#include "conformance/ops/elements.h"

namespace assay::conformance {

inline std::uint64_t sign_bit(Format type) { return std::uint64_t{1} << (bits_of(type) - 1); }
inline std::uint64_t magnitude(Format type, std::uint64_t bits) { return bits & (sign_bit(type) - 1); }

inline int mantissa_bits(Format type) {
  switch (type) {
    case Format::f32: return 23;
    case Format::f16: return 10;
    case Format::bf16: return 7;
    case Format::e4m3:
    case Format::e4m3_fnuz: return 3;
    case Format::e5m2:
    case Format::e5m2_fnuz: return 2;
    case Format::e2m1: return 1;
    default: return 0;
  }
}

// The code of the largest finite number.
inline std::uint64_t largest_finite(Format type) {
  const std::uint64_t highest = sign_bit(type) - 1;
  const std::uint64_t infinity = highest - ((std::uint64_t{1} << mantissa_bits(type)) - 1);
  if (is_finite(type, highest)) return highest;
  return is_finite(type, infinity) ? highest - 1 : infinity - 1;  // one NaN at the top, or infinity and NaNs
}

inline bool is_infinite(Format type, std::uint64_t bits) {
  return is_floating(type) && !is_finite(type, bits) && !is_nan(type, bits);
}

inline bool is_subnormal(Format type, std::uint64_t bits) {
  const std::uint64_t size = magnitude(type, bits);
  return is_floating(type) && size != 0 && size < std::uint64_t{1} << mantissa_bits(type) && !is_nan(type, bits);
}

}  // namespace assay::conformance
