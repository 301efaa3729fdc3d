#pragma once
// Internal to nvfp4.h: how the matrix is divided among threads, and where scale bytes lie.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/nvfp4_strip.h"
#include "reference/recipes/row_bands.h"
#include "reference/types/sizes.h"

namespace assay::nvfp4 {

constexpr std::int64_t kPiecesAtOnce = 2;

// Pieces of all groups, numbered along the rows first.
struct Pieces {
  RowBands bands;
  std::int64_t columns, width, across;

  Pieces(std::span<const std::int64_t> groups, std::int64_t columns_of_matrix, std::int64_t height, std::int64_t width_of)
      : bands(groups, height), columns(columns_of_matrix), width(width_of), across(ceil_div(columns, width)) {}
  std::int64_t count() const { return bands.count() * across; }
  RowBand band(std::int64_t index) const { return bands[index / across]; }
  std::int64_t first_column(std::int64_t index) const { return index % across * width; }
  std::int64_t columns_of(std::int64_t index) const { return std::min(width, columns - first_column(index)); }
};

// The scale bytes of one direction: block (i, j) of a group, i along the lines of the stored matrix.
struct Scales {
  std::uint8_t* bytes = nullptr;
  std::vector<std::int64_t> offsets;  // of each group
  ScaleLayout layout;
  bool rowwise;
  std::int64_t columns;

  Scales(void* buffer, std::span<const std::int64_t> groups, std::int64_t columns_of_matrix, Direction direction, ScaleLayout as)
      : bytes(static_cast<std::uint8_t*>(buffer)),
        offsets(scale_offsets(Recipe::nvfp4, direction, groups, columns_of_matrix)),
        layout(as),
        rowwise(direction == Direction::rowwise),
        columns(columns_of_matrix) {}

  std::uint8_t* at(const RowBand& band, std::int64_t i, std::int64_t j) const {
    const std::int64_t blocks = ceil_div(ceil_div(rowwise ? columns : band.group_rows, kBlock), 4) * 4;
    const std::int64_t index = layout == ScaleLayout::swizzled ? swizzled_index(i, j, blocks / 4) : i * blocks + j;
    return bytes + offsets[static_cast<std::size_t>(band.group)] + index;
  }
};

}  // namespace assay::nvfp4
