#pragma once
// The call that a verb looks at: of a failure bundle, or of a case line.

#include <string>
#include <vector>

#include "conformance/suites/failure_bundle.h"

namespace assay::conformance {

// The words of a command line as one text.
std::string joined(const std::vector<std::string>& words);

// The case line of these words, with the inputs that it generates (those of its first replay) and no outputs.
// Errors (InvalidArgument): as parse_case_line; a scenario, which is several calls.
FailureBundle unjudged(const std::vector<std::string>& words);

// Errors (InvalidArgument): the file is of another line.
void check_same_line(const FailureBundle& bundle, const std::vector<std::string>& words, const std::string& path);

}  // namespace assay::conformance
