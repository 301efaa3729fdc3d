#pragma once
// Quantized weights of all groups, kept from one microbatch of a step to the next, and the flag that skips their renewal
// (spec grouped-linear-2.1, conventions-1.5).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/linear/linear_config.h"

namespace assay {

// What quantize() writes for a grouped tensor, by direction; a direction that is not kept is empty. The scales of the
// per-tensor recipes serve both directions and are always in rowwise_scale_inv.
struct QuantizedTensor {
  std::vector<std::byte> rowwise_data, rowwise_scale_inv, columnwise_data, columnwise_scale_inv;
  std::vector<float> amax;  // nvfp4: [G]
};

// Recipe none caches nothing. The caller chooses the directions before the first call: forward reads the rowwise one,
// dgrad the columnwise one. linear_quantize_weights() sets the other members, which identify the weights.
struct LinearWeightCache : QuantizedTensor {
  bool rowwise = true, columnwise = true;
  bool filled = false;
  LinearRecipe recipe = LinearRecipe::none;
  Format code = Format::e4m3;
  std::int64_t groups = 0, N = 0, K = 0;
};

// Quantizes w [G*N, K] into `cache`, in the directions that it keeps. `scale` [G]: tensor_delayed.
//
//   noop null, or any value but 1     all of the cache is renewed; buffers of other sizes are replaced
//   noop exactly 1.0                  all of it stays as it is: data, scales and amax of both directions; w is not read
//
// Padding of compact scales is never written in a cache of the right sizes. Errors (InvalidArgument): as quantize(); a skip
// with a cache that check_weight_cache() rejects. The cache is then unchanged.
void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache);

// Errors (InvalidArgument), naming the member: a cache that was never filled, or was filled for another recipe, type of
// code or shape, or whose buffers have other sizes than these require. Recipe none accepts every cache.
void check_weight_cache(const LinearConfig& config, const LinearShape& shape, const LinearWeightCache& cache);

namespace scalar {
// The same through the scalar layer of quantize().
void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache);
}  // namespace scalar

}  // namespace assay
