#pragma once
// Layer (a) and the inlined form of layer (b) as loops over arrays, one pair for each format, so that tests can be tables.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e2m3.h"
#include "reference/formats/e3m2.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e4m3_fnuz.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/e5m2_fnuz.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/encode.h"
#include "reference/formats/f16.h"
#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay::test {

// `Code` is std::uint8_t or std::uint16_t; `convert` is called for each element and inlined.
template <class Code, class Convert>
ASSAY_INLINE void encode_each(const float* values, std::size_t count, Code* codes, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<Code>(convert(values[i]));
}

template <class Code>
void encode_scalar(Format format, const float* x, std::size_t n, Code* y) {
  switch (format) {
    case Format::e4m3: return encode_each(x, n, y, [](float v) { return scalar::encode_e4m3(v); });
    case Format::e5m2: return encode_each(x, n, y, [](float v) { return scalar::encode_e5m2(v); });
    case Format::e4m3_fnuz: return encode_each(x, n, y, [](float v) { return scalar::encode_e4m3_fnuz(v); });
    case Format::e5m2_fnuz: return encode_each(x, n, y, [](float v) { return scalar::encode_e5m2_fnuz(v); });
    case Format::e2m1: return encode_each(x, n, y, [](float v) { return scalar::encode_e2m1(v); });
    case Format::e8m0: return encode_each(x, n, y, [](float v) { return scalar::encode_e8m0(v); });
    case Format::e3m2: return encode_each(x, n, y, [](float v) { return scalar::encode_e3m2(v); });
    case Format::e2m3: return encode_each(x, n, y, [](float v) { return scalar::encode_e2m3(v); });
    case Format::bf16: return encode_each(x, n, y, [](float v) { return scalar::encode_bf16(v); });
    default: return encode_each(x, n, y, [](float v) { return scalar::encode_f16(v); });
  }
}

// The fast functions as inlined into a loop, here without any instruction set beyond the compiler's default.
template <class Code>
void encode_inlined(Format format, const float* x, std::size_t n, Code* y) {
  switch (format) {
    case Format::e4m3: return encode_each(x, n, y, [](float v) { return fast::encode_e4m3(v); });
    case Format::e5m2: return encode_each(x, n, y, [](float v) { return fast::encode_e5m2(v); });
    case Format::e4m3_fnuz: return encode_each(x, n, y, [](float v) { return fast::encode_e4m3_fnuz(v); });
    case Format::e5m2_fnuz: return encode_each(x, n, y, [](float v) { return fast::encode_e5m2_fnuz(v); });
    case Format::e2m1: return encode_each(x, n, y, [](float v) { return fast::encode_e2m1(v); });
    case Format::e8m0: return encode_each(x, n, y, [](float v) { return fast::encode_e8m0(v); });
    case Format::e3m2: return encode_each(x, n, y, [](float v) { return fast::encode_e3m2(v); });
    case Format::e2m3: return encode_each(x, n, y, [](float v) { return fast::encode_e2m3(v); });
    case Format::bf16: return encode_each(x, n, y, [](float v) { return fast::encode_bf16(v); });
    default: return encode_each(x, n, y, [](float v) { return fast::encode_f16(v); });
  }
}

inline float decode_scalar(Format format, std::uint32_t code) {
  const auto byte = static_cast<std::uint8_t>(code);
  const auto word = static_cast<std::uint16_t>(code);
  switch (format) {
    case Format::e4m3: return scalar::decode_e4m3(byte);
    case Format::e5m2: return scalar::decode_e5m2(byte);
    case Format::e4m3_fnuz: return scalar::decode_e4m3_fnuz(byte);
    case Format::e5m2_fnuz: return scalar::decode_e5m2_fnuz(byte);
    case Format::e2m1: return scalar::decode_e2m1(byte);
    case Format::e8m0: return scalar::decode_e8m0(byte);
    case Format::e3m2: return scalar::decode_e3m2(byte);
    case Format::e2m3: return scalar::decode_e2m3(byte);
    case Format::bf16: return scalar::decode_bf16(word);
    default: return scalar::decode_f16(word);
  }
}

// Decodes by the bulk call of the width that `format` has.
inline void decode_bulk(Format format, const std::vector<std::uint32_t>& codes, std::vector<float>& values) {
  values.resize(codes.size());
  if (bits_of(format) == 16) {
    const std::vector<std::uint16_t> words(codes.begin(), codes.end());
    decode(format, words, values);
  } else {
    const std::vector<std::uint8_t> bytes(codes.begin(), codes.end());
    decode(format, bytes, values);
  }
}

inline std::uint32_t encode_scalar_one(Format format, float x) {
  std::uint16_t code;
  encode_scalar(format, &x, 1, &code);
  return code;
}

inline std::uint32_t encode_bulk_one(Format format, float x) {
  if (bits_of(format) == 16) {
    std::uint16_t code;
    encode(format, std::span(&x, 1), std::span(&code, 1));
    return code;
  }
  std::uint8_t code;
  encode(format, std::span(&x, 1), std::span(&code, 1));
  return code;
}

}  // namespace assay::test
