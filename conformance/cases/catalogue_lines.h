#pragma once
// The hand-written part of the catalogue: case lines as text, one a line; # starts a comment.

#include <string_view>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

extern const std::string_view kSmokeLines, kStandardLines, kFullLines;

// Products over data=wide_sums; part of standard.
std::vector<CaseLine> order_free_lines();

}  // namespace assay::conformance
