// Layer (a): one element of D at a time, in the order of the rules in plan.h.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/arithmetic/decoded.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/f16.h"
#include "reference/gemm/element_scalar.h"
#include "reference/gemm/problem.h"
#include "reference/gemm/quantized_output.h"
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

// A row of either operand, decoded.
struct Line {
  const OperandView& operand;
  std::int64_t at;
  DecodedElements elements;
};

// The code of an FP8 element in the type that the plan widens it to; both hold every value of FP8.
std::uint32_t widened(Format type, std::uint32_t code, Format to) {
  const auto byte = static_cast<std::uint8_t>(code);
  const float value = type == Format::e4m3 ? decode_e4m3(byte) : decode_e5m2(byte);
  return to == Format::f16 ? encode_f16(value) : encode_bf16(value);
}

// Rows [first, first + count) of an operand.
DecodedLines decoded(const GroupedGemmView& view, const OperandView& operand, std::int64_t first, std::int64_t count) {
  const std::optional<Format> widen = view.plan->widen;
  DecodedLines lines(*view.unit, widen.value_or(operand.type));
  lines.resize(static_cast<std::size_t>(count), static_cast<std::size_t>(operand.depth));
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t k = 0; k < operand.depth; ++k) {
      const std::uint32_t code = operand.element(first + i, k);
      lines.set(static_cast<std::size_t>(i), static_cast<std::size_t>(k), widen ? widened(operand.type, code, *widen) : code);
    }
  }
  return lines;
}

// Unit steps over [k_begin, k_end), from the value `from`: +0, or where a chain is rescaled any f32.
float chain(const TensorCoreUnit& unit, const Line& row, const Line& column, std::int64_t k_begin, std::int64_t k_end,
            float from = 0) {
  std::uint8_t scale_a[4], scale_b[4];
  std::uint32_t accumulator = std::bit_cast<std::uint32_t>(from);
  for (std::int64_t k = k_begin; k < k_end; k += unit.products_per_step) {
    const std::int64_t count = std::min<std::int64_t>(unit.products_per_step, k_end - k);
    std::size_t scales = 0;
    if (unit.scaling != StepScaling::none) {
      for (std::int64_t at = k; at < k + count; at += row.operand.scale.k_block) {
        scale_a[scales] = row.operand.scale.code(row.at, at);
        scale_b[scales] = column.operand.scale.code(column.at, at);
        ++scales;
      }
    }
    const auto first = static_cast<std::size_t>(k), length = static_cast<std::size_t>(count);
    accumulator = tensor_core_step(unit, row.elements.part(first, length), column.elements.part(first, length), accumulator,
                                   {scale_a, scales}, {scale_b, scales});
  }
  return value_of(unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32, accumulator);
}

// A value that an operation reads or returns, where the plan flushes subnormals (spec plans-1.9).
float kept(const AccumulationPlan& plan, float value) {
  const bool flushed = plan.subnormals == Subnormals::flushed && std::fabs(value) < 0x1p-126f;
  return flushed ? std::copysign(0.0f, value) : value;
}

float product(const AccumulationPlan& plan, float a, float b) { return kept(plan, kept(plan, a) * kept(plan, b)); }

float multiply_add(const AccumulationPlan& plan, float a, float b, float c) {
  return kept(plan, std::fma(kept(plan, a), kept(plan, b), kept(plan, c)));
}

// How the value t of a promotion interval that starts at k enters the running value.
float promote(const AccumulationPlan& plan, float acc, float t, const Line& row, const Line& column, std::int64_t k) {
  switch (plan.promotion) {
    case Promotion::none: return t;
    case Promotion::add: return kept(plan, kept(plan, acc) + kept(plan, t));
    default: break;
  }
  const float s_rows = row.operand.scale.value(row.at, k);
  const float s_columns = column.operand.scale.value(column.at, k);
  if (plan.promotion == Promotion::fma_scales_first) return multiply_add(plan, product(plan, s_rows, s_columns), t, acc);
  if (plan.promotion == Promotion::fma_rows_first) return multiply_add(plan, product(plan, t, s_rows), s_columns, acc);
  return multiply_add(plan, product(plan, t, s_columns), s_rows, acc);
}

// One chain, multiplied by a ratio of scales wherever they change (spec plans-1.6).
float rescaled_sum(const GroupedGemmView& view, const Line& row, const Line& column, std::int64_t k_begin, std::int64_t k_end) {
  const AccumulationPlan& plan = *view.plan;
  const auto scale = [&](std::int64_t k) {
    return row.operand.scale.value(row.at, k) * column.operand.scale.value(column.at, k);
  };
  float acc = 0;
  for (std::int64_t k = k_begin; k < k_end; k += plan.promotion_interval) {
    const std::int64_t next = k + plan.promotion_interval;
    acc = chain(*view.unit, row, column, k, std::min(next, k_end), acc);
    if (next >= k_end) {
      acc = acc * scale(k);
    } else if (plan.promotion == Promotion::rescale_by_ratio) {
      const float ratio = scale(k) / scale(next);
      acc = acc * ratio;
    } else {
      const float product = acc * scale(k);
      acc = product / scale(next);
    }
  }
  return acc;
}

float slice_sum(const GroupedGemmView& view, const Line& row, const Line& column, std::int64_t k_begin, std::int64_t k_end) {
  const AccumulationPlan& plan = *view.plan;
  if (rescales(plan.promotion)) return rescaled_sum(view, row, column, k_begin, k_end);
  const std::int64_t interval = plan.promotion_interval == 0 ? k_end - k_begin : plan.promotion_interval;
  float acc = 0;
  for (std::int64_t k = k_begin; k < k_end; k += interval) {
    const float t = chain(*view.unit, row, column, k, std::min(k + interval, k_end));
    acc = promote(plan, acc, t, row, column, k);
  }
  return acc;
}

// Neighbours are added in pairs until one value is left (spec plans-1.3).
float tree_of_pairs(std::vector<float> values) {
  while (values.size() > 1) {
    std::vector<float> above;
    for (std::size_t i = 0; i < values.size(); i += 2)
      above.push_back(i + 1 < values.size() ? values[i] + values[i + 1] : values[i]);
    values = above;
  }
  return values[0];
}

// "(A+B)" or the number of a slice, read from the front of `shape`, which it is taken off.
float tree_of_shape(std::string_view& shape, const std::vector<float>& values) {
  if (shape.front() != '(') {
    std::size_t slice = 0;
    for (; shape.front() >= '0' && shape.front() <= '9'; shape.remove_prefix(1))
      slice = 10 * slice + static_cast<std::size_t>(shape.front() - '0');
    return values[slice];
  }
  shape.remove_prefix(1);  // (
  const float left = tree_of_shape(shape, values);
  shape.remove_prefix(1);  // +
  const float right = tree_of_shape(shape, values);
  shape.remove_prefix(1);  // )
  return left + right;
}

// All slices of K, merged in order. Without products +0.
float accumulate(const GroupedGemmView& view, const GroupView& group, const Line& row, const Line& column) {
  const AccumulationPlan& plan = *view.plan;
  if (plan.slices == 1) return slice_sum(view, row, column, 0, group.depth);
  const auto stored = [&](float value) {
    return plan.merge == SliceMerge::sequential_output ? value_of(view.d_type, code_of(view.d_type, value)) : value;
  };
  float total = 0;
  std::vector<float> partials;  // of a tree
  for (std::int64_t slice = 0; slice < plan.slices; ++slice) {
    const std::int64_t begin = slice > group.depth / plan.slice_length ? group.depth : slice * plan.slice_length;
    const std::int64_t end = begin + std::min(plan.slice_length, group.depth - begin);
    const float partial = stored(slice_sum(view, row, column, begin, end));
    if (plan.merge == SliceMerge::tree_f32 || plan.merge == SliceMerge::shape_f32) partials.push_back(partial);
    total = slice == 0 ? partial : stored(total + partial);
  }
  if (plan.merge == SliceMerge::tree_f32) return tree_of_pairs(partials);
  if (plan.merge == SliceMerge::shape_f32) {
    std::string_view shape = plan.merge_shape;
    return tree_of_shape(shape, partials);
  }
  return total;
}

}  // namespace

float accumulated(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  const DecodedLines rows = decoded(view, group.rows, i, 1);
  const DecodedLines columns = decoded(view, group.columns, j, 1);
  return accumulate(view, group, {group.rows, i, rows.line(0)}, {group.columns, j, columns.line(0)});
}

// ---- The epilogue -------------------------------------------------------------------------------------------------

// alpha times the scales of the whole sum. A sum of no products is multiplied by alpha alone.
float sum_factor(const GroupedGemmView& view, const GroupView& group) {
  if (group.depth == 0) return group.alpha;
  if (view.kind == GemmKind::fp8_per_tensor && view.plan->scale_vectors == ScaleVectors::none) {
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

namespace {

// The running value times the scales of its row and its column (spec grouped-gemm-2.2).
float with_vectors(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j, float acc) {
  const AccumulationPlan& plan = *view.plan;
  if (plan.scale_vectors == ScaleVectors::none || group.depth == 0) return acc;
  const float s_row = group.rows.scale.value(i, 0), s_column = group.columns.scale.value(j, 0);
  switch (plan.scale_vectors) {
    case ScaleVectors::rows_first: return product(plan, product(plan, acc, s_row), s_column);
    case ScaleVectors::cols_first: return product(plan, product(plan, acc, s_column), s_row);
    default: return product(plan, acc, product(plan, s_row, s_column));
  }
}

// D where it is added onto C in memory (spec grouped-gemm-2.6): f32.
std::uint32_t added_onto(const GroupedGemmView& view, const GroupView& group, float c, float acc, float factor) {
  if (group.depth == 0) return code_of(Format::f32, c);
  const auto kept = [&](float value) {
    const bool subnormal = std::fabs(value) < 0x1p-126f;
    return view.plan->epilogue == GemmEpilogue::reduce_add_ftz && subnormal ? std::copysign(0.0f, value) : value;
  };
  const float value = factor == 1 ? acc : std::fma(acc, factor, 0.0f);
  return code_of(Format::f32, kept(kept(c) + kept(value)));
}

// The bits of D_t[i][j] of its running value.
std::uint32_t finished(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j, float acc) {
  const float factor = sum_factor(view, group);
  acc = with_vectors(view, group, i, j, acc);
  if (view.plan->epilogue != GemmEpilogue::scaled_alpha_beta) {
    return added_onto(view, group, value_of(Format::f32, read(Format::f32, view.c, group.d_offset + i * group.n + j)), acc,
                      factor);
  }
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

// D_t[i][j] of a tile: its operands are decoded once.
constexpr std::int64_t kTile = 32;

void compute_tile(const GroupedGemmView& view, const GroupView& group, std::int64_t i_begin, std::int64_t j_begin, void* d) {
  const std::int64_t height = std::min(kTile, group.m - i_begin), width = std::min(kTile, group.n - j_begin);
  const DecodedLines rows = decoded(view, group.rows, i_begin, height);
  const DecodedLines columns = decoded(view, group.columns, j_begin, width);
  for (std::int64_t r = 0; r < height; ++r) {
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t i = i_begin + r, j = j_begin + c;
      const Line row{group.rows, i, rows.line(static_cast<std::size_t>(r))};
      const Line column{group.columns, j, columns.line(static_cast<std::size_t>(c))};
      write(view.d_type, d, group.d_offset + i * group.n + j, finished(view, group, i, j, accumulate(view, group, row, column)));
    }
  }
}

}  // namespace

std::uint32_t element_of_d(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j) {
  return finished(view, group, i, j, accumulated(view, group, i, j));
}

void grouped_gemm(const GroupedGemmProblem& problem, void* d) {
  const GroupedGemmView view = view_of(problem, d);
  if (is_quantized_output(problem.d_type)) {
    const MatrixShape shape = grouped_gemm_shape(problem);
    std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.columns));
    scalar::grouped_gemm(with_f32_output(problem, view), values.data());
    return scalar::quantize_output(view, values.data(), d);
  }
  for (const GroupView& group : view.groups) {
    const std::int64_t across = (group.n + kTile - 1) / kTile;
    parallel_for((group.m + kTile - 1) / kTile * across, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        compute_tile(view, group, tile / across * kTile, tile % across * kTile, d);
      }
    });
  }
}

}  // namespace assay::scalar
