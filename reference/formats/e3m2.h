#pragma once
// OCP FP6 E3M2: 1 sign bit, 3 exponent bits (bias 3), 2 mantissa bits. No infinity, no NaN. Magnitudes: 0, then 0.0625 (subnormal) to 28. Bit 5 is
// the sign. Four codes share three bytes (spec layouts-1.4); the functions here work on one code in the low six bits.

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest E3M2 to x, ties to even. Magnitudes past 28, infinity included, saturate to 28. NaN of either sign gives +28
// (0x1F), as E3M2 has no NaN; zero, and what underflows to it, keeps its sign. spec formats-1.9.
inline std::uint8_t encode_e3m2(float x) {
  if (std::isnan(x)) return 0x1F;
  const std::uint32_t sign = std::signbit(x) ? 0x20 : 0;
  return static_cast<std::uint8_t>(sign | encode_magnitude(x, 2, 3, 0x1F));
}

// Exact. Bits above the low six are ignored.
inline float decode_e3m2(std::uint8_t code) {
  return std::copysign(decode_magnitude(code & 0x1F, 2, 3), code & 0x20 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
