#pragma once
// Kernels that begin while the kernel before them in the stream ends: their blocks are on the multiprocessors when its last one is done,
// and a launch costs less time between two of them. Between other kernels they are as any launch.

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "device/support/launch_check.h"
#include "device/support/stream.h"

namespace assay::device {

#if defined(__CUDACC__)
// At the start of such a kernel: lets the next one begin early too, and returns when all work before this kernel has been done, its
// stores included. Nothing may be read from or written to memory before.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

// Whether the current device can; false where there is none.
inline bool device_launches_early() {
  int device = 0, major = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  if (!known) static_cast<void>(cudaGetLastError());  // the launch reports it
  return known && major >= 9;
}

// launch_kernel() of such a kernel. Errors: CudaError.
template <class... Parameters, class... Arguments>
void launch_kernel_early(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                         Stream stream, Arguments&&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = device_launches_early() ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace assay::device
