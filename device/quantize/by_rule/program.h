#pragma once
// A scale rule as instructions for a stack, in the form in which a device carries them out: those of a block, then those of an
// element. What is the same for all elements of a block is computed once for each block and kept in slots.
//
//   s = amax / 448; scale = s; code = x * (1 / s)      block    amax 448 divide =s; s =scale; 1 s divide =slot 0
//                                                      element  x slot 0 multiply
//
// A value that joins the elements of a block (spec scale-rules-2.4) has the instructions of its expression behind `join`:
//
//   e = block_sum(abs(x) * amax)                         block    join sum of the next 4: x abs amax multiply; =e
//
// Where the rule has an activation, its instructions follow: they compute x of gate and up.

#include <cstdint>
#include <string>
#include <vector>

#include "reference/rules/scale_rule.h"

namespace assay::device {

enum class RuleOp : std::uint8_t {
  constant,  // pushes `value`
  element,   // pushes x; in an activation gate
  up,        // in an activation: pushes up
  local,     // in an activation: pushes local `index` of the element
  variable,  // pushes variable `index` of the block
  slot,      // pushes slot `index` of the block
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
  call_1,  // FormulaFunction `function` of 1, 2 or 3 values
  call_2,
  call_3,
  keep_variable,  // the top becomes variable `index`
  keep_slot,      // the top becomes slot `index`
  keep_local,     // the top becomes local `index`
  keep_scale,     // the top is stored as the scale of the block
  done,           // end of a statement: the stack is empty again
  join,  // pushes what the next `index` instructions give for each element of the block, joined by FormulaReduction `function`
};

struct RuleInstruction {
  RuleOp op = RuleOp::done;
  std::uint8_t function = 0;
  std::uint16_t index = 0;
  float value = 0;
};
static_assert(sizeof(RuleInstruction) == 8);

inline constexpr int kRuleVariablesMax = 64;  // names of a formula
inline constexpr int kRuleStackMax = 32;      // values on the stack of a formula
inline constexpr int kRuleLocalsMax = 8;      // names that an activation assigns

// A rule for one type of codes and one of x.
struct RuleProgram {
  std::string rule;  // its name
  Format output = Format::e4m3, x_type = Format::bf16;
  std::vector<RuleInstruction> instructions;
  int of_block = 0;          // the first so many are of a block,
  int of_activation = 0;     // the last so many of the activation
  int slots = 0;             // values that a block keeps for its elements
  bool approximate = false;  // uses an approximate instruction of a GPU (spec approximations-1.1)
  bool joins = false;        // joins values of the elements of a block

  int of_element() const { return static_cast<int>(instructions.size()) - of_block - of_activation; }
};

// Constants of the types (output_max, x_max, ...) are filled in.
// Errors (NotSupported): more than 128 names and parts of `code` that are the same for a block; an activation that assigns more
// than 8 names; more than 65535 steps in a value that joins the elements of a block.
RuleProgram rule_program(const ScaleRule& rule, Format output, Format x_type);

}  // namespace assay::device
