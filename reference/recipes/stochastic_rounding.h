#pragma once
// Stochastic rounding to E2M1 with the random byte given (spec nvfp4-4.1): u = byte / 256, a = |v|,
//
//   step(a) = 2 if a >= 4, 1 if a >= 2, else 0.5          spacing of the codes from a upward
//   t = fma(u, step(a), a)
//   magnitude = min(floor(t / step(t)) * step(t), 6)      infinity gives 6
//   sign of v; NaN gives +6
//
// A value that E2M1 represents exactly keeps its code for every byte.

#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/support/simd.h"

namespace assay {

// v is one value; branch-free, so that loops over it vectorise. u * step is exact in f32, hence the plain sum.
ASSAY_INLINE std::uint8_t stochastic_e2m1(float v, std::uint8_t byte) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  const float a = std::bit_cast<float>(bits & 0x7fff'ffff);
  const float u = static_cast<float>(byte) * 0x1p-8f;
  const float above = u * (a >= 4.0f ? 2.0f : a >= 2.0f ? 1.0f : 0.5f);
  const float t = a + above;
  // Codes are in the order of their values: count those at or below t. Every comparison is true for NaN.
  const std::uint32_t code =
      std::uint32_t{!(t < 0.5f)} + !(t < 1.0f) + !(t < 1.5f) + !(t < 2.0f) + !(t < 3.0f) + !(t < 4.0f) + !(t < 6.0f);
  const std::uint32_t sign = a != a ? 0 : bits >> 28 & 8;
  return static_cast<std::uint8_t>(sign | code);
}

namespace scalar {

inline float e2m1_step(float a) { return a >= 4 ? 2.0f : a >= 2 ? 1.0f : 0.5f; }

inline std::uint8_t stochastic_e2m1(float v, std::uint8_t byte) {
  if (std::isnan(v)) return 0x7;
  const float u = static_cast<float>(byte) / 256;
  const float a = std::fabs(v);
  const float t = std::fma(u, e2m1_step(a), a);
  const float magnitude = std::fmin(std::floor(t / e2m1_step(t)) * e2m1_step(t), 6.0f);
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  std::uint8_t code = 0;
  while (kMagnitudes[code] != magnitude) ++code;
  return static_cast<std::uint8_t>(std::signbit(v) ? code | 0x8 : code);
}

}  // namespace scalar

}  // namespace assay
