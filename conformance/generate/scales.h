#pragma once
// Internal to the generator: scales of operands, and their poisoned padding.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/generate/tensors.h"
#include "reference/layout/scale_shape.h"

namespace assay::conformance::inputs {

enum class ScaleKind {
  plain,
  pow2,
  edge,
  ones,
  specials,       // infinite, NaN, negative, -0, 0 and subnormal ones alternate along groups and blocks, plain ones between
  opposed,        // of the first operand the largest finite, of the second the smallest normal: `opposed_low`
  negative,       // plain ones, of which the first and about half of the others are negative: none of E8M0
  two_roundings,  // f32: three times the scale lies beside a tie of bf16, by less than f32 holds, in every other block
  extremes,       // the largest finite one and the least positive one in turn along groups and blocks
};
ScaleKind scale_kind_of(const std::string& word);

struct ScaleRequest {
  ScaleKind kind = ScaleKind::plain;
  Format type = Format::f32;
  std::uint64_t seed = 0;
  std::string tensor;
  int centre = -8;      // exponent around which scales lie
  bool narrow = false;  // neighbours differ, all within 2^spread: keeps sums of integers order-free
  int spread = 1;
  int ends = 0;        // narrow: exponent of the first and the last block along a row, if not 0
  bool level = false;  // all equal
  bool opposed_low = false;
  int tie_bits = 9;                                      // two_roundings: bits of the tie; 9 for bf16, 5 for e4m3, 4 for e5m2
  std::function<bool(std::int64_t)> no_group = nullptr;  // of a row that has scales of its own: they stay poison
  bool with_nan = true;                                  // edge: E8M0 and E4M3 have a code for NaN
};

// Scales of all groups, group after group, each padded by itself. Shape: 2-D for a single tensor, else flat.
Tensor block_scales_tensor(const ScaleRequest& request, Recipe recipe, Direction direction,
                           const std::vector<std::int64_t>& splits, std::int64_t columns, bool grouped, ScaleLayout layout);

// One f32 a group: scales that are given, tensor amaxes.
Tensor group_floats(ScaleRequest request, std::size_t groups);

}  // namespace assay::conformance::inputs
