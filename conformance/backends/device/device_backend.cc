// Backend `device`: the device library.

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/ops/request.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

class DeviceCalls : public CudaCalls {
 public:
  explicit DeviceCalls(GemmOptions options) : options_(options) {}

  std::string software() override { return describe_gemm_path(options_); }

  DeviceCall prepare(const assay_call& call) override {
    if (call.algorithm != -1) throw NotSupported("the device has one algorithm for this; pin none");
    const Request request = Request::of(call);
    if (request.op() == "grouped_gemm") return gemm_call(request, options_);
    return is_linear(request) ? linear_call(request, options_) : device_call(request);
  }

  void state(const assay_call& call, assay_numerics& numerics) override {
    const Request request = Request::of(call);
    if (request.op() == "grouped_gemm") return state_gemm(request, options_, numerics);
    numerics.keeps_zero_sign = request.text_or("zero_sign", "kept") == "positive" ? 0 : 1;
  }

 private:
  GemmOptions options_;
};

std::unique_ptr<CudaCalls> open_device(const std::vector<std::string>& options) {
  return std::make_unique<DeviceCalls>(gemm_options(options, true));
}

constexpr CudaBackend kDevice{"device", "the CUDA implementation: quantization, offsets, layouts, grouped GEMM and grouped linear", kGemmOptionsHelp, open_device};

}  // namespace

const assay_backend* device_backend() { return cuda_table<kDevice>(); }

}  // namespace assay::conformance
