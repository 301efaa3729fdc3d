#include "conformance/diagnose/scale_map/scale_array.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::conformance {

std::int64_t ScaleArray::place(std::int64_t group, std::int64_t i, std::int64_t block) const {
  const auto g = static_cast<std::size_t>(group);
  // 1x128 is stored [block][line], 128x128 [line block][block]: scale_shape.h
  return first[g] + (line_block == 1 ? block * shapes[g].columns + i : i / line_block * shapes[g].columns + block);
}

ScaleArray::Where ScaleArray::where(std::int64_t place) const {
  Where at;
  at.group = std::upper_bound(first.begin(), first.end(), place) - first.begin() - 1;
  const ScaleShape& shape = shapes[static_cast<std::size_t>(at.group)];
  const std::int64_t within = place - first[static_cast<std::size_t>(at.group)];
  at.row = within / shape.columns, at.column = within % shape.columns;
  at.is_padding = at.row >= shape.used_rows || at.column >= shape.used_columns;
  return at;
}

std::string ScaleArray::place_text(std::int64_t place) const {
  if (place < 0) return fmt::format("{} before the array", -place);
  if (place >= elements()) return fmt::format("{} behind the array", place - elements() + 1);
  const Where at = where(place);
  if (at.is_padding) return fmt::format("padding of group {} at [{},{}]", at.group, at.row, at.column);
  const bool by_block = line_block == 1;
  return fmt::format("group {}, {} {}, {} {}", at.group, line, by_block ? at.column : at.row, summed,
                     by_block ? at.row : at.column);
}

}  // namespace assay::conformance
