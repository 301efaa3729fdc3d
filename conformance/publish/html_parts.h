#pragma once
// Sections of report.html that have files of their own.

#include <string>
#include <string_view>

#include "conformance/publish/collected.h"

namespace assay::conformance {

std::string_view report_style();

// The id of the failures of an op and recipe, which the matrix links.
std::string failures_anchor(std::size_t implementation, const std::string& op, const std::string& recipe);

std::string report_failures(const Collected& all);     // each with its pictures; also what is no verdict on a case. Empty: none
std::string report_environment(const Collected& all);  // implementations, runs, result files

}  // namespace assay::conformance
