#include "reference/linear/linear_quantization.h"

#include <iterator>
#include <string>

#include "reference/recipes/checks.h"
#include "reference/types/error.h"
#include "reference/types/named.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

constexpr std::string_view kNames[] = {"none", "tensor_current", "tensor_delayed", "block", "mxfp8", "nvfp4"};

}  // namespace

std::string_view name_of(LinearRecipe recipe) {
  const auto index = static_cast<std::uint32_t>(recipe);
  require(index < std::size(kNames), "recipe", index, "a LinearRecipe (0 to 5)");
  return kNames[index];
}

std::optional<LinearRecipe> linear_recipe_named(std::string_view name) { return named<LinearRecipe>(kNames, name); }

namespace linear {
namespace {

Recipe recipe_of(const LinearConfig& config, Tensor tensor) {
  switch (config.recipe) {
    case LinearRecipe::tensor_current: return Recipe::tensor_current;
    case LinearRecipe::tensor_delayed: return Recipe::tensor_delayed;
    case LinearRecipe::block: return tensor == Tensor::weight ? Recipe::block_128x128 : Recipe::block_1x128;
    case LinearRecipe::mxfp8: return Recipe::mxfp8;
    case LinearRecipe::nvfp4: return Recipe::nvfp4;
    case LinearRecipe::none: break;
  }
  throw InvalidArgument("recipe", name_of(config.recipe), "a recipe that quantizes");
}

std::string shown(Format type) {
  const auto code = static_cast<std::uint32_t>(type);
  return code <= static_cast<std::uint32_t>(Format::i64) ? std::string(name_of(type)) : show(code);
}

void require_type(bool holds, std::string_view name, Format type, std::string_view expected) {
  if (!holds) throw InvalidArgument(name, shown(type), expected);
}

void require_fp8(Format type, std::string_view name) {
  require_type(type == Format::e4m3 || type == Format::e5m2, name, type, "e4m3 or e5m2");
}

void fit(std::vector<std::byte>& buffer, const OutputShape& shape) {
  const auto bytes = static_cast<std::size_t>(shape.bytes());
  if (buffer.size() != bytes) buffer.assign(bytes, std::byte{0});
}

}  // namespace

void check_config(const LinearConfig& config) {
  name_of(config.recipe);
  require_type(config.type == Format::bf16 || config.type == Format::f16, "type", config.type, "bf16 or f16");
  if (config.recipe != LinearRecipe::none && config.recipe != LinearRecipe::nvfp4) {
    require_fp8(config.forward_code, "forward_code");
    require_fp8(config.backward_code, "backward_code");
  }
  if (config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::block) {
    require(config.amax_epsilon >= 0, "amax_epsilon", config.amax_epsilon, "a value of at least 0");
  }
  const std::string_view activation = name_of(config.activation);
  if (config.recipe != LinearRecipe::block)
    require(config.activation == Activation::off, "activation", activation, "off for " + std::string(name_of(config.recipe)));
}

void check_shape(const LinearShape& shape) {
  require(shape.N >= 0, "N", shape.N, "a value of at least 0");
  require(shape.K >= 0, "K", shape.K, "a value of at least 0");
  checked_group_rows(shape.rows, 1, true, shape.splits);
  // Eight bytes per element, as quantize() and grouped_gemm() count.
  const auto addressable = [](std::int64_t rows, std::int64_t columns, std::string_view name) {
    checked_product(checked_product(rows, columns, name, columns), 8, name, columns);
  };
  addressable(shape.rows, shape.N, "N");
  addressable(shape.rows, shape.K, "K");
  const std::int64_t weight_rows = checked_product(static_cast<std::int64_t>(shape.splits.size()), shape.N, "N", shape.N);
  addressable(weight_rows, 1, "N");
  addressable(weight_rows, shape.K, "K");
}

std::int64_t used_rows(const LinearShape& shape) {
  std::int64_t rows = 0;
  for (const std::int64_t split : shape.splits) rows += split;
  return rows;
}

void check_buffer(const void* buffer, std::int64_t elements, Format type, std::string_view name) {
  require_buffer(buffer, elements, static_cast<std::size_t>(bytes_of(type, 1)), name);
}

void check_packing(const LinearConfig& config, std::int64_t extent, std::string_view name) {
  if (config.recipe == LinearRecipe::nvfp4)
    require(extent % 2 == 0, name, extent, "an even number, as nvfp4 packs two codes in a byte");
}

void check_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, const void* dw) {
  check_config(config);
  check_shape(shape);
  const std::int64_t rows = used_rows(shape), groups = static_cast<std::int64_t>(shape.splits.size());
  require_type(operands.dw_type == Format::f32 || operands.dw_type == Format::bf16 || operands.dw_type == Format::f16, "dw_type",
               operands.dw_type, "f32, bf16 or f16");
  check_buffer(operands.dy, rows * shape.N, config.type, "dy");
  check_buffer(operands.x, rows * shape.K, config.type, "x");
  check_buffer(dw, groups * shape.N * shape.K, operands.dw_type, "dw");
  if (config.recipe == LinearRecipe::tensor_delayed) {
    check_buffer(operands.dy_scale, groups, Format::f32, "dy_scale");
    check_buffer(operands.x_scale, groups, Format::f32, "x_scale");
  }
  if (config.recipe == LinearRecipe::nvfp4) {
    require_type(config.type == Format::bf16, "type", config.type,
                 "bf16 for wgrad with nvfp4, whose Hadamard transform takes no other");
    for (std::size_t t = 0; t < shape.splits.size(); ++t) {
      if (shape.splits[t] % 2 != 0) check_packing(config, shape.splits[t], "splits[" + show(t) + "]");
    }
  }
}

Source weight_source(const LinearShape& shape, const void* w, const float* scale) {
  const std::size_t groups = shape.splits.size();
  return {Tensor::weight, w, static_cast<std::int64_t>(groups) * shape.N, shape.K, std::vector<std::int64_t>(groups, shape.N),
          scale};
}

Format code_of(const LinearConfig& config, Tensor tensor) {
  if (config.recipe == LinearRecipe::nvfp4) return Format::e2m1;
  return tensor == Tensor::gradient ? config.backward_code : config.forward_code;
}

QuantizeProblem quantize_problem(const LinearConfig& config, const Source& source, bool rowwise, bool columnwise) {
  QuantizeProblem problem;
  QuantizeConfig& made = problem.config;
  made.recipe = recipe_of(config, source.tensor);
  made.output = code_of(config, source.tensor);
  made.rowwise = rowwise;
  made.columnwise = columnwise;
  if (config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::block) {
    made.force_pow_2_scales = config.powers_of_two();
    made.amax_epsilon = config.amax_epsilon;
  }
  if (source.tensor == Tensor::activation) made.activation = config.activation;
  if (has_swizzled_scales(config.recipe)) made.scale_layout = ScaleLayout::swizzled;
  if (config.recipe == LinearRecipe::nvfp4) {
    made.two_dimensional = source.tensor == Tensor::weight;
    made.hadamard = source.tensor != Tensor::weight && columnwise;
    if (made.hadamard) made.hadamard_sign_mask = config.hadamard_sign_mask;
  }
  problem.x_type = config.type;
  problem.x = source.x;
  problem.rows = source.rows;
  problem.columns = source.columns;
  problem.grouped = true;
  problem.splits = source.splits;
  problem.scale = source.scale;
  return problem;
}

void quantize_into(const Layer& layer, const LinearConfig& config, const Source& source, bool rowwise, bool columnwise,
                   QuantizedTensor& to) {
  const QuantizeProblem problem = quantize_problem(config, source, rowwise, columnwise);
  const QuantizeShapes shapes = quantize_outputs(problem);
  fit(to.rowwise_data, shapes.rowwise_data);
  fit(to.rowwise_scale_inv, shapes.rowwise_scale_inv);
  fit(to.columnwise_data, shapes.columnwise_data);
  fit(to.columnwise_scale_inv, shapes.columnwise_scale_inv);
  to.amax.assign(config.recipe == LinearRecipe::nvfp4 ? source.splits.size() : 0, 0.0f);
  QuantizeOutput output;
  output.rowwise_data = to.rowwise_data.data();
  output.rowwise_scale_inv = to.rowwise_scale_inv.data();
  output.columnwise_data = to.columnwise_data.data();
  output.columnwise_scale_inv = to.columnwise_scale_inv.data();
  // Weights have one amax for both directions; tensors with a transform are quantized in one direction at a time.
  if (config.recipe == LinearRecipe::nvfp4) (rowwise ? output.amax : output.columnwise_amax) = to.amax.data();
  layer.quantize_with(problem, output);
}

GemmOperand operand_of(const LinearConfig& config, Tensor tensor, const QuantizedTensor& from, bool columnwise) {
  const auto& data = columnwise ? from.columnwise_data : from.rowwise_data;
  const auto& scales = columnwise && !is_per_tensor(config.recipe) ? from.columnwise_scale_inv : from.rowwise_scale_inv;
  return {code_of(config, tensor), data.data(), scales.data(), columnwise, from.amax.empty() ? nullptr : from.amax.data()};
}

}  // namespace linear
}  // namespace assay
