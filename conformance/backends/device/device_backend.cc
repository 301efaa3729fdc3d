// Backend `device`: the device library.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/backends/device/promises.h"
#include "conformance/ops/request.h"
#include "device/support/launch_check.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

class DeviceCalls : public CudaCalls {
 public:
  explicit DeviceCalls(GemmOptions options)
      : options_(options), promises_(options.promises, [](void* to, const void* from, std::size_t bytes) {
          device::check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "read splits and scales");
        }) {}

  std::string software() override { return describe_gemm_path(options_); }

  void look(const assay_call& call) override {
    if (call.op != nullptr && promises_.any()) promises_.look(Request::of(call));
  }

  DeviceCall prepare(const assay_call& call) override {
    if (call.algorithm != -1) throw NotSupported("the device has one algorithm for this; pin none");
    const Request request = Request::of(call);
    DeviceCall any_rows = made_with(request, options_with({}));
    const PromiseOptions kept = promises_.kept(request);
    if (!kept.any()) return any_rows;
    DeviceCall made = made_with(request, options_with(kept));
    // The size of the workspace is asked before supports(), and so before it is known whether the splits keep the promise.
    made.workspace_bytes = std::max(made.workspace_bytes, any_rows.workspace_bytes);
    return made;
  }

  void state(const assay_call& call, assay_numerics& numerics) override {
    const Request request = Request::of(call);
    if (request.op() == "grouped_gemm") return state_gemm(request, options_with(promises_.kept(request)), numerics);
    numerics.keeps_zero_sign = request.text_or("zero_sign", "kept") == "positive" ? 0 : 1;
    if (is_linear(request)) state_linear(request, options_with(promises_.kept(request)), numerics);
  }

 private:
  GemmOptions options_with(const PromiseOptions& promises) const {
    GemmOptions options = options_;
    options.promises = promises;
    return options;
  }
  static DeviceCall made_with(const Request& request, const GemmOptions& options) {
    if (request.op() == "grouped_gemm") return gemm_call(request, options);
    return is_linear(request) ? linear_call(request, options) : device_call(request, options.promises.rows_multiple);
  }

  GemmOptions options_;
  Promises promises_;
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
