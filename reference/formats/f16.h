#pragma once
// FP16 (IEEE binary16): 1 sign bit, 5 exponent bits (bias 15), 10 mantissa bits; infinity is S.11111.0000000000.
// Largest finite value 65504 (0x7BFF), smallest normal 2^-14 (0x0400), smallest subnormal 2^-24 (0x0001).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest FP16 to x, ties to even (spec formats-1.4). As in IEEE arithmetic and unlike the formats of 8 bits, it does not
// saturate: from 65520 upward the result is infinity. Every NaN gives 0x7FFF, sign and payload dropped, as the conversion
// instruction of a GPU does; zero, and what underflows to it, keeps its sign.
inline std::uint16_t encode_f16(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const std::uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | encode_magnitude(x, 10, 15, 0x7C00));
}

// Exact, infinities and subnormals included. NaN codes give the quiet NaN 0x7FC00000 with their sign.
inline float decode_f16(std::uint16_t code) {
  const std::uint32_t magnitude_code = code & 0x7FFF;
  if (magnitude_code > 0x7C00) return std::copysign(kNan, code & 0x8000 ? -1.0f : 1.0f);
  const float value =
      magnitude_code == 0x7C00 ? std::numeric_limits<float>::infinity() : decode_magnitude(magnitude_code, 10, 15);
  return std::copysign(value, code & 0x8000 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
