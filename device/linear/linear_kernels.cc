// The table of this library's kernels, and the steps that use it.

#include "device/linear/linear_kernels.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/gemm/cublaslt_library.h"
#include "device/linear/grouped_linear.h"
#include "device/linear/linear_moves.h"
#include "device/linear/linear_path.h"
#include "device/linear/linear_steps.h"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

std::string missing(const GroupedGemmCall& call, int architecture) {
  try {
    return CublasLtLibrary::get().missing(call, architecture);
  } catch (const NotSupported& no_library) {
    return no_library.what();
  }
}

int architecture() {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

int library_version() { return CublasLtLibrary::get().version(); }

void copy(void* to, const void* from, std::int64_t bytes, Stream stream) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
             "copy within the device");
}

}  // namespace

const LinearKernels& device_kernels() {
  static constexpr LinearKernels kKernels{
      .quantize_bytes = quantize_workspace_bytes,
      .quantize_with = quantize,
      .dbias_bytes = dbias_workspace_bytes,
      .sum_with = grouped_dbias,
      .check_product = check_grouped_gemm,
      .prepare = cublaslt_prepare,
      .cublaslt_bytes = cublaslt_gemm_workspace_bytes,
      .algorithms = cublaslt_algorithms,
      .route = cublaslt_route,
      .multiply_by_cublaslt = cublaslt_grouped_gemm,
      .bringup_bytes = bringup_gemm_workspace_bytes,
      .multiply_by_bringup = bringup_grouped_gemm,
      .missing = missing,
      .architecture = architecture,
      .library_version = library_version,
      .make_constants = make_linear_constants,
      .copy = copy,
      .gather = gather_pieces,
      .scatter = scatter_pieces,
  };
  return kKernels;
}

GroupedLinear::GroupedLinear(const GroupedLinearOptions& options)
    : GroupedLinear(options, device_kernels(), device_memory()) {}

LinearChoice choose_linear_path(const LinearConfig& config, const LinearNeeds& needs, int architecture) {
  return choose_linear_path(config, needs, architecture, device_kernels());
}

std::int64_t linear_forward_workspace_bytes(const LinearForwardCall& call) {
  return linear_forward_workspace_bytes(call, device_kernels());
}
std::int64_t linear_dgrad_workspace_bytes(const LinearDgradCall& call) {
  return linear_dgrad_workspace_bytes(call, device_kernels());
}
std::int64_t linear_wgrad_workspace_bytes(const LinearWgradCall& call) {
  return linear_wgrad_workspace_bytes(call, device_kernels());
}
std::int64_t linear_quantize_gradient_workspace_bytes(const LinearGradientCall& call) {
  return linear_quantize_gradient_workspace_bytes(call, device_kernels());
}
std::int64_t linear_quantize_weights_workspace_bytes(const LinearWeightsCall& call) {
  return linear_quantize_weights_workspace_bytes(call, device_kernels());
}
std::int64_t linear_dbias_workspace_bytes(const LinearDbiasCall& call) {
  return linear_dbias_workspace_bytes(call, device_kernels());
}
LinearReport linear_forward(const LinearForwardCall& call, Stream stream) {
  return linear_forward(call, stream, device_kernels());
}
LinearReport linear_dgrad(const LinearDgradCall& call, Stream stream) {
  return linear_dgrad(call, stream, device_kernels());
}
LinearReport linear_wgrad(const LinearWgradCall& call, Stream stream) {
  return linear_wgrad(call, stream, device_kernels());
}
LinearReport linear_quantize_gradient(const LinearGradientCall& call, Stream stream) {
  return linear_quantize_gradient(call, stream, device_kernels());
}
LinearReport linear_quantize_weights(const LinearWeightsCall& call, Stream stream) {
  return linear_quantize_weights(call, stream, device_kernels());
}
LinearReport linear_dbias(const LinearDbiasCall& call, Stream stream) {
  return linear_dbias(call, stream, device_kernels());
}

}  // namespace assay::device
