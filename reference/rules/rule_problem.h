#pragma once
// What both layers of quantization by a rule need of a problem: groups, blocks and the places of outputs.

#include <span>
#include <vector>

#include "reference/rules/quantize_by_rule.h"

namespace assay {

// One group, or the whole matrix.
struct RuleGroup {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t block_rows = 0, block_columns = 0;  // extent of a block; the blocks at the edges are shorter
  std::int64_t rows_of_blocks = 0, columns_of_blocks = 0;
  std::int64_t first_block_row = 0;  // in the scales of the whole matrix; 0 where each group is stored by itself
  std::int64_t scale_byte = 0;       // first byte of the scale matrix that it lies in
  StoredScales stored;
};

std::vector<RuleGroup> groups_of(const RuleProblem& problem);

// Columns of the matrix at `x`: gate and up side by side where the rule has an activation.
std::int64_t input_columns(const RuleProblem& problem);

// Sets all bytes of the scales to 0 where padding is cleared.
void clear_scales(const RuleProblem& problem, const RuleShapes& shapes, void* scale);

// Stores scale (i, j) of a group. A NaN of f32 is stored as 0x7FFFFFFF (spec conventions-1.3).
void store_scale(const RuleProblem& problem, const RuleGroup& group, std::int64_t i, std::int64_t j, float value, void* scale);

// The same for scales (i, 0), (i, 1), ... of layer (b).
void store_scales(const RuleProblem& problem, const RuleGroup& group, std::int64_t i, std::span<const float> values, void* scale);

// A NaN as it is stored: 0x7FFFFFFF (spec conventions-1.3).
float stored_amax(float value);

// All checks of quantize_by_rule().
RuleShapes check_rule(const RuleProblem& problem);

}  // namespace assay
