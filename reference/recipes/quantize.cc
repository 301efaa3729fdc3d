#include "reference/recipes/quantize.h"

#include <string>
#include <vector>

#include "reference/layout/scale_shape.h"
#include "reference/recipes/checks.h"
#include "reference/recipes/complete_call.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/fp8_block.h"
#include "reference/recipes/mxfp8.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/per_tensor.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

bool is_transposing(Recipe recipe) { return recipe != Recipe::mxfp8; }
bool has_small_blocks(Recipe recipe) { return recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4; }

// Types, and options that belong to another recipe.
void check_config(const QuantizeConfig& config, Format x_type) {
  const Recipe recipe = config.recipe;
  const std::string name(name_of(recipe));
  require(x_type == Format::bf16 || x_type == Format::f16 || x_type == Format::f32, "x_type", name_of(x_type),
          "bf16, f16 or f32");
  if (recipe == Recipe::nvfp4) {
    require(config.output == Format::e2m1, "output", name_of(config.output), "e2m1 for nvfp4");
  } else {
    require(config.output == Format::e4m3 || config.output == Format::e5m2, "output", name_of(config.output),
            "e4m3 or e5m2 for " + name);
  }
  require(config.zero_sign <= ZeroSign::positive, "zero_sign", static_cast<std::uint32_t>(config.zero_sign),
          "kept (0) or positive (1)");
  require(config.scale_layout <= ScaleLayout::swizzled, "scale_layout", static_cast<std::uint32_t>(config.scale_layout),
          "compact (0) or swizzled (1)");
  require(config.four_over_six <= FourOverSix::mean_squared_error, "four_over_six",
          static_cast<std::uint32_t>(config.four_over_six), "off (0), mean absolute error (1) or mean squared error (2)");
  require(config.amax_epsilon >= 0, "amax_epsilon", config.amax_epsilon, "a value of at least 0");

  if (has_small_blocks(recipe)) {
    require(!config.force_pow_2_scales, "force_pow_2_scales", true, "false for " + name);
    require(config.amax_epsilon == 0, "amax_epsilon", config.amax_epsilon, "0 for " + name);
  } else {
    require(config.scale_layout == ScaleLayout::compact, "scale_layout", "swizzled", "compact for " + name);
    require(!config.two_dimensional, "two_dimensional", true, "false for " + name);
  }
  if (config.activation != Activation::off) {
    const std::string_view activation = name_of(config.activation);
    require(recipe == Recipe::block_1x128 || recipe == Recipe::block_128x128, "activation", activation, "off for " + name);
    require(x_type != Format::f32, "activation", activation, "off unless x is bf16 or f16");
    require(!config.dbias, "dbias", true, "false with activation " + std::string(activation));
  }
  if (recipe == Recipe::nvfp4) {
    const bool four_over_six = config.four_over_six != FourOverSix::off;
    require(config.nvfp4_e4m3_max == 448 || (config.nvfp4_e4m3_max == 256 && four_over_six), "nvfp4_e4m3_max",
            config.nvfp4_e4m3_max, "448, or 256 with four_over_six");
    require(!config.hadamard || x_type == Format::bf16, "hadamard", true, "false unless x is bf16");
    require(!config.hadamard || !config.two_dimensional, "hadamard", true, "false with two_dimensional");
    require(!four_over_six || !config.hadamard, "four_over_six", true, "off with hadamard");
    require(!four_over_six || !config.stochastic_rounding, "four_over_six", true, "off with stochastic_rounding");
  } else {
    require(!config.hadamard, "hadamard", true, "false for " + name);
    require(!config.stochastic_rounding, "stochastic_rounding", true, "false for " + name);
    require(config.four_over_six == FourOverSix::off, "four_over_six", "on", "off for " + name);
    require(config.nvfp4_e4m3_max == 448, "nvfp4_e4m3_max", config.nvfp4_e4m3_max, "448 for " + name);
  }
}

// Two codes share a byte along the columns (rowwise) or along the rows of a group (columnwise).
void check_nvfp4_packing(const QuantizeProblem& problem, std::span<const std::int64_t> groups) {
  if (problem.config.rowwise) {
    require(problem.columns % 2 == 0, "columns", problem.columns, "an even number for rowwise nvfp4");
  }
  if (problem.config.columnwise) {
    require(problem.rows % 2 == 0, "rows", problem.rows, "an even number for columnwise nvfp4");
    for (std::size_t t = 0; t < groups.size(); ++t) {
      if (groups[t] % 2 == 0) continue;
      throw InvalidArgument("splits[" + show(t) + "]", show(groups[t]), "an even number for columnwise nvfp4");
    }
  }
}

// What the kernels that draw in this way take (spec nvfp4-4.3).
void check_draws(const QuantizeProblem& problem) {
  const QuantizeDraws& draws = problem.draws;
  if (draws.assignment == RandomDraws::given) return;
  const QuantizeConfig& config = problem.config;
  const std::string name(name_of(draws.assignment));
  require(config.stochastic_rounding, "draws", name, "given without stochastic_rounding");
  require(!config.hadamard, "hadamard", true, "false with draws " + name);
  require(!config.rowwise || draws.rowwise, "rowwise", true, "false where nothing is drawn for it");
  require(!config.columnwise || draws.columnwise, "columnwise", true, "false where nothing is drawn for it");
  if (draws.assignment == RandomDraws::te_vector_blockwise) return;
  const bool tiles = draws.assignment == RandomDraws::te_2d;
  require(problem.x_type == Format::bf16, "x_type", name_of(problem.x_type), "bf16 with draws " + name);
  require(config.two_dimensional == tiles, "two_dimensional", config.two_dimensional,
          std::string(tiles ? "true" : "false") + " with draws " + name);
  require(tiles || draws.rowwise, "draws.rowwise", false, "true with draws " + name + ", which writes rowwise codes always");
}

OutputShape vector(Format type, std::int64_t elements) { return {type, 1, {elements, 0}}; }
OutputShape matrix(Format type, std::int64_t rows, std::int64_t columns) { return {type, 2, {rows, columns}}; }

OutputShape scale_inv_shape(const QuantizeProblem& problem, Direction direction, std::span<const std::int64_t> groups) {
  const Recipe recipe = problem.config.recipe;
  const Format type = scale_format(recipe);
  if (problem.grouped) {
    const std::int64_t elements = scale_offsets(recipe, direction, groups, problem.columns).back();
    checked_product(elements, 8, "columns", problem.columns);
    return vector(type, elements);
  }
  const ScaleShape shape = scale_shape(recipe, direction, problem.rows, problem.columns);
  checked_product(shape.elements(), 8, "columns", problem.columns);
  return matrix(type, shape.rows, shape.columns);
}

std::size_t bytes_of_element(Format type) { return static_cast<std::size_t>(bytes_of(type, 1)); }

}  // namespace

std::vector<std::int64_t> group_rows(const QuantizeProblem& problem) {
  if (!problem.grouped) return {problem.rows};
  return {problem.splits.begin(), problem.splits.end()};
}

QuantizeShapes quantize_outputs(const QuantizeProblem& problem) {
  const QuantizeConfig& config = problem.config;
  check_config(config, problem.x_type);
  const auto groups = checked_group_rows(problem.rows, problem.columns, problem.grouped, problem.splits);
  checked_product(problem.rows * problem.columns, 8 * matrices_in_x(config.activation), "rows", problem.rows);
  if (config.recipe == Recipe::nvfp4) check_nvfp4_packing(problem, groups);
  check_draws(problem);

  const std::int64_t rows = problem.rows, columns = problem.columns;
  const auto group_count = static_cast<std::int64_t>(groups.size());
  const std::int64_t packed = config.recipe == Recipe::nvfp4 ? 2 : 1;  // codes in a byte
  QuantizeShapes shapes;
  if (config.rowwise) shapes.rowwise_data = matrix(config.output, rows, columns / packed);
  if (config.columnwise) {
    if (!is_transposing(config.recipe)) {
      shapes.columnwise_data = matrix(config.output, rows, columns);
    } else if (problem.grouped) {
      shapes.columnwise_data = vector(config.output, rows / packed * columns);
    } else {
      shapes.columnwise_data = matrix(config.output, columns, rows / packed);
    }
  }
  if (is_per_tensor(config.recipe)) {
    shapes.rowwise_scale_inv = vector(Format::f32, group_count);
  } else {
    if (config.rowwise) shapes.rowwise_scale_inv = scale_inv_shape(problem, Direction::rowwise, groups);
    if (config.columnwise) shapes.columnwise_scale_inv = scale_inv_shape(problem, Direction::columnwise, groups);
  }
  if (is_per_tensor(config.recipe) || (config.recipe == Recipe::nvfp4 && config.rowwise)) {
    shapes.amax = vector(Format::f32, group_count);
  }
  if (config.recipe == Recipe::nvfp4 && config.columnwise) shapes.columnwise_amax = vector(Format::f32, group_count);
  if (config.recipe == Recipe::tensor_current) shapes.scale = vector(Format::f32, group_count);
  if (config.dbias) {
    checked_product(checked_product(group_count, columns, "columns", columns), 8, "columns", columns);
    shapes.dbias = matrix(problem.x_type, group_count, columns);
  }
  return shapes;
}

QuantizeShapes check_quantize(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeShapes shapes = quantize_outputs(problem);
  const QuantizeConfig& config = problem.config;
  const auto groups = group_rows(problem);
  const auto group_count = static_cast<std::int64_t>(groups.size());
  std::int64_t used_rows = 0;  // rows beyond the groups are not read, so x may end there
  for (const std::int64_t rows : groups) used_rows += rows;

  require_buffer(problem.x, used_rows * problem.columns * matrices_in_x(config.activation), bytes_of_element(problem.x_type),
                 "x");
  if (config.recipe == Recipe::tensor_delayed) require_buffer(problem.scale, group_count, sizeof(float), "scale");
  require_aligned(problem.noop, 1, sizeof(float), "noop");
  if (config.recipe == Recipe::nvfp4) {
    require_aligned(problem.amax, group_count, sizeof(float), "amax");
    require_aligned(problem.columnwise_amax, group_count, sizeof(float), "columnwise_amax");
    if (config.stochastic_rounding) {
      const std::int64_t draws = used_rows * problem.columns;
      if (problem.draws.assignment != RandomDraws::given) {
        require_buffer(problem.draws.state, draws == 0 ? 0 : 2 * group_count, sizeof(std::int64_t), "draws.state");
      } else {
        if (config.rowwise) require_buffer(problem.rowwise_random, draws, 1, "rowwise_random");
        if (config.columnwise) require_buffer(problem.columnwise_random, draws, 1, "columnwise_random");
      }
    }
  }

  const auto check = [](const void* buffer, const OutputShape& shape, std::string_view name) {
    require_aligned(buffer, shape.elements(), bytes_of_element(shape.type), name);
  };
  check(output.rowwise_data, shapes.rowwise_data, "output.rowwise_data");
  check(output.columnwise_data, shapes.columnwise_data, "output.columnwise_data");
  check(output.rowwise_scale_inv, shapes.rowwise_scale_inv, "output.rowwise_scale_inv");
  check(output.columnwise_scale_inv, shapes.columnwise_scale_inv, "output.columnwise_scale_inv");
  check(output.amax, shapes.amax, "output.amax");
  check(output.columnwise_amax, shapes.columnwise_amax, "output.columnwise_amax");
  check(output.scale, shapes.scale, "output.scale");
  check(output.dbias, shapes.dbias, "output.dbias");
  return shapes;
}

void quantize(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeShapes shapes = check_quantize(problem, output);
  if (problem.noop != nullptr && *problem.noop == 1.0f) return;
  const CompleteCall call(problem, shapes, output);
  switch (problem.config.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: quantize_per_tensor(call.problem, call.output); break;
    case Recipe::block_1x128:
    case Recipe::block_128x128: quantize_fp8_block(call.problem, call.output); break;
    case Recipe::mxfp8: quantize_mxfp8(call.problem, call.output); break;
    case Recipe::nvfp4: quantize_nvfp4(call.problem, call.output); break;
  }
  if (shapes.dbias.rank != 0 && output.dbias != nullptr) quantize_dbias(problem, output.dbias);
}

}  // namespace assay
