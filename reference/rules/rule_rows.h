#pragma once
// Layer (b): a row of x in its own type, block by block: ranks of the largest magnitudes, and codes of x times, or divided by, a value
// of each block. Rules whose `code` has another form go through BatchFormula.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "reference/rules/code_rounder.h"
#include "reference/rules/scale_rule.h"

namespace assay::fast {

// Elements of one row: bf16, f16 or f32.
struct RowOfX {
  Format type = Format::bf16;
  const void* x = nullptr;
  std::int64_t columns = 0;
};

// ranks[j] = max(ranks[j], rank of the largest magnitude of block j). Ranks are those of rank_of() where a NaN is ignored, else the
// bits of the magnitude, NaN above all.
void accumulate_block_ranks(AmaxNan nan, const RowOfX& row, std::int64_t block, std::int32_t* ranks);

// `code` of most rules: x times, or divided by, a value of its block, then kept within constant limits.
struct BlockCode {
  enum class Operation : std::uint8_t { product, quotient } operation = Operation::product;
  std::uint8_t factor = 0;  // the variable of the block
  bool limited = false;
  float lower = -std::numeric_limits<float>::infinity(), upper = std::numeric_limits<float>::infinity();
  float nan = 0;  // what a NaN becomes where there are limits: max(x, c) and min(x, c) are c then
};
// The steps of `code` in this form, or nothing.
std::optional<BlockCode> block_code(std::span<const FormulaStep> steps);

// codes[c] of x[c] and factors[c / block]. The rounder is one that rounds to even.
void encode_blocks(const RowOfX& row, const BlockCode& code, const CodeRounder& rounder, std::int64_t block, const float* factors,
                   std::uint8_t* codes);

}  // namespace assay::fast
