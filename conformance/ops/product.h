#pragma once
// The product of a request, for callers that need more than its result.

#include "conformance/ops/request.h"
#include "reference/linear/grouped_linear.h"

namespace assay::conformance {

// For an op with a product: passes `see` the problem, operands quantized and plan set as the request says, and an address that
// stands for the output; C is read where the problem says. What they point to lives as long as the call. Errors: as `answer`; NotSupported for an op without one.
void visit_product(const Request& request, const Multiply& see);

}  // namespace assay::conformance
