#pragma once
// Splits of a quantization by a scale rule that may be wrong, beside those of content_faults.h.

#include <vector>

#include "conformance/judge/calls/content_faults.h"

namespace assay::mutants {

// Contents of a right call: transposed codes of groups that share a byte, and many more rows than there are. The reference knows
// whether they are wrong. Nothing for a line without a content fault.
std::vector<conformance::ContentFault> rule_faults(const conformance::CaseLine& line, const Case& right);

}  // namespace assay::mutants
