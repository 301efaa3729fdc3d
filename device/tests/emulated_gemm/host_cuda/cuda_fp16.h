#pragma once
// f16 by exact steps: a second route to the instructions' results.

#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"

using __half = std::uint16_t;

inline unsigned short __half_as_ushort(__half code) { return code; }
inline __half __ushort_as_half(unsigned short code) { return code; }

inline float __half2float(__half code) {
  const int field = code >> 10 & 31, fraction = code & 1023;
  const float sign = (code & 0x8000) != 0 ? -1.0f : 1.0f;
  if (field == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(static_cast<float>(field == 0 ? fraction : fraction + 1024), (field == 0 ? 1 : field) - 25);
}

// To nearest even: by whole numbers of the last place of the binade, in double.
inline __half __float2half_rn(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  const double size = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) return 0x7FFF;
  if (size >= 65520) return static_cast<__half>(sign | 0x7C00u);
  const int exponent = size < std::ldexp(1.0, -14) ? -14 : std::ilogb(size);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 2^11 carries by itself
  return static_cast<__half>(sign | ((static_cast<unsigned>(exponent + 14) << 10) + units));
}

struct __half2 {
  __half x, y;
};
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
