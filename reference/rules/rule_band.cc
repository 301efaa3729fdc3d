#include "reference/rules/rule_band.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "reference/formats/encode.h"
#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

constexpr std::int64_t kWideBlock = 16;  // columns of a block from which they fill a vector

// Magnitudes as integers that sort as they do. A NaN is below everything (ignored) or above everything (propagated).
ASSAY_CLONES void accumulate_ranks(AmaxNan nan, const float* __restrict x, std::int64_t count, std::int32_t* __restrict ranks) {
  if (nan == AmaxNan::ignored) {
    for (std::int64_t i = 0; i < count; ++i) ranks[i] = std::max(ranks[i], rank_of(x[i]));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      ranks[i] = std::max(ranks[i], static_cast<std::int32_t>(float_bits(x[i]) & kMagnitude));
    }
  }
}

ASSAY_CLONES std::int32_t largest_rank(const std::int32_t* ranks, std::int64_t count, std::int32_t largest) {
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, ranks[i]);
  return largest;
}

ASSAY_CLONES void fill(float value, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}

// The values of a block, joined (spec scale-rules-2.4).
float joined(FormulaReduction reduction, std::array<float, 16> values) {
  if (reduction == FormulaReduction::maximum) {
    float largest = 0;
    for (const float value : values)
      largest = largest != largest || value <= largest ? largest : value;  // NaN is taken, and stays
    return largest;
  }
  if (reduction == FormulaReduction::squares) {
    for (float& value : values) value *= value;
  }
  for (std::size_t i = 0; i < 8; ++i) values[i] += values[i + 8];
  for (std::size_t i = 1; i < 8; ++i) values[0] += values[i];
  return values[0];
}

std::int32_t lowest_rank(const ScaleRule& rule) { return rule.nan == AmaxNan::ignored ? kZeroRank : 0; }

float amax_of_rank(const ScaleRule& rule, std::int32_t rank) {
  return rule.nan == AmaxNan::ignored ? magnitude_of_rank(rank) : std::bit_cast<float>(rank);
}

}  // namespace

RuleBand::RuleBand(const RuleWork& work)
    : work_(work),
      code_(work.rule.code),
      block_code_(block_code(work.rule.code)),
      activation_(*work.problem.rule, max_finite(work.problem.x_type)),
      x_(static_cast<std::size_t>(work.problem.columns)),
      ranks_(x_.size()),
      values_(work.rule.variables),
      expanded_(work.rule.variables),
      codes_(x_.size()) {
  for (const FormulaStatement& statement : work.rule.block) block_.emplace_back(statement.steps);
  for (const std::uint8_t used : work.rule.code_uses) expanded_[used].resize(x_.size());
  if (work.problem.rule->is_gated()) halves_.resize(static_cast<std::size_t>(input_columns(work.problem)));
}

// The values of a row as f32, which stay until another row is asked for.
void RuleBand::load_row(std::int64_t row) {
  if (loaded_row_ == row) return;
  loaded_row_ = row;
  const RuleProblem& problem = work_.problem;
  const std::int64_t columns = input_columns(problem);
  const std::byte* bytes = static_cast<const std::byte*>(problem.x) + bytes_of(problem.x_type, row * columns);
  if (!problem.rule->is_gated()) return widen(problem.x_type, bytes, x_);
  widen(problem.x_type, bytes, halves_);
  activation_.run(halves_.data(), halves_.data() + x_.size(), x_);
}

// A row in the type of x, or in f32 where an activation computes it.
RowOfX RuleBand::row_of_x(std::int64_t row) {
  const RuleProblem& problem = work_.problem;
  if (problem.rule->is_gated()) {
    load_row(row);
    return {Format::f32, x_.data(), problem.columns};
  }
  return {problem.x_type, static_cast<const std::byte*>(problem.x) + bytes_of(problem.x_type, row * problem.columns),
          problem.columns};
}

std::vector<float> RuleBand::amaxes(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
  if (group.block_columns >= kWideBlock) return amaxes_of_wide_blocks(group, r0, r1);
  const ScaleRule& rule = *work_.problem.rule;
  std::fill(ranks_.begin(), ranks_.end(), lowest_rank(rule));
  for (std::int64_t r = r0; r < r1; ++r) {
    load_row(r);
    accumulate_ranks(rule.nan, x_.data(), work_.problem.columns, ranks_.data());
  }
  std::vector<float> found(static_cast<std::size_t>(group.columns_of_blocks));
  for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) {
    const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, work_.problem.columns);
    found[static_cast<std::size_t>(j)] = amax_of_rank(rule, largest_rank(ranks_.data() + c0, c1 - c0, lowest_rank(rule)));
  }
  return found;
}

// The same where the columns of a block fill vectors.
std::vector<float> RuleBand::amaxes_of_wide_blocks(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
  const ScaleRule& rule = *work_.problem.rule;
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(group.columns_of_blocks), lowest_rank(rule));
  for (std::int64_t r = r0; r < r1; ++r) accumulate_block_ranks(rule.nan, row_of_x(r), group.block_columns, ranks.data());
  std::vector<float> found;
  found.reserve(ranks.size());
  for (const std::int32_t rank : ranks) found.push_back(amax_of_rank(rule, rank));
  return found;
}

void RuleBand::evaluate(const RuleGroup& group, std::int64_t i, const std::vector<float>& amaxes, float outer, bool store) {
  const RuleProblem& problem = work_.problem;
  const std::size_t blocks = amaxes.size();
  const auto given = [&](RuleVariable variable, float value) {
    std::vector<float>& held = values_[variable];
    const bool same = held.size() == blocks && blocks > 0 && float_bits(held[0]) == float_bits(value);
    if (!same) held.assign(blocks, value);
  };
  values_[kAmax] = amaxes;
  given(kOuterAmax, outer);
  given(kOutputMax, max_finite(problem.output));
  given(kOutputPow2, output_pow2(problem.output));
  given(kOutputMantissaBits, static_cast<float>(output_mantissa_bits(problem.output)));
  given(kInputMax, max_finite(problem.x_type));
  std::vector<const float*> pointers(work_.rule.variables);
  for (std::size_t s = 0; s < block_.size(); ++s) {
    std::vector<float>& target = values_[work_.rule.block[s].target];
    target.resize(blocks);
    if (work_.rule.block[s].reduction != FormulaReduction::none) {
      reduce(s, group.first_row + i);  // blocks of one row
      continue;
    }
    for (std::size_t first = 0; first < blocks; first += kBatch) {
      const std::size_t count = std::min<std::size_t>(kBatch, blocks - first);
      for (std::size_t v = 0; v < pointers.size(); ++v) pointers[v] = values_[v].empty() ? nullptr : values_[v].data() + first;
      std::copy_n(block_[s].run(pointers.data(), static_cast<int>(count)), count, target.data() + first);
    }
  }
  if (!encodes_by_block(group)) expand(group);
  if (!store || work_.output.scale == nullptr) return;
  store_scales(problem, group, i, values_[static_cast<std::size_t>(problem.rule->scale)], work_.output.scale);
}

// A statement that joins the elements of each block of 16 columns.
void RuleBand::reduce(std::size_t statement, std::int64_t row) {
  constexpr std::size_t kWidth = 16;
  static_assert(kBatch % kWidth == 0);
  const FormulaStatement& of = work_.rule.block[statement];
  std::vector<float>& target = values_[of.target];
  load_row(row);
  std::vector<std::array<float, kBatch>> spread(work_.rule.variables);
  std::vector<const float*> pointers(work_.rule.variables);
  for (std::size_t first = 0; first < x_.size(); first += kBatch) {
    const std::size_t count = std::min<std::size_t>(kBatch, x_.size() - first);
    for (const FormulaStep& step : of.steps) {
      if (step.op != FormulaOp::variable) continue;
      if (step.index != kElement) {
        for (std::size_t i = 0; i < count; ++i) spread[step.index][i] = values_[step.index][(first + i) / kWidth];
      }
      pointers[step.index] = step.index == kElement ? x_.data() + first : spread[step.index].data();
    }
    const float* parts = block_[statement].run(pointers.data(), static_cast<int>(count));
    for (std::size_t begin = 0; begin < count; begin += kWidth) {
      std::array<float, kWidth> values = {};
      std::copy_n(parts + begin, std::min(kWidth, count - begin), values.begin());
      target[(first + begin) / kWidth] = joined(of.reduction, values);
    }
  }
}

void RuleBand::encode_rows(const RuleGroup& group, std::int64_t r0, std::int64_t r1) {
  if (work_.output.data == nullptr) return;
  const std::int64_t columns = work_.problem.columns;
  const bool by_block = encodes_by_block(group);
  const bool in_place = !work_.problem.transposed && bits_of(work_.problem.output) == 8;
  for (std::int64_t r = r0; r < r1; ++r) {
    std::span<std::uint8_t> codes = codes_;
    if (in_place) codes = {static_cast<std::uint8_t*>(work_.output.data) + r * columns, codes_.size()};
    if (work_.problem.transposed)
      codes = std::span(gathered_).subspan(static_cast<std::size_t>((r - first_row_) * columns), x_.size());
    if (by_block) {
      const float* factors = values_[block_code_->factor].data();
      encode_blocks(row_of_x(r), *block_code_, work_.rounder, group.block_columns, factors, codes.data());
    } else {
      load_row(r);
      encode_values(codes);
    }
    if (!in_place && !work_.problem.transposed) put_codes(codes_, r * columns);
  }
}

void RuleBand::begin(std::int64_t r0, std::int64_t r1) {
  first_row_ = r0;
  rows_ = r1 - r0;
  if (work_.problem.transposed) gathered_.resize(static_cast<std::size_t>(rows_ * work_.problem.columns));
}

void RuleBand::end(const RuleGroup& group) {
  if (!work_.problem.transposed || work_.output.data == nullptr) return;
  const std::int64_t columns = work_.problem.columns, base = group.first_row * columns + (first_row_ - group.first_row);
  std::vector<std::uint8_t> run(static_cast<std::size_t>(rows_));
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows_; ++r)
      run[static_cast<std::size_t>(r)] = gathered_[static_cast<std::size_t>(r * columns + c)];
    put_codes(run, base + c * group.rows);
  }
}

bool RuleBand::encodes_by_block(const RuleGroup& group) const {
  return block_code_.has_value() && group.block_columns >= kWideBlock && work_.rounder.rounds_to_even();
}

void RuleBand::encode_values(std::span<std::uint8_t> codes) {
  std::array<const float*, 128> pointers = {};
  for (std::size_t first = 0; first < x_.size(); first += kBatch) {
    const auto count = static_cast<int>(std::min<std::size_t>(kBatch, x_.size() - first));
    pointers[kElement] = x_.data() + first;
    for (const std::uint8_t used : work_.rule.code_uses) pointers[used] = expanded_[used].data() + first;
    work_.rounder.round(code_.run(pointers.data(), count), count, codes.data() + first);
  }
}

// One value for each column of x.
void RuleBand::expand(const RuleGroup& group) {
  for (const std::uint8_t used : work_.rule.code_uses) {
    for (std::int64_t j = 0; j < group.columns_of_blocks; ++j) {
      const std::int64_t c0 = j * group.block_columns, c1 = std::min(c0 + group.block_columns, work_.problem.columns);
      fill(values_[used][static_cast<std::size_t>(j)], c1 - c0, expanded_[used].data() + c0);
    }
  }
}

// Codes from number `at` of the output on, packed as its format is.
void RuleBand::put_codes(const std::vector<std::uint8_t>& codes, std::int64_t at) const {
  auto* bytes = static_cast<std::uint8_t*>(work_.output.data) + at * bits_of(work_.problem.output) / 8;
  const std::span to(bytes, static_cast<std::size_t>(bytes_of(work_.problem.output, static_cast<std::int64_t>(codes.size()))));
  switch (bits_of(work_.problem.output)) {
    case 4: return pack_e2m1(codes, to);
    case 6: return pack_fp6(codes, to);
    default: std::copy(codes.begin(), codes.end(), to.begin());
  }
}

}  // namespace assay::fast
