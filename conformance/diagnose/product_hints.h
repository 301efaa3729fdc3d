#pragma once
// Hints for a wrong product that need its operands.

#include "conformance/diagnose/hints/scale_hint.h"
#include "conformance/ops/request.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// Whether scales of other blocks explain the wrong elements of output `d`. `request` is the grouped_gemm whose answer `want`
// is, its plan in attribute `plan` or that of the architecture. Finds nothing where that is not known.
ScaleFindings scale_findings(const Request& request, const Tensor& got, const Tensor& want);

}  // namespace assay::conformance
