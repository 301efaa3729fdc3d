#pragma once
// Turns what CUDA said into an exception.

#include <cuda_runtime_api.h>

#include <string>

#include "device/support/error.h"

namespace assay::device {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw CudaError(std::string(what) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
  }
}

// After `kernel<<<...>>>(...)`: throws if the launch was refused.
inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

}  // namespace assay::device
