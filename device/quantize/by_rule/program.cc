#include "device/quantize/by_rule/program.h"

#include <array>
#include <string>

#include "device/support/error.h"
#include "reference/rules/batch_formula.h"

namespace assay::device {
namespace {

constexpr std::size_t kMaxValues = kRuleVariablesMax + 64;  // variables and parts of `code`: what the reference has room for

bool is_approximate(FormulaFunction function) { return function >= FormulaFunction::rcp_approx_ftz; }

class Writer {
 public:
  Writer(const fast::CompiledRule& rule, Format output, Format x_type) {
    slots_.fill(-1);
    constants_.fill(nullptr);
    given_ = {max_finite(output), output_pow2(output), static_cast<float>(output_mantissa_bits(output)), max_finite(x_type)};
    for (int i = 0; i < 4; ++i) constants_[static_cast<std::size_t>(kOutputMax + i)] = &given_[static_cast<std::size_t>(i)];
    for (const std::uint8_t used : rule.code_uses) {
      if (constants_[used] == nullptr) slots_[used] = program.slots++;
    }
  }

  void steps(const std::vector<FormulaStep>& all, bool of_element) {
    for (const FormulaStep& step : all) {
      switch (step.op) {
        case FormulaOp::constant: add(RuleOp::constant, 0, 0, step.value); break;
        case FormulaOp::variable: of_activation_ ? activation_variable(step.index) : variable(step.index, of_element); break;
        case FormulaOp::call: call(static_cast<FormulaFunction>(step.index)); break;
        case FormulaOp::negate: add(RuleOp::negate); break;
        case FormulaOp::add: add(RuleOp::add); break;
        case FormulaOp::subtract: add(RuleOp::subtract); break;
        case FormulaOp::multiply: add(RuleOp::multiply); break;
        case FormulaOp::divide: add(RuleOp::divide); break;
        case FormulaOp::less: add(RuleOp::less); break;
        case FormulaOp::less_equal: add(RuleOp::less_equal); break;
        case FormulaOp::equal: add(RuleOp::equal); break;
        case FormulaOp::not_equal: add(RuleOp::not_equal); break;
        case FormulaOp::select: add(RuleOp::select); break;
      }
    }
  }

  // The value that `all` gives for each element of the block, joined over the block.
  void joined(const std::vector<FormulaStep>& all, FormulaReduction how) {
    const auto at = program.instructions.size();
    add(RuleOp::join, 0, static_cast<std::uint8_t>(how));
    steps(all, false);
    const auto count = program.instructions.size() - at - 1;
    if (count > 0xFFFF) {
      throw NotSupported("a value that joins the elements of a block has " + std::to_string(count) +
                         " steps: at most 65535 are supported");
    }
    program.instructions[at].index = static_cast<std::uint16_t>(count);
    program.joins = true;
  }

  // The value on top becomes variable `target`, and a slot where elements use it.
  void keep(std::uint8_t target, bool is_named, bool is_scale) {
    if (is_named) add(RuleOp::keep_variable, target);
    if (slots_[target] >= 0) add(RuleOp::keep_slot, slots_[target]);
    if (is_scale) add(RuleOp::keep_scale);
    add(RuleOp::done);
  }

  // amax and outer_amax, where elements use them as they are.
  void keep_given() {
    for (const std::uint8_t given : {std::uint8_t{kAmax}, std::uint8_t{kOuterAmax}}) {
      if (slots_[given] < 0) continue;
      add(RuleOp::variable, given);
      keep(given, false, false);
    }
  }

  // Instructions that leave x on top: names that are assigned before are locals of the element.
  void activation(const Formula& formula) {
    of_activation_ = true;
    const auto before = program.instructions.size();
    const int x = formula.find("x");
    for (const FormulaStatement& statement : formula.statements) {
      steps(statement.steps, true);
      if (statement.target == x) break;
      add(RuleOp::keep_local, local_of(statement.target));
      add(RuleOp::done);
    }
    program.of_activation = static_cast<int>(program.instructions.size() - before);
  }

  RuleProgram program;

 private:
  static int local_of(std::uint8_t index) { return index - static_cast<int>(std::size(kActivationNames)); }
  void activation_variable(std::uint8_t index) {
    if (index == kGate) return add(RuleOp::element);
    if (index == kUp) return add(RuleOp::up);
    if (index == kActivationInputMax) return add(RuleOp::constant, 0, 0, given_[3]);
    add(RuleOp::local, local_of(index));
  }
  void add(RuleOp op, int index = 0, std::uint8_t function = 0, float value = 0) {
    program.instructions.push_back({op, function, static_cast<std::uint16_t>(index), value});
  }
  void variable(std::uint8_t index, bool of_element) {
    if (index == kElement) return add(RuleOp::element);
    if (constants_[index] != nullptr) return add(RuleOp::constant, 0, 0, *constants_[index]);
    of_element ? add(RuleOp::slot, slots_[index]) : add(RuleOp::variable, index);
  }
  void call(FormulaFunction function) {
    program.approximate = program.approximate || is_approximate(function);
    const int taken = arguments_of(function);
    add(taken == 1 ? RuleOp::call_1 : taken == 2 ? RuleOp::call_2 : RuleOp::call_3, 0, static_cast<std::uint8_t>(function));
  }

  bool of_activation_ = false;
  std::array<float, 4> given_ = {};
  std::array<const float*, kMaxValues> constants_ = {};
  std::array<int, kMaxValues> slots_ = {};
};

}  // namespace

RuleProgram rule_program(const ScaleRule& rule, Format output, Format x_type) {
  const fast::CompiledRule compiled = fast::compile(rule);
  if (compiled.variables > kMaxValues) {
    throw NotSupported("the rule has " + std::to_string(compiled.variables) +
                       " names and parts of code that are the same for a " + "block: at most " + std::to_string(kMaxValues) +
                       " are supported");
  }
  Writer writer(compiled, output, x_type);
  writer.program.rule = rule.name;
  writer.program.output = output;
  writer.program.x_type = x_type;
  writer.keep_given();
  for (const FormulaStatement& statement : compiled.block) {
    if (statement.reduction == FormulaReduction::none) {
      writer.steps(statement.steps, false);
    } else {
      writer.joined(statement.steps, statement.reduction);
    }
    writer.keep(statement.target, statement.target < rule.formula.variables.size(), statement.target == rule.scale);
  }
  writer.program.of_block = static_cast<int>(writer.program.instructions.size());
  writer.steps(compiled.code, true);
  if (rule.is_gated()) {
    if (rule.activation.statements.size() > kRuleLocalsMax) {
      throw NotSupported("the activation of the rule assigns " + std::to_string(rule.activation.statements.size()) +
                         " names: at most " + std::to_string(kRuleLocalsMax) + " are supported");
    }
    writer.activation(rule.activation);
  }
  return std::move(writer.program);
}

}  // namespace assay::device
