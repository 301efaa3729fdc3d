// The steps of a grouped linear layer, put together once from quantize(), grouped_gemm() and grouped_dbias(), and offered
// over the fast and the scalar layer of these. This file chooses the storage, scaling and accumulation of each step;
// every rounding is in those functions.

#include "reference/linear/grouped_linear.h"

#include <vector>

#include "reference/gemm/problem.h"
#include "reference/linear/linear_quantization.h"
#include "reference/linear/weight_cache.h"
#include "reference/types/error.h"

namespace assay {
namespace linear {
namespace {

GemmKind kind_of(const LinearConfig& config) {
  switch (config.recipe) {
    case LinearRecipe::none: return config.type == Format::bf16 ? GemmKind::bf16 : GemmKind::f16;
    case LinearRecipe::block: return GemmKind::fp8_block;
    case LinearRecipe::mxfp8: return GemmKind::mxfp8;
    case LinearRecipe::nvfp4: return GemmKind::nvfp4;
    default: return GemmKind::fp8_per_tensor;
  }
}

// The product of a step, without its operands.
GroupedGemmProblem product(const LinearConfig& config, const LinearShape& shape, GemmLayout layout) {
  GroupedGemmProblem problem;
  problem.kind = kind_of(config);
  problem.layout = layout;
  problem.splits = shape.splits;
  problem.rows = used_rows(shape);
  problem.N = shape.N;
  problem.K = shape.K;
  problem.scale_layout = has_swizzled_scales(config.recipe) ? ScaleLayout::swizzled : ScaleLayout::compact;
  problem.split_accumulator = config.recipe == LinearRecipe::block || (is_per_tensor(config.recipe) && layout != GemmLayout::TN);
  problem.d_type = config.type;
  problem.architecture = config.architecture;
  return problem;
}

GemmOperand plain(const LinearConfig& config, const void* data) { return {config.type, data, nullptr, false, nullptr}; }

std::int64_t groups_of(const LinearShape& shape) { return static_cast<std::int64_t>(shape.splits.size()); }

void check_scale(const LinearConfig& config, const LinearShape& shape, const float* scale, std::string_view name) {
  if (config.recipe == LinearRecipe::tensor_delayed) check_buffer(scale, groups_of(shape), Format::f32, name);
}

// The weights of forward (rowwise) or dgrad (columnwise): a cache, or w.
void check_weight(const LinearConfig& config, const LinearShape& shape, const void* w, const LinearWeightCache* cache,
                  const float* scale, bool columnwise) {
  if (cache == nullptr || config.recipe == LinearRecipe::none) {
    check_buffer(w, groups_of(shape) * shape.N * shape.K, config.type, "w");
    check_scale(config, shape, scale, "w_scale");
    return;
  }
  check_weight_cache(config, shape, *cache);
  require(columnwise ? cache->columnwise : cache->rowwise, columnwise ? "cache.columnwise" : "cache.rowwise", false,
          columnwise ? "a cache that keeps the columnwise direction, which dgrad reads"
                     : "a cache that keeps the rowwise direction, which forward reads");
}

// Quantizes into `own`, unless the recipe does not quantize or the cache already holds the result.
GemmOperand operand(const Layer& layer, const LinearConfig& config, const Source& source, bool columnwise,
                    const LinearWeightCache* cache, QuantizedTensor& own) {
  if (config.recipe == LinearRecipe::none) return plain(config, source.x);
  if (cache != nullptr) return operand_of(config, source.tensor, *cache, columnwise);
  quantize_into(layer, config, source, !columnwise, columnwise, own);
  return operand_of(config, source.tensor, own, columnwise);
}

Source rows_source(const LinearShape& shape, Tensor tensor, const void* x, const float* scale) {
  return {tensor, x, used_rows(shape), tensor == Tensor::gradient ? shape.N : shape.K, {shape.splits.begin(), shape.splits.end()},
          scale};
}

void forward(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  check_config(config);
  check_shape(shape);
  check_packing(config, shape.K, "K");
  check_buffer(operands.x, used_rows(shape) * shape.K, config.type, "x");
  check_scale(config, shape, operands.x_scale, "x_scale");
  check_weight(config, shape, operands.w, operands.cache, operands.w_scale, false);
  if (operands.bias != nullptr) check_buffer(operands.bias, groups_of(shape) * shape.N, config.type, "bias");
  check_buffer(y, used_rows(shape) * shape.N, config.type, "y");

  GroupedGemmProblem problem = product(config, shape, GemmLayout::TN);
  QuantizedTensor x, w;
  problem.x = operand(layer, config, rows_source(shape, Tensor::activation, operands.x, operands.x_scale), false, nullptr, x);
  problem.w = operand(layer, config, weight_source(shape, operands.w, operands.w_scale), false, operands.cache, w);
  problem.bias = operands.bias;
  layer.multiply_with(problem, y);
}

void dgrad(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  check_config(config);
  check_shape(shape);
  check_packing(config, shape.N, "N");
  check_buffer(operands.dy, used_rows(shape) * shape.N, config.type, "dy");
  check_scale(config, shape, operands.dy_scale, "dy_scale");
  check_weight(config, shape, operands.w, operands.cache, operands.w_scale, true);
  check_buffer(dx, used_rows(shape) * shape.K, config.type, "dx");

  GroupedGemmProblem problem = product(config, shape, GemmLayout::NN);
  QuantizedTensor dy, w;
  problem.dy = operand(layer, config, rows_source(shape, Tensor::gradient, operands.dy, operands.dy_scale), false, nullptr, dy);
  problem.w = operand(layer, config, weight_source(shape, operands.w, operands.w_scale), true, operands.cache, w);
  layer.multiply_with(problem, dx);
}

void wgrad(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  check_wgrad(config, shape, operands, dw);

  GroupedGemmProblem problem = product(config, shape, GemmLayout::NT);
  QuantizedTensor dy, x;
  problem.dy = operand(layer, config, rows_source(shape, Tensor::gradient, operands.dy, operands.dy_scale), true, nullptr, dy);
  problem.x = operand(layer, config, rows_source(shape, Tensor::activation, operands.x, operands.x_scale), true, nullptr, x);
  problem.d_type = operands.dw_type;
  const float beta = operands.accumulate ? 1.0f : 0.0f;
  problem.beta = {&beta, 1};
  problem.c = operands.accumulate ? dw : nullptr;
  layer.multiply_with(problem, dw);
}

void dbias(const Layer& layer, const LinearConfig& config, const LinearShape& shape, const void* dy, void* sums) {
  check_config(config);
  check_shape(shape);
  check_buffer(dy, used_rows(shape) * shape.N, config.type, "dy");
  check_buffer(sums, groups_of(shape) * shape.N, config.type, "dbias");
  DbiasProblem problem;
  problem.x_type = problem.output_type = config.type;
  problem.x = dy;
  problem.rows = used_rows(shape);
  problem.columns = shape.N;
  problem.splits = shape.splits;
  layer.sum_with(problem, sums);
}

}  // namespace

const AccumulationPlan& check_product(const LinearConfig& config, const LinearShape& shape, GemmLayout layout,
                                      const AccumulationPlan* plan) {
  alignas(16) static const std::byte somewhere[16] = {};  // checked, never read
  const std::vector<float> amax(shape.splits.size(), 0.0f);
  const bool quantized = config.recipe != LinearRecipe::none;
  const auto stand_in = [&](Tensor tensor, bool columnwise) -> GemmOperand {
    if (!quantized) return plain(config, somewhere);
    return {code_of(config, tensor), somewhere, somewhere, columnwise, amax.data()};
  };
  GroupedGemmProblem problem = product(config, shape, layout);
  problem.plan = plan;
  const bool along_rows = layout == GemmLayout::NT;
  problem.x = stand_in(Tensor::activation, along_rows);
  problem.dy = stand_in(Tensor::gradient, along_rows);
  problem.w = stand_in(Tensor::weight, layout == GemmLayout::NN);
  return *view_of(problem, somewhere).plan;
}

}  // namespace linear

void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  linear::forward(linear::kFast, config, shape, operands, y);
}
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  linear::dgrad(linear::kFast, config, shape, operands, dx);
}
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  linear::wgrad(linear::kFast, config, shape, operands, dw);
}
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias) {
  linear::dbias(linear::kFast, config, shape, dy, dbias);
}

void linear_forward_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape,
                       const LinearForward& operands, void* y) {
  linear::forward({quantize, multiply, grouped_dbias}, config, shape, operands, y);
}
void linear_dgrad_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands,
                     void* dx) {
  linear::dgrad({quantize, multiply, grouped_dbias}, config, shape, operands, dx);
}
void linear_wgrad_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands,
                     void* dw) {
  linear::wgrad({quantize, multiply, grouped_dbias}, config, shape, operands, dw);
}

const AccumulationPlan& linear_plan(const LinearConfig& config, const LinearShape& shape, GemmLayout layout,
                                    const AccumulationPlan* plan) {
  linear::check_config(config);
  linear::check_shape(shape);
  return linear::check_product(config, shape, layout, plan);
}

namespace scalar {

void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y) {
  linear::forward(linear::kScalar, config, shape, operands, y);
}
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx) {
  linear::dgrad(linear::kScalar, config, shape, operands, dx);
}
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  linear::wgrad(linear::kScalar, config, shape, operands, dw);
}
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias) {
  linear::dbias(linear::kScalar, config, shape, dy, dbias);
}

}  // namespace scalar
}  // namespace assay
