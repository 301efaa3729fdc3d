#pragma once
// Approximate instructions (spec approximations-1.1): the tables that the reference predicts from are those of SM90.

#include <cuda_runtime_api.h>

#include <string>

#include "device/support/error.h"
#include "device/support/launch_check.h"

namespace assay::device {

// Checks that the current device is the one they were measured on. Errors: NotSupported, which names what has such instructions.
inline void require_measured_instructions(const char* what) {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "ask for the device");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "ask for the compute capability");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "ask for the compute capability");
  if (major == 9 && minor == 0) return;
  throw NotSupported("the approximate instructions of " + std::string(what) +
                     " were measured on SM90 alone; this device has compute capability " + std::to_string(major) + "." +
                     std::to_string(minor));
}

}  // namespace assay::device
