#pragma once
// A kernel launch that reports its own error. `kernel<<<...>>>(...)` reports by cudaGetLastError(), which also returns, and
// clears, an error of an earlier call of the program: a launch that worked would then be reported as failed.

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "device/support/launch_check.h"
#include "device/support/stream.h"

namespace assay::device {

// `name` appears in the error. Errors: CudaError.
template <class... Parameters, class... Arguments>
void launch_kernel(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   Stream stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace assay::device
