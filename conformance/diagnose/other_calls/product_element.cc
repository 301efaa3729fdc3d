#include "conformance/diagnose/other_calls/product_element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "conformance/ops/elements.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/element_scalar.h"

namespace assay::conformance::diagnosis {
namespace {

std::uint32_t stored(Format type, const void* base, std::int64_t at) {
  const int width = bits_of(type) / 8;
  std::uint32_t code = 0;
  std::memcpy(&code, static_cast<const std::byte*>(base) + at * width, static_cast<std::size_t>(width));
  return code;
}

// The value of an element, with the block scale that is part of the product (mxfp8, nvfp4).
double element_value(const OperandView& operand, std::int64_t i, std::int64_t k) {
  const double value = value_of(operand.type, operand.element(i, k));
  if (operand.scale.data == nullptr || operand.scale.type == Format::f32) return value;
  return value * value_of(operand.scale.type, operand.scale.code(i, k));
}
float outer_scale(const OperandView& operand, std::int64_t i, std::int64_t k) {
  return operand.scale.k_block == 0 || operand.scale.type != Format::f32 ? 1 : operand.scale.value(i, k);
}

float promoted(Promotion promotion, float acc, float t, float s_rows, float s_columns) {
  switch (promotion) {
    case Promotion::fma_scales_first: return std::fma(s_rows * s_columns, t, acc);
    case Promotion::fma_rows_first: return std::fma(t * s_rows, s_columns, acc);
    case Promotion::fma_cols_first: return std::fma(t * s_columns, s_rows, acc);
    default: return acc + t;
  }
}

// One f32 chain per promotion interval, promoted as the plan says.
float chained(const ProductVariant& variant, const GroupView& group, std::int64_t i, std::int64_t j) {
  const bool scaled = group.rows.scale.k_block != 0 && group.rows.scale.type == Format::f32;
  const std::int64_t interval = scaled ? 128 : std::max<std::int64_t>(group.depth, 1);
  float acc = 0;
  for (std::int64_t k = 0; k < group.depth; k += interval) {
    float t = 0;
    for (std::int64_t at = k; at < std::min(k + interval, group.depth); ++at) {
      const auto a = static_cast<float>(element_value(group.rows, i, at));
      const auto b = static_cast<float>(element_value(group.columns, j, at));
      t = variant.summing == Summing::f32_fma ? std::fma(a, b, t) : t + a * b;
    }
    acc = scaled ? promoted(variant.plan.promotion, acc, t, outer_scale(group.rows, i, k), outer_scale(group.columns, j, k)) : t;
  }
  return acc;
}

float narrowed(bool to_bf16, double value) {
  const auto single = static_cast<float>(value);
  return to_bf16 ? scalar::decode_bf16(scalar::encode_bf16(single)) : scalar::decode_f16(scalar::encode_f16(single));
}

float summed(const ProductVariant& variant, const GroupView& group, std::int64_t i, std::int64_t j) {
  const auto a = [&](std::int64_t k) { return element_value(group.rows, i, k) * outer_scale(group.rows, i, k); };
  const auto b = [&](std::int64_t k) { return element_value(group.columns, j, k) * outer_scale(group.columns, j, k); };
  switch (variant.summing) {
    case Summing::planned: return scalar::accumulated(variant.view, group, i, j);
    case Summing::f32_products_rounded:
    case Summing::f32_fma: return chained(variant, group, i, j);
    case Summing::exact: {
      double sum = 0;
      for (std::int64_t k = 0; k < group.depth; ++k) sum += a(k) * b(k);
      return static_cast<float>(sum);
    }
    case Summing::dequantized_f32:
    case Summing::dequantized_bf16: {
      const auto kept = [&](double value) {
        return variant.summing == Summing::dequantized_bf16 ? narrowed(true, value) : static_cast<float>(value);
      };
      float sum = 0;
      for (std::int64_t k = 0; k < group.depth; ++k) sum = std::fma(kept(a(k)), kept(b(k)), sum);
      return sum;
    }
    case Summing::kept_in_bf16:
    case Summing::kept_in_f16: break;
  }
  float sum = 0;
  for (std::int64_t k = 0; k < group.depth; k += variant.summing_step) {
    double more = sum;
    for (std::int64_t at = k; at < std::min(k + variant.summing_step, group.depth); ++at) more += a(at) * b(at);
    sum = narrowed(variant.summing == Summing::kept_in_bf16, more);
  }
  return sum;
}

// The running value times the scales of its row and its column, where the plan has such.
float with_vectors(const AccumulationPlan& plan, const GroupView& group, std::int64_t i, std::int64_t j, float acc) {
  if (plan.scale_vectors == ScaleVectors::none || group.depth == 0) return acc;
  const float row = group.rows.scale.value(i, 0), column = group.columns.scale.value(j, 0);
  if (plan.scale_vectors == ScaleVectors::rows_first) return acc * row * column;
  return plan.scale_vectors == ScaleVectors::cols_first ? acc * column * row : acc * (row * column);
}

// Whether every element of the sum lies within the operand's tensor.
bool is_inside(const OperandView& operand, const Extent& extent, std::int64_t i) {
  if (operand.depth == 0) return true;
  const std::int64_t offset = static_cast<const std::byte*>(operand.data) - static_cast<const std::byte*>(extent.data);
  const std::int64_t begin = operand.type == Format::e2m1 ? offset * 2 : offset / (bits_of(operand.type) / 8);
  const std::int64_t first = begin + i * operand.row_stride, last = first + (operand.depth - 1) * operand.k_stride;
  return first >= 0 && first < extent.elements && last >= 0 && last < extent.elements;
}

}  // namespace

std::optional<Place> place_of(const GroupedGemmView& view, std::int64_t element) {
  for (std::size_t g = 0; g < view.groups.size(); ++g) {
    const GroupView& group = view.groups[g];
    const std::int64_t within = element - group.d_offset;
    if (within >= 0 && within < group.m * group.n) return Place{g, within / group.n, within % group.n};
  }
  return std::nullopt;
}

Extent rows_of(const GroupedGemmProblem& problem) {
  if (problem.layout == GemmLayout::TN) return {problem.x.data, problem.rows * problem.K};
  return {problem.dy.data, problem.rows * problem.N};
}
Extent columns_of(const GroupedGemmProblem& problem) {
  if (problem.layout == GemmLayout::NT) return {problem.x.data, problem.rows * problem.K};
  return {problem.w.data, static_cast<std::int64_t>(problem.splits.size()) * problem.N * problem.K};
}

std::uint32_t code_of(Format type, float value) {
  if (type == Format::f32) return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(value);
  return type == Format::bf16 ? scalar::encode_bf16(value) : scalar::encode_f16(value);
}

float value_of_code(Format type, std::uint32_t code) {
  if (type == Format::f32) return std::bit_cast<float>(code);
  const auto half = static_cast<std::uint16_t>(code);
  return type == Format::bf16 ? scalar::decode_bf16(half) : scalar::decode_f16(half);
}

float finished(const Finish& finish) {
  if (finish.reads_c) return std::fma(finish.acc, finish.factor, finish.beta * finish.c);
  return finish.factor != 1 ? std::fma(finish.acc, finish.factor, 0.0f) : finish.acc;
}

ProductVariant::ProductVariant(const GroupedGemmView& of, const Extent& of_rows, const Extent& of_columns)
    : view(of), plan(*of.plan), unit(*of.unit), rows(of_rows), columns(of_columns) {
  view.plan = &plan;
  view.unit = &unit;
}

ProductVariant::ProductVariant(const ProductVariant& other) : ProductVariant(other.view, other.rows, other.columns) {
  summing = other.summing;
  summing_step = other.summing_step;
  finish = other.finish;
  c_of_first_group = other.c_of_first_group;
}

std::int64_t ProductVariant::work(std::int64_t element) const {
  const auto place = place_of(view, element);
  return place ? std::max<std::int64_t>(view.groups[place->group].depth, 1) : 1;
}

std::optional<std::uint64_t> ProductVariant::word(std::int64_t element) const {
  const auto place = place_of(view, element);
  if (!place) return std::nullopt;
  const auto [g, i, j] = *place;
  const GroupView& group = view.groups[g];
  if (!is_inside(group.rows, rows, i) || !is_inside(group.columns, columns, j)) return std::nullopt;
  // The scalar layer knows every epilogue; what is below has those of alpha and beta.
  const bool as_planned = finish == nullptr && summing == Summing::planned && !c_of_first_group;
  if (as_planned && bits_of(view.d_type) >= 16) return scalar::element_of_d(view, group, i, j);
  Finish parts;
  parts.type = view.d_type;
  parts.acc = with_vectors(plan, group, i, j, summed(*this, group, i, j));
  parts.alpha = group.alpha;
  parts.factor = scalar::sum_factor(view, group);
  if (view.kind == GemmKind::fp8_per_tensor && group.depth > 0 && plan.scale_vectors == ScaleVectors::none) {
    parts.s_rows = group.rows.scale.value(0, 0);
    parts.s_columns = group.columns.scale.value(0, 0);
  }
  parts.beta = group.beta;
  parts.reads_c = group.beta != 0 && view.c != nullptr;
  if (parts.reads_c) {
    const std::int64_t at = (c_of_first_group ? view.groups[0] : group).d_offset + i * group.n + j;
    parts.c = value_of_code(view.d_type, stored(view.d_type, view.c, at));
  }
  parts.has_bias = group.bias != nullptr;
  if (parts.has_bias) parts.bias = value_of_code(view.d_type, stored(view.d_type, group.bias, j));
  if (finish != nullptr) return finish(parts);
  std::uint32_t code = code_of(view.d_type, finished(parts));
  if (parts.has_bias) code = code_of(view.d_type, value_of_code(view.d_type, code) + parts.bias);
  return code;
}

}  // namespace assay::conformance::diagnosis
