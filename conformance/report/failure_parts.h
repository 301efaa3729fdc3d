#pragma once
// The text of a failure and its command, apart: pages and reports show them in different places.

#include <string>

#include "conformance/report/report.h"

namespace assay::conformance {

struct FailureParts {
  std::string text;   // several lines, without the command
  std::string repro;  // the command that shows it again; several lines where the text has several
};

// Where the text names no command, it is made of the case and of `backend_words` (" --backend ..."); findings that belong to no case have
// none.
FailureParts failure_parts(const CaseReport& report, const std::string& backend_words);

}  // namespace assay::conformance
