// The steps of a grouped linear layer, put together once from quantize(), grouped_gemm() and grouped_dbias(), and offered
// over the fast and the scalar layer of these. What is said here is which storage, scaling and accumulation each step
// takes; every rounding is theirs.

#include "reference/linear/grouped_linear.h"

#include <memory>
#include <utility>

#include "reference/gemm/grouped_gemm.h"
#include "reference/layout/sizes.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/quantize.h"
#include "reference/support/error.h"

namespace assay {
namespace {

struct Layer {
  decltype(&quantize) quantize_with;
  decltype(&grouped_gemm) multiply_with;
  decltype(&grouped_dbias) sum_with;
};
constexpr Layer kFast{quantize, grouped_gemm, grouped_dbias};
constexpr Layer kScalar{scalar::quantize, scalar::grouped_gemm, scalar::grouped_dbias};

enum class Tensor { activation, gradient, weight };

void check_config(const LinearConfig& config) {
  require(config.recipe <= LinearRecipe::nvfp4, "recipe", static_cast<std::uint32_t>(config.recipe), "a LinearRecipe (0 to 5)");
  require(config.type == Format::bf16 || config.type == Format::f16, "type", static_cast<std::uint32_t>(config.type), "bf16 or f16");
}

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

GemmKind kind_of(const LinearConfig& config) {
  switch (config.recipe) {
    case LinearRecipe::none: return config.type == Format::bf16 ? GemmKind::bf16 : GemmKind::f16;
    case LinearRecipe::block: return GemmKind::block;
    case LinearRecipe::mxfp8: return GemmKind::mxfp8;
    case LinearRecipe::nvfp4: return GemmKind::nvfp4;
    default: return GemmKind::tensor;
  }
}

QuantizeConfig quantize_config(const LinearConfig& config, Tensor tensor, bool rowwise, bool columnwise) {
  QuantizeConfig made;
  made.recipe = recipe_of(config, tensor);
  made.output = config.recipe == LinearRecipe::nvfp4 ? Format::e2m1
                : tensor == Tensor::gradient         ? config.backward_code
                                                     : config.forward_code;
  made.rowwise = rowwise;
  made.columnwise = columnwise;
  if (config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::block) {
    made.force_pow_2_scales = config.force_pow_2_scales;
    made.amax_epsilon = config.amax_epsilon;
  }
  if (config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4) made.scale_layout = ScaleLayout::swizzled;
  if (config.recipe == LinearRecipe::nvfp4) {
    made.two_dimensional = tensor == Tensor::weight;
    made.hadamard = tensor != Tensor::weight && columnwise;
    made.hadamard_sign_mask = made.hadamard ? config.hadamard_sign_mask : std::uint16_t{0};
  }
  return made;
}

// One operand, quantized in one direction.
struct Quantized {
  std::vector<std::byte> data, scale_inv;
  std::vector<float> amax;
  GemmOperand operand;
};

// Room for `shape`, kept as it is when it has the right size already: padding of compact scales is never written.
void fit(std::vector<std::byte>& buffer, const OutputShape& shape) {
  const auto bytes = static_cast<std::size_t>(bytes_of(shape.type, shape.elements()));
  if (buffer.size() != bytes) buffer.assign(bytes, std::byte{0});
}

bool per_tensor(const LinearConfig& config) {
  return config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::tensor_delayed;
}

Quantized quantized(const Layer& layer, const LinearConfig& config, Tensor tensor, bool columnwise, const void* x, std::int64_t rows,
                    std::int64_t columns, std::span<const std::int64_t> splits, const float* scale) {
  Quantized made;
  QuantizeProblem problem;
  problem.config = quantize_config(config, tensor, !columnwise, columnwise);
  problem.x_type = config.type;
  problem.x = x;
  problem.rows = rows;
  problem.columns = columns;
  problem.grouped = true;
  problem.splits = splits;
  problem.scale = scale;
  const QuantizeShapes shapes = quantize_outputs(problem);
  const OutputShape& data = columnwise ? shapes.columnwise_data : shapes.rowwise_data;
  const OutputShape& scales = columnwise && !per_tensor(config) ? shapes.columnwise_scale_inv : shapes.rowwise_scale_inv;
  fit(made.data, data);
  fit(made.scale_inv, scales);
  QuantizeOutput output;
  (columnwise ? output.columnwise_data : output.rowwise_data) = made.data.data();
  (columnwise && !per_tensor(config) ? output.columnwise_scale_inv : output.rowwise_scale_inv) = made.scale_inv.data();
  if (config.recipe == LinearRecipe::nvfp4) {
    made.amax.resize(splits.size());
    (columnwise ? output.columnwise_amax : output.amax) = made.amax.data();
  }
  layer.quantize_with(problem, output);
  made.operand = {data.type, made.data.data(), made.scale_inv.data(), columnwise, made.amax.empty() ? nullptr : made.amax.data()};
  return made;
}

std::vector<std::int64_t> weight_splits(const LinearShape& shape) {
  return std::vector<std::int64_t>(shape.splits.size(), shape.N);
}

std::int64_t weight_rows(const LinearShape& shape) {
  require(shape.N >= 0, "N", shape.N, "a value of at least 0");
  return checked_product(static_cast<std::int64_t>(shape.splits.size()), shape.N, "N", shape.N);
}

Quantized quantized_weight(const Layer& layer, const LinearConfig& config, const LinearShape& shape, bool columnwise, const void* w,
                           const float* scale) {
  return quantized(layer, config, Tensor::weight, columnwise, w, weight_rows(shape), shape.K, weight_splits(shape), scale);
}

QuantizeShapes weight_shapes(const LinearConfig& config, const LinearShape& shape, std::span<const std::int64_t> splits) {
  QuantizeProblem problem;
  problem.config = quantize_config(config, Tensor::weight, true, true);
  problem.x_type = config.type;
  problem.rows = weight_rows(shape);
  problem.columns = shape.K;
  problem.grouped = true;
  problem.splits = splits;
  return quantize_outputs(problem);
}

void require_bytes(const std::vector<std::byte>& held, const OutputShape& shape, std::string_view name) {
  const std::int64_t wanted = bytes_of(shape.type, shape.elements());
  require(static_cast<std::int64_t>(held.size()) == wanted, name, static_cast<std::int64_t>(held.size()),
          show(wanted) + " bytes for this shape and recipe");
}

GemmOperand cached_weight(const LinearConfig& config, const LinearShape& shape, bool columnwise, const LinearWeightCache& cache) {
  require(cache.filled, "cache.filled", cache.filled, "a cache that linear_quantize_weights has filled");
  const std::vector<std::int64_t> splits = weight_splits(shape);
  const QuantizeShapes shapes = weight_shapes(config, shape, splits);
  const bool own_scales = columnwise && !per_tensor(config);
  const OutputShape& data = columnwise ? shapes.columnwise_data : shapes.rowwise_data;
  const std::vector<std::byte>& held = columnwise ? cache.columnwise_data : cache.rowwise_data;
  const std::vector<std::byte>& scales = own_scales ? cache.columnwise_scale_inv : cache.rowwise_scale_inv;
  require_bytes(held, data, columnwise ? "cache.columnwise_data" : "cache.rowwise_data");
  require_bytes(scales, own_scales ? shapes.columnwise_scale_inv : shapes.rowwise_scale_inv,
                own_scales ? "cache.columnwise_scale_inv" : "cache.rowwise_scale_inv");
  if (config.recipe == LinearRecipe::nvfp4) {
    require(cache.amax.size() == shape.splits.size(), "cache.amax", static_cast<std::int64_t>(cache.amax.size()), "one value a group");
  }
  return {data.type, held.data(), scales.data(), columnwise, cache.amax.empty() ? nullptr : cache.amax.data()};
}

GroupedGemmProblem product(const LinearConfig& config, const LinearShape& shape, GemmLayout layout) {
  GroupedGemmProblem problem;
  problem.kind = kind_of(config);
  problem.layout = layout;
  problem.splits = shape.splits;
  problem.rows = shape.rows;
  problem.N = shape.N;
  problem.K = shape.K;
  problem.scale_layout = config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4 ? ScaleLayout::swizzled
                                                                                                       : ScaleLayout::compact;
  // Per-tensor FP8: forward accumulates fast, backward splits; block scaling has no fast accumulation (requirements.md C11).
  problem.split_accumulator = config.recipe == LinearRecipe::block || (per_tensor(config) && layout != GemmLayout::TN);
  problem.d_type = config.type;
  problem.architecture = config.architecture;
  return problem;
}

GemmOperand plain(const LinearConfig& config, const void* data) { return {config.type, data, nullptr, false, nullptr}; }

void quantize_weights(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                      const float* noop, LinearWeightCache& cache) {
  check_config(config);
  if (config.recipe == LinearRecipe::none) return;  // nothing to keep: the weights are used as they are
  const std::vector<std::int64_t> splits = weight_splits(shape);
  QuantizeProblem problem;
  problem.config = quantize_config(config, Tensor::weight, true, true);
  problem.x_type = config.type;
  problem.x = w;
  problem.rows = weight_rows(shape);
  problem.columns = shape.K;
  problem.grouped = true;
  problem.splits = splits;
  problem.scale = scale;
  if (noop != nullptr && *noop == 1.0f) {
    cached_weight(config, shape, false, cache);  // says what is wrong with a cache that cannot be kept
    return;
  }
  const QuantizeShapes shapes = quantize_outputs(problem);
  LinearWeightCache made = cache;
  fit(made.rowwise_data, shapes.rowwise_data);
  fit(made.columnwise_data, shapes.columnwise_data);
  fit(made.rowwise_scale_inv, shapes.rowwise_scale_inv);
  fit(made.columnwise_scale_inv, per_tensor(config) ? OutputShape{} : shapes.columnwise_scale_inv);
  made.amax.assign(config.recipe == LinearRecipe::nvfp4 ? splits.size() : 0, 0.0f);
  QuantizeOutput output;
  output.rowwise_data = made.rowwise_data.data();
  output.columnwise_data = made.columnwise_data.data();
  output.rowwise_scale_inv = made.rowwise_scale_inv.data();
  if (!per_tensor(config)) output.columnwise_scale_inv = made.columnwise_scale_inv.data();
  if (config.recipe == LinearRecipe::nvfp4) output.amax = made.amax.data();
  layer.quantize_with(problem, output);
  made.filled = true;
  cache = std::move(made);
}

void forward(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  check_config(config);
  GroupedGemmProblem problem = product(config, shape, GemmLayout::TN);
  problem.bias = operands.bias;
  Quantized x, w;
  if (config.recipe == LinearRecipe::none) {
    problem.x = plain(config, operands.x);
    problem.w = plain(config, operands.w);
  } else {
    x = quantized(layer, config, Tensor::activation, false, operands.x, shape.rows, shape.K, shape.splits, operands.x_scale);
    problem.x = x.operand;
    if (operands.cache == nullptr) w = quantized_weight(layer, config, shape, false, operands.w, operands.w_scale);
    problem.w = operands.cache == nullptr ? w.operand : cached_weight(config, shape, false, *operands.cache);
  }
  layer.multiply_with(problem, y);
}

void dgrad(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  check_config(config);
  GroupedGemmProblem problem = product(config, shape, GemmLayout::NN);
  Quantized dy, w;
  if (config.recipe == LinearRecipe::none) {
    problem.dy = plain(config, operands.dy);
    problem.w = plain(config, operands.w);
  } else {
    dy = quantized(layer, config, Tensor::gradient, false, operands.dy, shape.rows, shape.N, shape.splits, operands.dy_scale);
    problem.dy = dy.operand;
    if (operands.cache == nullptr) w = quantized_weight(layer, config, shape, true, operands.w, operands.w_scale);
    problem.w = operands.cache == nullptr ? w.operand : cached_weight(config, shape, true, *operands.cache);
  }
  layer.multiply_with(problem, dx);
}

void wgrad(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  check_config(config);
  GroupedGemmProblem problem = product(config, shape, GemmLayout::NT);
  problem.d_type = operands.dw_type;
  const float beta = operands.accumulate ? 1.0f : 0.0f;
  problem.beta = {&beta, 1};
  problem.c = operands.accumulate ? dw : nullptr;
  Quantized dy, x;
  if (config.recipe == LinearRecipe::none) {
    problem.dy = plain(config, operands.dy);
    problem.x = plain(config, operands.x);
  } else {
    dy = quantized(layer, config, Tensor::gradient, true, operands.dy, shape.rows, shape.N, shape.splits, operands.dy_scale);
    x = quantized(layer, config, Tensor::activation, true, operands.x, shape.rows, shape.K, shape.splits, operands.x_scale);
    problem.dy = dy.operand;
    problem.x = x.operand;
  }
  layer.multiply_with(problem, dw);
}

void dbias(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const void* dy, void* sums) {
  check_config(config);
  DbiasProblem problem;
  problem.x_type = problem.output_type = config.type;
  problem.x = dy;
  problem.rows = shape.rows;
  problem.columns = shape.N;
  problem.splits = shape.splits;
  layer.sum_with(problem, sums);
}

constexpr std::string_view kNames[] = {"none", "tensor_current", "tensor_delayed", "block", "mxfp8", "nvfp4"};

}  // namespace

std::string_view name_of(LinearRecipe recipe) {
  const auto index = static_cast<std::uint32_t>(recipe);
  require(index < std::size(kNames), "recipe", index, "a LinearRecipe (0 to 5)");
  return kNames[index];
}

std::optional<LinearRecipe> linear_recipe_named(std::string_view name) {
  for (std::uint32_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<LinearRecipe>(i);
  }
  return std::nullopt;
}

void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache) {
  quantize_weights(kFast, config, shape, w, scale, noop, cache);
}
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  forward(kFast, config, shape, operands, y);
}
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  dgrad(kFast, config, shape, operands, dx);
}
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  wgrad(kFast, config, shape, operands, dw);
}
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* sums) {
  dbias(kFast, config, shape, dy, sums);
}

bool accumulates(std::optional<bool> is_first_microbatch, bool skip_flag_captured) {
  return skip_flag_captured || !is_first_microbatch.value_or(false);
}

void DeferredWgrad::store(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  check_config(config);
  require(shape.rows >= 0, "rows", shape.rows, "a value of at least 0");
  const auto copy = [&](const void* from, std::int64_t width, std::string_view name) {
    const std::int64_t elements = checked_product(shape.rows, width, name, width);
    require(from != nullptr || elements == 0, name, from, "a pointer to " + show(elements) + " elements");
    const auto* bytes = static_cast<const std::byte*>(from);
    return std::vector<std::byte>(bytes, bytes + bytes_of(config.type, elements));
  };
  const auto copy_scale = [&](const float* from) {
    return from == nullptr ? std::vector<float>{} : std::vector<float>(from, from + shape.splits.size());
  };
  struct Work {
    LinearConfig config;
    std::string architecture;
    std::vector<std::int64_t> splits;
    LinearShape shape;
    std::vector<std::byte> dy, x;
    std::vector<float> dy_scale, x_scale;
    LinearWgrad operands;
  };
  const auto work = std::make_shared<Work>(Work{config, std::string(config.architecture), {shape.splits.begin(), shape.splits.end()},
                                                shape, copy(operands.dy, shape.N, "dy"), copy(operands.x, shape.K, "x"),
                                                copy_scale(operands.dy_scale), copy_scale(operands.x_scale), operands});
  work->config.architecture = work->architecture;
  work->shape.splits = work->splits;
  work->operands.dy = work->dy.data();
  work->operands.x = work->x.data();
  work->operands.dy_scale = work->dy_scale.empty() ? nullptr : work->dy_scale.data();
  work->operands.x_scale = work->x_scale.empty() ? nullptr : work->x_scale.data();
  work_.push_back([work, dw] { linear_wgrad(work->config, work->shape, work->operands, dw); });
}

void DeferredWgrad::backward_dw() {
  require(!work_.empty(), "deferred work", std::size_t{0}, "a weight gradient that was stored and not yet carried out");
  const std::function<void()> oldest = std::move(work_.front());
  work_.pop_front();
  oldest();
}

namespace scalar {

void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache) {
  quantize_weights(kScalar, config, shape, w, scale, noop, cache);
}
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  forward(kScalar, config, shape, operands, y);
}
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  dgrad(kScalar, config, shape, operands, dx);
}
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  wgrad(kScalar, config, shape, operands, dw);
}
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* sums) {
  dbias(kScalar, config, shape, dy, sums);
}

}  // namespace scalar

}  // namespace assay
