#pragma once
// Arguments of the set-up kernel, made from a call.

#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_work.h"

namespace assay::device::group_setup {

ArrayArguments array_arguments(const GroupedGemmCall& call, const GroupArrays& to, const GroupSetupOptions& options);

// `fill` where groups without products, or copies, may come; else `expanded` is where scales are written out, if they are.
Arguments work_arguments(const GroupedGemmCall& call, const GroupSetupOptions& options);

}  // namespace assay::device::group_setup
