#pragma once
// The language of scale rules (spec scale-rules-2.1): assignments separated by semicolons, each an expression of f32 values.
//
//   s = max(amax, 1e-4) / 448; scale = s; code = x * (1 / s)
//
// Every operation rounds to f32, to nearest even. Names are given before (amax, x, ...) or assigned in an earlier statement. A
// formula is compiled to steps for a stack; scalar::evaluate carries them out one value at a time, and block_values.h many values
// at a time.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// What a step does with the values on top of the stack. Results of comparisons are 1 and 0.
enum class FormulaOp : std::uint8_t {
  constant,  // pushes `value`
  variable,  // pushes variable `index`
  negate,
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  equal,
  not_equal,
  select,  // condition ? a : b
  call,    // function `index`, FormulaFunction
};

// Functions of the language (spec scale-rules-2.2).
enum class FormulaFunction : std::uint8_t {
  maximum,         // max(a, b): the number where one is NaN
  minimum,         // min(a, b): the same
  maximum_or_nan,  // max_nan(a, b): NaN where one is NaN
  minimum_or_nan,  // min_nan(a, b): the same
  absolute,        // abs(a)
  fused,           // fma(a, b, c)
  power_up,        // pow2_ceil(a): the smallest power of two that is at least |a|, within 2^-127 .. 2^127
  power_down,      // pow2_floor(a): a with its mantissa bits cleared: 0 for zeros and subnormals, infinity for infinity
  power_up_log2,  // pow2_ceil_log2(a), pow2_floor_log2(a): 2^n, n the log2 of a rounded to f32 and then up (down): next to a power
  power_down_log2,  // of two this is not what pow2_ceil and pow2_floor give; 0 for 0, NaN below 0
  round_half_up,    // round_mantissa(a, n): n mantissa bits are kept, halves go away from zero
  to_bf16,          // bf16(a), f16(a), e4m3(a), e5m2(a): the nearest value of the format (spec formats-1.2, formats-1.4)
  to_f16,
  to_e4m3,
  to_e5m2,
  flush,           // ftz(a): a zero of its sign where a is subnormal
  rcp_approx_ftz,  // the approximate instructions of a GPU, by their names in PTX (reference/approximations)
  rcp_approx,
  ex2_approx_ftz,
  ex2_approx,
  rsqrt_approx_ftz,
  rsqrt_approx,
  tanh_approx,
  div_full,
  div_approx_ftz,
  cuda_expf,
};

struct FormulaStep {
  FormulaOp op = FormulaOp::constant;
  std::uint8_t index = 0;  // of a variable or function
  float value = 0;
  bool operator==(const FormulaStep&) const = default;
};

// What joins the values of an expression over the elements of a block (spec scale-rules-2.4).
enum class FormulaReduction : std::uint8_t {
  none,
  sum,      // block_sum(e)
  squares,  // block_squares(e): the sum of e * e
  maximum,  // block_max(e): NaN where one is NaN
};

// One assignment.
struct FormulaStatement {
  std::uint8_t target = 0;  // variable that gets the value
  std::vector<FormulaStep> steps;
  FormulaReduction reduction = FormulaReduction::none;
  bool operator==(const FormulaStatement&) const = default;
};

struct Formula {
  std::vector<std::string> variables;  // the given names, then the assigned ones in their order
  std::vector<FormulaStatement> statements;
  int element = -1;  // the variable that differs from element to element of a block; -1: there is none

  // Index of a variable, or -1.
  int find(std::string_view name) const;
  // Whether the value of the statement at `index` depends on variable `variable`, directly or through others. What joins the elements
  // of a block does not depend on `element`.
  bool depends(std::size_t statement, int variable) const;
};

// Compiles `text`, whose expressions may use `given`, of which number `element` differs from element to element. Errors (InvalidArgument) name `argument`, the position and what was expected:
// a malformed expression, an unknown name or function, a name assigned twice, a wrong number of arguments, more than 64 variables,
// a stack of more than 32 values.
Formula parse_formula(std::string_view argument, std::string_view text, std::span<const std::string_view> given,
                      int element = -1);

// Number of values that `function`, or `step`, takes from the stack.
int arguments_of(FormulaFunction function);
int taken_by(const FormulaStep& step);

namespace scalar {
// The value of `steps`; variables[i] is that of variable i.
float evaluate(std::span<const FormulaStep> steps, std::span<const float> variables);
float call(FormulaFunction function, float a, float b, float c);
}  // namespace scalar

}  // namespace assay
