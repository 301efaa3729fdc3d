#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/four_over_six.h"
#include "reference/recipes/hadamard.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/random_draws.h"
#include "reference/recipes/stochastic_rounding.h"

namespace assay::scalar {
namespace {

constexpr std::int64_t kBlock = 16;

// The values of one group as one direction quantizes them: blocks run along the lines of the stored matrix, which is the
// group itself (rowwise) or its transpose (columnwise).
struct Values {
  std::int64_t rows = 0, columns = 0;  // of the group
  std::vector<float> x;                // [rows, columns]
  bool transposed = false;

  std::int64_t stored_rows() const { return transposed ? columns : rows; }
  std::int64_t stored_columns() const { return transposed ? rows : columns; }
  float stored_at(std::int64_t row, std::int64_t column) const {
    return x[static_cast<std::size_t>(transposed ? column * columns + row : row * columns + column)];
  }
};

Values load_group(const QuantizeProblem& problem, std::int64_t first_row, std::int64_t rows, bool transposed) {
  Values values{rows, problem.columns, {}, transposed};
  for (std::int64_t i = 0; i < rows * problem.columns; ++i) {
    values.x.push_back(load(problem.x_type, problem.x, first_row * problem.columns + i));
  }
  return values;
}

// y of hadamard.h in the place of x.
Values load_transformed_group(const QuantizeProblem& problem, std::int64_t first_row, std::int64_t rows) {
  const auto* x = static_cast<const std::uint16_t*>(problem.x) + first_row * problem.columns;
  const std::int64_t columns = problem.columns;
  Values values{rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)), true};
  for (std::int64_t row = 0; row < rows; row += kBlock) {
    const std::int64_t terms = std::min(kBlock, rows - row);
    for (std::int64_t column = 0; column < columns; ++column) {
      std::vector<std::uint16_t> block;
      for (std::int64_t i = 0; i < terms; ++i) block.push_back(x[(row + i) * columns + column]);
      const auto y = hadamard_transform(problem.config.hadamard_sign_mask, block);
      for (std::int64_t j = 0; j < terms; ++j) {
        values.x[static_cast<std::size_t>((row + j) * columns + column)] = decode_bf16(y[static_cast<std::size_t>(j)]);
      }
    }
  }
  return values;
}

float amax_of(const Values& values) {
  float amax = 0;
  for (const float v : values.x) amax = accumulate_absmax(amax, v);
  return amax;
}

// The elements that share a scale, in coordinates of the stored matrix.
struct Tile {
  std::int64_t row, row_end, column, column_end;
};

float amax_of(const Values& values, const Tile& tile) {
  float amax = 0;
  for (std::int64_t row = tile.row; row < tile.row_end; ++row) {
    for (std::int64_t column = tile.column; column < tile.column_end; ++column) {
      amax = accumulate_absmax(amax, values.stored_at(row, column));
    }
  }
  return amax;
}

struct TensorScaling {
  float amax = 0;   // G
  float scale = 1;  // S
};

// Sum of the errors of one line of elements under block scale `d8`, in order.
float line_error(const std::vector<float>& line, std::uint8_t d8, const TensorScaling& tensor, const QuantizeConfig& config) {
  const float multiplier = nvfp4_multiplier(d8, tensor.scale);
  float sum = 0;
  for (const float x : line) {
    const float code = decode_e2m1(encode_e2m1(x * multiplier));
    const float dequantized = code * decode_e4m3(d8) * tensor.amax / (6 * config.nvfp4_e4m3_max);
    const float difference = dequantized - x;
    const bool squared = config.four_over_six == FourOverSix::mean_squared_error;
    sum = sum + (squared ? difference * difference : std::fabs(difference));
  }
  return sum;
}

// Error of the whole tile in the order of four_over_six.h: one line of the stored matrix, or up to 16.
float tile_error(const Values& values, const Tile& tile, std::uint8_t d8, const TensorScaling& tensor,
                 const QuantizeConfig& config) {
  std::array<float, 16> errors = {};
  for (std::int64_t row = tile.row; row < tile.row_end; ++row) {
    std::vector<float> line;
    for (std::int64_t column = tile.column; column < tile.column_end; ++column) line.push_back(values.stored_at(row, column));
    errors[static_cast<std::size_t>(row - tile.row)] = line_error(line, d8, tensor, config);
  }
  if (!config.two_dimensional) return errors[0];
  for (const std::size_t distance : {8u, 4u, 2u, 1u}) {
    for (std::size_t r = 0; r < distance; ++r) errors[r] = errors[r] + errors[r + distance];
  }
  return errors[0];
}

std::uint8_t block_scale_of(const Values& values, const Tile& tile, const TensorScaling& tensor, const QuantizeConfig& config) {
  const float amax = amax_of(values, tile);
  if (config.four_over_six == FourOverSix::off) return nvfp4_block_scale(amax, tensor.scale);
  const float base = amax / 6.0f * tensor.scale;
  const std::uint8_t d4 = encode_e4m3(std::fmin(base * 1.5f, kFourOverSixLargest));
  const std::uint8_t d6 = encode_e4m3(std::fmin(base, kFourOverSixLargest));
  const bool four = tile_error(values, tile, d4, tensor, config) < tile_error(values, tile, d6, tensor, config);
  return four ? d4 : d6;
}

// The random byte of an element of the stored matrix; null without stochastic rounding.
using RandomByte = std::function<std::uint8_t(std::int64_t row, std::int64_t column)>;

std::uint8_t quantize_code(float x, float multiplier, const QuantizeConfig& config, const RandomByte& random, std::int64_t row,
                           std::int64_t column) {
  const float product = config.zero_sign == ZeroSign::positive ? std::fma(x, multiplier, 0.0f) : x * multiplier;
  return random ? stochastic_e2m1(product, random(row, column)) : encode_e2m1(product);
}

// Of a group of `rows` rows that begins at `first_row`.
RandomByte random_byte(const QuantizeProblem& problem, Direction direction, std::size_t group, std::int64_t first_row,
                       std::int64_t rows) {
  const bool rowwise = direction == Direction::rowwise;
  const QuantizeDraws& draws = problem.draws;
  if (!problem.config.stochastic_rounding) return nullptr;
  if (draws.assignment == RandomDraws::given) {
    const std::uint8_t* bytes = (rowwise ? problem.rowwise_random : problem.columnwise_random) + first_row * problem.columns;
    const std::int64_t length = rowwise ? problem.columns : rows;
    return [=](std::int64_t row, std::int64_t column) { return bytes[row * length + column]; };
  }
  const auto seed = static_cast<std::uint64_t>(draws.state[2 * group]),
             offset = static_cast<std::uint64_t>(draws.state[2 * group + 1]);
  const DrawProblem drawn{draws.assignment, draws.rowwise, draws.columnwise, seed, offset, rows, problem.columns};
  return [=](std::int64_t row, std::int64_t column) {
    return rowwise ? drawn_byte(drawn, direction, row, column) : drawn_byte(drawn, direction, column, row);
  };
}

// The outputs of one direction of one group.
struct Destination {
  std::uint8_t* data = nullptr;
  std::uint8_t* scales = nullptr;
  ScaleShape scale_shape;
  RandomByte random;
};

void quantize_group(const QuantizeConfig& config, const Values& values, const TensorScaling& tensor, const Destination& to) {
  const std::int64_t rows = values.stored_rows(), columns = values.stored_columns();
  const bool swizzled = config.scale_layout == ScaleLayout::swizzled;
  if (swizzled) std::fill_n(to.scales, to.scale_shape.elements(), std::uint8_t{0});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; column += kBlock) {
      const std::int64_t column_end = std::min(column + kBlock, columns);
      Tile tile = {row, row + 1, column, column_end};
      if (config.two_dimensional) {
        tile.row = row / kBlock * kBlock;
        tile.row_end = std::min(tile.row + kBlock, rows);
      }
      const std::uint8_t d8 = block_scale_of(values, tile, tensor, config);
      const float multiplier = nvfp4_multiplier(d8, tensor.scale);
      const std::int64_t block = column / kBlock;
      to.scales[swizzled ? swizzled_index(row, block, to.scale_shape.columns / 4) : row * to.scale_shape.columns + block] = d8;
      for (std::int64_t c = column; c < column_end; ++c) {
        const std::uint8_t code = quantize_code(values.stored_at(row, c), multiplier, config, to.random, row, c);
        std::uint8_t& byte = to.data[(row * columns + c) / 2];
        byte = c % 2 == 0 ? code : static_cast<std::uint8_t>(byte | code << 4);
      }
    }
  }
}

}  // namespace

float nvfp4_tensor_scale(float tensor_amax, float e4m3_max) {
  const float scale = std::fmin(6 * e4m3_max / tensor_amax, FLT_MAX);
  return tensor_amax == 0 || scale == 0 ? 1.0f : scale;
}

std::uint8_t nvfp4_block_scale(float block_amax, float tensor_scale) {
  const float sixth = std::bit_cast<float>(0x3e2a'aaabu);
  const float t = tensor_scale * sixth;
  return encode_e4m3(std::fmin(block_amax * t, FLT_MAX));
}

float nvfp4_multiplier(std::uint8_t block_scale, float tensor_scale) {
  const float w = 1 / tensor_scale;
  return std::fmin(1 / (decode_e4m3(block_scale) * w), FLT_MAX);
}

void quantize_nvfp4(const QuantizeProblem& problem, const QuantizeOutput& output) {
  check_nvfp4_amax(problem);
  const QuantizeConfig& config = problem.config;
  const auto groups = group_rows(problem);
  const auto rowwise_scales = scale_offsets(Recipe::nvfp4, Direction::rowwise, groups, problem.columns);
  const auto columnwise_scales = scale_offsets(Recipe::nvfp4, Direction::columnwise, groups, problem.columns);

  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const std::int64_t rows = groups[t], first = first_row * problem.columns;
    std::optional<float> amax;  // G of x
    const auto tensor_amax = [&](const Values& x) {
      if (!amax) amax = problem.amax != nullptr ? problem.amax[t] : amax_of(x);
      return *amax;
    };
    if (config.rowwise) {
      const Values x = load_group(problem, first_row, rows, false);
      const float g = tensor_amax(x);
      if (output.amax != nullptr) output.amax[t] = g;
      quantize_group(config, x, {g, nvfp4_tensor_scale(g, config.nvfp4_e4m3_max)},
                     {static_cast<std::uint8_t*>(output.rowwise_data) + first / 2,
                      static_cast<std::uint8_t*>(output.rowwise_scale_inv) + rowwise_scales[t],
                      scale_shape(Recipe::nvfp4, Direction::rowwise, rows, problem.columns),
                      random_byte(problem, Direction::rowwise, t, first_row, rows)});
    }
    if (config.columnwise) {
      const Values y =
          config.hadamard ? load_transformed_group(problem, first_row, rows) : load_group(problem, first_row, rows, true);
      const float g = problem.columnwise_amax != nullptr ? problem.columnwise_amax[t]
                      : config.hadamard                  ? amax_of(y)
                                                         : tensor_amax(y);
      if (output.columnwise_amax != nullptr) output.columnwise_amax[t] = g;
      quantize_group(config, y, {g, nvfp4_tensor_scale(g, config.nvfp4_e4m3_max)},
                     {static_cast<std::uint8_t*>(output.columnwise_data) + first / 2,
                      static_cast<std::uint8_t*>(output.columnwise_scale_inv) + columnwise_scales[t],
                      scale_shape(Recipe::nvfp4, Direction::columnwise, rows, problem.columns),
                      random_byte(problem, Direction::columnwise, t, first_row, rows)});
    }
    first_row += rows;
  }
}

void dequantize_nvfp4(const DequantizeProblem& problem, void* output) {
  const auto* data = static_cast<const std::uint8_t*>(problem.data);
  const auto* scales = static_cast<const std::uint8_t*>(problem.scale_inv);
  const float factor = 1 / (6 * problem.nvfp4_e4m3_max);
  const bool rowwise = problem.direction == Direction::rowwise;
  const std::vector<std::int64_t> groups =
      problem.grouped ? std::vector<std::int64_t>(problem.splits.begin(), problem.splits.end()) : std::vector{problem.rows};
  const auto first_scales = scale_offsets(Recipe::nvfp4, problem.direction, groups, problem.columns);
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const ScaleShape shape = scale_shape(Recipe::nvfp4, problem.direction, groups[t], problem.columns);
    for (std::int64_t row = 0; row < groups[t]; ++row) {
      for (std::int64_t column = 0; column < problem.columns; ++column) {
        // Coordinates in the stored matrix.
        const std::int64_t i = rowwise ? row : column, j = rowwise ? column : row;
        const std::int64_t stored_columns = rowwise ? problem.columns : groups[t];
        const std::int64_t code_index = first_row * problem.columns + i * stored_columns + j;
        const std::uint8_t byte = data[code_index / 2];
        const std::uint8_t code = code_index % 2 == 0 ? byte & 0xf : byte >> 4;
        const std::int64_t block = j / kBlock;
        const std::int64_t at = problem.scale_layout == ScaleLayout::swizzled ? swizzled_index(i, block, shape.columns / 4)
                                                                              : i * shape.columns + block;
        const float d8 = decode_e4m3(scales[first_scales[t] + at]);
        const float f = d8 * problem.amax[t] * factor;
        store(problem.output_type, output, (first_row + row) * problem.columns + column, decode_e2m1(code) * f);
      }
    }
    first_row += groups[t];
  }
}

}  // namespace assay::scalar
