// Layer (b): bands of rows, each by one thread. A band holds whole blocks. Where one block takes all rows of a group, its amax is
// found in a pass of its own.

#include "reference/rules/quantize_by_rule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "reference/formats/encode.h"
#include "reference/formats/fast_codes.h"
#include "reference/rules/batch_formula.h"
#include "reference/rules/code_rounder.h"
#include "reference/rules/rule_problem.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

using fast::BatchFormula;
using fast::kBatch;

constexpr std::int64_t kBandRows = 64;    // of blocks of one row
constexpr std::int64_t kTallBlock = 512;  // the only block row of a group is cut into bands if it is taller than this
constexpr std::int64_t kTallBandRows = 64;
constexpr std::int64_t kWideBlock = 32;  // columns of a block from which it is worth a loop of its own

// Magnitudes as integers that sort as they do. A NaN is below everything (ignored) or above everything (propagated).
ASSAY_CLONES void raise_ranks(AmaxNan nan, const float* __restrict x, std::int64_t count, std::int32_t* __restrict ranks) {
  if (nan == AmaxNan::ignored) {
    for (std::int64_t i = 0; i < count; ++i) ranks[i] = std::max(ranks[i], fast::rank_of(x[i]));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      ranks[i] = std::max(ranks[i], static_cast<std::int32_t>(fast::float_bits(x[i]) & fast::kMagnitude));
    }
  }
}

ASSAY_CLONES std::int32_t largest_rank(const std::int32_t* ranks, std::int64_t count, std::int32_t largest) {
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, ranks[i]);
  return largest;
}

// The largest rank of x itself.
ASSAY_CLONES std::int32_t largest_rank_of(AmaxNan nan, const float* x, std::int64_t count, std::int32_t largest) {
  if (nan == AmaxNan::ignored) {
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, fast::rank_of(x[i]));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, static_cast<std::int32_t>(fast::float_bits(x[i]) & fast::kMagnitude));
    }
  }
  return largest;
}

ASSAY_CLONES void fill(float value, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}

struct Work {
  const RuleProblem& problem;
  const RuleOutput& output;
  fast::CompiledRule rule;
  fast::CodeRounder rounder;
  std::vector<RuleGroup> groups;
  std::vector<float> outer;  // of each group, or of each row

  std::int32_t lowest_rank() const { return problem.rule->nan == AmaxNan::ignored ? fast::kZeroRank : 0; }
  float amax_of_rank(std::int32_t rank) const {
    return problem.rule->nan == AmaxNan::ignored ? fast::magnitude_of_rank(rank) : std::bit_cast<float>(rank);
  }

  void widen_row(std::int64_t row, std::vector<float>& x) const {
    const auto* bytes = static_cast<const std::byte*>(problem.x);
    widen(problem.x_type, bytes + bytes_of(problem.x_type, row * problem.columns), x);
  }
};

// Blocks of one block row, as columns of values: values[variable][block].
struct BlockRow {
  std::vector<std::vector<float>> values;
};

// What one thread works with.
class Band {
 public:
  explicit Band(const Work& work)
      : work_(work),
        code_(work.rule.code),
        x_(static_cast<std::size_t>(work.problem.columns)),
        ranks_(x_.size()),
        expanded_(work.rule.variables),
        codes_(x_.size()) {
    for (const FormulaStatement& statement : work.rule.block) block_.emplace_back(statement.steps);
    for (const std::uint8_t used : work.rule.code_uses) expanded_[used].resize(x_.size());
  }

  // Largest magnitudes of the blocks that rows [r0, r1) of the matrix meet.
  std::vector<float> amaxes(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
    if (group.block_columns >= kWideBlock) return amaxes_of_wide_blocks(group, r0, r1);
    std::fill(ranks_.begin(), ranks_.end(), work_.lowest_rank());
    for (std::int64_t r = r0; r < r1; ++r) {
      work_.widen_row(r, x_);
      raise_ranks(work_.problem.rule->nan, x_.data(), work_.problem.columns, ranks_.data());
    }
    std::vector<float> found(static_cast<std::size_t>(group.columns_of_blocks));
    for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) {
      const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, work_.problem.columns);
      found[static_cast<std::size_t>(j)] = work_.amax_of_rank(largest_rank(ranks_.data() + c0, c1 - c0, work_.lowest_rank()));
    }
    return found;
  }

  // The formulas of a block row, whose scales are stored where `store` says so.
  void evaluate(const RuleGroup& group, std::int64_t i, const std::vector<float>& amaxes, float outer, bool store) {
    const RuleProblem& problem = work_.problem;
    const std::size_t blocks = amaxes.size();
    row_.values.resize(work_.rule.variables);
    const auto given = [&](RuleVariable variable, float value) { row_.values[variable].assign(blocks, value); };
    row_.values[kAmax] = amaxes;
    given(kOuterAmax, outer);
    given(kOutputMax, max_finite(problem.output));
    given(kOutputPow2, output_pow2(problem.output));
    given(kOutputMantissaBits, static_cast<float>(output_mantissa_bits(problem.output)));
    given(kInputMax, max_finite(problem.x_type));
    std::vector<const float*> pointers(work_.rule.variables);
    for (std::size_t s = 0; s < block_.size(); ++s) {
      std::vector<float>& target = row_.values[work_.rule.block[s].target];
      target.resize(blocks);
      for (std::size_t first = 0; first < blocks; first += kBatch) {
        const std::size_t count = std::min<std::size_t>(kBatch, blocks - first);
        for (std::size_t v = 0; v < pointers.size(); ++v) {
          pointers[v] = row_.values[v].empty() ? nullptr : row_.values[v].data() + first;
        }
        std::copy_n(block_[s].run(pointers.data(), static_cast<int>(count)), count, target.data() + first);
      }
    }
    if (group.block_columns < kWideBlock || !is_plain_product()) expand(group);
    if (!store || work_.output.scale == nullptr) return;
    const std::vector<float>& scales = row_.values[static_cast<std::size_t>(problem.rule->scale)];
    for (std::size_t j = 0; j < blocks; ++j) {
      store_scale(problem, group, i, static_cast<std::int64_t>(j), scales[j], work_.output.scale);
    }
  }

  // Codes of rows [r0, r1), all of the block row that was evaluated last.
  void encode_rows(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
    if (work_.output.data == nullptr) return;
    for (std::int64_t r = r0; r < r1; ++r) {
      // A block of one row has its x from the search for its amax.
      if (r1 - r0 > 1 || group.block_rows > 1 || held_row_ != r) work_.widen_row(r, x_);
      group.block_columns >= kWideBlock&& is_plain_product() ? encode_row_of_products(group) : encode_row();
      put_row(group, r);
    }
  }

  void hold(std::int64_t row) { held_row_ = row; }

  // Rows of transposed codes are gathered, and written together by `end`.
  void begin(std::int64_t r0, std::int64_t r1) {
    first_row_ = r0;
    rows_ = r1 - r0;
    if (work_.problem.transposed) gathered_.resize(static_cast<std::size_t>(rows_ * work_.problem.columns));
  }

  void end(const RuleGroup& group) {
    if (!work_.problem.transposed || work_.output.data == nullptr) return;
    const std::int64_t columns = work_.problem.columns, base = group.first_row * columns + (first_row_ - group.first_row);
    std::vector<std::uint8_t> run(static_cast<std::size_t>(rows_));
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows_; ++r)
        run[static_cast<std::size_t>(r)] = gathered_[static_cast<std::size_t>(r * columns + c)];
      put_codes(run, base + c * group.rows);
    }
  }

 private:
  // The same where the columns of a block fill vectors.
  std::vector<float> amaxes_of_wide_blocks(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
    const AmaxNan nan = work_.problem.rule->nan;
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(group.columns_of_blocks), work_.lowest_rank());
    for (std::int64_t r = r0; r < r1; ++r) {
      work_.widen_row(r, x_);
      for (std::size_t j = 0; j < ranks.size(); ++j) {
        const std::int64_t c0 = static_cast<std::int64_t>(j) * group.block_columns;
        const std::int64_t c1 = std::min(c0 + group.block_columns, work_.problem.columns);
        ranks[j] = largest_rank_of(nan, x_.data() + c0, c1 - c0, ranks[j]);
      }
    }
    std::vector<float> found;
    for (const std::int32_t rank : ranks) found.push_back(work_.amax_of_rank(rank));
    return found;
  }

  // Whether `code` is x times a value of the block, with the format's own conversion: then one call converts a block's row.
  bool is_plain_product() const {
    const std::vector<FormulaStep>& code = work_.rule.code;
    return work_.rounder.is_usual() && code.size() == 3 && code[0].op == FormulaOp::variable &&
           code[1].op == FormulaOp::variable && code[2].op == FormulaOp::multiply &&
           (code[0].index == kElement) != (code[1].index == kElement);
  }

  void encode_row_of_products(const RuleGroup& group) {
    const std::size_t factor = work_.rule.code[0].index == kElement ? work_.rule.code[1].index : work_.rule.code[0].index;
    for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) {
      const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, work_.problem.columns);
      const auto first = static_cast<std::size_t>(c0), count = static_cast<std::size_t>(c1 - c0);
      encode_scaled(work_.problem.output, std::span<const float>(x_).subspan(first, count),
                    row_.values[factor][static_cast<std::size_t>(j)], std::span(codes_).subspan(first, count));
    }
  }

  // One value for each column of x.
  void expand(const RuleGroup& group) {
    for (const std::uint8_t used : work_.rule.code_uses) {
      for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) {
        const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, work_.problem.columns);
        fill(row_.values[used][static_cast<std::size_t>(j)], c1 - c0, expanded_[used].data() + c0);
      }
    }
  }

  void encode_row() {
    std::array<const float*, 128> pointers = {};
    for (std::size_t first = 0; first < x_.size(); first += kBatch) {
      const auto count = static_cast<int>(std::min<std::size_t>(kBatch, x_.size() - first));
      pointers[kElement] = x_.data() + first;
      for (const std::uint8_t used : work_.rule.code_uses) pointers[used] = expanded_[used].data() + first;
      work_.rounder.round(code_.run(pointers.data(), count), count, codes_.data() + first);
    }
  }

  void put_row(const RuleGroup& group, std::int64_t r) {
    (void)group;
    const std::int64_t columns = work_.problem.columns;
    if (work_.problem.transposed) {
      std::copy(codes_.begin(), codes_.end(), gathered_.begin() + (r - first_row_) * columns);
    } else {
      put_codes(codes_, r * columns);
    }
  }

  // Codes from number `at` of the output on, packed as its format is.
  void put_codes(const std::vector<std::uint8_t>& codes, std::int64_t at) const {
    auto* bytes = static_cast<std::uint8_t*>(work_.output.data) + at * bits_of(work_.problem.output) / 8;
    const std::span to(bytes, static_cast<std::size_t>(bytes_of(work_.problem.output, static_cast<std::int64_t>(codes.size()))));
    switch (bits_of(work_.problem.output)) {
      case 4: return pack_e2m1(codes, to);
      case 6: return pack_fp6(codes, to);
      default: std::copy(codes.begin(), codes.end(), to.begin());
    }
  }

  const Work& work_;
  BatchFormula code_;
  std::vector<BatchFormula> block_;
  std::vector<float> x_;
  std::vector<std::int32_t> ranks_;
  std::vector<std::vector<float>> expanded_;  // by variable
  std::vector<std::uint8_t> codes_, gathered_;
  BlockRow row_;
  std::int64_t first_row_ = 0, rows_ = 0, held_row_ = -1;
};

// Rows [r0, r1) of a group, which are whole blocks.
void quantize_band(const Work& work, const RuleGroup& group, std::size_t t, std::int64_t r0, std::int64_t r1) {
  Band band(work);
  band.begin(r0, r1);
  for (std::int64_t r = r0; r < r1; r += group.block_rows) {
    const std::int64_t end = std::min(r + group.block_rows, r1);
    const std::vector<float> amaxes = band.amaxes(group, r, end);
    if (end - r == 1) band.hold(r);
    float outer = 0;
    if (work.problem.rule->outer == OuterAmax::tensor) outer = work.outer[t];
    if (work.problem.rule->outer == OuterAmax::row) outer = work.outer[static_cast<std::size_t>(r)];
    band.evaluate(group, (r - group.first_row) / group.block_rows, amaxes, outer, true);
    band.encode_rows(group, r, end);
  }
  band.end(group);
}

// Amaxes of the blocks of a group all of whose rows share them; NaN stays NaN.
std::vector<float> tall_amaxes(const Work& work, const RuleGroup& group) {
  const auto blocks = static_cast<std::size_t>(group.columns_of_blocks);
  const std::int64_t bands = (group.rows + kTallBandRows - 1) / kTallBandRows;
  std::vector<std::vector<float>> found(static_cast<std::size_t>(bands));
  parallel_for(bands, 1, [&](std::int64_t from, std::int64_t to) {
    Band band(work);
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
void quantize_tall(const Work& work, const RuleGroup& group, std::size_t t) {
  const std::vector<float> amaxes = tall_amaxes(work, group);
  const float outer = work.problem.rule->outer == OuterAmax::tensor ? work.outer[t] : 0;
  const std::int64_t bands = (group.rows + kTallBandRows - 1) / kTallBandRows;
  parallel_for(bands, 1, [&](std::int64_t from, std::int64_t to) {
    Band band(work);
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
void find_outer(Work& work, const RuleShapes& shapes) {
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
      Band band(work);
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
  Work work{problem,
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
    for (std::int64_t p = from; p < to; ++p) {
      const Piece& piece = pieces[static_cast<std::size_t>(p)];
      quantize_band(work, work.groups[piece.group], piece.group, piece.r0, piece.r1);
    }
  });
}

}  // namespace assay
