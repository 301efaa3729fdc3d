#pragma once

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// Rules between keys that the table of keys does not hold. Errors (InvalidArgument): the first that the case breaks.
void require_consistent(const CaseLine& line);

}  // namespace assay::conformance
