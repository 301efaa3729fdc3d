#pragma once
// OCP E8M0, a scale: code is an exponent with bias 127 and nothing else. Values 2^-127 (0x00) to 2^127 (0xFE); 0xFF is NaN.
// There is no zero and no sign.

#include "reference/formats/minifloat.h"

namespace assay::scalar {

// Smallest E8M0 that is at least |x|, at most 2^127:
//
//   code = clamp(ceil(log2 |x|) + 127, 0, 254)      so 0 and all up to 2^-127 give 0x00, infinity gives 0xFE
//
// NaN gives 0xFF. Scales are never negative; the sign of x is ignored. spec formats-1.6.
inline std::uint8_t encode_e8m0(float x) {
  if (std::isnan(x)) return 0xFF;
  if (std::fabs(x) <= 0x1p-127f) return 0x00;
  const Magnitude a = magnitude(x);
  const int below = a.exponent + 23;  // |x| is 2^below times at most 1 (f32 subnormals), 1, or more
  const int ceiling = a.significand > 0x0080'0000 ? below + 1 : below;
  return static_cast<std::uint8_t>(std::min(ceiling + 127, 254));
}

// 2^(code-127), exact (0x00 is an f32 subnormal). 0xFF gives the quiet NaN 0x7FC00000.
inline float decode_e8m0(std::uint8_t code) { return code == 0xFF ? kNan : static_cast<float>(power_of_two(code - 127)); }

// 2^(127-code): the factor that data are multiplied by when they are quantized under this scale. 0xFE gives the f32
// subnormal 2^-127; 0xFF gives NaN with the pattern 0x7FFFFFFF. spec formats-1.7.
inline float e8m0_quantize_multiplier(std::uint8_t code) {
  return code == 0xFF ? std::bit_cast<float>(0x7FFF'FFFFu) : static_cast<float>(power_of_two(127 - code));
}

// 2^(code-127): the factor that quantized data are multiplied by. As decode_e8m0, but for NaN, whose pattern is
// 0x7FFFFFFF. spec formats-1.7.
inline float e8m0_dequantize_multiplier(std::uint8_t code) {
  return code == 0xFF ? std::bit_cast<float>(0x7FFF'FFFFu) : static_cast<float>(power_of_two(code - 127));
}

}  // namespace assay::scalar
