#include "reference/layout/scale_shape.h"

#include <string>
#include <string_view>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

// Blocks of the recipes, in elements: across the blocked dimension.
constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kMxfp8Block = 32;
constexpr std::int64_t kNvfp4Block = 16;

void require_known(Recipe recipe, Direction direction) {
  require(recipe <= Recipe::nvfp4, "recipe", static_cast<std::uint32_t>(recipe), "a recipe (0 to 5)");
  require(direction <= Direction::columnwise, "direction", static_cast<std::uint32_t>(direction),
          "rowwise (0) or columnwise (1)");
}

// `rows_name` is what errors call the rows.
ScaleShape shape_of(Recipe recipe, Direction direction, std::int64_t rows, std::string_view rows_name, std::int64_t columns) {
  require_known(recipe, direction);
  require(rows >= 0, rows_name, rows, "a value of at least 0");
  require(columns >= 0, "columns", columns, "a value of at least 0");

  const bool rowwise = direction == Direction::rowwise;
  const auto rows_to = [&](std::int64_t extent, std::int64_t unit) { return round_up(extent, unit, rows_name, rows); };
  const auto columns_to = [&](std::int64_t extent, std::int64_t unit) { return round_up(extent, unit, "columns", columns); };

  ScaleShape shape;
  switch (recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: shape = {1, 1, 1, 1}; break;
    case Recipe::block_1x128: {
      const std::int64_t row_blocks = ceil_div(rows, kBlock), column_blocks = ceil_div(columns, kBlock);
      shape = rowwise ? ScaleShape{column_blocks, rows_to(rows, 4), column_blocks, rows}
                      : ScaleShape{row_blocks, columns_to(columns, 4), row_blocks, columns};
      break;
    }
    case Recipe::block_128x128: {
      const std::int64_t row_blocks = ceil_div(rows, kBlock), column_blocks = ceil_div(columns, kBlock);
      shape = rowwise ? ScaleShape{row_blocks, columns_to(column_blocks, 4), row_blocks, column_blocks}
                      : ScaleShape{column_blocks, rows_to(row_blocks, 4), column_blocks, row_blocks};
      break;
    }
    case Recipe::mxfp8: {
      const std::int64_t row_blocks = ceil_div(rows, kMxfp8Block), column_blocks = ceil_div(columns, kMxfp8Block);
      shape = rowwise ? ScaleShape{rows_to(rows, 128), columns_to(column_blocks, 4), rows, column_blocks}
                      : ScaleShape{rows_to(row_blocks, 4), columns_to(columns, 128), row_blocks, columns};
      break;
    }
    case Recipe::nvfp4: {
      const std::int64_t row_blocks = ceil_div(rows, kNvfp4Block), column_blocks = ceil_div(columns, kNvfp4Block);
      shape = rowwise ? ScaleShape{rows_to(rows, 128), columns_to(column_blocks, 4), rows, column_blocks}
                      : ScaleShape{columns_to(columns, 128), rows_to(row_blocks, 4), columns, row_blocks};
      break;
    }
  }
  checked_product(shape.rows, shape.columns, rows_name, rows);
  return shape;
}

}  // namespace

ScaleShape scale_shape(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns) {
  return shape_of(recipe, direction, rows, "rows", columns);
}

std::vector<std::int64_t> scale_offsets(Recipe recipe, Direction direction, std::span<const std::int64_t> splits,
                                        std::int64_t columns) {
  require_known(recipe, direction);
  require(columns >= 0, "columns", columns, "a value of at least 0");
  std::vector<std::int64_t> offsets;
  offsets.reserve(splits.size() + 1);
  offsets.push_back(0);
  for (std::size_t t = 0; t < splits.size(); ++t) {
    const std::string name = "splits[" + show(t) + "]";
    const std::int64_t elements = shape_of(recipe, direction, splits[t], name, columns).elements();
    offsets.push_back(checked_sum(offsets.back(), elements, name, splits[t]));
  }
  return offsets;
}

Format scale_format(Recipe recipe) {
  require_known(recipe, Direction::rowwise);
  switch (recipe) {
    case Recipe::mxfp8: return Format::e8m0;
    case Recipe::nvfp4: return Format::e4m3;
    default: return Format::f32;
  }
}

}  // namespace assay
