#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/formats/e8m0.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/mxfp8.h"

namespace assay::scalar {
namespace {

constexpr std::int64_t kBlock = 32;

// One group by itself: rows and columns count from its first element.
struct Group {
  std::int64_t first_row = 0, rows = 0, columns = 0;
  std::int64_t first_scale = 0;
  ScaleShape scale_shape;

  std::int64_t element(std::int64_t row, std::int64_t column) const { return (first_row + row) * columns + column; }

  // Where the scale of element (row, column) lies in the buffer of this direction.
  std::int64_t scale_of(std::int64_t row, std::int64_t column, Direction direction, ScaleLayout layout) const {
    const bool rowwise = direction == Direction::rowwise;
    if (layout == ScaleLayout::swizzled) {
      const std::int64_t i = rowwise ? row : column, j = (rowwise ? column : row) / kBlock;
      const std::int64_t blocks = rowwise ? scale_shape.columns : scale_shape.rows;  // with padding: a multiple of 4
      return first_scale + swizzled_index(i, j, blocks / 4);
    }
    const std::int64_t i = rowwise ? row : row / kBlock, j = rowwise ? column / kBlock : column;
    return first_scale + i * scale_shape.columns + j;
  }
};

std::vector<Group> groups_of(const std::vector<std::int64_t>& group_rows, std::int64_t columns, Direction direction) {
  const auto first_scales = scale_offsets(Recipe::mxfp8, direction, group_rows, columns);
  std::vector<Group> groups;
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < group_rows.size(); ++t) {
    groups.push_back(
        {first_row, group_rows[t], columns, first_scales[t], scale_shape(Recipe::mxfp8, direction, group_rows[t], columns)});
    first_row += group_rows[t];
  }
  return groups;
}

// Rows [row, row_end) and columns [column, column_end) of a group.
struct Rectangle {
  std::int64_t row, row_end, column, column_end;
};

float amax_of(const QuantizeProblem& problem, const Group& group, const Rectangle& block) {
  float amax = 0;
  for (std::int64_t row = block.row; row < block.row_end; ++row) {
    for (std::int64_t column = block.column; column < block.column_end; ++column) {
      amax = accumulate_absmax(amax, load(problem.x_type, problem.x, group.element(row, column)));
    }
  }
  return amax;
}

void quantize_direction(const QuantizeProblem& problem, Direction direction, std::uint8_t* data, std::uint8_t* scales) {
  const QuantizeConfig& config = problem.config;
  const bool rowwise = direction == Direction::rowwise;
  for (const Group& group : groups_of(group_rows(problem), problem.columns, direction)) {
    if (config.scale_layout == ScaleLayout::swizzled) {
      std::fill_n(scales + group.first_scale, group.scale_shape.elements(), std::uint8_t{0});
    }
    const std::int64_t height = rowwise ? 1 : kBlock, width = rowwise ? kBlock : 1;
    for (std::int64_t row = 0; row < group.rows; row += height) {
      for (std::int64_t column = 0; column < group.columns; column += width) {
        const Rectangle block = {row, std::min(row + height, group.rows), column, std::min(column + width, group.columns)};
        Rectangle tile = block;  // the elements that share the scale
        if (config.two_dimensional) {
          tile.row = row / kBlock * kBlock;
          tile.row_end = std::min(tile.row + kBlock, group.rows);
          tile.column = column / kBlock * kBlock;
          tile.column_end = std::min(tile.column + kBlock, group.columns);
        }
        const std::uint8_t scale = scalar::mxfp8_scale(amax_of(problem, group, tile), config.output);
        const float multiplier = e8m0_quantize_multiplier(scale);
        scales[group.scale_of(row, column, direction, config.scale_layout)] = scale;
        for (std::int64_t r = block.row; r < block.row_end; ++r) {
          for (std::int64_t c = block.column; c < block.column_end; ++c) {
            const std::int64_t i = group.element(r, c);
            data[i] = quantize_element(config.output, load(problem.x_type, problem.x, i), multiplier, config.zero_sign);
          }
        }
      }
    }
  }
}

}  // namespace

std::uint8_t mxfp8_scale(float amax, Format output) {
  const float reciprocal = std::bit_cast<float>(output == Format::e4m3 ? 0x3b12'4925u : 0x3792'4925u);
  return encode_e8m0(amax * reciprocal);
}

void quantize_mxfp8(const QuantizeProblem& problem, const QuantizeOutput& output) {
  if (problem.config.rowwise) {
    quantize_direction(problem, Direction::rowwise, static_cast<std::uint8_t*>(output.rowwise_data),
                       static_cast<std::uint8_t*>(output.rowwise_scale_inv));
  }
  if (problem.config.columnwise) {
    quantize_direction(problem, Direction::columnwise, static_cast<std::uint8_t*>(output.columnwise_data),
                       static_cast<std::uint8_t*>(output.columnwise_scale_inv));
  }
}

void dequantize_mxfp8(const DequantizeProblem& problem, void* output) {
  const auto* data = static_cast<const std::uint8_t*>(problem.data);
  const auto* scales = static_cast<const std::uint8_t*>(problem.scale_inv);
  const std::vector<std::int64_t> rows =
      problem.grouped ? std::vector<std::int64_t>(problem.splits.begin(), problem.splits.end()) : std::vector{problem.rows};
  for (const Group& group : groups_of(rows, problem.columns, problem.direction)) {
    for (std::int64_t row = 0; row < group.rows; ++row) {
      for (std::int64_t column = 0; column < group.columns; ++column) {
        const std::int64_t i = group.element(row, column);
        const std::uint8_t scale = scales[group.scale_of(row, column, problem.direction, problem.scale_layout)];
        const float code = decode_fp8(problem.data_type, data[i]);
        store(problem.output_type, output, i, code * e8m0_dequantize_multiplier(scale));
      }
    }
  }
}

}  // namespace assay::scalar
