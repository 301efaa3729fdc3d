// The common part of quantization on the device: checks, the requested directions, and the recipe.

#include "device/quantize/quantize.h"

#include <algorithm>
#include <string>

#include "device/dbias/dbias_tiles.h"
#include "device/layout/check_columns.h"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"

namespace assay::device {
namespace {

bool has_small_blocks(Recipe recipe) { return recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4; }

// Types, and options that belong to another recipe.
void check_config(const QuantizeConfig& config, Format x_type) {
  const Recipe recipe = config.recipe;
  check_recipe(recipe);
  const std::string name(name_of(recipe));
  const auto refuse = [](bool holds, const char* argument, const std::string& value, const std::string& expected) {
    if (!holds) require(false, argument, value, expected);
  };
  check_wide(x_type, "x_type");
  if (recipe == Recipe::nvfp4) {
    refuse(config.output == Format::e2m1, "output", format_name(config.output), "e2m1 for nvfp4");
  } else {
    refuse(is_fp8(config.output), "output", format_name(config.output), "e4m3 or e5m2 for " + name);
  }
  const auto number = [](auto value) { return std::to_string(static_cast<std::uint32_t>(value)); };
  refuse(config.zero_sign <= ZeroSign::positive, "zero_sign", number(config.zero_sign), "kept (0) or positive (1)");
  refuse(config.scale_layout <= ScaleLayout::swizzled, "scale_layout", number(config.scale_layout),
         "compact (0) or swizzled (1)");
  refuse(config.four_over_six <= FourOverSix::mean_squared_error, "four_over_six", number(config.four_over_six),
         "off (0), mean absolute error (1) or mean squared error (2)");
  refuse(config.amax_epsilon >= 0, "amax_epsilon", shown(config.amax_epsilon), "a value of at least 0");

  if (has_small_blocks(recipe)) {
    refuse(!config.force_pow_2_scales, "force_pow_2_scales", "true", "false for " + name);
    refuse(config.amax_epsilon == 0, "amax_epsilon", shown(config.amax_epsilon), "0 for " + name);
  } else {
    refuse(config.scale_layout == ScaleLayout::compact, "scale_layout", "swizzled", "compact for " + name);
    refuse(!config.two_dimensional, "two_dimensional", "true", "false for " + name);
  }
  if (config.activation != Activation::off) {
    const std::string activation(name_of(config.activation));
    refuse(recipe == Recipe::block_1x128 || recipe == Recipe::block_128x128, "activation", activation, "off for " + name);
    refuse(x_type != Format::f32, "activation", activation, "off unless x is bf16 or f16");
    refuse(!config.dbias, "dbias", "true", "false with activation " + activation);
  }
  const bool four_over_six = config.four_over_six != FourOverSix::off;
  if (recipe == Recipe::nvfp4) {
    refuse(config.nvfp4_e4m3_max == 448 || (config.nvfp4_e4m3_max == 256 && four_over_six), "nvfp4_e4m3_max",
           shown(config.nvfp4_e4m3_max), "448, or 256 with four_over_six");
    refuse(!config.hadamard || x_type == Format::bf16, "hadamard", "true", "false unless x is bf16");
    refuse(!config.hadamard || !config.two_dimensional, "hadamard", "true", "false with two_dimensional");
    refuse(!four_over_six || !config.hadamard, "four_over_six", "on", "off with hadamard");
    refuse(!four_over_six || !config.stochastic_rounding, "four_over_six", "on", "off with stochastic_rounding");
  } else {
    refuse(!config.hadamard, "hadamard", "true", "false for " + name);
    refuse(!config.stochastic_rounding, "stochastic_rounding", "true", "false for " + name);
    refuse(!four_over_six, "four_over_six", "on", "off for " + name);
    refuse(config.nvfp4_e4m3_max == 448, "nvfp4_e4m3_max", shown(config.nvfp4_e4m3_max), "448 for " + name);
  }
}

// What the kernels take that draw in this way (spec nvfp4-4.3).
void check_draws(const QuantizeCall& call) {
  const QuantizeDraws& draws = call.draws;
  if (draws.assignment == RandomDraws::given) return;
  if (draws.assignment > RandomDraws::te_2d) {
    require(false, "draws", static_cast<std::int64_t>(draws.assignment), "one of RandomDraws (0 to 3)");
  }
  const QuantizeConfig& config = call.config;
  const std::string name(name_of(draws.assignment));
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  require(config.stochastic_rounding, "draws", name, "given without stochastic_rounding");
  require(!config.hadamard, "hadamard", "true", "false with draws " + name);
  require(!config.rowwise || draws.rowwise, "rowwise", "true", "false where nothing is drawn for it");
  require(!config.columnwise || draws.columnwise, "columnwise", "true", "false where nothing is drawn for it");
  if (draws.assignment == RandomDraws::te_vector_blockwise) return;
  const bool tiles = draws.assignment == RandomDraws::te_2d;
  require(call.x_type == Format::bf16, "x_type", format_name(call.x_type), "bf16 with draws " + name);
  require(config.two_dimensional == tiles, "two_dimensional", truth(config.two_dimensional),
          std::string(truth(tiles)) + " with draws " + name);
  require(tiles || draws.rowwise, "draws.rowwise", "false", "true with draws " + name + ", which writes rowwise codes always");
}

void check_sizes(const QuantizeCall& call) {
  check_config(call.config, call.x_type);
  check_draws(call);
  check_matrix(call.rows, call.columns * matrices_in_x(call.config.activation));
  if (call.rows_multiple < 1) require(false, "rows_multiple", call.rows_multiple, "a value of at least 1");
  if (call.rows_multiple > kMaxRows) {
    require(false, "rows_multiple", call.rows_multiple, "at most " + std::to_string(kMaxRows));
  }
  const bool blocks = call.config.recipe == Recipe::block_1x128 || call.config.recipe == Recipe::block_128x128;
  check_column_alignment(call.column_alignment, blocks, "recipes of FP8 blocks");
  if (call.config.recipe == Recipe::nvfp4) {  // the status word reports odd splits
    if (call.config.rowwise && call.columns % 2 != 0) {
      require(false, "columns", call.columns, "an even number for rowwise nvfp4");
    }
    if (call.config.columnwise && call.rows.capacity % 2 != 0) {
      require(false, "rows.capacity", call.rows.capacity, "an even number for columnwise nvfp4");
    }
  }
}

void check_pointers(const QuantizeCall& call) {
  const QuantizeConfig& config = call.config;
  const bool elements = call.rows.capacity != 0 && call.columns != 0;
  if (elements) require_pointer(call.x, "x", 16);
  if (config.recipe == Recipe::tensor_delayed && call.rows.groups != 0) require_pointer(call.scale, "scale", 4);
  check_alignment(call.noop, "noop", 4);
  check_alignment(call.status, "status", 4);
  if (config.recipe == Recipe::nvfp4) {
    check_alignment(call.amax, "amax", 4);
    check_alignment(call.columnwise_amax, "columnwise_amax", 4);
    if (call.draws.assignment != RandomDraws::given) {
      if (elements && call.rows.groups != 0) require_pointer(call.draws.state, "draws.state", 8);
    } else if (config.stochastic_rounding && elements) {
      if (config.rowwise) require_pointer(call.rowwise_random, "rowwise_random");
      if (config.columnwise) require_pointer(call.columnwise_random, "columnwise_random");
    }
  }
  const std::uintptr_t scale_bytes = has_small_blocks(config.recipe) ? 1 : 4;
  if (call.column_alignment != 1) check_alignment(call.output.columnwise_data, "output.columnwise_data", kAlignedColumns);
  check_alignment(call.output.rowwise_scale_inv, "output.rowwise_scale_inv", scale_bytes);
  check_alignment(call.output.columnwise_scale_inv, "output.columnwise_scale_inv", scale_bytes);
  check_alignment(call.output.amax, "output.amax", 4);
  check_alignment(call.output.columnwise_amax, "output.columnwise_amax", 4);
  check_alignment(call.output.scale, "output.scale", 4);
  if (config.dbias) check_alignment(call.output.dbias, "output.dbias", wide_bytes(call.x_type));
}

std::int64_t needed_workspace(const QuantizeCall& call) {
  const auto of_recipe = [&] {
    switch (call.config.recipe) {
      case Recipe::block_1x128:
      case Recipe::block_128x128: return fp8_block_workspace_bytes(call);
      case Recipe::mxfp8: return mxfp8_workspace_bytes(call);
      case Recipe::nvfp4: return nvfp4_workspace_bytes(call);
      default: return per_tensor_workspace_bytes(call);
    }
  };
  return std::max<std::int64_t>(of_recipe(), call.config.dbias ? dbias_workspace_bytes(dbias_of(call)) : 0);
}

}  // namespace

std::int64_t quantize_workspace_bytes(const QuantizeCall& call) {
  check_sizes(call);
  return needed_workspace(call);
}

void check_quantize(const QuantizeCall& call) {
  check_sizes(call);
  check_pointers(call);
  check_workspace(call.workspace, call.workspace_bytes, needed_workspace(call));
}

void quantize(const QuantizeCall& call, Stream stream) {
  check_quantize(call);
  if (call.rows.groups == 0) return;
  const CallDevice device(stream, {{"x", call.x},
                                   {"rows.splits", call.rows.splits},
                                   {"output.rowwise_data", call.output.rowwise_data},
                                   {"output.columnwise_data", call.output.columnwise_data},
                                   {"status", call.status}});

  // A direction of which nothing is requested is off. The one scale_inv of per-tensor recipes belongs to no direction.
  QuantizeCall active = call;
  QuantizeConfig& config = active.config;
  const QuantizeOutput& output = call.output;
  const bool per_tensor = is_per_tensor(config.recipe), nvfp4 = config.recipe == Recipe::nvfp4;
  config.rowwise &=
      output.rowwise_data != nullptr || (!per_tensor && output.rowwise_scale_inv != nullptr) || (nvfp4 && output.amax != nullptr);
  config.columnwise &= output.columnwise_data != nullptr || (!per_tensor && output.columnwise_scale_inv != nullptr) ||
                       (nvfp4 && output.columnwise_amax != nullptr);
  config.dbias &= output.dbias != nullptr;

  if (!config.rowwise && !config.columnwise && !per_tensor) {
    if (!config.dbias) return;
    const DbiasCall dbias = dbias_of(active);
    auto* const tile_sums = static_cast<float*>(call.workspace);
    sum_tiles(dbias, tile_sums, call.noop, stream);
    finish_dbias(dbias, tile_sums, call.noop, stream);
    return;
  }
  switch (config.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: return quantize_per_tensor(active, stream);
    case Recipe::block_1x128:
    case Recipe::block_128x128: return quantize_fp8_block(active, stream);
    case Recipe::mxfp8: return quantize_mxfp8(active, stream);
    case Recipe::nvfp4: return quantize_nvfp4(active, stream);
  }
}

}  // namespace assay::device
