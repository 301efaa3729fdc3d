// Other epilogues: alpha, beta, C, bias and the last rounding.

#include <bit>
#include <cmath>
#include <iterator>

#include "conformance/diagnose/other_calls/product_ways.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"

namespace assay::conformance::diagnosis {
namespace {

// The bias, added to the rounded result as it should be.
std::uint32_t with_bias(const Finish& of, std::uint32_t code) {
  return of.has_bias ? code_of(of.type, value_of_code(of.type, code) + of.bias) : code;
}
std::uint32_t rounded(const Finish& of, float value) { return with_bias(of, code_of(of.type, value)); }

// Rounded toward zero: the nearest code, or the one before it.
std::uint32_t cut(Format type, float value) {
  const std::uint32_t nearest = code_of(type, value);
  const float back = value_of_code(type, nearest);
  if (!std::isfinite(value) || std::fabs(back) <= std::fabs(value)) return nearest;
  return nearest - 1;
}
// Ties away from zero.
std::uint32_t away(Format type, float value) {
  const std::uint32_t low = cut(type, value);
  const float below = value_of_code(type, low), above = value_of_code(type, low + 1);
  if (!std::isfinite(value) || below == value || !std::isfinite(above)) return code_of(type, value);
  return std::fabs(static_cast<double>(value) - below) * 2 >= std::fabs(static_cast<double>(above) - below) ? low + 1 : low;
}
float through_bf16(float value) { return scalar::decode_bf16(scalar::encode_bf16(value)); }
float through_f16(float value) { return scalar::decode_f16(scalar::encode_f16(value)); }

Finish with_sum(const Finish& of, float sum) {
  Finish other = of;
  other.acc = sum;
  return other;
}
Finish with_factor(const Finish& of, float factor) {
  Finish other = of;
  other.factor = factor;
  return other;
}

struct FinishRow {
  const char* text;
  bool (*applies)(const ProductVariant&);
  std::uint32_t (*finish)(const Finish&);
};

bool always(const ProductVariant&) { return true; }
bool has_bias(const ProductVariant& variant) { return !variant.view.groups.empty() && variant.view.groups[0].bias != nullptr; }
bool has_c(const ProductVariant& variant) { return variant.view.c != nullptr; }
bool narrows(const ProductVariant& variant) { return variant.view.d_type != Format::f32; }
bool to_f16_or_f32(const ProductVariant& variant) { return variant.view.d_type != Format::bf16; }
bool to_bf16_or_f32(const ProductVariant& variant) { return variant.view.d_type != Format::f16; }
bool per_tensor(const ProductVariant& variant) { return variant.view.kind == GemmKind::fp8_per_tensor; }
bool scaled(const ProductVariant& variant) {
  for (const GroupView& group : variant.view.groups) {
    if (group.alpha != 1) return true;
  }
  return false;
}

constexpr FinishRow kFinishes[] = {
    {"with the bias left out", has_bias, [](const Finish& of) { return code_of(of.type, finished(of)); }},
    {"with the bias added before the rounding to the type of D", has_bias,
     [](const Finish& of) { return code_of(of.type, finished(of) + of.bias); }},
    {"with the bias multiplied by alpha", has_bias,
     [](const Finish& of) {
       return code_of(of.type, value_of_code(of.type, code_of(of.type, finished(of))) + of.alpha * of.bias);
     }},
    {"with the bias added twice", has_bias,
     [](const Finish& of) { return code_of(of.type, value_of_code(of.type, rounded(of, finished(of))) + of.bias); }},
    {"with beta * C left out", has_c,
     [](const Finish& of) { return rounded(of, of.factor != 1 ? std::fma(of.acc, of.factor, 0.0f) : of.acc); }},
    {"with C added without beta", has_c,
     [](const Finish& of) { return rounded(of, std::fma(of.acc, of.factor, of.reads_c ? of.c : 0.0f)); }},
    {"with beta * C added twice", has_c,
     [](const Finish& of) { return rounded(of, of.reads_c ? finished(of) + of.beta * of.c : finished(of)); }},
    {"with beta * C added to the rounded product", has_c,
     [](const Finish& of) {
       if (!of.reads_c) return rounded(of, finished(of));
       return rounded(of, value_of_code(of.type, code_of(of.type, of.acc * of.factor)) + of.beta * of.c);
     }},
    {"with beta * C subtracted", has_c,
     [](const Finish& of) { return rounded(of, of.reads_c ? std::fma(of.acc, of.factor, -(of.beta * of.c)) : finished(of)); }},
    {"with the product rounded to f32 before beta * C is added: no FMA", has_c,
     [](const Finish& of) {
       const float product = of.acc * of.factor, c = of.beta * of.c;
       return rounded(of, of.reads_c ? product + c : finished(of));
     }},
    {"with beta * C not rounded before it is added", has_c,
     [](const Finish& of) { return rounded(of, of.reads_c ? std::fma(of.beta, of.c, of.acc * of.factor) : finished(of)); }},
    {"with C multiplied by alpha too", has_c,
     [](const Finish& of) {
       return rounded(of, of.reads_c ? std::fma(of.acc, of.factor, of.alpha * (of.beta * of.c)) : finished(of));
     }},
    {"with alpha left out", scaled,
     [](const Finish& of) { return rounded(of, finished(with_factor(of, of.factor / of.alpha))); }},
    {"with alpha applied twice", scaled,
     [](const Finish& of) { return rounded(of, finished(with_factor(of, of.factor * of.alpha))); }},
    {"with alpha applied to the rounded product", scaled,
     [](const Finish& of) {
       const float product = value_of_code(of.type, code_of(of.type, of.acc * (of.factor / of.alpha)));
       return rounded(of, of.reads_c ? std::fma(product, of.alpha, of.beta * of.c) : product * of.alpha);
     }},
    {"with the scales of a group left out", per_tensor,
     [](const Finish& of) { return rounded(of, finished(with_factor(of, of.alpha))); }},
    {"with alpha multiplied by the scale of the rows before that of the columns", per_tensor,
     [](const Finish& of) {
       const float first = of.alpha * of.s_rows;
       return rounded(of, finished(with_factor(of, first * of.s_columns)));
     }},
    {"with both scales multiplied before alpha", per_tensor,
     [](const Finish& of) {
       const float scales = of.s_rows * of.s_columns;
       return rounded(of, finished(with_factor(of, of.alpha * scales)));
     }},
    {"with the sum multiplied by one scale after the other", per_tensor,
     [](const Finish& of) {
       const float columns = of.acc * of.s_columns, both = columns * of.s_rows;
       return rounded(of, finished(with_factor(with_sum(of, both), of.alpha)));
     }},
    {"with the sum multiplied by the scale of the rows, then of the columns", per_tensor,
     [](const Finish& of) {
       const float rows = of.acc * of.s_rows, both = rows * of.s_columns;
       return rounded(of, finished(with_factor(with_sum(of, both), of.alpha)));
     }},
    {"with D rounded toward zero", narrows, [](const Finish& of) { return with_bias(of, cut(of.type, finished(of))); }},
    {"with ties of D rounded away from zero", narrows,
     [](const Finish& of) { return with_bias(of, away(of.type, finished(of))); }},
    {"with D rounded to bf16 on the way", to_f16_or_f32,
     [](const Finish& of) { return rounded(of, through_bf16(finished(of))); }},
    {"with D rounded to f16 on the way", to_bf16_or_f32, [](const Finish& of) { return rounded(of, through_f16(finished(of))); }},
    {"with the sum rounded to bf16 before alpha and C", always,
     [](const Finish& of) { return rounded(of, finished(with_sum(of, through_bf16(of.acc)))); }},
    {"with the sum rounded to f16 before alpha and C", always,
     [](const Finish& of) { return rounded(of, finished(with_sum(of, through_f16(of.acc)))); }},
    {"with infinity stored as the largest finite value", always,
     [](const Finish& of) {
       const std::uint32_t code = rounded(of, finished(of));
       return std::isinf(value_of_code(of.type, code)) ? code - 1 : code;
     }},
    {"with subnormal results stored as 0", always,
     [](const Finish& of) {
       const std::uint32_t code = rounded(of, finished(of));
       const float least = of.type == Format::f16 ? 0x1p-14f : 0x1p-126f, value = value_of_code(of.type, code);
       return std::fabs(value) < least ? code_of(of.type, std::copysign(0.0f, value)) : code;
     }},
    {"with -0 stored as +0", always,
     [](const Finish& of) {
       const std::uint32_t code = rounded(of, finished(of));
       return value_of_code(of.type, code) == 0 ? 0u : code;
     }},
};

}  // namespace

std::vector<NamedVariant> finish_variants(const ProductVariant& right) {
  std::vector<NamedVariant> variants;
  for (const FinishRow& row : kFinishes) {
    if (!row.applies(right)) continue;
    variants.push_back({row.text, [&row](ProductVariant& variant) {
                          variant.finish = row.finish;
                          return true;
                        }});
  }
  return variants;
}

}  // namespace assay::conformance::diagnosis
