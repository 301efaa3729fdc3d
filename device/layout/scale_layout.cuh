#pragma once
// Where each recipe keeps the scales of a ragged matrix on the device (spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1). The scales of
// group t begin at element
//
//   factor(columns) * sum over s < t of Measure(rows of s)
//
// and the sums come from locate_tile or GroupTable: ask for ScaleLayoutOf<recipe, direction>::Measure there.

#include <cstdint>

#include "device/layout/group_table.cuh"
#include "device/support/host_device.h"
#include "reference/layout/scale_shape.h"

namespace assay::device {

ASSAY_HD constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }
ASSAY_HD constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

// Byte of (i, j) in 128x4 order, when a row of tiles holds `tiles_j` tiles: i along the unblocked dimension, j counts blocks.
ASSAY_HD constexpr std::int64_t swizzled_scale_index(std::int64_t i, std::int64_t j, std::int64_t tiles_j) {
  return ((i / 128) * tiles_j + j / 4) * 512 + (i % 32) * 16 + ((i % 128) / 32) * 4 + j % 4;
}

#if defined(__CUDACC__)

// The same of numbers that have no sign, in fewer instructions.
__device__ __forceinline__ std::uint64_t swizzled_place(std::uint32_t i, std::uint32_t j, std::uint32_t tiles_j) {
  return (std::uint64_t{i / 128} * tiles_j + j / 4) * 512 + (i % 32 * 16 + i % 128 / 32 * 4 + j % 4);
}

// For each recipe and direction: Measure and factor as above; pitch, the stored columns of a group's scale matrix, of which
// scale_shape.h says which index is which; for the swizzled recipes also tiles_j of a group of `rows` rows.
template <Recipe kRecipe, Direction kDirection>
struct ScaleLayoutOf;

template <>
struct ScaleLayoutOf<Recipe::block_1x128, Direction::rowwise> {  // [K-block][row]
  using Measure = RoundedUp<4>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return ceil_div(columns, 128); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t rows, std::int64_t) { return round_up(rows, 4); }
};
template <>
struct ScaleLayoutOf<Recipe::block_1x128, Direction::columnwise> {  // [row-block][k]
  using Measure = Blocks<128>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(columns, 4); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t, std::int64_t columns) { return round_up(columns, 4); }
};
template <>
struct ScaleLayoutOf<Recipe::block_128x128, Direction::rowwise> {  // [row-block][K-block]
  using Measure = Blocks<128>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(ceil_div(columns, 128), 4); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t, std::int64_t columns) { return factor(columns); }
};
template <>
struct ScaleLayoutOf<Recipe::block_128x128, Direction::columnwise> {  // [K-block][row-block]
  using Measure = BlocksRoundedUp<128, 4>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return ceil_div(columns, 128); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t rows, std::int64_t) { return round_up(ceil_div(rows, 128), 4); }
};
template <>
struct ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise> {  // [row][K-block]: i is the row
  using Measure = RoundedUp<128>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(ceil_div(columns, 32), 4); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t, std::int64_t columns) { return factor(columns); }
  static ASSAY_HD constexpr std::int64_t tiles_j(std::int64_t, std::int64_t columns) { return factor(columns) / 4; }
};
template <>
struct ScaleLayoutOf<Recipe::mxfp8, Direction::columnwise> {  // [row-block][k]: i is k
  using Measure = BlocksRoundedUp<32, 4>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(columns, 128); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t, std::int64_t columns) { return factor(columns); }
  static ASSAY_HD constexpr std::int64_t tiles_j(std::int64_t rows, std::int64_t) { return ceil_div(rows, 128); }
};
template <>
struct ScaleLayoutOf<Recipe::nvfp4, Direction::rowwise> {  // [row][K-block]: i is the row
  using Measure = RoundedUp<128>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(ceil_div(columns, 16), 4); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t, std::int64_t columns) { return factor(columns); }
  static ASSAY_HD constexpr std::int64_t tiles_j(std::int64_t, std::int64_t columns) { return factor(columns) / 4; }
};
template <>
struct ScaleLayoutOf<Recipe::nvfp4, Direction::columnwise> {  // [k][row-block]: i is k
  using Measure = BlocksRoundedUp<16, 4>;
  static ASSAY_HD constexpr std::int64_t factor(std::int64_t columns) { return round_up(columns, 128); }
  static ASSAY_HD constexpr std::int64_t pitch(std::int64_t rows, std::int64_t) { return round_up(ceil_div(rows, 16), 4); }
  static ASSAY_HD constexpr std::int64_t tiles_j(std::int64_t rows, std::int64_t) { return ceil_div(rows, 64); }
};

#endif  // __CUDACC__

}  // namespace assay::device
