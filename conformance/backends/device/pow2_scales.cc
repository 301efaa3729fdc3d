#include "conformance/backends/device/pow2_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/layout/scale_shape.h"

namespace assay::conformance {
namespace {

bool is_pow2(float scale) {
  int exponent = 0;
  return std::frexp(scale, &exponent) == 0.5f && exponent > -127;
}

}  // namespace

bool are_pow2_scales(std::span<const float> scales, std::span<const std::int64_t> splits, std::int64_t columns) {
  const std::int64_t most = static_cast<std::int64_t>(scales.size()) * 128;  // of rows
  if (columns < 0 || std::any_of(splits.begin(), splits.end(), [&](std::int64_t rows) { return rows < 0 || rows > most; }))
    return false;
  const std::vector<std::int64_t> offsets = scale_offsets(Recipe::block_1x128, Direction::columnwise, splits, columns);
  if (static_cast<std::int64_t>(scales.size()) != offsets.back()) return false;
  for (std::size_t g = 0; g < splits.size(); ++g) {
    const ScaleShape shape = scale_shape(Recipe::block_1x128, Direction::columnwise, splits[g], columns);
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      const auto row = scales.subspan(static_cast<std::size_t>(offsets[g] + i * shape.columns));
      if (!std::all_of(row.begin(), row.begin() + shape.used_columns, is_pow2)) return false;
    }
  }
  return true;
}

}  // namespace assay::conformance
