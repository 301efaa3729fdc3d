#pragma once
// How each recipe quantizes each tensor of a grouped linear layer. Every rounding is quantize()'s.

#include <vector>

#include "device/linear/linear_kernels.h"
#include "device/linear/linear_parts.h"
#include "device/linear/linear_steps.h"
#include "device/linear/linear_storage.h"

namespace assay::device {

// One tensor of all groups, about to be quantized.
struct LinearSource {
  LinearTensor tensor = LinearTensor::activation;
  const void* x = nullptr;
  const void* const* list = nullptr;  // weights, in place of x
  Rows rows;                          // of weights: G groups of N rows each
  std::int64_t rows_multiple = 1;     // promised: QuantizeCall::rows_multiple
  std::int64_t column_alignment = 1;  // QuantizeCall's
  std::int64_t columns = 0;
  const float* scale = nullptr;  // tensor_delayed
  float* amax = nullptr;         // per-tensor recipes: written, if not null
  const float* noop = nullptr;
  void* dbias = nullptr;  // summed in the same pass, if not null
};

// Calls of quantize() that write `storage` in the directions that it has: one, or one per group for a list. Their workspace
// is not yet in them.
std::vector<QuantizeCall> quantize_calls(const LinearConfig& config, const LinearSource& source, const QuantizedStorage& storage,
                                         std::uint32_t* status);

// The workspace of the largest of them; they run one after another.
std::int64_t quantize_bytes(const std::vector<QuantizeCall>& calls, const LinearKernels& kernels);

// A direction of a quantized tensor as an operand of the product.
GemmOperand operand_of(const LinearConfig& config, LinearTensor tensor, const QuantizedDirection& from, bool columnwise);

}  // namespace assay::device
