#pragma once
// Converts a CUDA error code to an exception.

#include <cuda_runtime_api.h>

#include <string>

#include "device/support/error.h"

namespace assay::device {

// `error` is what the call named `what` returned. CUDA also keeps it for cudaGetLastError(); it is taken from there too, so
// that no later call of the program finds it.
inline void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw CudaError(std::string(what) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

}  // namespace assay::device
