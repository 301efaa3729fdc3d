#pragma once
// Arguments of the set-up kernel, made from a call.

#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_work.h"

namespace assay::device::group_setup {

ArrayArguments array_arguments(const GroupedGemmCall& call, const GroupArrays& to, const GroupSetupOptions& options);

// `fill`: there may be groups without products, or copies. Otherwise `expanded` is where expanded scales are written, if any.
Arguments work_arguments(const GroupedGemmCall& call, const GroupSetupOptions& options);

}  // namespace assay::device::group_setup
