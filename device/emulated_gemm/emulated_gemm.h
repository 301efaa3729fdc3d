#pragma once
// Grouped GEMM of any recipe under any plan, with the arithmetic of any row of the tensor-core table whose steps are one fused sum,
// in integers on CUDA cores: on any SM80 or newer, the bits of a tensor core of another architecture. The plan and the unit are
// data (reference/gemm/plan.h, reference/arithmetic/tensor_core.h); the arithmetic is a second implementation.

#include <string>

#include "device/gemm/grouped_gemm.h"
#include "reference/arithmetic/tensor_core.h"

namespace assay::device {

// How every element is accumulated. Both must live until the call returns.
struct EmulatedArithmetic {
  const AccumulationPlan* plan = nullptr;
  const TensorCoreUnit* unit = nullptr;  // the one that the plan names
};

// Why the emulated GEMM cannot follow this unit, naming the field of its row; empty: it can, under every plan.
std::string emulation_missing(const TensorCoreUnit& unit);

// Bytes of device memory that the call needs besides its tensors; depends on sizes, types and the plan only.
std::int64_t emulated_gemm_workspace_bytes(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic);

// The checks that emulated_grouped_gemm() makes before it launches anything, but for those of the workspace and of the number of tiles,
// which is that of the device's kernel. Needs no device.
void check_emulated_gemm(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic);

// Errors: NotSupported (emulation_missing); InvalidArgument (the call, a unit that does not take these
// operands, a plan that does not fit the call), before anything is launched; invalid device-side values, a beta among them, are
// reported in the status word, and then nothing is written.
void emulated_grouped_gemm(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic, Stream stream);

}  // namespace assay::device
