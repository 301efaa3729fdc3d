#include "reference/linear/weight_cache.h"

#include <string_view>
#include <utility>

#include "reference/linear/linear_quantization.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

void check_weights(const LinearConfig& config, const LinearShape& shape) {
  linear::check_config(config);
  linear::check_shape(shape);
}

void check_packing(const LinearConfig& config, const LinearShape& shape, const LinearWeightCache& cache) {
  if (cache.rowwise) linear::check_packing(config, shape.K, "K");
  if (cache.columnwise) linear::check_packing(config, shape.N, "N");
}

void require_bytes(const std::vector<std::byte>& held, const OutputShape& shape, std::string_view name) {
  const std::int64_t bytes = shape.bytes();
  require(static_cast<std::int64_t>(held.size()) == bytes, name, held.size(), show(bytes) + " bytes for this shape and recipe");
}

void quantize_weights(const linear::Layer& layer, const LinearConfig& config, const LinearShape& shape, const void* w,
                      const float* scale, const float* noop, LinearWeightCache& cache) {
  check_weights(config, shape);
  if (config.recipe == LinearRecipe::none) return;
  if (noop != nullptr) linear::check_buffer(noop, 1, Format::f32, "noop");
  if (noop != nullptr && *noop == 1.0f) return check_weight_cache(config, shape, cache);

  const auto groups = static_cast<std::int64_t>(shape.splits.size());
  check_packing(config, shape, cache);
  linear::check_buffer(w, groups * shape.N * shape.K, config.type, "w");
  if (config.recipe == LinearRecipe::tensor_delayed) linear::check_buffer(scale, groups, Format::f32, "scale");
  LinearWeightCache made = cache;
  linear::quantize_into(layer, config, linear::weight_source(shape, w, scale), cache.rowwise, cache.columnwise, made);
  made.filled = true;
  made.recipe = config.recipe;
  made.code = linear::code_of(config, linear::Tensor::weight);
  made.groups = groups;
  made.N = shape.N;
  made.K = shape.K;
  cache = std::move(made);
}

}  // namespace

void check_weight_cache(const LinearConfig& config, const LinearShape& shape, const LinearWeightCache& cache) {
  check_weights(config, shape);
  if (config.recipe == LinearRecipe::none) return;
  const auto groups = static_cast<std::int64_t>(shape.splits.size());
  const Format code = linear::code_of(config, linear::Tensor::weight);
  require(cache.filled, "cache.filled", cache.filled, "a cache that linear_quantize_weights() has filled");
  require(cache.recipe == config.recipe, "cache.recipe", name_of(cache.recipe),
          "the recipe of this layer, " + std::string(name_of(config.recipe)));
  require(cache.code == code, "cache.code", name_of(cache.code), "the codes of this layer, " + std::string(name_of(code)));
  require(cache.groups == groups, "cache.groups", cache.groups, "one for each of the splits (" + show(groups) + ")");
  require(cache.N == shape.N, "cache.N", cache.N, "the N of this layer, " + show(shape.N));
  require(cache.K == shape.K, "cache.K", cache.K, "the K of this layer, " + show(shape.K));

  check_packing(config, shape, cache);
  const linear::Source source = linear::weight_source(shape, nullptr, nullptr);
  const QuantizeShapes shapes = quantize_outputs(linear::quantize_problem(config, source, cache.rowwise, cache.columnwise));
  require_bytes(cache.rowwise_data, shapes.rowwise_data, "cache.rowwise_data");
  require_bytes(cache.rowwise_scale_inv, shapes.rowwise_scale_inv, "cache.rowwise_scale_inv");
  require_bytes(cache.columnwise_data, shapes.columnwise_data, "cache.columnwise_data");
  require_bytes(cache.columnwise_scale_inv, shapes.columnwise_scale_inv, "cache.columnwise_scale_inv");
  const std::size_t amaxes = config.recipe == LinearRecipe::nvfp4 ? shape.splits.size() : 0;
  require(cache.amax.size() == amaxes, "cache.amax", cache.amax.size(), show(amaxes) + " values for this recipe");
}

void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache) {
  quantize_weights(linear::kFast, config, shape, w, scale, noop, cache);
}

void scalar::linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                                     const float* noop, LinearWeightCache& cache) {
  quantize_weights(linear::kScalar, config, shape, w, scale, noop, cache);
}

}  // namespace assay
