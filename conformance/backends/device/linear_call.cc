#include "conformance/backends/device/linear_call.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "conformance/backends/device/call_parts.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/linear_step.h"
#include "conformance/ops/linear_request.h"
#include "conformance/ops/words.h"
#include "device/linear/linear_kernels.h"
#include "device/linear/linear_product.h"
#include "device/linear/linear_steps.h"
#include "device/linear/prepared_step.h"

namespace assay::conformance {
namespace {

void copy(void* to, const void* from, std::int64_t bytes, device::Stream stream) {
  if (bytes == 0) return;
  device::check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
                     "copy within the device");
}

// Outputs that a step gives beside its product.
void* dbias_of(const Request& request, const Step& step) {
  return request.output("dbias", step.call.config.type, step.groups() * step.call.N);
}

// A forward step as it is run. With a skip flag the layer has a weight cache. It lives in the workspace: the inputs are what it
// holds before the step, the outputs of the same names what it holds after it.
struct ForwardRun {
  device::LinearForwardCall call;
  Splits splits;
  std::int64_t rows_multiple = 0, own = 0;  // memory is that of any rows
  bool empty = false;                       // y has no elements
  bool cached = false;
  device::LinearWeightsCall renewal;
  TensorView data, scale, amax;
  void *data_out = nullptr, *scale_out = nullptr, *amax_out = nullptr;
  std::int64_t weight_rows = 0, cache_at = 0, renewal_at = 0;
  ScaleShape shape;  // of compact scales, whose padding is left alone

  explicit ForwardRun(const Splits& splits_of) : splits(splits_of) {}
  void take_cache(const Request& request, const Step& step, const TensorView* noop);
  device::QuantizedStorage storage(void* memory) const {
    return device::quantized_storage(memory, call.config, device::LinearTensor::weight, weight_rows, call.rows.groups, call.K,
                                     true, false);
  }
  void operator()(device::Stream stream, void* workspace, std::uint32_t* status) const;
  void fill(const device::QuantizedStorage& cache, device::Stream stream) const;
  void copy_scales(const device::QuantizedStorage& cache, device::Stream stream) const;
};

void ForwardRun::take_cache(const Request& request, const Step& step, const TensorView* noop) {
  const LinearRecipe recipe = call.config.recipe;
  require(recipe != LinearRecipe::none, "in/noop", "given", "none with recipe none, which keeps no weights");
  const bool swizzled = recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4;
  require((scale_layout_of(request) == ScaleLayout::swizzled) == swizzled, "attribute scale_layout",
          request.text_or("scale_layout", "compact"), swizzled ? "swizzled: the order of the cached scales" : "compact");
  const device::QuantizedBytes bytes = device::quantized_bytes(call.config, device::LinearTensor::weight, step.groups() * call.N,
                                                               static_cast<int>(step.groups()), call.K, false);
  data = request.input("w_rowwise_data");
  scale = request.input("w_rowwise_scale_inv");
  require(data.bytes == bytes.data, "in/w_rowwise_data", describe(data), std::to_string(bytes.data) + " bytes");
  require(scale.bytes == bytes.scale_inv, "in/w_rowwise_scale_inv", describe(scale), std::to_string(bytes.scale_inv) + " bytes");
  if (recipe == LinearRecipe::nvfp4) amax = request.input("w_rowwise_amax", Format::f32, step.groups());
  data_out = request.output("w_rowwise_data", data.type, data.elements());
  scale_out = request.output("w_rowwise_scale_inv", scale.type, scale.elements());
  if (recipe == LinearRecipe::nvfp4) amax_out = request.output("w_rowwise_amax", Format::f32, step.groups());
  static_cast<device::LinearCall&>(renewal) = call;
  renewal.w = call.w;
  renewal.w_scale = call.w_scale;
  renewal.noop = floats(noop);
  cached = true;
}

void ForwardRun::operator()(device::Stream stream, void* workspace, std::uint32_t* status) const {
  device::LinearForwardCall ready = call;
  splits.bind(ready.rows, status);
  ready.rows_multiple = rows_multiple;
  ready.status = status;
  ready.workspace = part<void>(workspace, own);
  device::QuantizedStorage cache;
  device::LinearWeightsCall renew = renewal;
  device::PreparedStep renewed, forward;  // checked before anything is enqueued
  if (cached) {
    cache = storage(part<void>(workspace, cache_at));
    ready.cache = &cache;
    renew.rows = ready.rows;
    renew.status = ready.status;
    renew.cache = cache;
    renew.workspace = part<void>(workspace, renewal_at);
    renewed = device::PreparedStep(renew, device::device_kernels());
  }
  if (ready.y != nullptr || empty) forward = device::PreparedStep(ready, device::device_kernels());
  if (cached) {
    fill(cache, stream);
    renewed.launch(stream);
  }
  if (ready.y != nullptr) {
    forward.launch(stream);
  } else {
    splits.check(ready.rows.capacity, status, stream);
  }
  if (data_out != nullptr) copy(data_out, cache.rowwise.data, data.bytes, stream);
  if (amax_out != nullptr) copy(amax_out, cache.rowwise.amax, amax.bytes, stream);
  if (scale_out != nullptr) copy_scales(cache, stream);
}

// The cache as the inputs have it: it is renewed next, unless the flag says otherwise.
void ForwardRun::fill(const device::QuantizedStorage& cache, device::Stream stream) const {
  copy(cache.rowwise.data, data.data, data.bytes, stream);
  copy(cache.rowwise.scale_inv, scale.data, scale.bytes, stream);
  if (cache.rowwise.amax != nullptr) copy(cache.rowwise.amax, amax.data, amax.bytes, stream);
}

void ForwardRun::copy_scales(const device::QuantizedStorage& cache, device::Stream stream) const {
  if (shape.columns == shape.used_columns) return copy(scale_out, cache.rowwise.scale_inv, scale.bytes, stream);
  const auto pitch = static_cast<std::size_t>(shape.columns) * 4, width = static_cast<std::size_t>(shape.used_columns) * 4;
  const auto rows = static_cast<std::size_t>(scale.bytes) / pitch;
  if (width == 0 || rows == 0) return;
  device::check_cuda(
      cudaMemcpy2DAsync(scale_out, pitch, cache.rowwise.scale_inv, pitch, width, rows, cudaMemcpyDeviceToDevice, stream),
      "copy cached scales");
}

DeviceCall forward_call(const Request& request, const GemmOptions& options) {
  Step step(request, "x");
  ForwardRun run(step.splits);
  device::LinearForwardCall& call = run.call;
  step.choose_path(options, GemmLayout::TN, step.call.config.type);
  static_cast<device::LinearCall&>(call) = step.call;
  call.x = request.input("x").data;
  call.w.data = request.input("w", call.config.type, step.weights()).data;
  if (const TensorView* bias = request.find_input("bias", call.config.type, step.groups() * call.N)) call.bias = bias->data;
  call.x_scale = step.scales(request, "x_scale");
  call.w_scale = step.scales(request, "w_scale");
  const TensorView* noop = request.find_input("noop", Format::f32, 1);
  std::vector<std::string> outputs{"y"};
  if (noop != nullptr) {
    run.take_cache(request, step, noop);
    outputs.insert(outputs.end(), {"w_rowwise_data", "w_rowwise_scale_inv", "w_rowwise_amax"});
  }
  request.refuse_unknown();
  refuse_other_outputs(request, outputs);
  call.y = request.output("y", call.config.type, call.rows.capacity * call.N);

  run.empty = call.rows.capacity == 0 || call.N == 0;
  run.weight_rows = step.groups() * call.N;
  if (run.cached) {
    run.renewal.cache = run.storage(later());
    run.cache_at = step.parts.add(device::quantized_storage_bytes(call.config, device::LinearTensor::weight, run.weight_rows,
                                                                  call.rows.groups, call.K, true, false));
    run.renewal.workspace_bytes = device::linear_quantize_weights_workspace_bytes(run.renewal);
    run.renewal_at = step.parts.add(run.renewal.workspace_bytes);
  }
  const device::QuantizedStorage shape_only = run.storage(later());
  call.cache = run.cached ? &shape_only : nullptr;
  call.workspace_bytes = device::linear_forward_workspace_bytes(call);
  run.own = step.parts.add(call.workspace_bytes);
  run.rows_multiple = options.promises.rows_multiple;
  if (call.config.recipe == LinearRecipe::block)
    run.shape = scale_shape(Recipe::block_128x128, Direction::rowwise, call.N, call.K);
  return {step.parts.bytes(), run};
}

// The gradient of the bias where no product is requested with it; `sums`: it is made.
device::LinearDbiasCall dbias_alone(const Step& step, const void* dy, void* dbias, bool sums) {
  device::LinearDbiasCall call;
  static_cast<device::LinearCall&>(call) = step.call;
  call.dy = dy;
  call.dbias = dbias;
  call.workspace_bytes = sums ? device::linear_dbias_workspace_bytes(call) : 0;
  return call;
}

DeviceCall dgrad_call(const Request& request, const GemmOptions& options) {
  Step step(request, "dy");
  device::LinearDgradCall call;
  step.choose_path(options, GemmLayout::NN, step.call.config.type);
  static_cast<device::LinearCall&>(call) = step.call;
  call.dy = request.input("dy").data;
  call.w.data = request.input("w", call.config.type, step.weights()).data;
  call.dy_scale = step.scales(request, "dy_scale");
  call.w_scale = step.scales(request, "w_scale");
  request.refuse_unknown();
  refuse_other_outputs(request, step.bias ? std::vector<std::string>{"dx", "dbias"} : std::vector<std::string>{"dx"});
  call.dx = request.output("dx", call.config.type, call.rows.capacity * call.K);
  call.dbias = dbias_of(request, step);
  const bool product = request.wants("dx");
  const bool sums = !product && call.dbias != nullptr;
  const device::LinearDbiasCall alone = dbias_alone(step, call.dy, call.dbias, sums);
  call.workspace_bytes = product ? device::linear_dgrad_workspace_bytes(call) : 0;
  const std::int64_t own = step.parts.add(std::max(call.workspace_bytes, alone.workspace_bytes));
  const Splits splits = step.splits;
  const std::int64_t rows_multiple = options.promises.rows_multiple;  // memory is that of any rows
  return {step.parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            const auto made_ready = [&](device::LinearCall& ready) {
              splits.bind(ready.rows, status);
              ready.rows_multiple = rows_multiple;
              ready.status = status;
              ready.workspace = part<void>(workspace, own);
            };
            device::LinearDgradCall ready = call;
            device::LinearDbiasCall ready_alone = alone;
            if (product) {
              made_ready(ready);
              device::linear_dgrad(ready, stream);
            } else if (sums) {
              made_ready(ready_alone);
              device::linear_dbias(ready_alone, stream);
            }
            if (call.dx == nullptr && call.dbias == nullptr) splits.check(call.rows.capacity, status, stream);
          }};
}

DeviceCall wgrad_call(const Request& request, const GemmOptions& options) {
  Step step(request, "dy");
  device::LinearWgradCall call;
  call.dw_type = request.format_or("dtype_d", Format::f32);
  step.choose_path(options, GemmLayout::NT, call.dw_type);
  static_cast<device::LinearCall&>(call) = step.call;
  call.dy = request.input("dy").data;
  const TensorView& x = step.matrix(request, "x", step.x_columns());
  require(x.shape[0] == call.rows.capacity, "rows of x", x.shape[0], "the rows of dy, " + std::to_string(call.rows.capacity));
  call.x = x.data;
  call.dy_scale = step.scales(request, "dy_scale");
  call.x_scale = step.scales(request, "x_scale");
  call.accumulate = request.flag("accumulate");
  const bool deferred = request.flag("deferred") && call.config.recipe != LinearRecipe::none;
  const TensorView before = call.accumulate ? request.input("main_grad", call.dw_type, step.weights()) : TensorView{};
  request.refuse_unknown();
  refuse_other_outputs(request, step.bias ? std::vector<std::string>{"dw", "dbias"} : std::vector<std::string>{"dw"});
  call.dw = request.output("dw", call.dw_type, step.weights());
  void* const dbias = dbias_of(request, step);
  const bool product = request.wants("dw");

  // Deferred: dy is quantized now, with the gradient of the bias, and the product follows from what was kept.
  device::LinearGradientCall kept;
  static_cast<device::LinearCall&>(kept) = step.call;
  kept.dy = call.dy;
  kept.dy_scale = call.dy_scale;
  kept.dbias = dbias;
  const auto storage = [=](void* memory) {
    return device::quantized_storage(memory, call.config, device::LinearTensor::gradient, call.rows.capacity, call.rows.groups,
                                     call.N, false, true, call.column_alignment)
        .columnwise;
  };
  std::int64_t kept_at = 0, first_at = 0;
  if (product && deferred) {
    kept.dy_columnwise = call.dy_columnwise = storage(later());
    call.dy = nullptr;
    call.dy_scale = nullptr;
    kept_at = step.parts.add(device::quantized_storage_bytes(call.config, device::LinearTensor::gradient, call.rows.capacity,
                                                             call.rows.groups, call.N, false, true, call.column_alignment));
    kept.workspace_bytes = device::linear_quantize_gradient_workspace_bytes(kept);
    first_at = step.parts.add(kept.workspace_bytes);
  } else {
    call.dbias = dbias;
  }
  const bool sums = !product && dbias != nullptr;
  const device::LinearDbiasCall alone = dbias_alone(step, kept.dy, dbias, sums);
  call.workspace_bytes = product ? device::linear_wgrad_workspace_bytes(call) : 0;
  const std::int64_t own = step.parts.add(std::max(call.workspace_bytes, alone.workspace_bytes));
  const Splits splits = step.splits;
  const std::int64_t rows_multiple = options.promises.rows_multiple;  // memory is that of any rows
  return {step.parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            device::Rows rows = call.rows;
            splits.bind(rows, status);
            const auto made_ready = [&](device::LinearCall& ready, std::int64_t at) {
              ready.rows = rows, ready.rows_multiple = rows_multiple;
              ready.status = status;
              ready.workspace = part<void>(workspace, at);
            };
            device::LinearWgradCall ready = call;
            device::LinearGradientCall ready_kept = kept;
            device::LinearDbiasCall ready_alone = alone;
            if (sums) {
              made_ready(ready_alone, own);
              device::linear_dbias(ready_alone, stream);
            }
            if (call.dw == nullptr && dbias == nullptr) splits.check(rows.capacity, status, stream);
            if (!product) return;
            device::PreparedStep first;
            if (deferred) {
              ready_kept.dy_columnwise = ready.dy_columnwise = storage(part<void>(workspace, kept_at));
              made_ready(ready_kept, first_at);
              first = device::PreparedStep(ready_kept, device::device_kernels());
            }
            made_ready(ready, own);
            device::PreparedStep second(ready, device::device_kernels());  // both are checked before anything is enqueued
            if (call.accumulate && call.dw != nullptr) copy(call.dw, before.data, before.bytes, stream);
            first.launch(stream);
            second.launch(stream);
          }};
}

}  // namespace

bool is_linear(const Request& request) { return request.op().starts_with("linear_"); }

void state_linear(const Request& request, const GemmOptions& options, assay_numerics& numerics) {
  const bool forward = request.op() == "linear_forward", wgrad = request.op() == "linear_wgrad";
  const GemmLayout layout = forward ? GemmLayout::TN : wgrad ? GemmLayout::NT : GemmLayout::NN;
  Step step(request, forward ? "x" : "dy");
  const Format d_type = wgrad ? request.format_or("dtype_d", Format::f32) : step.call.config.type;
  step.choose_path(options, layout, d_type);
  state_plan(step.plan_of(options, layout, d_type), numerics);
}

DeviceCall linear_call(const Request& request, const GemmOptions& options) {
  if (request.op() == "linear_forward") return forward_call(request, options);
  if (request.op() == "linear_dgrad") return dgrad_call(request, options);
  return wgrad_call(request, options);
}

}  // namespace assay::conformance
