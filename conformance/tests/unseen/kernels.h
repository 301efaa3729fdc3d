#pragma once
// Kernels with one fault each, written for unseen_faults.cc: plain loops, with a fault where a real kernel has one.

#include <string_view>

#include "conformance/ops/request.h"

namespace assay::conformance::unseen {

// Whether the fault of this name is planted in the call that is being made.
bool on(std::string_view fault);

// A captured call is being launched; and how often captured calls were launched since the last capture.
bool launching();

// Each writes the requested outputs.
void quantize_kernel(const Request& request);
void gemm_kernel(const Request& request);
void other_kernels(Request& request);

}  // namespace assay::conformance::unseen
