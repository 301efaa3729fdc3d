#pragma once
// Shared by the steps of a grouped linear layer: the checks of the caller's arguments, and how each recipe
// quantizes each tensor. quantize() does every rounding.

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/quantize.h"

namespace assay::linear {

// The layer of quantize(), grouped_gemm() and grouped_dbias() that a step is made of.
struct Layer {
  decltype(&quantize) quantize_with;
  Multiply multiply_with;
  decltype(&grouped_dbias) sum_with;
};
inline const Layer kFast{quantize, grouped_gemm, grouped_dbias};
inline const Layer kScalar{scalar::quantize, scalar::grouped_gemm, scalar::grouped_dbias};

enum class Tensor { activation, gradient, weight };

inline bool has_swizzled_scales(LinearRecipe recipe) { return recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4; }

// Checks config and shape. Errors (InvalidArgument): an enum out of range, a type that the recipe does not take,
// negative sizes or splits, splits that sum to more than rows, sizes past int64.
void check_config(const LinearConfig& config);
void check_shape(const LinearShape& shape);
std::int64_t used_rows(const LinearShape& shape);

// Errors (InvalidArgument): null or misaligned although there are `elements`.
void check_buffer(const void* buffer, std::int64_t elements, Format type, std::string_view name);

// nvfp4 packs two codes of `extent` in a byte. Errors (InvalidArgument): an odd extent.
void check_packing(const LinearConfig& config, std::int64_t extent, std::string_view name);

// The checks of linear_wgrad() but for those of the product, which check_product() makes; used before work is deferred.
void check_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, const void* dw);

// Returns the plan of the product (`plan`, or if that is null the architecture's) after checking that it takes these types
// and sizes; buffers are checked elsewhere. Errors: those of grouped_gemm(), NotSupported among them.
const AccumulationPlan& check_product(const LinearConfig& config, const LinearShape& shape, GemmLayout layout,
                                      const AccumulationPlan* plan = nullptr);

// One tensor of all groups, about to be quantized.
struct Source {
  Tensor tensor = Tensor::activation;
  const void* x = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> splits;
  const float* scale = nullptr;
};
Source weight_source(const LinearShape& shape, const void* w, const float* scale);

Format code_of(const LinearConfig& config, Tensor tensor);
QuantizeProblem quantize_problem(const LinearConfig& config, const Source& source, bool rowwise, bool columnwise);

// Quantizes into `to`. Buffers that have the right size already keep the bytes that quantize() does not write.
void quantize_into(const Layer& layer, const LinearConfig& config, const Source& source, bool rowwise, bool columnwise,
                   QuantizedTensor& to);

// One direction of a quantized tensor, as the product reads it.
GemmOperand operand_of(const LinearConfig& config, Tensor tensor, const QuantizedTensor& from, bool columnwise);

}  // namespace assay::linear
