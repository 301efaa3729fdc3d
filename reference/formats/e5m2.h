#pragma once
// OCP E5M2: 1 sign bit, 5 exponent bits (bias 15), 2 mantissa bits. S.11111.00 is infinity, S.11111.{01,10,11} are NaN.
// Largest finite value 57344 (0x7B), smallest normal 2^-14 (0x04), smallest subnormal 2^-16 (0x01).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest E5M2 to x, ties to even. Magnitudes past 57344, infinity included, saturate to 57344: the codes of infinity
// exist but are never produced. NaN gives 0x7F and drops its sign; zero keeps its sign. spec formats-1.2.
inline std::uint8_t encode_e5m2(float x) {
  if (std::isnan(x)) return 0x7F;
  const std::uint32_t sign = std::signbit(x) ? 0x80 : 0;
  return static_cast<std::uint8_t>(sign | encode_magnitude(x, 2, 15, 0x7B));
}

// Exact, infinities included. NaN codes give the quiet NaN with their sign.
inline float decode_e5m2(std::uint8_t code) {
  const std::uint32_t magnitude_code = code & 0x7F;
  float value = decode_magnitude(magnitude_code, 2, 15);
  if (magnitude_code == 0x7C) value = std::numeric_limits<float>::infinity();
  if (magnitude_code > 0x7C) value = kNan;
  return std::copysign(value, code & 0x80 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
