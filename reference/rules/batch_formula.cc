#include "reference/rules/batch_formula.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

ASSAY_INLINE float larger(float a, float b) { return a != a ? b : b != b ? a : a < b ? b : a; }
ASSAY_INLINE float smaller(float a, float b) { return a != a ? b : b != b ? a : b < a ? b : a; }

ASSAY_CLONES void apply_binary(FormulaOp op, const float* __restrict a, const float* __restrict b, int count,
                               float* __restrict result) {
  switch (op) {
    case FormulaOp::add:
      for (int i = 0; i < count; ++i) result[i] = a[i] + b[i];
      return;
    case FormulaOp::subtract:
      for (int i = 0; i < count; ++i) result[i] = a[i] - b[i];
      return;
    case FormulaOp::multiply:
      for (int i = 0; i < count; ++i) result[i] = a[i] * b[i];
      return;
    case FormulaOp::divide:
      for (int i = 0; i < count; ++i) result[i] = a[i] / b[i];
      return;
    case FormulaOp::less:
      for (int i = 0; i < count; ++i) result[i] = a[i] < b[i] ? 1.0f : 0.0f;
      return;
    case FormulaOp::less_equal:
      for (int i = 0; i < count; ++i) result[i] = a[i] <= b[i] ? 1.0f : 0.0f;
      return;
    case FormulaOp::equal:
      for (int i = 0; i < count; ++i) result[i] = a[i] == b[i] ? 1.0f : 0.0f;
      return;
    default:  // not_equal
      for (int i = 0; i < count; ++i) result[i] = a[i] != b[i] ? 1.0f : 0.0f;
      return;
  }
}

ASSAY_CLONES void apply_select(const float* __restrict condition, const float* __restrict a, const float* __restrict b, int count,
                               float* __restrict result) {
  for (int i = 0; i < count; ++i) result[i] = condition[i] != 0 ? a[i] : b[i];
}

ASSAY_CLONES void apply_negate(const float* __restrict a, int count, float* __restrict result) {
  for (int i = 0; i < count; ++i) result[i] = -a[i];
}

ASSAY_CLONES void apply_extreme(FormulaFunction function, const float* __restrict a, const float* __restrict b, int count,
                                float* __restrict result) {
  switch (function) {
    case FormulaFunction::maximum:
      for (int i = 0; i < count; ++i) result[i] = larger(a[i], b[i]);
      return;
    case FormulaFunction::minimum:
      for (int i = 0; i < count; ++i) result[i] = smaller(a[i], b[i]);
      return;
    case FormulaFunction::maximum_or_nan:  // a + b is NaN where one is
      for (int i = 0; i < count; ++i) result[i] = a[i] != a[i] || b[i] != b[i] ? a[i] + b[i] : a[i] < b[i] ? b[i] : a[i];
      return;
    default:
      for (int i = 0; i < count; ++i) result[i] = a[i] != a[i] || b[i] != b[i] ? a[i] + b[i] : b[i] < a[i] ? b[i] : a[i];
      return;
  }
}

// 2^n for the log2 of a rounded to f32 and then to a whole number.
float power_of_log2(float a, bool up) {
  if (!(a > 0)) return a == 0 ? 0.0f : std::bit_cast<float>(kQuietNan);
  const auto log2 = static_cast<float>(std::log2(static_cast<double>(a)));
  const double power = std::exp2(up ? std::ceil(log2) : std::floor(log2));
  return static_cast<float>(power);
}

float round_mantissa(float a, float kept) {
  const std::uint32_t bits = float_bits(a), magnitude = bits & kMagnitude;
  if (magnitude >= kInfinity || !(kept >= 0 && kept <= 22)) return a;
  const std::uint32_t half = 0x0040'0000u >> static_cast<int>(kept);
  return std::bit_cast<float>((bits + half) & ~(2 * half - 1));
}

// Functions that only blocks use in practice: one value at a time.
float apply_one(FormulaFunction function, float a, float b, float c) {
  switch (function) {
    case FormulaFunction::absolute: return std::bit_cast<float>(float_bits(a) & kMagnitude);
    case FormulaFunction::fused: return std::fma(a, b, c);
    case FormulaFunction::power_up: return decode_e8m0(encode_e8m0(a));
    case FormulaFunction::power_down: return a != a ? a : std::bit_cast<float>(float_bits(a) & 0xFF80'0000u);
    case FormulaFunction::power_up_log2: return power_of_log2(a, true);
    case FormulaFunction::power_down_log2: return power_of_log2(a, false);
    case FormulaFunction::round_half_up: return round_mantissa(a, b);
    case FormulaFunction::to_bf16: return decode_bf16(encode_bf16(a));
    case FormulaFunction::to_f16: return decode_f16(encode_f16(a));
    case FormulaFunction::to_e4m3: return decode_e4m3(encode_e4m3(a));
    case FormulaFunction::to_e5m2: return decode_e5m2(encode_e5m2(a));
    case FormulaFunction::flush: return (float_bits(a) & kInfinity) == 0 ? std::bit_cast<float>(float_bits(a) & ~kMagnitude) : a;
    default: return scalar::call(function, a, b, c);  // measured tables: both layers read the same ones
  }
}

void apply_call(FormulaFunction function, const float* a, const float* b, const float* c, int count, float* result) {
  if (function <= FormulaFunction::minimum_or_nan) return apply_extreme(function, a, b, count, result);
  const int taken = arguments_of(function);
  for (int i = 0; i < count; ++i) result[i] = apply_one(function, a[i], taken > 1 ? b[i] : 0, taken > 2 ? c[i] : 0);
}

// ---- The part of `code` that is the same for a block ----------------------------------------------------------------------------

struct Node {
  FormulaStep step;
  std::array<int, 3> arguments = {-1, -1, -1};
  bool uses_x = false, is_constant = false;
};

struct Splitter {
  std::vector<Node> nodes;
  CompiledRule& rule;

  int build(std::span<const FormulaStep> steps) {
    std::vector<int> stack;
    for (const FormulaStep& step : steps) {
      Node node{step, {-1, -1, -1}, step.op == FormulaOp::variable && step.index == kElement, step.op != FormulaOp::variable};
      const int taken = taken_by(step);
      for (int i = 0; i < taken; ++i) {
        const int argument = stack[stack.size() - static_cast<std::size_t>(taken) + static_cast<std::size_t>(i)];
        node.arguments[static_cast<std::size_t>(i)] = argument;
        node.uses_x = node.uses_x || nodes[static_cast<std::size_t>(argument)].uses_x;
        node.is_constant = node.is_constant && nodes[static_cast<std::size_t>(argument)].is_constant;
      }
      stack.resize(stack.size() - static_cast<std::size_t>(taken));
      nodes.push_back(node);
      stack.push_back(static_cast<int>(nodes.size()) - 1);
    }
    return stack.front();
  }

  void write(int at, std::vector<FormulaStep>& steps) const {
    const Node& node = nodes[static_cast<std::size_t>(at)];
    for (const int argument : node.arguments) {
      if (argument >= 0) write(argument, steps);
    }
    steps.push_back(node.step);
  }

  // The value of a part without variables, as of -448.
  float value(int at) const {
    std::vector<FormulaStep> steps;
    write(at, steps);
    return *BatchFormula(steps).run(nullptr, 1);
  }

  // Largest parts without x become variables of the block, or constants.
  void split(int at) {
    const Node& node = nodes[static_cast<std::size_t>(at)];
    if (node.is_constant) {
      rule.code.push_back({FormulaOp::constant, 0, value(at)});
      return;
    }
    const bool leaf = node.step.op == FormulaOp::variable || node.step.op == FormulaOp::constant;
    if (!node.uses_x && !leaf) {
      const auto target = static_cast<std::uint8_t>(rule.variables++);
      rule.block.push_back({target, {}});
      write(at, rule.block.back().steps);
      rule.code.push_back({FormulaOp::variable, target, 0});
      rule.code_uses.push_back(target);
      return;
    }
    for (const int argument : node.arguments) {
      if (argument >= 0) split(argument);
    }
    rule.code.push_back(node.step);
    if (node.step.op == FormulaOp::variable && node.step.index != kElement) rule.code_uses.push_back(node.step.index);
  }
};

}  // namespace

BatchFormula::BatchFormula(std::span<const FormulaStep> steps) : steps_(steps.begin(), steps.end()) {
  std::size_t height = 0, highest = 1;
  for (const FormulaStep& step : steps_) {
    height = height - static_cast<std::size_t>(taken_by(step)) + 1;
    highest = std::max(highest, height);
    if (step.op != FormulaOp::constant) continue;
    constants_.emplace_back();
    constants_.back().fill(step.value);
  }
  results_.resize(2 * highest);  // a result never lies where one of its operands does
}

const float* BatchFormula::run(const float* const* variables, int count) {
  std::array<const float*, 64> stack = {};
  std::size_t height = 0, constant = 0;
  for (const FormulaStep& step : steps_) {
    if (step.op == FormulaOp::constant) {
      stack[height++] = constants_[constant++].data();
      continue;
    }
    if (step.op == FormulaOp::variable) {
      stack[height++] = variables[step.index];
      continue;
    }
    height -= static_cast<std::size_t>(taken_by(step));
    const float *a = stack[height], *b = stack[height + 1], *c = stack[height + 2];
    float* result = results_[2 * height].data();
    if (result == a) result = results_[2 * height + 1].data();
    switch (step.op) {
      case FormulaOp::negate: apply_negate(a, count, result); break;
      case FormulaOp::select: apply_select(a, b, c, count, result); break;
      case FormulaOp::call: apply_call(static_cast<FormulaFunction>(step.index), a, b, c, count, result); break;
      default: apply_binary(step.op, a, b, count, result); break;
    }
    stack[height++] = result;
  }
  return stack[0];
}

BatchActivation::BatchActivation(const ScaleRule& rule, float x_max) : statements_(rule.activation.statements) {
  if (!rule.is_gated()) return;
  for (const FormulaStatement& each : statements_) formulas_.emplace_back(each.steps);
  values_.resize(rule.activation.variables.size());
  values_[kActivationInputMax].fill(x_max);
  result_ = static_cast<std::size_t>(rule.activation.find("x"));
}

void BatchActivation::run(const float* gate, const float* up, std::span<float> x) {
  std::vector<const float*> pointers(values_.size());
  for (std::size_t v = 0; v < pointers.size(); ++v) pointers[v] = values_[v].data();
  for (std::size_t first = 0; first < x.size(); first += kBatch) {
    const std::size_t count = std::min<std::size_t>(kBatch, x.size() - first);
    pointers[kGate] = gate + first;
    pointers[kUp] = up + first;
    for (std::size_t s = 0; s < formulas_.size(); ++s) {
      std::copy_n(formulas_[s].run(pointers.data(), static_cast<int>(count)), count, values_[statements_[s].target].data());
    }
    std::copy_n(values_[result_].data(), count, x.data() + first);
  }
}

CompiledRule compile(const ScaleRule& rule) {
  CompiledRule compiled;
  compiled.variables = rule.formula.variables.size();
  for (const FormulaStatement& statement : rule.formula.statements) {
    if (statement.target != rule.code) compiled.block.push_back(statement);
  }
  Splitter splitter{{}, compiled};
  splitter.split(splitter.build(rule.formula.statements[rule.code_statement].steps));
  std::sort(compiled.code_uses.begin(), compiled.code_uses.end());
  compiled.code_uses.erase(std::unique(compiled.code_uses.begin(), compiled.code_uses.end()), compiled.code_uses.end());
  return compiled;
}

}  // namespace assay::fast
