#pragma once

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// The plan that a product or a step of a layer asks for computes it. Errors (InvalidArgument): it does not.
void require_plan(const CaseLine& line);

}  // namespace assay::conformance
