#pragma once
// Wrong calls with one wrong tensor.

#include "conformance/judge/calls/wrong_calls.h"

namespace assay::conformance {

// Adds every way to make one tensor of the call wrong.
void add_wrong_tensors(const assay_call& right, std::vector<WrongCall>& all);

}  // namespace assay::conformance
