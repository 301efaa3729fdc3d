#pragma once
// The formulas of a block: its scale, and what its elements use. On the device and on the host.

#include <cstdint>

#include "device/quantize/by_rule/phases.cuh"

namespace assay::device::by_rule {

struct BlockValues : FormulaValues {
  const RuleArguments& a;
  std::int64_t block, scale_at;  // byte
  float variables[kRuleVariablesMax];

  ASSAY_BOTH BlockValues(const RuleArguments& arguments, std::int64_t number)
      : a(arguments), block(number), scale_at(0), variables() {}
  ASSAY_BOTH float variable(int index) const { return variables[index]; }
  ASSAY_BOTH void keep_variable(int index, float value) { variables[index] = value; }
  ASSAY_BOTH void keep_slot(int index, float value) { a.slots[index * a.most_blocks + block] = value; }
  ASSAY_BOTH void keep_scale(float value) {
    if (a.scale == nullptr) return;
    if (a.scale_type == Format::f32) {
      *reinterpret_cast<float*>(a.scale + scale_at) = stored_float(value);
    } else if (a.scale_type == Format::e8m0) {
      a.scale[scale_at] = static_cast<std::uint8_t>(encode_e8m0(value));
    } else {
      a.scale[scale_at] = encode_fp8<Format::e4m3>(value);
    }
  }
  ASSAY_BOTH void set_first(std::int64_t, std::int64_t) {}
};

// ---- Values that join the elements of a block (spec scale-rules-2.4) -------------------------------------------------

inline constexpr int kJoinedColumns = static_cast<int>(kReducedBlock.columns);
static_assert(kReducedBlock.rows == 1 && kJoinedColumns == 16);

// Four elements of the block, and its variables.
struct JoinedElements : FormulaValues {
  const float* variables;
  float x[4];

  ASSAY_BOTH explicit JoinedElements(const float* of_block) : variables(of_block) {}
  ASSAY_BOTH float element(int k) const { return x[k]; }
  ASSAY_BOTH float variable(int index) const { return variables[index]; }
};

// A value of each column as one: columns 8 apart are added first, then these sums from the left. No other order has the same
// bits.
ASSAY_BOTH float join(FormulaReduction how, const float (&part)[kJoinedColumns]) {
  if (how == FormulaReduction::maximum) {
    float largest = 0;
    for (const float each : part) {
      if (!is_nan(largest) && !(each <= largest)) largest = each;  // a NaN is taken, and stays
    }
    return largest;
  }
  constexpr int kHalf = kJoinedColumns / 2;
  float sum = 0;
  for (int i = 0; i < kHalf; ++i) {
    float low = part[i], high = part[i + kHalf];
    if (how == FormulaReduction::squares) low = multiply(low, low), high = multiply(high, high);
    const float pair = add(low, high);
    sum = i == 0 ? pair : add(sum, pair);
  }
  return sum;
}

// A block of one row whose elements are joined.
template <Format X>
struct JoiningBlockValues : BlockValues {
  static constexpr bool kJoins = true;
  std::int64_t row, column;  // its first element

  ASSAY_BOTH JoiningBlockValues(const RuleArguments& arguments, std::int64_t number)
      : BlockValues(arguments, number), row(0), column(0) {}
  ASSAY_BOTH void set_first(std::int64_t first_row, std::int64_t first_column) { row = first_row, column = first_column; }

  // What `program` gives for each element, 0 for columns that the matrix lacks, joined.
  ASSAY_BOTH float joined(const RuleInstruction* program, int count, FormulaReduction how) const {
    float part[kJoinedColumns];
    for (int first = 0; first < kJoinedColumns; first += 4) {
      const std::int64_t left = a.columns - (column + first);
      const int inside = left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0;
      float top[4] = {};
      if (inside > 0) {
        JoinedElements values(variables);
        load_values<X>(a, row, column + first, inside, values.x);
        run_instructions(program, count, values, top);
      }
      for (int k = 0; k < 4; ++k) part[first + k] = k < inside ? top[k] : 0.0f;
    }
    return join(how, part);
  }
};

// ---- A block ----------------------------------------------------------------------------------------------------------

// Values: BlockValues, or JoiningBlockValues for a rule that joins elements.
template <class Values>
ASSAY_BOTH void evaluate_block(const RuleArguments& a, std::int64_t block) {
  const std::int64_t block_row = block / a.columns_of_blocks, j = block - block_row * a.columns_of_blocks;
  const int t = find_group<&RuleGroup::first_block_row>(a, block_row);
  const RuleGroup &group = a.groups[t], &next = a.groups[t + 1];
  const std::int64_t i = block_row - group.first_block_row;
  Values values(a, block);
  values.set_first(group.first_row + i, j * a.block_columns);  // blocks that are joined have one row
  if (a.per_group) {
    values.scale_at = group.scale_byte +
                      scale_place(a.order, a.scale_size, next.first_block_row - group.first_block_row, a.columns_of_blocks, i, j);
  } else {
    values.scale_at = scale_place(a.order, a.scale_size, totals(a).first_block_row, a.columns_of_blocks, block_row, j);
  }
  values.variables[kAmax] = float_of_bits(a.ranks[block]);
  if (a.outer != OuterAmax::none) {
    values.variables[kOuterAmax] = outer_amax(a, a.outer == OuterAmax::tensor ? t : group.first_row + i);
  }
  float top[1] = {};
  run_instructions(a.program, a.of_block, values, top);
}

}  // namespace assay::device::by_rule
