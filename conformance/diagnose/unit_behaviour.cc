#include "conformance/diagnose/unit_behaviour.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>

#include "conformance/ops/answer.h"
#include "conformance/ops/grouped_gemm.h"
#include "reference/gemm/any_order.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"
#include "reference/types/format.h"

namespace assay::conformance {
namespace {

bool has(const TensorCoreUnit& unit, Format type) {
  return std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
}

// An FP8 value as f16 bits, exactly.
std::uint32_t widened(Format type, std::uint32_t code) {
  const Term term = decode_term(type, code);
  const std::uint32_t sign = term.negative ? 0x8000 : 0;
  if (term.kind == Term::Kind::nan) return 0x7fff;
  if (term.kind == Term::Kind::infinity) return sign | 0x7c00;
  if (term.significand == 0) return sign;
  const int leading = static_cast<int>(std::bit_width(term.significand)) - 1, exponent = term.exponent - term.fraction + leading;
  if (exponent < -14) return sign | static_cast<std::uint32_t>(std::ldexp(term.significand, term.exponent - term.fraction + 24));
  return sign | static_cast<std::uint32_t>(exponent + 15) << 10 | ((term.significand << (10 - leading)) & 0x3ff);
}

float value_of_f16(std::uint32_t code) {
  const Term term = decode_term(Format::f16, code);
  if (term.kind == Term::Kind::nan) return std::nanf("");
  const double magnitude =
      term.kind == Term::Kind::infinity ? INFINITY : std::ldexp(term.significand, term.exponent - term.fraction);
  return static_cast<float>(term.negative ? -magnitude : magnitude);
}

// One element of D.
std::uint32_t chain(const GroupView& group, std::int64_t i, std::int64_t j, const TensorCoreUnit& unit) {
  const bool wide = !has(unit, group.rows.type);  // FP8 operands of a 16-bit unit
  const auto step = static_cast<std::size_t>(unit.products_per_step);
  const std::uint8_t ones[] = {0x7f, 0x7f, 0x7f, 0x7f};  // 1 as e8m0
  std::vector<std::uint32_t> a, b;
  std::uint32_t acc = 0;
  for (std::int64_t k = 0; k < group.depth; ++k) {
    const std::uint32_t x = group.rows.element(i, k), y = group.columns.element(j, k);
    a.push_back(wide ? widened(group.rows.type, x) : x);
    b.push_back(wide ? widened(group.columns.type, y) : y);
    if (a.size() < step && k + 1 < group.depth) continue;
    const std::span<const std::uint8_t> scales{ones, unit.scaling == StepScaling::e8m0_per_32 ? (a.size() + 31) / 32 : 0};
    acc = tensor_core_step(unit, wide ? Format::f16 : group.rows.type, a, wide ? Format::f16 : group.columns.type, b, acc, scales,
                           scales);
    a.clear();
    b.clear();
  }
  if (unit.accumulator != Accumulator::f16_nearest) return acc;
  const float value = value_of_f16(acc);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::uint32_t word_at(const Tensor& d, std::int64_t at) {
  std::uint32_t bits;
  std::memcpy(&bits, d.bytes.data() + 4 * at, sizeof bits);
  return bits;
}

bool is_chain_of(const GroupedGemmView& view, const Tensor& got, const TensorCoreUnit& unit) {
  for (const GroupView& group : view.groups) {
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t j = 0; j < group.n; ++j) {
        if (chain(group, i, j, unit) != word_at(got, group.d_offset + i * group.n + j)) return false;
      }
    }
  }
  return true;
}

std::string numbers_of(const TensorCoreUnit& unit) {
  if (unit.sum != StepSum::fused) return fmt::format("{} products a step, added to an f32 to nearest", unit.products_per_step);
  const char* sum = unit.accumulator == Accumulator::f32_truncated     ? "an f32 sum, truncated"
                    : unit.accumulator == Accumulator::e8m13_truncated ? "a sum of 13 bits, truncated"
                                                                       : "an f16 sum, to nearest";
  return fmt::format("{} products a step, F = {}, {}{}", unit.products_per_step, unit.fraction_bits, sum,
                     unit.execution == Execution::emulated_fp8 ? ", in two f16 steps" : "");
}

}  // namespace

bool same_arithmetic(const TensorCoreUnit& one, const TensorCoreUnit& other) {
  return one.products_per_step == other.products_per_step && one.fraction_bits == other.fraction_bits &&
         one.accumulator == other.accumulator && one.zero_floor == other.zero_floor && one.scaling == other.scaling &&
         one.execution == other.execution && one.group == other.group && one.sum == other.sum && one.chains == other.chains &&
         one.joined_bits == other.joined_bits && one.drops_far_c == other.drops_far_c && one.flush == other.flush &&
         one.tf32 == other.tf32;
}

std::vector<std::uint32_t> chain_of(const GroupedGemmView& view, const TensorCoreUnit& unit) {
  std::vector<std::uint32_t> words;
  for (const GroupView& group : view.groups) {
    require(takes(unit, view.kind, group.rows.type, group.columns.type), "unit", unit.name, "a unit for these operands");
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t j = 0; j < group.n; ++j) words.push_back(chain(group, i, j, unit));
    }
  }
  return words;
}

std::string behaviour_of(const Request& request, const Tensor& got, std::string_view stated) {
  const TensorCoreUnit* unit = find_tensor_core_unit(stated);
  if (unit == nullptr || got.type != Format::f32) return "";
  try {
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    const GroupedGemmView view = view_of(parsed.problem, got.bytes.data());
    const auto serves = [&](const TensorCoreUnit& each) {
      return std::all_of(view.groups.begin(), view.groups.end(),
                         [&](const GroupView& group) { return takes(each, view.kind, group.rows.type, group.columns.type); });
    };
    if (view.groups.empty() || !serves(*unit)) return "";
    const auto text = [&](std::string_view name, const TensorCoreUnit& shown) {
      return fmt::format("states {} ({}), behaves as {} ({})", unit->name, numbers_of(*unit), name, numbers_of(shown));
    };
    for (const TensorCoreUnit& each : tensor_core_units()) {
      if (!same_arithmetic(each, *unit) && serves(each) && is_chain_of(view, got, each)) return text(each.name, each);
    }
    for (const Accumulator sum : {Accumulator::f32_truncated, Accumulator::e8m13_truncated, Accumulator::f16_nearest}) {
      for (const int step : {4, 8, 16, 32, 64}) {
        for (int bits = 8; bits <= 34; ++bits) {
          TensorCoreUnit other = *unit;
          other.accumulator = sum;
          other.products_per_step = step;
          other.fraction_bits = bits;
          if (is_chain_of(view, got, other)) return text("a unit of other numbers", other);
        }
      }
    }
  } catch (const std::exception&) {  // the failure is then reported without this line
  }
  return "";
}

std::string plan_of_one_step(const Request& request, std::string_view name) {
  const TensorCoreUnit* unit = find_tensor_core_unit(name);
  if (unit == nullptr) return "";
  for (const AccumulationPlan& plan : accumulation_plans()) {
    const TensorCoreUnit* planned = find_tensor_core_unit(plan.unit);
    if (planned == nullptr || !same_arithmetic(*planned, *unit)) continue;
    Request asked = request;
    asked.attributes["plan"] = std::string(plan.name);
    try {
      ParsedGroupedGemm parsed;
      parse_grouped_gemm(asked, parsed);
      const GroupedGemmProblem& problem = parsed.problem;
      std::int64_t longest = problem.layout == GemmLayout::TN ? problem.K : problem.layout == GemmLayout::NN ? problem.N : 0;
      if (problem.layout == GemmLayout::NT && !parsed.splits.empty())
        longest = *std::max_element(parsed.splits.begin(), parsed.splits.end());
      if (longest > unit->products_per_step) return "";
      numerics_of(asked);
      return std::string(plan.name);
    } catch (const InvalidArgument&) {  // a plan for another kind
    } catch (const NotSupported&) {}
  }
  return "";
}

}  // namespace assay::conformance
