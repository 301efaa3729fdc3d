#pragma once

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// Rules between keys that are not in the table of keys. Errors (InvalidArgument): the first that the case breaks.
void require_consistent(const CaseLine& line);

}  // namespace assay::conformance
