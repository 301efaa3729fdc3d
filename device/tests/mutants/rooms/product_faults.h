#pragma once
// What a grouped product reads on the device and may not take, beside the splits of content_faults.h: betas that D does not take, and
// groups of layout NT with more rows than the slices of the plan cover, or with one row where two codes share a byte. And contents that
// it takes, which no line has: exponents, scales and depths of packed codes.

#include <vector>

#include "conformance/judge/calls/content_faults.h"

namespace assay::mutants {

// Contents of this kind of a right call, each with one thing in it that may be wrong: the reference knows whether it is. Nothing for
// a line without a content fault, or whose D takes any beta and whose groups any number of rows.
std::vector<conformance::ContentFault> product_faults(const conformance::CaseLine& line, const Case& right);

}  // namespace assay::mutants
