#pragma once
// The predictions of one case: the expected outputs of each of its calls, under each statement that a backend may make about it.

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/predictions.h"

namespace assay::conformance {

// What a backend may state about a product; none: the plan of the reference.
struct StatedPlans {
  std::vector<std::pair<std::string, std::string>> plans_and_units;  // either may be empty
};

struct PredictedCase {
  std::vector<std::pair<PredictedCall, PredictedOutputs>> calls;
  std::string why_not;  // where there are no calls
};

// Under every sign of zero. Throws nothing but std::bad_alloc.
PredictedCase predict_case(const CaseLine& line, const StatedPlans& plans, Layer layer);

// Under what `backend` states about the case. Errors: BackendFault, BackendError.
PredictedCase predict_case_for(Backend& backend, const CaseLine& line, const JudgeOptions& options);

}  // namespace assay::conformance
