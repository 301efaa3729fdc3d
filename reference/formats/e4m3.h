#pragma once
// OCP E4M3: 1 sign bit, 4 exponent bits (bias 7), 3 mantissa bits. No infinity; S.1111.111 is NaN.
// Largest finite value 448 (0x7E), smallest normal 2^-6 (0x08), smallest subnormal 2^-9 (0x01).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest E4M3 to x, ties to even. Magnitudes past 448, infinity included, saturate to 448. NaN gives 0x7F and drops
// its sign; zero, and what underflows to it, keeps its sign. spec formats-1.2.
inline std::uint8_t encode_e4m3(float x) {
  if (std::isnan(x)) return 0x7F;
  const std::uint32_t sign = std::signbit(x) ? 0x80 : 0;
  return static_cast<std::uint8_t>(sign | encode_magnitude(x, 3, 7, 0x7E));
}

// Exact. 0x7F and 0xFF give the quiet NaN with their sign.
inline float decode_e4m3(std::uint8_t code) {
  const std::uint32_t magnitude_code = code & 0x7F;
  const float value = magnitude_code == 0x7F ? kNan : decode_magnitude(magnitude_code, 3, 7);
  return std::copysign(value, code & 0x80 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
