#pragma once
// FP8 with one scale for a tensor or for each group (spec per-tensor-1.3, per-tensor-1.4, per-tensor-1.5). With MAX = 448 (e4m3)
// or 57344 (e5m2):
//
//   amax      = max |x| over the group      NaN passed over; 0 for a group without elements
//   scale     = scale_from_amax(...)        tensor_current; FLT_MAX where the quotient overflows
//             = scale[t], as given          tensor_delayed, any value
//   scale_inv = fl(1 / scale)               one for both directions; a NaN is stored as 0x7FFFFFFF
//   q         = fp8(fl(float(x) * scale))   nearest even, saturating, NaN becomes 0x7F, -0 kept
//
// Rowwise codes lie where x lies; columnwise codes are the same ones, each group transposed at its own place: element
// (r, c) of a group of M rows at c * M + r from the group's first element.
// ZeroSign::positive: the product is fma(x, scale, +0), whose exact zeros are +0.

#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/recipes/quantize.h"
#include "reference/support/simd.h"

namespace assay {

// The scale that makes `amax` the largest code, or the power of two below it (spec per-tensor-1.1). In this order, all in
// f32:
//
//   1. an amax below `epsilon` becomes `epsilon`
//   2. amax 0, infinite or NaN gives 1
//   3. scale = fl(max / amax)
//   4. a scale that overflowed becomes `overflow`       per-tensor: FLT_MAX; block: the largest finite value of x's
//   type
//   5. pow2: the mantissa bits are cleared
ASSAY_INLINE float scale_from_amax(float amax, float max, bool pow2, float epsilon, float overflow) {
  constexpr std::uint32_t kInfinity = 0x7f80'0000, kOne = 0x3f80'0000;
  const std::uint32_t floored = std::bit_cast<std::uint32_t>(amax < epsilon ? epsilon : amax);
  const std::uint32_t quotient = std::bit_cast<std::uint32_t>(max / std::bit_cast<float>(floored));
  const std::uint32_t finite = quotient == kInfinity ? std::bit_cast<std::uint32_t>(overflow) : quotient;
  const std::uint32_t scale = pow2 ? finite & 0xff80'0000 : finite;
  const bool usable = floored - 1 < kInfinity - 1;  // neither 0 nor infinity nor NaN: amax is never negative
  return std::bit_cast<float>(usable ? scale : kOne);
}

// The checks of quantize() have been made; null outputs are skipped.
void quantize_per_tensor(const QuantizeProblem& problem, const QuantizeOutput& output);

namespace scalar {
float scale_from_amax(float amax, float max, bool pow2, float epsilon, float overflow);
void quantize_per_tensor(const QuantizeProblem& problem, const QuantizeOutput& output);
}  // namespace scalar

}  // namespace assay
