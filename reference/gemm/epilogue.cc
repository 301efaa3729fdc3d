#include "reference/gemm/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/support/simd.h"

namespace assay::gemm {
namespace {

struct F32Output {
  using Code = std::uint32_t;
  ASSAY_INLINE static Code code(float value) { return value == value ? std::bit_cast<std::uint32_t>(value) : 0x7FFF'FFFFu; }
  ASSAY_INLINE static float value(Code code) { return std::bit_cast<float>(code); }
};

// bf16 is the upper half of an f32: adding half a unit (less one where the kept part is even) carries as needed, also
// into infinity.
struct Bf16Output {
  using Code = std::uint16_t;
  ASSAY_INLINE static Code code(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return static_cast<Code>(value == value ? rounded : 0x7FFF);
  }
  ASSAY_INLINE static float value(Code code) { return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16); }
};

struct F16Output {
  using Code = std::uint16_t;
  ASSAY_INLINE static Code code(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
    const std::uint32_t sign = bits >> 16 & 0x8000;
    // Normal: round at bit 13, change the bias from 127 to 15. Past 65504 this runs into infinity's code or beyond.
    const std::uint32_t normal = std::min(((magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13) - (112u << 10), 0x7C00u);
    // Subnormal: units of 2^-24; 0.5 has just this spacing, so the addition rounds.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    const std::uint32_t rounded = magnitude < 0x3880'0000 ? subnormal : normal;  // 2^-14
    return static_cast<Code>(magnitude > 0x7F80'0000 ? 0x7FFF : sign | rounded);
  }
  ASSAY_INLINE static float value(Code code) {
    const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(code & 0x7FFF) << 13) * 0x1p112f;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
    const std::uint32_t special = (code & 0x7C00) == 0x7C00 ? 0x7F80'0000u : 0u;
    return std::bit_cast<float>(bits | special | static_cast<std::uint32_t>(code & 0x8000) << 16);
  }
};

template <class Output>
ASSAY_INLINE void store_as(const Epilogue& epilogue, const float* acc, const void* c_base, const void* bias_base, void* d_base,
                           std::int64_t at, std::int64_t count) {
  using Code = typename Output::Code;
  Code* d = static_cast<Code*>(d_base) + at;
  const float factor = epilogue.factor, beta = epilogue.beta;
  if (beta == 0) {
    const float zero = factor == 1 ? -0.0f : 0.0f;  // adding -0 changes nothing, not even -0
    for (std::int64_t i = 0; i < count; ++i) d[i] = Output::code(std::fma(acc[i], factor, zero));
  } else {
    const Code* c = static_cast<const Code*>(c_base) + at;  // may be d
    for (std::int64_t i = 0; i < count; ++i) {
      const float scaled = beta * Output::value(c[i]);
      d[i] = Output::code(std::fma(acc[i], factor, scaled));
    }
  }
  if (bias_base != nullptr) {
    const Code* bias = static_cast<const Code*>(bias_base);
    for (std::int64_t i = 0; i < count; ++i) d[i] = Output::code(Output::value(d[i]) + Output::value(bias[i]));
  }
}

// Added onto C in memory.
ASSAY_INLINE void reduce(const Epilogue& epilogue, const float* acc, const float* c, float* d, std::int64_t count) {
  const float factor = epilogue.factor, zero = factor == 1 ? -0.0f : 0.0f, smallest = epilogue.flushes ? 0x1p-126f : 0.0f;
  const auto flushed = [&](float value) { return std::fabs(value) < smallest ? std::copysign(0.0f, value) : value; };
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = flushed(flushed(c[i]) + flushed(std::fma(acc[i], factor, zero)));
    d[i] = F32Output::value(F32Output::code(epilogue.adds_nothing ? c[i] : sum));
  }
}

template <class Output>
ASSAY_INLINE void round_as(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = Output::value(Output::code(values[i]));
}

namespace cloned {  // with internal linkage: see reference/support/simd.h

ASSAY_CLONES void store(const Epilogue& epilogue, const float* acc, const void* c, const void* bias, void* d, std::int64_t at,
                        std::int64_t count) {
  if (epilogue.reduces) {
    return reduce(epilogue, acc, static_cast<const float*>(c) + at, static_cast<float*>(d) + at, count);
  }
  switch (epilogue.d_type) {
    case Format::bf16: return store_as<Bf16Output>(epilogue, acc, c, bias, d, at, count);
    case Format::f16: return store_as<F16Output>(epilogue, acc, c, bias, d, at, count);
    default: return store_as<F32Output>(epilogue, acc, c, bias, d, at, count);
  }
}

ASSAY_CLONES void apply_scales(ScaleVectors order, float row_scale, const float* column_scale, float* values,
                               std::int64_t count) {
  if (order == ScaleVectors::rows_first) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] * row_scale * column_scale[i];
  } else if (order == ScaleVectors::cols_first) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] * column_scale[i] * row_scale;
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] * (row_scale * column_scale[i]);
  }
}

float without_subnormal(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7F80'0000u) == 0 ? bits & 0x8000'0000u : bits);
}

ASSAY_INLINE void apply_scales_flushed(ScaleVectors order, float row_scale, const float* column_scale, float* values,
                                       std::int64_t count) {
  const auto times = [](float a, float b) { return without_subnormal(without_subnormal(a) * without_subnormal(b)); };
  for (std::int64_t i = 0; i < count; ++i) {
    const bool rows_first = order == ScaleVectors::rows_first;
    values[i] = order == ScaleVectors::scales_first
                    ? times(values[i], times(row_scale, column_scale[i]))
                    : times(times(values[i], rows_first ? row_scale : column_scale[i]), rows_first ? column_scale[i] : row_scale);
  }
}

ASSAY_CLONES void round_to(Format type, float* values, std::int64_t count) {
  switch (type) {
    case Format::bf16: return round_as<Bf16Output>(values, count);
    case Format::f16: return round_as<F16Output>(values, count);
    default: return;
  }
}

}  // namespace cloned
}  // namespace

void store(const Epilogue& epilogue, const float* acc, const void* c, const void* bias, void* d, std::int64_t at,
           std::int64_t count) {
  cloned::store(epilogue, acc, c, bias, d, at, count);
}

void apply_scales(ScaleVectors order, Subnormals subnormals, float row_scale, const float* column_scale, float* values,
                  std::int64_t count) {
  subnormals == Subnormals::flushed ? cloned::apply_scales_flushed(order, row_scale, column_scale, values, count)
                                    : cloned::apply_scales(order, row_scale, column_scale, values, count);
}

void round_to(Format type, float* values, std::int64_t count) { cloned::round_to(type, values, count); }

}  // namespace assay::gemm
