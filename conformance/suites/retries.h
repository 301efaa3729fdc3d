#pragma once
// Judging a case again while it fails.

#include <functional>
#include <vector>

#include "conformance/report/report.h"
#include "conformance/suites/backend_choice.h"
#include "conformance/suites/parallel_judging.h"

namespace assay::conformance {

// The verdicts of `judge_case`, one for each setting. While one fails, the case is judged again, at most `choice.retries` times, in
// another process where the last try ended the backend's. What fails and then passes is flaky: it keeps the text and the findings
// of its first failure. Errors: as judge_case.
std::vector<CaseReport> with_retries(Judged judged, const BackendChoice& choice,
                                     const std::function<std::vector<CaseReport>(Judged)>& judge_case);

}  // namespace assay::conformance
