#pragma once
// Rows of a matrix in and out of f32, for the fast layer of the block-scaled recipes: loops to be inlined into cloned
// functions (reference/support/simd.h).

#include <cstdint>

#include "reference/formats/fast_codes.h"
#include "reference/formats/format.h"
#include "reference/recipes/quantize.h"
#include "reference/support/simd.h"

namespace assay::fast {

// x[0..width) = elements first, first + 1, ... of `matrix`, as many as `count`, then zeros. `zero_sign` positive makes
// every -0 a +0.
ASSAY_INLINE void load_row(Format type, const void* matrix, std::int64_t first, int count, int width, ZeroSign zero_sign,
                           float* __restrict x) {
  if (type == Format::f32) {
    const float* from = static_cast<const float*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = from[i];
  } else if (type == Format::bf16) {
    const std::uint16_t* from = static_cast<const std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = widen_bf16(from[i]);
  } else {
    const std::uint16_t* from = static_cast<const std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = widen_f16(from[i]);
  }
  for (int i = count; i < width; ++i) x[i] = 0;
  if (zero_sign == ZeroSign::positive) {
    for (int i = 0; i < count; ++i) x[i] = x[i] + 0.0f;
  }
}

// Rounds y to `type` and stores it as elements first, first + 1, ... A NaN becomes 0x7FFFFFFF or 0x7FFF.
ASSAY_INLINE void store_row(Format type, const float* __restrict y, int count, void* matrix, std::int64_t first) {
  if (type == Format::f32) {
    float* to = static_cast<float*>(matrix) + first;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(y[i]);
      to[i] = std::bit_cast<float>((bits & kMagnitude) > kInfinity ? 0x7fff'ffffu : bits);
    }
  } else if (type == Format::bf16) {
    std::uint16_t* to = static_cast<std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) to[i] = encode_bf16(y[i]);
  } else {
    std::uint16_t* to = static_cast<std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) to[i] = encode_f16(y[i]);
  }
}

}  // namespace assay::fast
