#pragma once
// Internal to the generator: operands of products, in one storage, with their scales.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/generate/patterns.h"
#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

// Codes of one operand in one storage, and its scales.
struct OperandRequest {
  std::string name;  // x, w, dy
  Format type = Format::bf16;
  bool scaled = false;
  Recipe recipe = Recipe::tensor_current;
  bool columnwise = false;
  std::vector<std::int64_t> splits;           // rows of each group
  std::vector<std::int64_t> scale_rows = {};  // rows of each matrix of block scales, where they are not those of the groups
  bool placed = false;                        // groups do not follow one another: every row is filled
  std::int64_t columns = 0;
  std::int64_t total_rows = 0;
  ScaleLayout scale_layout = ScaleLayout::compact;
  PatternRequest pattern;  // pattern, role, contraction ...
  ScaleRequest scale;
  std::int64_t scales_of_rows = -1;  // scales of rows and columns: how many; -1: none
  bool even_amax = false;            // nvfp4: an amax that makes the factor of D a power of two, in any association
};

void add_operand(Case& result, const OperandRequest& operand);

// Sizes of data=wide_sums for a product: log2 of its anchors and how far apart they are, the largest small value, and by how
// much scales may differ, so that the hardware's accumulator and f32 outside of it just hold every sum.
struct WideSums {
  std::int64_t period = 0;
  int anchor = 0, amplitude = 2, spread = 0;
};
// `fraction_bits`: of the narrowest accumulator, 13 or 23. `block`: products that share a scale, 0 where all do; `outside`:
// the scales multiply sums of f32. `spare`: bits to leave for C. Errors: a sum too long for that.
WideSums wide_sums_for(std::int64_t longest, int fraction_bits, std::int64_t block, bool outside, Format element, Format output,
                       int spare);

// Largest amplitude whose sums stay below 2^13 units with scales that differ by up to `spread` on each side.
int amplitude_for(std::int64_t length, std::int64_t spread);

}  // namespace assay::conformance::inputs
