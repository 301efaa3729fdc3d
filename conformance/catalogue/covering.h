#pragma once
// Pairwise covering: few lines in which any two values of two different axes meet, where they may.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// Words that exclude one another: {"pow2=0", "pow2=1"}, {"R=33 K=272", "splits=0,128 K=512"}. "" stands for none.
using Axis = std::vector<std::string>;

// Lines "PREFIX word word ...", one word of each axis, seeds from `first_seed` on. A combination that parse_case_line
// refuses, or that costs more than `most_macs` or `most_elements`, is not taken. Deterministic. Every pair of values is met
// if a few dozen tries find it a place.
struct CoveringLimits {
  std::int64_t most_macs = 4'000'000;
  std::int64_t most_elements = 400'000;
};
std::vector<CaseLine> covering_lines(const std::string& prefix, const std::vector<Axis>& axes, int first_seed,
                                     const CoveringLimits& limits = {});

}  // namespace assay::conformance
