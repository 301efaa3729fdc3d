#pragma once
// Layer (a): one element of a buffer whose type is known at run time.

#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/f16.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay::scalar {

// Element `i` of x (bf16, f16 or f32), exactly.
inline float load(Format type, const void* x, std::int64_t i) {
  switch (type) {
    case Format::bf16: return decode_bf16(static_cast<const std::uint16_t*>(x)[i]);
    case Format::f16: return decode_f16(static_cast<const std::uint16_t*>(x)[i]);
    default: return static_cast<const float*>(x)[i];
  }
}

// A NaN of arithmetic has a sign and a payload that depend on the machine; a stored NaN does not (spec conventions-1.3).
inline float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7fff'ffffu) : value; }

// Rounds to element `i` of y (bf16, f16 or f32).
inline void store(Format type, void* y, std::int64_t i, float value) {
  switch (type) {
    case Format::bf16: static_cast<std::uint16_t*>(y)[i] = encode_bf16(value); break;
    case Format::f16: static_cast<std::uint16_t*>(y)[i] = encode_f16(value); break;
    default: static_cast<float*>(y)[i] = canonical(value);
  }
}

inline std::uint8_t encode_fp8(Format format, float value) {
  return format == Format::e4m3 ? encode_e4m3(value) : encode_e5m2(value);
}

inline float decode_fp8(Format format, std::uint8_t code) {
  return format == Format::e4m3 ? decode_e4m3(code) : decode_e5m2(code);
}

// The code of x * scale. The product is rounded to f32 first; a fused multiply-add with +0 differs only in that an
// exact zero is +0.
inline std::uint8_t quantize_element(Format format, float x, float scale, ZeroSign zero_sign) {
  const float product = zero_sign == ZeroSign::positive ? std::fma(x, scale, 0.0f) : x * scale;
  return encode_fp8(format, product);
}

// The larger of an amax and |x|; a NaN is passed over (spec conventions-1.2).
inline float accumulate_absmax(float amax, float x) { return std::fabs(x) > amax ? std::fabs(x) : amax; }

}  // namespace assay::scalar
