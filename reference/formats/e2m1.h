#pragma once
// OCP E2M1: 1 sign bit, 2 exponent bits (bias 1), 1 mantissa bit. No infinity, no NaN.
// Magnitudes of the codes 0..7: 0, 0.5, 1, 1.5, 2, 3, 4, 6. Bit 3 is the sign. Two codes share a byte, the element of
// lower index in the low nibble (spec layouts-1.3); the functions here work on one code in the low nibble.

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest E2M1 to x, ties to even. Magnitudes past 6, infinity included, saturate to 6. NaN of either sign gives +6
// (0x7), as E2M1 has no NaN; zero, and what underflows to it, keeps its sign. spec formats-1.3.
inline std::uint8_t encode_e2m1(float x) {
  if (std::isnan(x)) return 0x7;
  const std::uint32_t sign = std::signbit(x) ? 0x8 : 0;
  return static_cast<std::uint8_t>(sign | encode_magnitude(x, 1, 1, 0x7));
}

// Exact. Bits above the low nibble are ignored.
inline float decode_e2m1(std::uint8_t code) {
  return std::copysign(decode_magnitude(code & 0x7, 1, 1), code & 0x8 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
