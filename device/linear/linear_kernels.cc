#include "device/linear/linear_kernels.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/cublaslt/cublaslt_library.h"
#include "device/linear/linear_moves.h"
#include "device/support/compute_capability.h"
#include "device/support/device_code.h"
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
      .check_emulated = check_emulated_gemm,
      .prepare = cublaslt_prepare,
      .cublaslt_bytes = cublaslt_gemm_workspace_bytes,
      .algorithms = cublaslt_algorithms,
      .route = cublaslt_route,
      .multiply_by_cublaslt = cublaslt_grouped_gemm,
      .emulated_bytes = emulated_gemm_workspace_bytes,
      .multiply_by_emulated = emulated_grouped_gemm,
      .assay_missing = fp8_block_gemm_missing,
      .assay_plan = fp8_block_gemm_plan,
      .check_assay = check_fp8_block_gemm,
      .assay_bytes = fp8_block_gemm_workspace_bytes,
      .multiply_by_assay = fp8_block_grouped_gemm,
      .missing = missing,
      .missing_code = missing_device_code,
      .architecture = compute_capability,
      .library_version = library_version,
      .make_constants = make_linear_constants,
      .copy = copy,
      .gather = gather_pieces,
      .scatter = scatter_pieces,
  };
  return kKernels;
}

}  // namespace assay::device
