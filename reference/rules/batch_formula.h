#pragma once
// Layer (b) of formulas: many values at a time, and the part of a rule that is the same for all elements of a block taken out of the
// formula for elements.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/rules/scale_rule.h"

namespace assay::fast {

inline constexpr int kBatch = 256;  // values at a time: they stay in the first cache

// Carries steps out for up to kBatch values. Not to be used by two threads at once.
class BatchFormula {
 public:
  explicit BatchFormula(std::span<const FormulaStep> steps);

  // variables[v] points to `count` values of variable v, for each v that the steps use. The result is valid until the next call, or
  // is one of the variables.
  const float* run(const float* const* variables, int count);

 private:
  using Values = std::array<float, kBatch>;
  std::vector<FormulaStep> steps_;
  std::vector<Values> constants_;  // one a constant step
  std::vector<Values> results_;    // one a height of the stack
};

// The activation of a rule, many values at a time. Not to be used by two threads at once.
class BatchActivation {
 public:
  // x_max: the largest finite value of the type of gate and up.
  BatchActivation(const ScaleRule& rule, float x_max);
  // x[i] of gate[i] and up[i].
  void run(const float* gate, const float* up, std::span<float> x);

 private:
  std::vector<FormulaStatement> statements_;
  std::vector<BatchFormula> formulas_;
  std::vector<std::array<float, kBatch>> values_;  // [variable]
  std::size_t result_ = 0;
};

// A rule in the form in which rows of elements are quantized. Variables from kRuleVariables on are of a block, but for `code`.
struct CompiledRule {
  std::vector<FormulaStatement> block;  // to be carried out for each block, in order
  std::vector<FormulaStep> code;        // for each element
  std::vector<std::uint8_t> code_uses;  // variables of a block in `code`
  std::size_t variables = 0;
};
CompiledRule compile(const ScaleRule& rule);

}  // namespace assay::fast
