#pragma once
// BF16: the upper half of an f32. 1 sign bit, 8 exponent bits (bias 127), 7 mantissa bits; infinity is S.11111111.0000000.
// Largest finite value 0x1.FEp127 (0x7F7F), smallest normal 2^-126 (0x0080), smallest subnormal 2^-133 (0x0001).

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Nearest BF16 to x, ties to even (spec formats-1.4). As in IEEE arithmetic and unlike the formats of 8 bits, it does not
// saturate: from half a unit past the largest finite value upward the result is infinity. Every NaN gives 0x7FFF, sign and
// payload dropped, as the conversion instruction of a GPU does; zero keeps its sign.
inline std::uint16_t encode_bf16(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const std::uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | encode_magnitude(x, 7, 127, 0x7F80));
}

// Exact, infinities and subnormals included. NaN codes give the quiet NaN 0x7FC00000 with their sign.
inline float decode_bf16(std::uint16_t code) {
  const std::uint32_t magnitude_code = code & 0x7FFF;
  if (magnitude_code > 0x7F80) return std::copysign(kNan, code & 0x8000 ? -1.0f : 1.0f);
  const float value =
      magnitude_code == 0x7F80 ? std::numeric_limits<float>::infinity() : decode_magnitude(magnitude_code, 7, 127);
  return std::copysign(value, code & 0x8000 ? -1.0f : 1.0f);
}

}  // namespace assay::scalar
