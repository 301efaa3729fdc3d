// In place of the fast kernels, in programs of the generic one.

#include "device/emulated_gemm/problem.h"

namespace assay::device::emulated {
namespace {

bool takes_any(const GemmCall&) { return true; }
bool takes_none(const GemmCall&) { return false; }

}  // namespace

// The first one in the order of choice takes every call: so kernel_name() says which calls are kept from it. None is launched.
const Kernel kFp8Kernel = {"fast", 128, 64, takes_any, nullptr};
const Kernel kWideSumKernel = {"wide_sum", 128, 64, takes_none, nullptr};
const Kernel kFp4Kernel = {"fp4", 128, 64, takes_none, nullptr};

}  // namespace assay::device::emulated
