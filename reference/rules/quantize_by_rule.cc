// Layer (b): bands of rows, each by one thread. A band holds whole blocks. Where one block takes all rows of a group, its amax is
// found in a pass of its own.

#include "reference/rules/quantize_by_rule.h"

#include <algorithm>
#include <vector>

#include "reference/rules/rule_band.h"
#include "reference/rules/rule_problem.h"
#include "reference/support/parallel.h"

namespace assay {
namespace {

using fast::RuleBand;
using fast::RuleWork;

constexpr std::int64_t kBandRows = 64;    // of blocks of one row
constexpr std::int64_t kTallBlock = 512;  // the only block row of a group is cut into bands if it is taller than this
constexpr std::int64_t kTallBandRows = 64;

// Rows [r0, r1) of a group, which are whole blocks.
void quantize_band(const RuleWork& work, RuleBand& band, std::size_t t, std::int64_t r0, std::int64_t r1) {
  const RuleGroup& group = work.groups[t];
  band.begin(r0, r1);
  for (std::int64_t r = r0; r < r1; r += group.block_rows) {
    const std::int64_t end = std::min(r + group.block_rows, r1);
    const std::vector<float> amaxes = band.amaxes(group, r, end);
    float outer = 0;
    if (work.problem.rule->outer == OuterAmax::tensor) outer = work.outer[t];
    if (work.problem.rule->outer == OuterAmax::row) outer = work.outer[static_cast<std::size_t>(r)];
    band.evaluate(group, (r - group.first_row) / group.block_rows, amaxes, outer, true);
    band.encode_rows(group, r, end);
  }
  band.end(group);
}

// Amaxes of the blocks of a group all of whose rows share them; NaN stays NaN.
std::vector<float> tall_amaxes(const RuleWork& work, const RuleGroup& group) {
  const auto blocks = static_cast<std::size_t>(group.columns_of_blocks);
  const std::int64_t bands = (group.rows + kTallBandRows - 1) / kTallBandRows;
  std::vector<std::vector<float>> found(static_cast<std::size_t>(bands));
  parallel_for(bands, 1, [&](std::int64_t from, std::int64_t to) {
    RuleBand band(work);
    for (std::int64_t b = from; b < to; ++b) {
      const std::int64_t r0 = group.first_row + b * kTallBandRows;
      found[static_cast<std::size_t>(b)] = band.amaxes(group, r0, std::min(r0 + kTallBandRows, group.first_row + group.rows));
    }
  });
  std::vector<float> all(blocks, 0.0f);
  for (const std::vector<float>& each : found) {
    for (std::size_t j = 0; j < blocks; ++j) {
      const bool kept = all[j] != all[j] || each[j] <= all[j];
      if (!kept) all[j] = each[j];
    }
  }
  return all;
}

// A group whose blocks have more rows than a band: one block row.
void quantize_tall(const RuleWork& work, const RuleGroup& group, std::size_t t) {
  const std::vector<float> amaxes = tall_amaxes(work, group);
  const float outer = work.problem.rule->outer == OuterAmax::tensor ? work.outer[t] : 0;
  const std::int64_t bands = (group.rows + kTallBandRows - 1) / kTallBandRows;
  parallel_for(bands, 1, [&](std::int64_t from, std::int64_t to) {
    RuleBand band(work);
    for (std::int64_t b = from; b < to; ++b) {
      const std::int64_t r0 = group.first_row + b * kTallBandRows,
                         r1 = std::min(r0 + kTallBandRows, group.first_row + group.rows);
      band.begin(r0, r1);
      band.evaluate(group, 0, amaxes, outer, b == 0);
      band.encode_rows(group, r0, r1);
      band.end(group);
    }
  });
}

// The amax of each group or row: given, or found.
void find_outer(RuleWork& work, const RuleShapes& shapes) {
  const RuleProblem& problem = work.problem;
  if (shapes.outer_amaxes == 0) return;
  work.outer.assign(static_cast<std::size_t>(shapes.outer_amaxes), 0.0f);
  const bool of_rows = problem.rule->outer == OuterAmax::row;
  for (std::size_t t = 0; t < work.groups.size(); ++t) {
    const RuleGroup& group = work.groups[t];
    RuleGroup whole = group;
    whole.columns_of_blocks = problem.columns == 0 ? 0 : 1;
    whole.block_columns = std::max<std::int64_t>(problem.columns, 1);
    if (!of_rows) {
      work.outer[t] = problem.outer_amax != nullptr             ? problem.outer_amax[t]
                      : group.rows == 0 || problem.columns == 0 ? 0
                                                                : tall_amaxes(work, whole)[0];
      continue;
    }
    parallel_for(group.rows, kBandRows, [&](std::int64_t from, std::int64_t to) {
      RuleBand band(work);
      for (std::int64_t r = group.first_row + from; r < group.first_row + to; ++r) {
        work.outer[static_cast<std::size_t>(r)] = problem.outer_amax != nullptr ? problem.outer_amax[r]
                                                  : problem.columns == 0        ? 0
                                                                                : band.amaxes(whole, r, r + 1)[0];
      }
    });
  }
  if (work.output.outer_amax == nullptr) return;
  std::int64_t used = of_rows ? 0 : shapes.outer_amaxes;
  if (of_rows) {
    for (const RuleGroup& group : work.groups) used += group.rows;
  }
  std::transform(work.outer.begin(), work.outer.begin() + used, work.output.outer_amax, stored_amax);
}

}  // namespace

void quantize_by_rule(const RuleProblem& problem, const RuleOutput& output) {
  const RuleShapes shapes = check_rule(problem);
  clear_scales(problem, shapes, output.scale);
  RuleWork work{problem,
                output,
                fast::compile(*problem.rule),
                fast::CodeRounder(problem.output, problem.rule->rounding),
                groups_of(problem),
                {}};
  find_outer(work, shapes);

  struct Piece {
    std::size_t group;
    std::int64_t r0, r1;
  };
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < work.groups.size(); ++t) {
    const RuleGroup& group = work.groups[t];
    if (group.block_rows > kTallBlock && group.rows_of_blocks == 1) {
      quantize_tall(work, group, t);
      continue;
    }
    // Four block rows and more keep packed codes of a transposed group on whole bytes.
    const std::int64_t rows = group.block_rows * std::max<std::int64_t>(4, kBandRows / group.block_rows);
    for (std::int64_t r = 0; r < group.rows; r += rows) {
      pieces.push_back({t, group.first_row + r, group.first_row + std::min(r + rows, group.rows)});
    }
  }
  parallel_for(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t from, std::int64_t to) {
    RuleBand band(work);
    for (std::int64_t p = from; p < to; ++p) {
      const Piece& piece = pieces[static_cast<std::size_t>(p)];
      quantize_band(work, band, piece.group, piece.r0, piece.r1);
    }
  });
}

}  // namespace assay
