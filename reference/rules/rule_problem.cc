#include "reference/rules/rule_problem.h"

#include <cmath>
#include <cstring>

#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/encode.h"
#include "reference/layout/offsets.h"
#include "reference/recipes/checks.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

std::int64_t extent(std::int64_t of_block, std::int64_t whole) {
  return of_block == 0 ? std::max<std::int64_t>(whole, 1) : of_block;
}

std::vector<std::int64_t> rows_of_groups(const RuleProblem& problem) {
  if (!problem.grouped) return {problem.rows};
  return {problem.splits.begin(), problem.splits.end()};
}

void check_types(const RuleProblem& problem) {
  require(problem.rule != nullptr, "rule", "null", "a scale rule");
  require(problem.x_type == Format::bf16 || problem.x_type == Format::f16 || problem.x_type == Format::f32, "x_type",
          name_of(problem.x_type), "bf16, f16 or f32");
  const Format output = problem.output;
  require(output == Format::e4m3 || output == Format::e5m2 || output == Format::e3m2 || output == Format::e2m3 ||
              output == Format::e2m1,
          "output", name_of(output), "e4m3, e5m2, e3m2, e2m3 or e2m1");
  if (problem.rule->outer == OuterAmax::row) {
    require(problem.block.rows == 1, "block", to_text(problem.block), "blocks of one row: the rule has an amax a row");
  }
  if (problem.rule->reduces()) {
    require(problem.block == kReducedBlock, "block", to_text(problem.block),
            to_text(kReducedBlock) + ": the rule joins the elements of such blocks");
  }
  for (const std::int64_t size : {problem.block.rows, problem.block.columns}) {
    require(size >= 0 && size <= 1024, "block", to_text(problem.block), "1 to 1024 rows and columns, or all");
  }
}

void check_splits(const RuleProblem& problem) {
  require(problem.rows >= 0, "rows", problem.rows, "a value of at least 0");
  require(problem.columns >= 0, "columns", problem.columns, "a value of at least 0");
  checked_product(checked_product(problem.rows, problem.columns, "rows", problem.rows), problem.rule->matrices_in_x(), "rows",
                  problem.rows);
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < problem.splits.size(); ++t) {
    require(problem.splits[t] >= 0, "splits[" + show(t) + "]", problem.splits[t], "a value of at least 0");
    require(!__builtin_add_overflow(sum, problem.splits[t], &sum), "splits[" + show(t) + "]", problem.splits[t],
            "splits whose sum is an int64");
  }
  if (problem.grouped) require(sum <= problem.rows, "splits", sum, "a sum of at most the rows of x");
}

// Codes of 4 and 6 bits: 2 fill a byte, 4 fill three.
void check_packing(const RuleProblem& problem, std::span<const std::int64_t> groups) {
  const int bits = bits_of(problem.output);
  const std::int64_t unit = bits == 4 ? 2 : bits == 6 ? 4 : 1;
  const std::string expected =
      "a multiple of " + show(unit) + ": codes of " + std::string(name_of(problem.output)) + " fill whole bytes along it";
  if (!problem.transposed) return require(problem.columns % unit == 0, "columns", problem.columns, expected);
  for (std::size_t t = 0; t < groups.size(); ++t) {
    require(groups[t] % unit == 0, problem.grouped ? "splits[" + show(t) + "]" : std::string("rows"), groups[t], expected);
  }
}

}  // namespace

std::vector<std::int64_t> block_row_offsets(const RuleProblem& problem) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t rows : rows_of_groups(problem)) {
    offsets.push_back(offsets.back() + ceil_div(rows, extent(problem.block.rows, rows)));
  }
  return offsets;
}

std::int64_t input_columns(const RuleProblem& problem) { return problem.rule->matrices_in_x() * problem.columns; }

std::vector<RuleGroup> groups_of(const RuleProblem& problem) {
  const Format type = problem.rule->scale_type;
  const std::vector<std::int64_t> rows = rows_of_groups(problem), offsets = block_row_offsets(problem);
  const std::int64_t block_columns = extent(problem.block.columns, problem.columns);
  const std::int64_t columns_of_blocks = ceil_div(problem.columns, block_columns);
  const StoredScales whole = stored_scales(problem.storage, type, offsets.back(), columns_of_blocks);
  std::vector<RuleGroup> groups;
  std::int64_t first_row = 0, scale_byte = 0;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    RuleGroup group{first_row,
                    rows[t],
                    extent(problem.block.rows, rows[t]),
                    block_columns,
                    offsets[t + 1] - offsets[t],
                    columns_of_blocks,
                    offsets[t],
                    0,
                    whole};
    if (problem.storage.per_group) {
      group.stored = stored_scales(problem.storage, type, group.rows_of_blocks, columns_of_blocks);
      group.first_block_row = 0;
      group.scale_byte = scale_byte;
      scale_byte += group.stored.bytes;
    }
    first_row += rows[t];
    groups.push_back(group);
  }
  return groups;
}

RuleShapes rule_outputs(const RuleProblem& problem) {
  check_types(problem);
  check_splits(problem);
  const std::vector<std::int64_t> rows = rows_of_groups(problem);
  check_packing(problem, rows);
  RuleShapes shapes;
  shapes.data_bytes = bytes_of(problem.output, problem.rows * problem.columns);
  const std::vector<RuleGroup> groups = groups_of(problem);
  if (problem.storage.per_group) {
    for (const RuleGroup& group : groups) shapes.scale_bytes += group.stored.bytes;
  } else {
    const std::int64_t block_columns = extent(problem.block.columns, problem.columns);
    shapes.scales = stored_scales(problem.storage, problem.rule->scale_type, block_row_offsets(problem).back(),
                                  ceil_div(problem.columns, block_columns));
    shapes.scale_bytes = shapes.scales.bytes;
  }
  if (problem.rule->outer == OuterAmax::tensor) shapes.outer_amaxes = static_cast<std::int64_t>(rows.size());
  if (problem.rule->outer == OuterAmax::row) shapes.outer_amaxes = problem.rows;
  return shapes;
}

RuleShapes check_rule(const RuleProblem& problem) {
  const RuleShapes shapes = rule_outputs(problem);
  std::int64_t used = 0;
  for (const std::int64_t rows : rows_of_groups(problem)) used += rows;
  require_buffer(problem.x, used * problem.columns, static_cast<std::size_t>(bytes_of(problem.x_type, 1)), "x");
  return shapes;
}

float stored_amax(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7FFF'FFFFu) : value; }

void clear_scales(const RuleProblem& problem, const RuleShapes& shapes, void* scale) {
  if (scale == nullptr || !clears_padding(problem.storage)) return;
  std::memset(scale, 0, static_cast<std::size_t>(shapes.scale_bytes));
}

void store_scale(const RuleProblem& problem, const RuleGroup& group, std::int64_t i, std::int64_t j, float value, void* scale) {
  const Format type = problem.rule->scale_type;
  const std::int64_t at = group.scale_byte + scale_byte(problem.storage, type, group.stored, group.first_block_row + i, j);
  auto* byte = static_cast<std::uint8_t*>(scale) + at;
  if (type == Format::e8m0) {
    *byte = scalar::encode_e8m0(value);
  } else if (type == Format::e4m3) {
    *byte = scalar::encode_e4m3(value);
  } else {
    const auto bits = std::bit_cast<std::uint32_t>(stored_amax(value));
    std::memcpy(byte, &bits, sizeof bits);
  }
}

void store_scales(const RuleProblem& problem, const RuleGroup& group, std::int64_t i, std::span<const float> values,
                  void* scale) {
  const Format type = problem.rule->scale_type;
  const auto count = static_cast<std::int64_t>(values.size());
  if (problem.storage.order != ScaleStorage::Order::k_major) {
    for (std::int64_t j = 0; j < count; ++j) store_scale(problem, group, i, j, values[static_cast<std::size_t>(j)], scale);
    return;
  }
  const std::int64_t at = group.scale_byte + scale_byte(problem.storage, type, group.stored, group.first_block_row + i, 0);
  auto* bytes = static_cast<std::uint8_t*>(scale) + at;
  if (bits_of(type) == 8) return encode(type, values, std::span(bytes, values.size()));
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(stored_amax(value));
    std::memcpy(bytes, &bits, sizeof bits);
    bytes += sizeof bits;
  }
}

}  // namespace assay
