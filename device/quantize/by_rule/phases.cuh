#pragma once
// What each thread of the kernels of by_rule.cu does, as functions of the host too: a test runs whole calls by them without a
// device.

#include <cstdint>

#include "device/quantize/by_rule/arguments.h"
#include "device/quantize/by_rule/interpreter.cuh"
#include "device/quantize/by_rule/storage.cuh"

namespace assay::device::by_rule {

// ---- Groups and blocks ----------------------------------------------------------------------------------------------

ASSAY_BOTH std::int64_t rows_of_block(const RuleArguments& a, std::int64_t group_rows) {
  return a.block_rows != 0 ? a.block_rows : group_rows > 0 ? group_rows : 1;
}
ASSAY_BOTH std::int64_t group_rows(const RuleArguments& a, int t) { return a.groups[t + 1].first_row - a.groups[t].first_row; }
ASSAY_BOTH const RuleGroup& totals(const RuleArguments& a) { return a.groups[a.rows.groups]; }

// What a group of `rows` rows adds to the sums over groups.
ASSAY_BOTH RuleGroup measures(const RuleArguments& a, std::int64_t rows) {
  const std::int64_t each = rows_of_block(a, rows);
  RuleGroup group;
  group.first_row = rows;
  group.first_block_row = (rows + each - 1) / each;
  group.scale_byte = stored_bytes(a.order, a.scale_size, group.first_block_row, a.columns_of_blocks);
  group.first_tile = (rows + kTileRows - 1) / kTileRows;
  return group;
}
// Bytes of the scales of all groups, of which `sums` are over all: whole matrices are not the sum of their groups.
ASSAY_BOTH std::int64_t all_scale_bytes(const RuleArguments& a, const RuleGroup& sums) {
  return a.per_group ? sums.scale_byte : stored_bytes(a.order, a.scale_size, sums.first_block_row, a.columns_of_blocks);
}
// Whether packed codes of a transposed group begin and end within a byte.
ASSAY_BOTH bool splits_bytes(const RuleArguments& a, std::int64_t rows) {
  return a.transposed && a.code_bits != 8 && rows % (a.code_bits == 4 ? 2 : 4) != 0;
}

// The group that holds item `at` of what kMember counts, which is below the total.
template <std::int64_t RuleGroup::*kMember>
ASSAY_BOTH int find_group(const RuleArguments& a, std::int64_t at) {
  int low = 0, high = a.rows.groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (a.groups[middle].*kMember <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

ASSAY_BOTH std::uint32_t quotient(std::int64_t a, std::int64_t b) {  // of values below 2^32
  return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}

// ---- Elements -------------------------------------------------------------------------------------------------------

// Magnitudes as integers that order as they do, with what a NaN does to a maximum.
ASSAY_BOTH std::uint32_t rank_of(float value, bool propagates_nan) {
  const std::uint32_t magnitude = bits_of_float(value) & kF32Magnitude;
  return magnitude > kF32Infinity && !propagates_nan ? 0u : magnitude;
}

template <Format X>
ASSAY_BOTH float load_one(const RuleArguments& a, std::int64_t at) {
  if constexpr (X == Format::f32) {
    return static_cast<const float*>(a.x)[at];
  } else {
    return Element<X>::widen_one(static_cast<const std::uint16_t*>(a.x)[at]);
  }
}

// Elements [at, at + count), at most 4; 0 for the others.
template <Format X>
ASSAY_BOTH void load_four(const RuleArguments& a, std::int64_t at, int count, float (&value)[4]) {
#ifdef __CUDA_ARCH__
  if (a.vectors_in && count == 4) {
    if constexpr (X == Format::f32) {
      const float4 four = *reinterpret_cast<const float4*>(static_cast<const float*>(a.x) + at);
      value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
    } else {
      const uint2 four = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(a.x) + at);
      value[0] = Element<X>::widen_one(four.x & 0xFFFFu), value[1] = Element<X>::widen_one(four.x >> 16);
      value[2] = Element<X>::widen_one(four.y & 0xFFFFu), value[3] = Element<X>::widen_one(four.y >> 16);
    }
    return;
  }
#endif
  ASSAY_UNROLL
  for (int k = 0; k < 4; ++k) value[k] = k < count ? load_one<X>(a, at + k) : 0.0f;
}

// What formulas read and keep (run_instructions()): a kind of them hides what it has.
struct FormulaValues {
  static constexpr bool kJoins = false;
  ASSAY_BOTH float element(int) const { return 0.0f; }
  ASSAY_BOTH float up(int) const { return 0.0f; }
  ASSAY_BOTH float local(int, int) const { return 0.0f; }
  ASSAY_BOTH float variable(int) const { return 0.0f; }
  ASSAY_BOTH float slot(int, int) const { return 0.0f; }
  ASSAY_BOTH void keep_local(int, int, float) {}
  ASSAY_BOTH void keep_variable(int, float) {}
  ASSAY_BOTH void keep_slot(int, float) {}
  ASSAY_BOTH void keep_scale(float) {}
};

// Gate and up of four elements, and what the activation assigns.
struct ActivationValues : FormulaValues {
  float gate[4], ups[4], locals[kRuleLocalsMax][4];

  ASSAY_BOTH float element(int k) const { return gate[k]; }
  ASSAY_BOTH float up(int k) const { return ups[k]; }
  ASSAY_BOTH float local(int index, int k) const { return locals[index][k]; }
  ASSAY_BOTH void keep_local(int index, int k, float value) { locals[index][k] = value; }
};

ASSAY_BOTH void activate(const RuleArguments& a, ActivationValues& values, float (&x)[4]) {
  run_instructions(a.program + a.of_block + a.of_element, a.of_activation, values, x);
}

// Values of x in row `row` from column `column` on: `count`, at most 4; 0 for the others.
template <Format X>
ASSAY_BOTH void load_values(const RuleArguments& a, std::int64_t row, std::int64_t column, int count, float (&x)[4]) {
  if (a.of_activation == 0) return load_four<X>(a, row * a.columns + column, count, x);
  ActivationValues values;
  load_four<X>(a, row * 2 * a.columns + column, count, values.gate);
  load_four<X>(a, row * 2 * a.columns + a.columns + column, count, values.ups);
  activate(a, values, x);
  ASSAY_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = k < count ? x[k] : 0.0f;
}

// The rows of a strip, cut where a block row ends: part(first row, end, number of the block row).
template <class Part>
ASSAY_BOTH void walk_strip(const RuleArguments& a, std::int64_t strip, Part&& part) {
  const std::int64_t used = totals(a).first_row, after = (strip + 1) * kStripRows;
  const std::int64_t last = after < used ? after : used;
  int t = -1;
  std::int64_t group_end = 0, each = 1;
  for (std::int64_t r = strip * kStripRows; r < last;) {
    if (t < 0 || r >= group_end) {
      t = find_group<&RuleGroup::first_row>(a, r);
      group_end = a.groups[t + 1].first_row;
      each = rows_of_block(a, group_rows(a, t));
    }
    const RuleGroup& group = a.groups[t];
    const std::int64_t i = quotient(r - group.first_row, each), block_end = group.first_row + (i + 1) * each;
    std::int64_t end = block_end < group_end ? block_end : group_end;
    if (end > last) end = last;
    part(r, end, group.first_block_row + i);
    r = end;
  }
}

// A lane's four columns of a strip, and the blocks that they are of.
struct StripColumns {
  std::int64_t first;
  int count;  // 0 to 4 inside
  std::uint32_t block[4];
};
ASSAY_BOTH StripColumns strip_columns(const RuleArguments& a, std::int64_t chunk, int lane) {
  StripColumns c;
  c.first = chunk * kStripColumns + lane * 4;
  const std::int64_t left = a.columns - c.first;
  c.count = left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0;
  ASSAY_UNROLL
  for (int k = 0; k < 4; ++k) c.block[k] = quotient(c.first + k < a.columns ? c.first + k : 0, a.block_columns);
  return c;
}

// ---- The largest magnitudes -----------------------------------------------------------------------------------------

// The ranks of a strip: raise(number of the block row, columns, ranks of the four columns) for each of its block rows.
template <Format X, class Raise>
ASSAY_BOTH void rank_strip(const RuleArguments& a, std::int64_t strip, std::int64_t chunk, int lane, Raise&& raise) {
  const StripColumns c = strip_columns(a, chunk, lane);
  walk_strip(a, strip, [&](std::int64_t r0, std::int64_t r1, std::int64_t block_row) {
    std::uint32_t ranks[4] = {};
    for (std::int64_t r = r0; r < r1; ++r) {
      float value[4];
      load_values<X>(a, r, c.first, c.count, value);
      ASSAY_UNROLL
      for (int k = 0; k < 4; ++k) {
        const std::uint32_t rank = rank_of(value[k], a.propagates_nan);
        ranks[k] = rank > ranks[k] ? rank : ranks[k];
      }
    }
    raise(block_row, c, ranks);
  });
}

// The outer amax that a block's rank counts for.
ASSAY_BOTH std::int64_t outer_of_block(const RuleArguments& a, std::int64_t block) {
  const std::int64_t block_row = block / a.columns_of_blocks;
  const int t = find_group<&RuleGroup::first_block_row>(a, block_row);
  return a.outer == OuterAmax::tensor ? t : a.groups[t].first_row + (block_row - a.groups[t].first_block_row);
}
ASSAY_BOTH float outer_amax(const RuleArguments& a, std::int64_t at) {
  return a.given_outer != nullptr ? a.given_outer[at] : float_of_bits(a.outer_ranks[at]);
}
ASSAY_BOTH std::int64_t outer_amaxes(const RuleArguments& a) {
  return a.outer == OuterAmax::none ? 0 : a.outer == OuterAmax::tensor ? a.rows.groups : totals(a).first_row;
}
ASSAY_BOTH std::int64_t blocks(const RuleArguments& a) { return totals(a).first_block_row * a.columns_of_blocks; }

// ---- Codes ----------------------------------------------------------------------------------------------------------

struct ElementValues : FormulaValues {
  const RuleArguments& a;
  float x[4];
  std::int64_t block[4];

  ASSAY_BOTH explicit ElementValues(const RuleArguments& arguments) : a(arguments), x(), block() {}
  ASSAY_BOTH float element(int k) const { return x[k]; }
  ASSAY_BOTH float slot(int index, int k) const { return a.slots[index * a.most_blocks + block[k]]; }
};

// The four codes as they are packed.
ASSAY_BOTH std::uint32_t encode_four(const RuleArguments& a, ElementValues& values) {
  float top[4] = {};
  run_instructions(a.program + a.of_block, a.of_element, values, top);
  std::uint32_t code[4];
  ASSAY_UNROLL
  for (int k = 0; k < 4; ++k) code[k] = round_to_code(a.rounding, top[k]);
  return pack_four(code, a.code_bits);
}

// Rows of codes: a lane writes the codes of its four columns.
template <Format X>
ASSAY_BOTH void encode_strip(const RuleArguments& a, std::int64_t strip, std::int64_t chunk, int lane) {
  const StripColumns c = strip_columns(a, chunk, lane);
  if (c.count == 0) return;
  walk_strip(a, strip, [&](std::int64_t r0, std::int64_t r1, std::int64_t block_row) {
    ElementValues values(a);
    ASSAY_UNROLL
    for (int k = 0; k < 4; ++k) values.block[k] = block_row * a.columns_of_blocks + c.block[k];
    for (std::int64_t r = r0; r < r1; ++r) {
      const std::int64_t at = r * a.columns + c.first;
      load_values<X>(a, r, c.first, c.count, values.x);
      const std::uint32_t word = encode_four(a, values);
      std::uint8_t* to = a.data + at * a.code_bits / 8;
      if (a.vectors_out) {
        *reinterpret_cast<std::uint32_t*>(to) = word;
      } else {
        const int bytes = c.count * a.code_bits / 8;
        ASSAY_UNROLL
        for (int b = 0; b < 4; ++b) {
          if (b < bytes) to[b] = static_cast<std::uint8_t>(word >> (8 * b));
        }
      }
    }
  });
}

// A tile of transposed codes: kTileRows rows of one group by kTileColumns columns.
struct RuleTile {
  std::int64_t first_row;  // of the tile, in its group
  std::int64_t column;
  int group;
};
ASSAY_BOTH RuleTile find_tile(const RuleArguments& a, std::int64_t tile, std::int64_t column_tile) {
  RuleTile found;
  found.group = find_group<&RuleGroup::first_tile>(a, tile);
  found.first_row = (tile - a.groups[found.group].first_tile) * kTileRows;
  found.column = column_tile * kTileColumns;
  return found;
}

// The codes of rows [4 quad, 4 quad + 4) of the tile in its column `column`, packed; 0 outside the group.
template <Format X>
ASSAY_BOTH std::uint32_t encode_quad(const RuleArguments& a, const RuleTile& tile, int quad, int column) {
  const RuleGroup& group = a.groups[tile.group];
  const std::int64_t rows = group_rows(a, tile.group), each = rows_of_block(a, rows);
  const std::int64_t c = tile.column + column, r0 = tile.first_row + quad * 4;
  if (c >= a.columns || r0 >= rows) return 0;
  ElementValues values(a);
  const std::uint32_t j = quotient(c, a.block_columns);
  ActivationValues given;
  ASSAY_UNROLL
  for (int k = 0; k < 4; ++k) {
    const std::int64_t r = r0 + k < rows ? r0 + k : rows - 1, row = group.first_row + r;
    if (a.of_activation == 0) {
      values.x[k] = load_one<X>(a, row * a.columns + c);
    } else {
      given.gate[k] = load_one<X>(a, row * 2 * a.columns + c);
      given.ups[k] = load_one<X>(a, row * 2 * a.columns + a.columns + c);
    }
    values.block[k] = (group.first_block_row + quotient(r, each)) * a.columns_of_blocks + j;
  }
  if (a.of_activation != 0) activate(a, given, values.x);
  return encode_four(a, values);
}

// Byte b of the codes of a column of the tile, behind one another: word(quad) are its quads.
template <class Word>
ASSAY_BOTH void store_byte(const RuleArguments& a, const RuleTile& tile, int column, int b, Word&& word) {
  const std::int64_t rows = group_rows(a, tile.group), c = tile.column + column;
  const int of_quad = a.code_bits / 2, quad = b / of_quad;
  const std::int64_t left = rows - tile.first_row, inside = left < kTileRows ? left : kTileRows;
  if (c >= a.columns || b >= inside * a.code_bits / 8) return;
  const std::int64_t first = a.groups[tile.group].first_row * a.columns + c * rows + tile.first_row;
  a.data[first * a.code_bits / 8 + b] = static_cast<std::uint8_t>(word(quad) >> (8 * (b - quad * of_quad)));
}

}  // namespace assay::device::by_rule
