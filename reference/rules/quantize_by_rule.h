#pragma once
// Quantization of a matrix, or of the groups of a ragged one, by a scale rule (spec scale-rules-1.1). For each block:
//
//   amax    the largest |x| of the block; NaN as the rule says; 0 where there is nothing else
//   scale   of the rule's formula, stored as scale_type
//   code    of the rule's formula for each element, rounded to the output format as the rule says
//
// Blocks are counted from each group's first row and from column 0; those at the edges are shorter. quantize.h is the same for
// the recipes of TransformerEngine; for those, rule `te` gives the same bits (a test compares the two).

#include <cstdint>
#include <span>

#include "reference/rules/scale_rule.h"
#include "reference/types/format.h"

namespace assay {

struct RuleProblem {
  const ScaleRule* rule = nullptr;
  Format output = Format::e4m3;  // e4m3, e5m2, e3m2, e2m3 or e2m1
  BlockShape block;
  ScaleStorage storage;
  bool transposed = false;  // codes of each group are stored [K, M] at the group's own place
  Format x_type = Format::bf16;
  const void* x = nullptr;  // [rows, columns], row-major; [rows, 2 columns], gate then up, where the rule has an activation
  std::int64_t rows = 0;    // may exceed the sum of the splits: the rows beyond are neither read nor written
  std::int64_t columns = 0;
  bool grouped = false;
  std::span<const std::int64_t> splits;
  const float* outer_amax =
      nullptr;  // [G] (or [1]) for a tensor amax, [rows] for row amaxes; null: max |x|, NaN as the rule says
};

// A null pointer: not written. Packed codes (e2m1, e3m2, e2m3) begin each stored row on a byte.
struct RuleOutput {
  void* data = nullptr;
  void* scale = nullptr;
  float* outer_amax = nullptr;  // the amax that was used, [G] (or [1]) or [rows]
};

struct RuleShapes {
  std::int64_t data_bytes = 0;
  std::int64_t scale_bytes = 0;
  StoredScales scales;            // of the whole matrix; with a storage per group only `bytes` is set
  std::int64_t outer_amaxes = 0;  // 0: the rule has no outer amax
};

// Reads no pointer but `splits`. Errors (InvalidArgument): negative sizes or splits, splits that sum to more than `rows`, an x_type
// other than bf16, f16 and f32, an output other than those above, a storage that the type of the scales cannot have, an extent
// along which packed codes do not fill bytes, sizes that overflow int64.
RuleShapes rule_outputs(const RuleProblem& problem);

// First block row of each group in the scales of the whole matrix, and the total: G+1 values. Groups do not share blocks.
std::vector<std::int64_t> block_row_offsets(const RuleProblem& problem);

// Fast: vectorised and threaded. Errors: those of rule_outputs; null x where there are elements. x and outputs may have any
// alignment that their types allow.
void quantize_by_rule(const RuleProblem& problem, const RuleOutput& output);

namespace scalar {
// The same, one element at a time, to be compared with the specification.
void quantize_by_rule(const RuleProblem& problem, const RuleOutput& output);
}  // namespace scalar

}  // namespace assay
