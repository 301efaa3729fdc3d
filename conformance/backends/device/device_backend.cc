// Backend `device`: the device library.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/backends/device/pow2_scales.h"
#include "conformance/ops/request.h"
#include "device/support/launch_check.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

class DeviceCalls : public CudaCalls {
 public:
  explicit DeviceCalls(GemmOptions options) : options_(options) {}

  std::string software() override { return describe_gemm_path(options_); }

  // Reads splits and scales: callers of the library need not, but here they decide which promises are made.
  void look(const assay_call& call) override {
    if ((options_.rows_multiple == 1 && !options_.pow2_scales) || call.op == nullptr) return;
    const Request request = Request::of(call);
    const std::optional<Scales> scales = scales_of(request);
    if (scales) promised_scales_.erase(scales->addresses());
    const TensorView* tensor = request.find_input("splits");
    if (tensor == nullptr || tensor->data == nullptr || tensor->type != Format::i64) return;
    const std::vector<std::int64_t> splits = from_device<std::int64_t>(*tensor);
    const bool holds =
        std::all_of(splits.begin(), splits.end(), [&](std::int64_t rows) { return rows % options_.rows_multiple == 0; });
    holds ? (void)promised_rows_.insert(tensor->data) : (void)promised_rows_.erase(tensor->data);
    const auto are_pow2 = [&](const TensorView& of, const char* columns) {
      return are_pow2_scales(from_device<float>(of), splits, request.integer_or(columns, -1));
    };
    if (options_.pow2_scales && scales && are_pow2(*scales->dy, "N") && are_pow2(*scales->x, "K"))
      promised_scales_.insert(scales->addresses());
  }

  DeviceCall prepare(const assay_call& call) override {
    if (call.algorithm != -1) throw NotSupported("the device has one algorithm for this; pin none");
    const Request request = Request::of(call);
    DeviceCall any_rows = made_with(request, options_with(1));
    const GemmOptions promising = options_for(request);
    if (promising.rows_multiple == 1 && !promising.pow2_scales) return any_rows;
    DeviceCall made = made_with(request, promising);
    // The size of the workspace is asked before supports(), and so before it is known whether the splits keep the promise.
    made.workspace_bytes = std::max(made.workspace_bytes, any_rows.workspace_bytes);
    return made;
  }

  void state(const assay_call& call, assay_numerics& numerics) override {
    const Request request = Request::of(call);
    if (request.op() == "grouped_gemm") return state_gemm(request, options_for(request), numerics);
    numerics.keeps_zero_sign = request.text_or("zero_sign", "kept") == "positive" ? 0 : 1;
    if (is_linear(request)) state_linear(request, options_for(request), numerics);
  }

 private:
  // Of NT with FP8 blocks.
  struct Scales {
    const TensorView *dy, *x;
    std::pair<const void*, const void*> addresses() const { return {dy->data, x->data}; }
  };
  static std::optional<Scales> scales_of(const Request& request) {
    if (request.op() != "grouped_gemm") return std::nullopt;
    const Scales scales{request.find_input("dy_columnwise_scale_inv"), request.find_input("x_columnwise_scale_inv")};
    for (const TensorView* each : {scales.dy, scales.x}) {
      if (each == nullptr || each->data == nullptr || each->type != Format::f32) return std::nullopt;
    }
    return scales;
  }

  template <class T>
  static std::vector<T> from_device(const TensorView& tensor) {
    std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
    device::check_cuda(cudaMemcpy(values.data(), tensor.data, values.size() * sizeof(T), cudaMemcpyDeviceToHost),
                       "read splits and scales");
    return values;
  }
  GemmOptions options_with(std::int64_t rows_multiple, bool pow2_scales = false) const {
    GemmOptions options = options_;
    options.rows_multiple = rows_multiple, options.pow2_scales = pow2_scales;
    return options;
  }
  // With the promises that the tensors keep.
  GemmOptions options_for(const Request& request) const {
    const TensorView* splits = request.find_input("splits");
    const std::optional<Scales> scales = scales_of(request);
    return options_with(splits != nullptr && promised_rows_.contains(splits->data) ? options_.rows_multiple : 1,
                        scales && promised_scales_.contains(scales->addresses()));
  }
  static DeviceCall made_with(const Request& request, const GemmOptions& options) {
    if (request.op() == "grouped_gemm") return gemm_call(request, options);
    return is_linear(request) ? linear_call(request, options) : device_call(request, options.rows_multiple);
  }

  GemmOptions options_;
  std::set<const void*> promised_rows_;                            // addresses of splits that keep the promise
  std::set<std::pair<const void*, const void*>> promised_scales_;  // the same of scales
};

std::unique_ptr<CudaCalls> open_device(const std::vector<std::string>& options) {
  return std::make_unique<DeviceCalls>(gemm_options(options, true));
}

constexpr CudaBackend kDevice{
    "device", "the CUDA implementation: quantization, offsets, layouts, tokens to experts, grouped GEMM and grouped linear",
    kGemmOptionsHelp, open_device};

}  // namespace

const assay_backend* device_backend() { return cuda_table<kDevice>(); }

}  // namespace assay::conformance
