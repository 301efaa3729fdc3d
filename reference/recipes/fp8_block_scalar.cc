#include <algorithm>
#include <vector>

#include "reference/layout/scale_shape.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/fp8_block.h"
#include "reference/recipes/per_tensor.h"
#include "reference/recipes/swiglu.h"

namespace assay::scalar {
namespace {

constexpr std::int64_t kBlock = 128;

// Rows [r0, r1) and columns [c0, c1) of a group.
struct Block {
  std::int64_t r0, r1, c0, c1;
};

struct Group {
  const QuantizeProblem& problem;
  std::int64_t first_row;  // of the whole matrix
  std::int64_t rows;

  float x(std::int64_t r, std::int64_t c) const { return load(problem.x_type, problem.x, (first_row + r) * problem.columns + c); }

  float block_scale(const Block& block) const {
    float amax = 0;
    for (std::int64_t r = block.r0; r < block.r1; ++r) {
      for (std::int64_t c = block.c0; c < block.c1; ++c) amax = accumulate_absmax(amax, x(r, c));
    }
    const QuantizeConfig& config = problem.config;
    return scale_from_amax(amax, max_finite(config.output), config.force_pow_2_scales, config.amax_epsilon,
                           max_finite(problem.x_type));
  }

  // Codes of a block to the rowwise or the (transposed) columnwise data.
  void encode(const Block& block, float scale, Direction direction, const QuantizeOutput& output) const {
    const std::int64_t base = first_row * problem.columns;
    for (std::int64_t r = block.r0; r < block.r1; ++r) {
      for (std::int64_t c = block.c0; c < block.c1; ++c) {
        const std::uint8_t code = quantize_element(problem.config.output, x(r, c), scale, problem.config.zero_sign);
        if (direction == Direction::rowwise) {
          static_cast<std::uint8_t*>(output.rowwise_data)[base + r * problem.columns + c] = code;
        } else {
          static_cast<std::uint8_t*>(output.columnwise_data)[base + c * rows + r] = code;
        }
      }
    }
  }
};

// One direction of one group. `scales` is the group's own scale matrix.
void quantize_direction(const Group& group, Direction direction, float* scales, const QuantizeOutput& output) {
  const Recipe recipe = group.problem.config.recipe;
  const std::int64_t columns = group.problem.columns;
  const std::int64_t stride = scale_shape(recipe, direction, group.rows, columns).columns;
  const bool rowwise = direction == Direction::rowwise;
  const bool square = recipe == Recipe::block_128x128;
  const std::int64_t block_rows = square || !rowwise ? kBlock : 1;
  const std::int64_t block_columns = square || rowwise ? kBlock : 1;

  for (std::int64_t i = 0; i * block_rows < group.rows; ++i) {
    for (std::int64_t j = 0; j * block_columns < columns; ++j) {
      const Block block = {i * block_rows, std::min((i + 1) * block_rows, group.rows),  //
                           j * block_columns, std::min((j + 1) * block_columns, columns)};
      const float scale = group.block_scale(block);
      group.encode(block, scale, direction, output);
      // 1x128 rowwise is stored [K-block][row], 128x128 columnwise [K-block][row-block]; the others as (i, j).
      const bool transposed = square ? !rowwise : rowwise;
      scales[transposed ? j * stride + i : i * stride + j] = 1 / scale;
    }
  }
}

}  // namespace

void quantize_fp8_block(const QuantizeProblem& problem, const QuantizeOutput& output) {
  if (problem.config.activation != Activation::off) {
    const std::vector<std::uint16_t> x = swiglu_rows(problem);
    QuantizeProblem activated = problem;
    activated.x = x.data();
    activated.config.activation = Activation::off;
    return scalar::quantize_fp8_block(activated, output);
  }
  const std::vector<std::int64_t> groups = group_rows(problem);
  for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
    const bool rowwise = direction == Direction::rowwise;
    if (rowwise ? !problem.config.rowwise : !problem.config.columnwise) continue;
    if (problem.columns == 0) continue;
    const auto offsets = scale_offsets(problem.config.recipe, direction, groups, problem.columns);
    float* scales = static_cast<float*>(rowwise ? output.rowwise_scale_inv : output.columnwise_scale_inv);
    std::int64_t first_row = 0;
    for (std::size_t t = 0; t < groups.size(); ++t) {
      quantize_direction({problem, first_row, groups[t]}, direction, scales + offsets[t], output);
      first_row += groups[t];
    }
  }
}

}  // namespace assay::scalar
