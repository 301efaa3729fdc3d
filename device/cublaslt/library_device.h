#pragma once
// cuBLASLt on the current device: its handle, and errors that name the library and the call. Internal to this folder.

#include <string>

#include "device/cublaslt/cublaslt_library.h"
#include "device/cublaslt/entry_points.h"
#include "device/gemm/grouped_gemm.h"

namespace assay::device::cublaslt {

struct Device {
  int ordinal = 0;
  int architecture = 0;  // 90, 100, ...
  Handle handle = nullptr;
};

// "cuBLASLt 13.10.0 (/path)".
std::string version_of(const CublasLtLibrary& library);

// The call in one line, for messages.
std::string described(const GroupedGemmCall& call);

// Errors: NotSupported or CudaError unless `status`, which `what` returned, is success.
void check_library(int status, const char* what, const CublasLtLibrary& library, const GroupedGemmCall* call = nullptr);

// Creates the handle of the current device at the first call. Errors: CudaError.
Device current_device(const CublasLtLibrary& library);

// Whether the library takes alpha and beta per group.
inline bool per_group_scalars(const Device& device) { return device.architecture >= 100; }

}  // namespace assay::device::cublaslt
