#include "device/linear/step_layout.h"

#include <algorithm>

#include "device/linear/linear_checks.h"
#include "device/linear/linear_product.h"
#include "device/linear/linear_quantization.h"

namespace assay::device {
namespace {

// ---- Parts of a step -------------------------------------------------------------------------------------------------

struct Step : StepLayout {
  Parts parts;
  LinearConstants constants;
  std::int64_t scratch_bytes = 0;  // of the quantization or sum that needs most
  bool sizing;

  // Without a workspace the layout is the same: check_workspace() then reports what is missing.
  Step(const LinearCall& of, const LinearKernels& with, bool for_size)
      : StepLayout(of, with), parts(for_size ? nullptr : of.workspace), constants(of.constants), sizing(for_size) {}

  // Addresses for a call that is only sized and has none yet.
  static void fill_in(GroupedGemmCall& call) {
    const auto fill = [](auto& pointer) {
      if (pointer == nullptr) pointer = Parts(nullptr).take(0);
    };
    for (GemmOperand* operand : {&call.x, &call.w, &call.dy}) {
      if (operand->data_list == nullptr) fill(operand->data);
    }
    if (call.d_list == nullptr) fill(call.d);
  }

  Rows rows() const { return with_any_splits(call.rows); }

  const float* one() {
    if (constants.one == nullptr) constants.one = made_one = parts.take<float>(sizeof(float));
    return constants.one;
  }

  Rows weight_rows() {
    const int groups = call.rows.groups;
    if (groups == 1) return {call.N, nullptr, 1};
    if (constants.weight_splits == nullptr)
      constants.weight_splits = made_splits = parts.take<std::int64_t>(std::int64_t{8} * groups);
    return {groups * call.N, constants.weight_splits, groups};
  }

  void quantize(const LinearSource& source, const QuantizedStorage& storage, LinearReport::Quantized& quantized) {
    const std::vector<QuantizeCall> calls = quantize_calls(call.config, source, storage, call.status);
    scratch_bytes = std::max(scratch_bytes, quantize_bytes(calls, kernels));
    quantizations.insert(quantizations.end(), calls.begin(), calls.end());
    quantized.calls = static_cast<int>(calls.size());
    quantized.rowwise = storage.rowwise.data != nullptr;
    quantized.columnwise = storage.columnwise.data != nullptr;
  }

  // Rows of x or dy, as one direction or both; recipe none reads them as they are.
  GemmOperand rows_operand(const LinearSource& source, const QuantizedStorage& storage, bool columnwise,
                           LinearReport::Quantized& quantized) {
    if (!quantizes(call.config))
      return operand_of(call.config, source.tensor, {const_cast<void*>(source.x), nullptr, nullptr}, false);
    quantize(source, storage, quantized);
    return operand_of(call.config, source.tensor, columnwise ? storage.columnwise : storage.rowwise, columnwise);
  }

  GemmOperand weight_operand(const LinearWeights& w, const QuantizedStorage* cache, const float* scale, bool columnwise) {
    if (!quantizes(call.config)) {
      GemmOperand operand = operand_of(call.config, LinearTensor::weight, {const_cast<void*>(w.data), nullptr, nullptr}, false);
      operand.data_list = w.list;
      return operand;
    }
    if (cache != nullptr)
      return operand_of(call.config, LinearTensor::weight, columnwise ? cache->columnwise : cache->rowwise, columnwise);
    LinearSource source = weight_source(w, scale);
    const QuantizedStorage storage = own_storage(LinearTensor::weight, source.rows.capacity, call.K, !columnwise, columnwise);
    quantize(source, storage, report.w);
    return operand_of(call.config, LinearTensor::weight, columnwise ? storage.columnwise : storage.rowwise, columnwise);
  }

  LinearSource weight_source(const LinearWeights& w, const float* scale) {
    LinearSource source;
    source.tensor = LinearTensor::weight;
    source.x = w.data;
    source.list = w.list;
    source.rows = w.list != nullptr ? Rows{call.rows.groups * call.N, nullptr, call.rows.groups} : weight_rows();
    source.rows_multiple = std::max<std::int64_t>(call.N, 1);
    source.columns = call.K;
    source.scale = scale;
    return source;
  }

  QuantizedStorage own_storage(LinearTensor tensor, std::int64_t capacity, std::int64_t columns, bool rowwise, bool columnwise) {
    if (!quantizes(call.config)) return {};
    const std::int64_t alignment = call.column_alignment;
    const std::int64_t bytes =
        quantized_storage_bytes(call.config, tensor, capacity, call.rows.groups, columns, rowwise, columnwise, alignment);
    return quantized_storage(parts.take(bytes), call.config, tensor, capacity, call.rows.groups, columns, rowwise, columnwise,
                             alignment);
  }

  // Rowwise in the workspace, columnwise in the caller's buffers, if any.
  QuantizedStorage rowwise_storage(LinearTensor tensor, std::int64_t columns, const QuantizedDirection& columnwise) {
    QuantizedStorage storage = own_storage(tensor, call.rows.capacity, columns, true, false);
    storage.columnwise = columnwise;
    if (columnwise.data != nullptr && is_per_tensor(call.config.recipe)) storage.rowwise.scale_inv = columnwise.scale_inv;
    return storage;
  }

  // The gradient of the bias beside a quantization of dy in these directions: which kernel sums it.
  void add_dbias(const void* dy, void* dbias, LinearSource* quantized, bool rowwise, bool columnwise) {
    if (dbias == nullptr) return;
    if (quantized != nullptr && fuses_dbias(call.config.recipe, rowwise, columnwise)) {
      quantized->dbias = dbias;
      report.dbias = DbiasRoute::fused;
      return;
    }
    DbiasCall separate;
    separate.x_type = separate.output_type = call.config.type;
    separate.x = dy;
    separate.rows = rows();
    separate.columns = call.N;
    separate.dbias = dbias;
    separate.status = call.status;
    scratch_bytes = std::max(scratch_bytes, kernels.dbias_bytes(separate));
    sums = separate;
    report.dbias = DbiasRoute::separate;
  }

  GroupedGemmCall& start_product(GemmLayout layout, Format d_type) {
    product = product_of(call.config, layout, d_type);
    product->rows = rows();
    product->rows_multiple = call.rows_multiple;
    if (layout == GemmLayout::NT) product->column_alignment = call.column_alignment;
    product->N = call.N;
    product->K = call.K;
    product->status = call.status;
    return *product;
  }

  // After everything else is laid out.
  void lay_out_scratch() {
    void* const scratch = parts.take(scratch_bytes);
    for (QuantizeCall& each : quantizations) {
      each.workspace = scratch;
      each.workspace_bytes = scratch_bytes;
    }
    if (sums) {
      sums->workspace = scratch;
      sums->workspace_bytes = scratch_bytes;
    }
    if (product) {
      if (sizing) fill_in(*product);
      // It never overlaps anything else: the library may keep data there from one call to the next.
      product->workspace_bytes = product_workspace_bytes(call.path, *product, kernels);
      product->workspace = parts.take(product->workspace_bytes);
    }
  }
};

LinearSource rows_source(const Step& step, LinearTensor tensor, const void* x, const float* scale, float* amax) {
  LinearSource source;
  source.tensor = tensor;
  source.x = x;
  source.rows = step.rows();
  source.rows_multiple = step.call.rows_multiple;
  source.column_alignment = step.call.column_alignment;
  source.columns = tensor == LinearTensor::gradient ? step.call.N : step.call.K;
  source.scale = scale;
  source.amax = amax;
  return source;
}

// ---- The steps -------------------------------------------------------------------------------------------------------

void lay_out_parts(Step& step, const LinearForwardCall& call) {
  const QuantizedStorage x = step.rowwise_storage(LinearTensor::activation, call.K, call.x_columnwise);
  GroupedGemmCall& product = step.start_product(GemmLayout::TN, call.config.type);
  product.w = step.weight_operand(call.w, call.cache, call.w_scale, false);
  product.x =
      step.rows_operand(rows_source(step, LinearTensor::activation, call.x, call.x_scale, call.x_amax), x, false, step.report.x);
  product.bias = call.bias;
  product.d = call.y;
}

void lay_out_parts(Step& step, const LinearDgradCall& call) {
  const QuantizedStorage dy = step.rowwise_storage(LinearTensor::gradient, call.N, call.dy_columnwise);
  GroupedGemmCall& product = step.start_product(GemmLayout::NN, call.config.type);
  product.w = step.weight_operand(call.w, call.cache, call.w_scale, true);
  LinearSource source = rows_source(step, LinearTensor::gradient, call.dy, call.dy_scale, call.dy_amax);
  step.add_dbias(call.dy, call.dbias, &source, true, dy.columnwise.data != nullptr);
  product.dy = step.rows_operand(source, dy, false, step.report.dy);
  product.d = call.dx;
}

void lay_out_parts(Step& step, const LinearWgradCall& call) {
  GroupedGemmCall& product = step.start_product(GemmLayout::NT, call.dw_type);
  const auto operand = [&](LinearTensor tensor, const void* x, const QuantizedDirection& before, const float* scale, float* amax,
                           void* dbias, LinearReport::Quantized& quantized) {
    if (before.data != nullptr) return operand_of(call.config, tensor, before, true);
    LinearSource source = rows_source(step, tensor, x, scale, amax);
    QuantizedStorage storage = step.own_storage(tensor, call.rows.capacity, source.columns, false, true);
    if (tensor == LinearTensor::gradient) step.add_dbias(x, dbias, &source, false, true);
    return step.rows_operand(source, storage, true, quantized);
  };
  product.dy =
      operand(LinearTensor::gradient, call.dy, call.dy_columnwise, call.dy_scale, call.dy_amax, call.dbias, step.report.dy);
  product.x = operand(LinearTensor::activation, call.x, call.x_columnwise, call.x_scale, nullptr, nullptr, step.report.x);
  if (call.accumulate) product.beta = step.one();
  product.d = call.dw;
  product.d_list = call.dw_list;
}

void lay_out_parts(Step& step, const LinearGradientCall& call) {
  LinearSource source = rows_source(step, LinearTensor::gradient, call.dy, call.dy_scale, call.dy_amax);
  step.add_dbias(call.dy, call.dbias, &source, false, true);
  step.quantize(source, {{}, call.dy_columnwise}, step.report.dy);
}

void lay_out_parts(Step& step, const LinearWeightsCall& call) {
  LinearSource source = step.weight_source(call.w, call.w_scale);
  source.amax = call.w_amax;
  source.noop = call.noop;
  step.quantize(source, call.cache, step.report.w);
}

void lay_out_parts(Step& step, const LinearDbiasCall& call) { step.add_dbias(call.dy, call.dbias, nullptr, false, false); }

}  // namespace

template <class Call>
StepLayout lay_out(const Call& call, const LinearKernels& kernels, bool for_size) {
  Step step(call, kernels, for_size);
  lay_out_parts(step, call);
  step.lay_out_scratch();
  step.workspace_bytes = step.parts.bytes();
  return step;
}
template StepLayout lay_out(const LinearForwardCall&, const LinearKernels&, bool);
template StepLayout lay_out(const LinearDgradCall&, const LinearKernels&, bool);
template StepLayout lay_out(const LinearWgradCall&, const LinearKernels&, bool);
template StepLayout lay_out(const LinearGradientCall&, const LinearKernels&, bool);
template StepLayout lay_out(const LinearWeightsCall&, const LinearKernels&, bool);
template StepLayout lay_out(const LinearDbiasCall&, const LinearKernels&, bool);

}  // namespace assay::device
