// Quantization with one scale for each group, and the update of delayed scaling.

#include <cstddef>
#include <cstring>
#include <string>

#include "conformance/backends/device/call_parts.h"
#include "conformance/backends/device/device_call.h"
#include "conformance/ops/words.h"
#include "device/quantize/delayed_scaling.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::mutants {

using conformance::Request;

const char* const kRoom = "per_tensor";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {"quantize recipe=tensor_delayed R=128 K=40 seed=1",
                              "quantize recipe=tensor_delayed x_type=f32 direction=columnwise R=1 K=250000 seed=1",
                              // More groups than threads of a block, most of them empty.
                              "quantize recipe=tensor_delayed splits=5,600x0,7,400x0,9 K=40 seed=1",
                              // Two groups in one window, a group for each row of a window, and rows behind those that are used.
                              "quantize recipe=tensor_delayed outputs=all splits=40,50 K=40 seed=1",
                              "quantize recipe=tensor_delayed scales=negative outputs=all splits=400x1 K=40 seed=1",
                              "quantize recipe=tensor_delayed splits=50,60 extra_rows=60 K=40 seed=1",
                              "quantize recipe=tensor_delayed noop=1 R=64 K=64 seed=1",
                              "quantize recipe=tensor_current outputs=all noop=1 splits=13,33,0,50 K=64 seed=1",
                              // Maxima of NaN and of zeros alone.
                              "quantize recipe=tensor_delayed outputs=all splits=13,33,0,50 K=512 data=nans seed=3",
                              "quantize recipe=tensor_current splits=13,33,0,50 K=512 data=nans seed=3",
                              "quantize recipe=tensor_current R=64 K=512 data=zeros seed=1",
                              "quantize recipe=tensor_current splits=1,0,63 K=512 data=zeros seed=1",
                              "quantize recipe=tensor_delayed outputs=all R=128 K=64 data=zeros seed=1",
                              "quantize recipe=tensor_delayed outputs=all R=40 K=64 data=zeros seed=1",
                              "quantize recipe=tensor_delayed outputs=all splits=13,33,0,50 K=64 data=zeros seed=1",
                              // Histories longer than the rows that 32 warps move at a time, and than a window.
                              "delayed_update tensors=33 length=300 seed=1", "delayed_update tensors=1 length=40 seed=1",
                              // Faults that one kernel alone reports.
                              "quantize recipe=tensor_delayed outputs=scale_inv splits=5,0,17,9 K=40 seed=1 fault=negative_split",
                              "quantize recipe=tensor_delayed direction=rowwise splits=5,0,17,9 K=40 seed=1 fault=negative_split",
                              "quantize recipe=tensor_delayed direction=rowwise splits=5,0,17,9 K=40 seed=1 fault=excess_rows",
                              nullptr};

bool takes(const conformance::CaseLine& line) {
  if (line.op == "delayed_update") return true;
  const std::string recipe = line.op == "quantize" ? line.text("recipe") : "";
  return recipe == "tensor_current" || recipe == "tensor_delayed";
}

// x lies at a multiple of 16. Codes lie anywhere, and where vectors of 16, of 8 and of 4 bytes fit, each in some calls; all else where
// its elements may.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "x") return 0;
  const auto bytes = static_cast<std::size_t>(stored_bytes(tensor.type));
  if (bytes != 1) return bytes;
  constexpr std::size_t kPast[] = {0, 8, 1, 0, 4, 13, 2, 7};
  return kPast[tensor.bytes.size() * 0x9E37'79B1u >> 20 & 7];
}

namespace {

// What the second call of a trial has in the place of the first.

// An update in place: of the outputs, which begin as the inputs.
void update_in_place(Request& request) {
  for (auto& [name, output] : request.out) {
    if (output.data == nullptr) continue;
    std::memcpy(output.data, request.in.at(name).data, static_cast<std::size_t>(output.bytes));
    request.in.at(name).data = output.data;
  }
}

// amax, scale and scale_inv of current scaling, a call each, in place of what quantize() has stored; outputs begin as in `poisoned`.
void find_scales_alone(const Request& request, const Case& poisoned, std::uint32_t& status) {
  const auto output = [&](const char* name) {
    const auto found = request.out.find(name);
    if (found == request.out.end() || found->second.data == nullptr) return static_cast<float*>(nullptr);
    std::memcpy(found->second.data, poisoned.out.at(name).bytes.data(), static_cast<std::size_t>(found->second.bytes));
    return static_cast<float*>(found->second.data);
  };
  const QuantizeConfig config = quantize_config_of(request);
  const conformance::TensorView& x = request.input("x");
  const auto* const noop = conformance::floats(request.find_input("noop"));
  const conformance::Splits splits(request);
  device::Rows rows = splits.rows(x.shape[0]);
  splits.bind(rows, &status);
  float* const amax = output("amax");
  device::grouped_amax(x.type, x.data, rows, x.shape[1], noop, amax, &status, nullptr);
  const auto find = [&](float* scale, float* scale_inv) {
    device::scale_from_amax(amax, rows.groups, config.output, config.force_pow_2_scales, config.amax_epsilon, noop, scale,
                            scale_inv, nullptr);
  };
  find(output("scale"), nullptr);
  for (const char* direction : {"rowwise_scale_inv", "columnwise_scale_inv"}) find(nullptr, output(direction));
}

}  // namespace

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // of a device where kernels are launched early
  const Case poisoned = problem;
  Request request = Request::of(problem);
  if (device::host::reversed && request.op() == "delayed_update") update_in_place(request);
  std::uint32_t status = run_in_workspace(conformance::device_call(request, 1));
  const bool has_parts = request.op() == "quantize" && request.text("recipe") == "tensor_current" && request.wants("amax");
  if (device::host::reversed && has_parts && status == 0) find_scales_alone(request, poisoned, status);
  return status;
}

}  // namespace assay::mutants
