#pragma once
// What one thread does with a band of rows in layer (b) of quantization by a rule: values of x, amaxes of blocks, the formulas of a
// block row, and codes.

#include <cstdint>
#include <vector>

#include "reference/rules/batch_formula.h"
#include "reference/rules/code_rounder.h"
#include "reference/rules/rule_problem.h"
#include "reference/rules/rule_rows.h"

namespace assay::fast {

// What all bands of a call share.
struct RuleWork {
  const RuleProblem& problem;
  const RuleOutput& output;
  CompiledRule rule;
  CodeRounder rounder;
  std::vector<RuleGroup> groups;
  std::vector<float> outer;  // of each group, or of each row
};

class RuleBand {
 public:
  explicit RuleBand(const RuleWork& work);

  // Largest magnitudes of the blocks that rows [r0, r1) of the matrix meet.
  std::vector<float> amaxes(const RuleGroup& group, std::int64_t r0, std::int64_t r1);

  // The formulas of block row `i`; its scales are stored where `store` says so.
  void evaluate(const RuleGroup& group, std::int64_t i, const std::vector<float>& amaxes, float outer, bool store);

  // Codes of rows [r0, r1), all of the block row that was evaluated last.
  void encode_rows(const RuleGroup& group, std::int64_t r0, std::int64_t r1);

  // Rows [r0, r1) follow. Rows of transposed codes are gathered, and written together by `end`.
  void begin(std::int64_t r0, std::int64_t r1);
  void end(const RuleGroup& group);

 private:
  void load_row(std::int64_t row);
  RowOfX row_of_x(std::int64_t row);
  std::vector<float> amaxes_of_wide_blocks(const RuleGroup& group, std::int64_t r0, std::int64_t r1);
  bool encodes_by_block(const RuleGroup& group) const;
  void reduce(std::size_t statement, std::int64_t row);
  void expand(const RuleGroup& group);
  void encode_values(std::span<std::uint8_t> codes);
  void put_codes(const std::vector<std::uint8_t>& codes, std::int64_t at) const;

  const RuleWork& work_;
  BatchFormula code_;
  std::optional<BlockCode> block_code_;
  std::vector<BatchFormula> block_;
  BatchActivation activation_;
  std::vector<float> x_, halves_;  // a row of values; of gate and up where the rule has an activation
  std::int64_t loaded_row_ = -1;
  std::vector<std::int32_t> ranks_;
  std::vector<std::vector<float>> values_;    // of the block row: [variable][block]
  std::vector<std::vector<float>> expanded_;  // the same for each column of x
  std::vector<std::uint8_t> codes_, gathered_;
  std::int64_t first_row_ = 0, rows_ = 0;
};

}  // namespace assay::fast
