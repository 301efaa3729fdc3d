#pragma once
// The checks of a cuBLASLt call before the library is called. Internal to this folder.

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/cublaslt/library_device.h"

namespace assay::device::cublaslt {

// Whether any element of D is a sum of products.
bool has_products(const GroupedGemmCall& call);

// Errors: InvalidArgument, naming the setting.
void check_settings(const GroupedGemmCall& call, const CublasLtSettings& settings);

// All checks that need no call of the library. Errors: InvalidArgument, NotSupported.
void check_call(const GroupedGemmCall& call, const CublasLtSettings& settings, const CublasLtLibrary& library,
                const Device& device);

}  // namespace assay::device::cublaslt
