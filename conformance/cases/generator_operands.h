#pragma once
// Internal to the generator: operands of products, in one storage, with their scales.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/generator_scales.h"
#include "conformance/cases/generator_tensors.h"
#include "conformance/cases/patterns.h"

namespace assay::conformance::inputs {

// Codes of one operand in one storage, and its scales.
struct OperandRequest {
  std::string name;  // x, w, dy
  Format type = Format::bf16;
  bool scaled = false;
  Recipe recipe = Recipe::tensor_current;
  bool columnwise = false;
  std::vector<std::int64_t> splits;  // rows of each group
  std::int64_t columns = 0;
  std::int64_t total_rows = 0;
  ScaleLayout scale_layout = ScaleLayout::compact;
  PatternRequest pattern;  // pattern, role, contraction ...
  ScaleRequest scale;
};

void add_operand(Case& result, const OperandRequest& operand);

// Largest amplitude whose sums stay below 2^13 units with scales that differ by up to `spread` on each side.
int amplitude_for(std::int64_t length, std::int64_t spread);

}  // namespace assay::conformance::inputs
