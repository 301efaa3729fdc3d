#pragma once
// Wrong contents of offsets calls that conformance/judge/calls/content_faults.h has not: many values at once, which only sums of a whole
// warp show.

#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/judge/calls/content_faults.h"
#include "golden/io/fixture.h"

namespace assay::mutants {

// Those of a line of splits_to_offsets, _multi or _2d with a content fault; of any other line none.
std::vector<conformance::ContentFault> offsets_faults(const conformance::CaseLine& line, const Case& right);

}  // namespace assay::mutants
