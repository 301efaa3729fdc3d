// Backend `emulated`: grouped GEMM in integers on CUDA cores, with the arithmetic of any row of the tensor-core table, and
// nothing else. It computes whole large outputs as the reference would (--expect-by emulated).

#include "conformance/backends/built_in.h"
#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/ops/request.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr GemmOptions kEmulatedOnly{GemmPath::emulated};

class EmulatedCalls : public CudaCalls {
 public:
  std::string software() override { return describe_gemm_path(kEmulatedOnly); }
  DeviceCall prepare(const assay_call& call) override {
    if (call.algorithm != -1) throw NotSupported("the emulated GEMM has one algorithm; pin none");
    const Request request = Request::of(call);
    if (request.op() != "grouped_gemm") throw NotSupported("backend emulated has op grouped_gemm only");
    return gemm_call(request, kEmulatedOnly);
  }
  void state(const assay_call& call, assay_numerics& numerics) override {
    state_gemm(Request::of(call), kEmulatedOnly, numerics);
  }
};

std::unique_ptr<CudaCalls> open_emulated(const std::vector<std::string>& options) {
  if (!options.empty()) throw InvalidArgument("--backend-options", "'" + options[0] + "'", "device=N, pool=on|off");
  return std::make_unique<EmulatedCalls>();
}

constexpr CudaBackend kEmulated{
    "emulated", "grouped GEMM on CUDA cores, in integers, with the arithmetic of any known architecture", "", open_emulated};

}  // namespace

const assay_backend* emulated_backend() { return cuda_table<kEmulated>(); }

}  // namespace assay::conformance
