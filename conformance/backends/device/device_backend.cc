// Backend `device`: the device library.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <set>

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/ops/request.h"
#include "device/support/launch_check.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

class DeviceCalls : public CudaCalls {
 public:
  explicit DeviceCalls(GemmOptions options) : options_(options) {}

  std::string software() override { return describe_gemm_path(options_); }

  // Reads the splits: callers of the library need not, but here they decide whether rows_multiple is passed to it.
  void look(const assay_call& call) override {
    if (options_.rows_multiple == 1 || call.op == nullptr) return;
    const Request request = Request::of(call);
    const TensorView* tensor = request.find_input("splits");
    if (tensor == nullptr || tensor->data == nullptr || tensor->type != Format::i64) return;
    std::vector<std::int64_t> splits(static_cast<std::size_t>(tensor->elements()));
    device::check_cuda(cudaMemcpy(splits.data(), tensor->data, splits.size() * 8, cudaMemcpyDeviceToHost), "read the splits");
    const bool holds =
        std::all_of(splits.begin(), splits.end(), [&](std::int64_t rows) { return rows % options_.rows_multiple == 0; });
    holds ? (void)promised_.insert(tensor->data) : (void)promised_.erase(tensor->data);
  }

  DeviceCall prepare(const assay_call& call) override {
    if (call.algorithm != -1) throw NotSupported("the device has one algorithm for this; pin none");
    const Request request = Request::of(call);
    DeviceCall any_rows = made_with(request, options_with(1));
    const GemmOptions promising = options_for(request);
    if (promising.rows_multiple == 1) return any_rows;
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
  GemmOptions options_with(std::int64_t rows_multiple) const {
    GemmOptions options = options_;
    options.rows_multiple = rows_multiple;
    return options;
  }
  // With the promise only where the splits keep it.
  GemmOptions options_for(const Request& request) const {
    const TensorView* splits = request.find_input("splits");
    return options_with(splits != nullptr && promised_.contains(splits->data) ? options_.rows_multiple : 1);
  }
  static DeviceCall made_with(const Request& request, const GemmOptions& options) {
    if (request.op() == "grouped_gemm") return gemm_call(request, options);
    return is_linear(request) ? linear_call(request, options) : device_call(request, options.rows_multiple);
  }

  GemmOptions options_;
  std::set<const void*> promised_;  // addresses of splits that keep the promise
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
