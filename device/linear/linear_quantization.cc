#include "device/linear/linear_quantization.h"

#include <algorithm>

#include "device/linear/linear_product.h"

namespace assay::device {
namespace {

Recipe recipe_of(const LinearConfig& config, LinearTensor tensor) {
  switch (config.recipe) {
    case LinearRecipe::tensor_delayed: return Recipe::tensor_delayed;
    case LinearRecipe::block: return tensor == LinearTensor::weight ? Recipe::block_128x128 : Recipe::block_1x128;
    case LinearRecipe::mxfp8: return Recipe::mxfp8;
    case LinearRecipe::nvfp4: return Recipe::nvfp4;
    case LinearRecipe::tensor_current:
    case LinearRecipe::none: break;
  }
  return Recipe::tensor_current;
}

QuantizeConfig quantize_config(const LinearConfig& config, LinearTensor tensor, bool rowwise, bool columnwise) {
  QuantizeConfig made;
  made.recipe = recipe_of(config, tensor);
  made.output = code_of(config, tensor);
  made.rowwise = rowwise;
  made.columnwise = columnwise;
  if (config.recipe == LinearRecipe::tensor_current || config.recipe == LinearRecipe::block) {
    made.force_pow_2_scales = config.powers_of_two();
    made.amax_epsilon = config.amax_epsilon;
  }
  if (tensor == LinearTensor::activation) made.activation = config.activation;
  if (config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4) made.scale_layout = ScaleLayout::swizzled;
  if (config.recipe == LinearRecipe::nvfp4) {
    made.two_dimensional = tensor == LinearTensor::weight;
    made.hadamard = tensor != LinearTensor::weight && columnwise;
    if (made.hadamard) made.hadamard_sign_mask = config.hadamard_sign_mask;
  }
  return made;
}

QuantizeOutput quantize_output(const LinearConfig& config, LinearTensor tensor, const QuantizedStorage& storage) {
  QuantizeOutput output;
  output.rowwise_data = storage.rowwise.data;
  output.columnwise_data = storage.columnwise.data;
  const bool rowwise = storage.rowwise.data != nullptr;
  if (is_per_tensor(config.recipe)) {  // one scale_inv for both directions
    output.rowwise_scale_inv = rowwise ? storage.rowwise.scale_inv : storage.columnwise.scale_inv;
  } else {
    output.rowwise_scale_inv = storage.rowwise.scale_inv;
    output.columnwise_scale_inv = storage.columnwise.scale_inv;
  }
  if (config.recipe == LinearRecipe::nvfp4) {
    output.amax = storage.rowwise.amax;
    // Weights have one amax for both directions, and it must not be written twice.
    if (tensor != LinearTensor::weight || !rowwise) output.columnwise_amax = storage.columnwise.amax;
  }
  return output;
}

template <class Type>
Type* moved(Type* pointer, std::int64_t bytes) {
  if (pointer == nullptr) return nullptr;
  return reinterpret_cast<Type*>(reinterpret_cast<std::uintptr_t>(pointer) + static_cast<std::uintptr_t>(bytes));
}

// The part of group t, when every group has these bytes.
QuantizedDirection part_of(const QuantizedDirection& all, const QuantizedBytes& each, int t) {
  return {moved(all.data, t * each.data), moved(all.scale_inv, t * each.scale_inv), moved(all.amax, t * each.amax)};
}

}  // namespace

std::vector<QuantizeCall> quantize_calls(const LinearConfig& config, const LinearSource& source, const QuantizedStorage& storage,
                                         std::uint32_t* status) {
  QuantizeCall call;
  call.config = quantize_config(config, source.tensor, storage.rowwise.data != nullptr, storage.columnwise.data != nullptr);
  call.config.dbias = source.dbias != nullptr;
  call.x_type = config.type;
  call.x = source.x;
  call.rows = source.rows;
  call.rows_multiple = source.rows_multiple;
  call.column_alignment = source.column_alignment;
  call.columns = source.columns;
  call.scale = config.recipe == LinearRecipe::tensor_delayed ? source.scale : nullptr;
  call.noop = source.noop;
  call.output = quantize_output(config, source.tensor, storage);
  call.output.dbias = source.dbias;
  if (is_per_tensor(config.recipe)) call.output.amax = source.amax;
  call.status = status;
  if (source.list == nullptr) return {call};

  const int groups = source.rows.groups;
  const std::int64_t rows = groups == 0 ? 0 : source.rows.capacity / groups;
  const QuantizedBytes along_columns = quantized_bytes(config, source.tensor, rows, 1, source.columns, false);
  const QuantizedBytes along_rows = quantized_bytes(config, source.tensor, rows, 1, source.columns, true);
  std::vector<QuantizeCall> calls;
  for (int t = 0; t < groups; ++t) {
    QuantizeCall one = call;
    one.x = source.list[t];
    one.rows = {rows, nullptr, 1};
    one.scale = moved(call.scale, 4 * t);
    one.output = quantize_output(config, source.tensor,
                                 {part_of(storage.rowwise, along_columns, t), part_of(storage.columnwise, along_rows, t)});
    if (is_per_tensor(config.recipe)) one.output.amax = moved(source.amax, 4 * t);
    calls.push_back(one);
  }
  return calls;
}

std::int64_t quantize_bytes(const std::vector<QuantizeCall>& calls, const LinearKernels& kernels) {
  // Those of a list have equal sizes.
  return calls.empty() ? 0 : kernels.quantize_bytes(calls.front());
}

GemmOperand operand_of(const LinearConfig& config, LinearTensor tensor, const QuantizedDirection& from, bool columnwise) {
  GemmOperand operand;
  operand.type = code_of(config, tensor);
  operand.data = from.data;
  operand.scale_inv = from.scale_inv;
  operand.columnwise = columnwise;
  operand.amax = from.amax;
  return operand;
}

}  // namespace assay::device
