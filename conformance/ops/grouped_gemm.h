#pragma once
// A grouped_gemm request as the reference's problem.

#include <string>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay::conformance {

// Holds what the problem points to, but for the request's tensors.
struct ParsedGroupedGemm {
  std::vector<std::int64_t> splits;
  std::vector<float> alpha, beta;
  std::string architecture, plan_name;
  GroupedGemmProblem problem;
};

// Errors: as `answer`.
void parse_grouped_gemm(const Request& request, ParsedGroupedGemm& parsed);

}  // namespace assay::conformance
