#pragma once
// Internal to the generator: rows and weights whose fused sums lie beside a tie.

#include <cstdint>
#include <vector>

#include "reference/types/format.h"

namespace assay::conformance::inputs {

// Codes of the rows that `rows` names, and the weight of each choice, [tokens, topk], as f32. A token's choices are a tiny value of
// either sign with weight 1, then a product of `type` plus one bit, which is a tie alone: after rounding the tiny value to
// nothing, or in a format between, both ways to break the tie are wrong once. Columns alternate the tiny value's sign and size.
struct FusedTies {
  std::vector<std::uint32_t> codes;  // [permuted_rows, columns]; 0 where no choice names the row
  std::vector<float> weights;
};
FusedTies fused_ties(Format type, const std::vector<std::int64_t>& row_map, std::int64_t topk, std::int64_t permuted_rows,
                     std::int64_t columns, std::uint64_t seed);

}  // namespace assay::conformance::inputs
