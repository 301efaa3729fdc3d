#pragma once
// The standard profile as text, one case a line. The build computes it with a program of the same sources (write_lines.cc), so that
// a run of a few cases need not.

#include <string_view>

namespace assay::conformance {

// Empty in the program that the build computes it with.
std::string_view lines_of_the_build();

}  // namespace assay::conformance
