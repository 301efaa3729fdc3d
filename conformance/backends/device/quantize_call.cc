#include "conformance/backends/device/quantize_call.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "conformance/ops/words.h"
#include "device/quantize/quantize.h"
#include "device/support/copy.h"
#include "device/support/launch_check.h"

namespace assay::conformance {
namespace {

// An input f32[G], or f32[1] that holds for every group and is repeated in the workspace.
class OneAGroup {
 public:
  OneAGroup(const Request& request, const char* name, int groups, Parts& parts) : groups_(groups) {
    const TensorView* tensor = request.find_input(name, Format::f32);
    if (tensor == nullptr) return;
    repeated_ = tensor->elements() == 1 && groups != 1;
    if (!repeated_) request.input(name, Format::f32, groups);
    data_ = static_cast<const float*>(tensor->data);
    if (repeated_) offset_ = parts.add(std::int64_t{groups} * 4);
  }
  const float* given() const { return data_; }
  const float* bind(void* workspace, device::Stream stream) const {
    if (!repeated_ || groups_ == 0) return data_;
    auto* all = part<float>(workspace, offset_);
    const auto copy = [&](float* to, const float* from, int count) {
      device::check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * 4, cudaMemcpyDeviceToDevice, stream),
                         "repeat an amax");
    };
    copy(all, data_, 1);
    for (int done = 1; done < groups_; done *= 2) copy(all + done, all, std::min(done, groups_ - done));
    return all;
  }

 private:
  int groups_;
  const float* data_ = nullptr;
  bool repeated_ = false;
  std::int64_t offset_ = 0;
};

const std::uint8_t* random_bytes(const Request& request, const char* name, std::int64_t elements) {
  const TensorView* tensor = request.find_input(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->bytes < elements)
    throw InvalidArgument(std::string("in/") + name, describe(*tensor), "one byte for each element of x");
  return static_cast<const std::uint8_t*>(tensor->data);
}

// Nothing to write: no kernel is launched, as where the skip flag is set none reads the splits.
bool has_no_output(const Request& request) {
  return std::none_of(request.out.begin(), request.out.end(), [](const auto& each) { return each.second.data != nullptr; });
}

}  // namespace

DeviceCall quantize_call(const Request& request, std::int64_t rows_multiple, std::int64_t column_alignment) {
  Parts parts;
  device::QuantizeCall call;
  call.config = quantize_config_of(request);
  QuantizeConfig& config = call.config;
  const bool per_tensor = is_per_tensor(config.recipe), nvfp4 = config.recipe == Recipe::nvfp4;
  const TensorView& x = request.input("x");
  call.columns = code_columns(config, x);
  call.column_alignment = column_alignment;
  call.x_type = x.type;
  call.x = x.data;
  const Splits splits(request);
  call.rows = splits.rows(x.shape[0]);
  const int groups = splits.groups();
  if (config.recipe == Recipe::tensor_delayed) {
    call.scale = static_cast<const float*>(request.input("scale", Format::f32, groups).data);
  }
  const OneAGroup amax(request, "amax", groups, parts), columnwise_amax(request, "columnwise_amax", groups, parts);
  call.noop = floats(request.find_input("noop", Format::f32, 1));
  const std::int64_t elements = x.elements() / matrices_in_x(config.activation);
  call.rowwise_random = random_bytes(request, "rowwise_random", elements);
  call.columnwise_random = random_bytes(request, "columnwise_random", elements);

  config.rowwise = request.wants("rowwise_data") || request.wants("rowwise_scale_inv") || (nvfp4 && request.wants("amax"));
  config.columnwise =
      request.wants("columnwise_data") || request.wants("columnwise_scale_inv") || (nvfp4 && request.wants("columnwise_amax"));
  call.draws = quantize_draws_of(request, groups);
  request.refuse_unknown();
  std::vector<std::string> known = {"rowwise_data", "columnwise_data", "rowwise_scale_inv", "columnwise_scale_inv", "dbias"};
  if (per_tensor || nvfp4) known.push_back("amax");
  if (nvfp4) known.push_back("columnwise_amax");
  if (config.recipe == Recipe::tensor_current) known.push_back("scale");
  refuse_other_outputs(request, known);

  const std::int64_t bytes = code_bytes(config.recipe, elements);
  device::QuantizeCall sized = call;
  QuantizeOutput& output = call.output;
  output.rowwise_data = request.output("rowwise_data", config.output, bytes);
  output.columnwise_data = request.output("columnwise_data", config.output, bytes);
  float* twin = nullptr;  // per-tensor recipes: one scale_inv by two names
  if (per_tensor) {
    output.rowwise_scale_inv = request.output("rowwise_scale_inv", Format::f32, groups);
    twin = static_cast<float*>(request.output("columnwise_scale_inv", Format::f32, groups));
    if (output.rowwise_scale_inv == nullptr) output.rowwise_scale_inv = std::exchange(twin, nullptr);
  } else {
    output.rowwise_scale_inv = output_of_any_size(request, "rowwise_scale_inv", scale_format(config.recipe));
    output.columnwise_scale_inv = output_of_any_size(request, "columnwise_scale_inv", scale_format(config.recipe));
  }
  output.amax = static_cast<float*>(request.output("amax", Format::f32, groups));
  output.columnwise_amax = static_cast<float*>(request.output("columnwise_amax", Format::f32, groups));
  output.scale = static_cast<float*>(request.output("scale", Format::f32, groups));
  output.dbias = request.output("dbias", x.type, groups * call.columns);

  const bool may_read_no_splits = call.noop != nullptr || elements == 0 || has_no_output(request);
  sized.output = output;
  sized.amax = amax.given();
  sized.columnwise_amax = columnwise_amax.given();
  call.workspace_bytes = device::quantize_workspace_bytes(sized);
  const std::int64_t own = parts.add(call.workspace_bytes);
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            device::QuantizeCall ready = call;
            splits.bind(ready.rows, status);
            ready.rows_multiple = rows_multiple;
            ready.workspace = ready.workspace_bytes == 0 ? nullptr : part<void>(workspace, own);
            ready.status = status;
            if (nvfp4) {
              ready.amax = amax.given(), ready.columnwise_amax = columnwise_amax.given();
              device::check_quantize(ready);  // before anything is enqueued
              ready.amax = amax.bind(workspace, stream);
              ready.columnwise_amax = columnwise_amax.bind(workspace, stream);
            }
            device::quantize(ready, stream);
            if (may_read_no_splits) splits.check(ready.rows.capacity, status, stream);
            if (twin != nullptr) {
              device::copy_unless_skipped(ready.noop, static_cast<const float*>(ready.output.rowwise_scale_inv), twin, groups,
                                          stream);
            }
          }};
}

}  // namespace assay::conformance
