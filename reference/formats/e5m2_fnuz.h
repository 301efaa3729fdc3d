#pragma once
// E5M2 FNUZ (finite, NaN, unsigned zero): 1 sign bit, 5 exponent bits (bias 16), 2 mantissa bits. No infinity and no -0:
// 0x80 is the only NaN. Largest value 57344 (0x7F), smallest normal 2^-15 (0x04), smallest subnormal 2^-17 (0x01).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest value to x, ties to even (spec formats-1.5). Magnitudes past 57344, infinity included, saturate to 57344 as in E5M2.
// NaN gives 0x80. Zero of either sign, and negatives that underflow, give 0x00.
inline std::uint8_t encode_e5m2_fnuz(float x) {
  if (std::isnan(x)) return 0x80;
  const std::uint32_t code = encode_magnitude(x, 2, 16, 0x7F);
  if (code == 0) return 0x00;
  const std::uint32_t sign = std::signbit(x) ? 0x80 : 0;
  return static_cast<std::uint8_t>(sign | code);
}

// Exact. 0x80 gives the positive quiet NaN: a NaN has no sign here.
inline float decode_e5m2_fnuz(std::uint8_t code) {
  if (code == 0x80) return kNan;
  return std::copysign(decode_magnitude(code & 0x7F, 2, 16), code & 0x80 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
