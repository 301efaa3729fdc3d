// Layer (a): element by element, as the clauses of spec scale-rules read.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e2m3.h"
#include "reference/formats/e3m2.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/f16.h"
#include "reference/rules/rule_problem.h"

namespace assay::scalar {
namespace {

float decode_code(Format format, std::uint8_t code) {
  switch (format) {
    case Format::e4m3: return decode_e4m3(code);
    case Format::e5m2: return decode_e5m2(code);
    case Format::e3m2: return decode_e3m2(code);
    case Format::e2m3: return decode_e2m3(code);
    default: return decode_e2m1(code);
  }
}

// The code of the largest finite magnitude (spec formats-1.1).
std::uint8_t top_code(Format format) {
  switch (format) {
    case Format::e4m3: return 0x7E;
    case Format::e5m2: return 0x7B;
    case Format::e2m1: return 0x7;
    default: return 0x1F;  // e3m2, e2m3
  }
}

struct Rounder {
  const RuleProblem& problem;
  const RuleOutput& output;

  // The value that is quantized (spec scale-rules-1.3).
  float x(std::int64_t row, std::int64_t column) const {
    if (!problem.rule->is_gated()) return given(row * problem.columns + column);
    std::array<float, 64> values = {};
    values[kGate] = given(row * 2 * problem.columns + column);
    values[kUp] = given(row * 2 * problem.columns + problem.columns + column);
    values[kActivationInputMax] = max_finite(problem.x_type);
    const Formula& activation = problem.rule->activation;
    for (const FormulaStatement& each : activation.statements) values[each.target] = evaluate(each.steps, values);
    return values[static_cast<std::size_t>(activation.find("x"))];
  }

  float given(std::int64_t at) const {
    if (problem.x_type == Format::bf16) return decode_bf16(static_cast<const std::uint16_t*>(problem.x)[at]);
    if (problem.x_type == Format::f16) return decode_f16(static_cast<const std::uint16_t*>(problem.x)[at]);
    return static_cast<const float*>(problem.x)[at];
  }

  // The larger of an amax and |value|; NaN as the rule says.
  float larger(float amax, float value) const {
    if (std::isnan(amax)) return amax;
    if (std::isnan(value)) return problem.rule->nan == AmaxNan::ignored ? amax : value;
    return std::max(amax, std::fabs(value));
  }

  float amax(std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) const {
    float largest = 0;
    for (std::int64_t r = r0; r < r1; ++r) {
      for (std::int64_t c = c0; c < c1; ++c) largest = larger(largest, x(r, c));
    }
    return largest;
  }

  // Code number `at` of the bits-wide codes that follow one another.
  void store_code(std::int64_t at, std::uint8_t code) const {
    auto* bytes = static_cast<std::uint8_t*>(output.data);
    const int width = bits_of(problem.output);
    for (int bit = 0; bit < width; ++bit) {
      const std::int64_t place = at * width + bit;
      const auto mask = static_cast<std::uint8_t>(1u << (place % 8));
      bytes[place / 8] = static_cast<std::uint8_t>((code >> bit & 1) != 0 ? bytes[place / 8] | mask : bytes[place / 8] & ~mask);
    }
  }
};

// Values of the elements of a block of 16, joined (spec scale-rules-2.4). A block at the edge has fewer: the others are 0.
float joined(FormulaReduction reduction, const std::array<float, 16>& values) {
  const auto part = [&](std::size_t i) { return reduction == FormulaReduction::squares ? values[i] * values[i] : values[i]; };
  float total = reduction == FormulaReduction::maximum ? 0 : part(0) + part(8);
  for (std::size_t i = 0; i < values.size() && reduction == FormulaReduction::maximum; ++i) {
    total = call(FormulaFunction::maximum_or_nan, total, values[i], 0);
  }
  for (std::size_t i = 1; i < 8 && reduction != FormulaReduction::maximum; ++i) total = total + (part(i) + part(i + 8));
  return total;
}

// One block: rows [r0, r1) of the matrix, columns [c0, c1).
void quantize_block(const Rounder& of, const RuleGroup& group, std::int64_t i, std::int64_t j, float outer) {
  const RuleProblem& problem = of.problem;
  const ScaleRule& rule = *problem.rule;
  const std::int64_t r0 = group.first_row + i * group.block_rows;
  const std::int64_t r1 = std::min(r0 + group.block_rows, group.first_row + group.rows);
  const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, problem.columns);

  std::array<float, 64> values = {};
  values[kAmax] = of.amax(r0, r1, c0, c1);
  values[kOuterAmax] = outer;
  values[kOutputMax] = max_finite(problem.output);
  values[kOutputPow2] = output_pow2(problem.output);
  values[kOutputMantissaBits] = static_cast<float>(output_mantissa_bits(problem.output));
  values[kInputMax] = max_finite(problem.x_type);
  const auto carry_out = [&](std::size_t statement) {
    const FormulaStatement& each = rule.formula.statements[statement];
    if (each.reduction == FormulaReduction::none) {
      values[each.target] = evaluate(each.steps, values);
      return;
    }
    std::array<float, 16> parts = {};
    for (std::int64_t c = c0; c < c1; ++c) {  // such blocks have one row
      values[kElement] = of.x(r0, c);
      parts[static_cast<std::size_t>(c - c0)] = evaluate(each.steps, values);
    }
    values[each.target] = joined(each.reduction, parts);
  };
  for (std::size_t s = 0; s < rule.formula.statements.size(); ++s) {
    if (s != rule.code_statement) carry_out(s);  // no other statement depends on x
  }
  if (of.output.scale != nullptr) {
    store_scale(problem, group, i, j, values[static_cast<std::size_t>(rule.scale)], of.output.scale);
  }
  if (of.output.data == nullptr) return;
  for (std::int64_t r = r0; r < r1; ++r) {
    for (std::int64_t c = c0; c < c1; ++c) {
      values[kElement] = of.x(r, c);
      carry_out(rule.code_statement);
      const std::uint8_t code = round_to_code(problem.output, rule.rounding, values[static_cast<std::size_t>(rule.code)]);
      const std::int64_t base = group.first_row * problem.columns;
      of.store_code(problem.transposed ? base + c * group.rows + (r - group.first_row) : r * problem.columns + c, code);
    }
  }
}

}  // namespace

std::uint8_t round_to_code(Format format, const CodeRounding& rounding, float value) {
  using Rounding = CodeRounding;
  const bool has_nan = format == Format::e4m3 || format == Format::e5m2;
  const std::uint8_t top = top_code(format), sign = static_cast<std::uint8_t>(1u << (bits_of(format) - 1));
  if (std::isnan(value)) return has_nan ? 0x7F : rounding.nan == Rounding::NanCode::zero ? 0 : top;

  // The magnitude codes are in the order of their values. Between two of them the nearer one is taken; past the last one as if the
  // next code were a number too.
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint8_t code = 0;
  while (code < top && static_cast<double>(decode_code(format, static_cast<std::uint8_t>(code + 1))) <= magnitude) ++code;
  const double below = decode_code(format, code);
  const double step = code < top ? static_cast<double>(decode_code(format, static_cast<std::uint8_t>(code + 1))) - below
                                 : below - static_cast<double>(decode_code(format, static_cast<std::uint8_t>(code - 1)));
  const double half = below + step / 2;
  const bool in_the_middle =
      rounding.round == Rounding::Round::away || (rounding.round == Rounding::Round::even && code % 2 == 1);
  const bool past = code == top && magnitude >= below + step;  // of the code after the last one, were it a number
  const bool up =
      past || (rounding.round != Rounding::Round::truncate && (magnitude > half || (magnitude == half && in_the_middle)));
  if (up) ++code;
  if (code > top && (rounding.overflow == Rounding::Overflow::saturate || !has_nan)) code = top;

  bool negative = std::signbit(value);
  if (code == 0 && rounding.negative_zero == Rounding::NegativeZero::never) negative = false;
  if (value == 0 && rounding.negative_zero == Rounding::NegativeZero::underflow) negative = false;
  return static_cast<std::uint8_t>(negative ? code | sign : code);
}

void quantize_by_rule(const RuleProblem& problem, const RuleOutput& output) {
  const RuleShapes shapes = check_rule(problem);
  clear_scales(problem, shapes, output.scale);
  const Rounder of{problem, output};
  const std::vector<RuleGroup> groups = groups_of(problem);
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const RuleGroup& group = groups[t];
    float outer = 0;
    if (problem.rule->outer == OuterAmax::tensor) {
      outer = problem.outer_amax != nullptr ? problem.outer_amax[t]
                                            : of.amax(group.first_row, group.first_row + group.rows, 0, problem.columns);
      if (output.outer_amax != nullptr) output.outer_amax[t] = stored_amax(outer);
    }
    for (std::int64_t i = 0; i < group.rows_of_blocks; ++i) {
      if (problem.rule->outer == OuterAmax::row) {  // blocks of such a rule have one row
        const std::int64_t row = group.first_row + i;
        outer = problem.outer_amax != nullptr ? problem.outer_amax[row] : of.amax(row, row + 1, 0, problem.columns);
        if (output.outer_amax != nullptr) output.outer_amax[row] = stored_amax(outer);
      }
      for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) quantize_block(of, group, i, j, outer);
    }
  }
}

}  // namespace assay::scalar
