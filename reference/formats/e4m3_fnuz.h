#pragma once
// E4M3 FNUZ (finite, NaN, unsigned zero): 1 sign bit, 4 exponent bits (bias 8), 3 mantissa bits. No infinity and no -0:
// 0x80 is the only NaN. Largest value 240 (0x7F), smallest normal 2^-7 (0x08), smallest subnormal 2^-10 (0x01).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest value to x, ties to even (spec formats-1.5). Magnitudes past 240, infinity included, saturate to 240 as in E4M3. NaN
// gives 0x80. Zero of either sign, and negatives that underflow, give 0x00.
inline std::uint8_t encode_e4m3_fnuz(float x) {
  if (std::isnan(x)) return 0x80;
  const std::uint32_t code = encode_magnitude(x, 3, 8, 0x7F);
  if (code == 0) return 0x00;
  const std::uint32_t sign = std::signbit(x) ? 0x80 : 0;
  return static_cast<std::uint8_t>(sign | code);
}

// Exact. 0x80 gives the positive quiet NaN: a NaN has no sign here.
inline float decode_e4m3_fnuz(std::uint8_t code) {
  if (code == 0x80) return kNan;
  return std::copysign(decode_magnitude(code & 0x7F, 3, 8), code & 0x80 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
