// Layer (a): one element of D at a time, in the order in which plan.h tells the rules.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/element_scalar.h"
#include "reference/gemm/problem.h"
#include "reference/support/parallel.h"

namespace assay::scalar {
namespace {

// ---- Values in and out --------------------------------------------------------------------------------------------

float value_of(Format type, std::uint32_t code) {
  if (type == Format::f32) return std::bit_cast<float>(code);
  const auto half = static_cast<std::uint16_t>(code);
  return type == Format::bf16 ? decode_bf16(half) : decode_f16(half);
}

// The code nearest to `value`, ties to even; NaN as plan.h says.
std::uint32_t code_of(Format type, float value) {
  if (type == Format::f32) return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(value);
  return type == Format::bf16 ? encode_bf16(value) : encode_f16(value);
}

std::uint32_t read(Format type, const void* base, std::int64_t at) {
  const auto* bytes = static_cast<const std::uint8_t*>(base);
  if (type == Format::f32) {
    std::uint32_t code;
    std::memcpy(&code, bytes + 4 * at, sizeof code);
    return code;
  }
  std::uint16_t code;
  std::memcpy(&code, bytes + 2 * at, sizeof code);
  return code;
}

void write(Format type, void* base, std::int64_t at, std::uint32_t code) {
  auto* bytes = static_cast<std::uint8_t*>(base);
  if (type == Format::f32) {
    std::memcpy(bytes + 4 * at, &code, 4);
  } else {
    const auto half = static_cast<std::uint16_t>(code);
    std::memcpy(bytes + 2 * at, &half, 2);
  }
}

// ---- The product --------------------------------------------------------------------------------------------------

// Unit steps over [k_begin, k_end), from an accumulator of +0.
float chain(const TensorCoreUnit& unit, const OperandView& rows, std::int64_t i, const OperandView& columns, std::int64_t j,
            std::int64_t k_begin, std::int64_t k_end) {
  constexpr int kMostProducts = 64;
  std::uint32_t a[kMostProducts], b[kMostProducts];
  std::uint8_t scale_a[4], scale_b[4];
  std::uint32_t accumulator = 0;
  for (std::int64_t k = k_begin; k < k_end; k += unit.products_per_step) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(unit.products_per_step, k_end - k));
    for (std::size_t p = 0; p < count; ++p) {
      a[p] = rows.element(i, k + static_cast<std::int64_t>(p));
      b[p] = columns.element(j, k + static_cast<std::int64_t>(p));
    }
    std::size_t scales = 0;
    if (unit.scaling != StepScaling::none) {
      for (std::int64_t at = k; at < k + static_cast<std::int64_t>(count); at += rows.scale.k_block) {
        scale_a[scales] = rows.scale.code(i, at);
        scale_b[scales] = columns.scale.code(j, at);
        ++scales;
      }
    }
    accumulator = tensor_core_step(unit, rows.type, {a, count}, columns.type, {b, count}, accumulator, {scale_a, scales},
                                   {scale_b, scales});
  }
  return value_of(unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32, accumulator);
}

// How the value t of a stretch that starts at k enters the running value.
float promote(Promotion promotion, float acc, float t, const OperandView& rows, std::int64_t i, const OperandView& columns,
              std::int64_t j, std::int64_t k) {
  switch (promotion) {
    case Promotion::none: return t;
    case Promotion::add: return acc + t;
    default: break;
  }
  const float s_rows = rows.scale.value(i, k);
  const float s_columns = columns.scale.value(j, k);
  if (promotion == Promotion::fma_scales_first) return std::fma(s_rows * s_columns, t, acc);
  if (promotion == Promotion::fma_rows_first) return std::fma(t * s_rows, s_columns, acc);
  return std::fma(t * s_columns, s_rows, acc);
}

float slice_sum(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j, std::int64_t k_begin,
                std::int64_t k_end) {
  const AccumulationPlan& plan = *view.plan;
  const std::int64_t stretch = plan.promotion_interval == 0 ? k_end - k_begin : plan.promotion_interval;
  float acc = 0;
  for (std::int64_t k = k_begin; k < k_end; k += stretch) {
    const float t = chain(*view.unit, group.rows, i, group.columns, j, k, std::min(k + stretch, k_end));
    acc = promote(plan.promotion, acc, t, group.rows, i, group.columns, j, k);
  }
  return acc;
}

// All slices of K, merged in order.
float accumulate(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  const AccumulationPlan& plan = *view.plan;
  if (plan.slices == 1) return slice_sum(view, group, i, j, 0, group.depth);
  const auto stored = [&](float value) {
    return plan.merge == SliceMerge::sequential_output ? value_of(view.d_type, code_of(view.d_type, value)) : value;
  };
  float total = 0;
  for (std::int64_t slice = 0; slice < plan.slices; ++slice) {
    const std::int64_t begin = slice > group.depth / plan.slice_length ? group.depth : slice * plan.slice_length;
    const std::int64_t end = begin + std::min(plan.slice_length, group.depth - begin);
    const float partial = stored(slice_sum(view, group, i, j, begin, end));
    total = slice == 0 ? partial : stored(total + partial);
  }
  return total;
}

}  // namespace

float accumulated(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  return group.depth > 0 ? accumulate(view, group, i, j) : 0;
}

// ---- The epilogue -------------------------------------------------------------------------------------------------

// alpha with everything that multiplies the whole sum. A sum of no products is multiplied by alpha and by nothing else.
float sum_factor(const GroupedGemmView& view, const GroupView& group) {
  if (group.depth == 0) return group.alpha;
  if (view.kind == GemmKind::tensor) {
    const float with_columns = group.alpha * group.columns.scale.value(0, 0);
    return with_columns * group.rows.scale.value(0, 0);
  }
  if (view.kind == GemmKind::nvfp4) {
    constexpr auto kLargestSquared = static_cast<float>(1.0 / 7225344.0);  // (6 * 448)^2
    const float with_columns = group.alpha * group.columns.amax;
    const float with_rows = with_columns * group.rows.amax;
    return with_rows * kLargestSquared;
  }
  return group.alpha;
}

std::uint32_t element_of_d(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  const float acc = accumulated(view, group, i, j);
  const float factor = sum_factor(view, group);
  float value = acc;
  if (group.beta != 0) {
    const float c = group.beta * value_of(view.d_type, read(view.d_type, view.c, group.d_offset + i * group.n + j));
    value = std::fma(acc, factor, c);
  } else if (factor != 1) {
    value = std::fma(acc, factor, 0.0f);
  }
  std::uint32_t code = code_of(view.d_type, value);
  if (group.bias != nullptr) {
    const float biased = value_of(view.d_type, code) + value_of(view.d_type, read(view.d_type, group.bias, j));
    code = code_of(view.d_type, biased);
  }
  return code;
}

void grouped_gemm(const GroupedGemmProblem& problem, void* d) {
  const GroupedGemmView view = view_of(problem, d);
  for (const GroupView& group : view.groups) {
    parallel_for(group.m, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < group.n; ++j) {
          write(view.d_type, d, group.d_offset + i * group.n + j, element_of_d(view, group, i, j));
        }
      }
    });
  }
}

}  // namespace assay::scalar
