#pragma once
// Pictures of a failure as inline SVG. Their colours come from the classes of the page's style, in dark and in light.

#include <string>

#include "conformance/judge/finding.h"

namespace assay::conformance {

// Where in a group the wrong elements lie, as <figure>.
std::string wrong_map_figure(const WrongMap& map);

// How far the wrong elements are off, as <figure>; empty where the output has no distances.
std::string ulp_figure(const UlpHistogram& ulp);

}  // namespace assay::conformance
