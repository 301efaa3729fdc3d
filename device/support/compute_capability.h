#pragma once
// What the current device is.

#include <cuda_runtime_api.h>

#include "device/support/launch_check.h"

namespace assay::device {

// 10 * major + minor of its compute capability: 90 for an H100 or an H200. Errors: CudaError, where there is no device.
inline int compute_capability() {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

}  // namespace assay::device
