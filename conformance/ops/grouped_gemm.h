#pragma once
// A grouped_gemm request as the reference's problem.

#include <string>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/gemm/error_bound.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay::conformance {

// Owns what the problem points to, except the request's tensors.
struct ParsedGroupedGemm {
  std::vector<std::int64_t> splits;
  GroupRows rows;  // of a grouped_layout other than splits
  std::vector<float> alpha, beta;
  std::string architecture;
  GroupedGemmProblem problem;
};

// Errors: as `answer`.
void parse_grouped_gemm(const Request& request, ParsedGroupedGemm& parsed);

// Bounds for each element of D in the arithmetic of `unit`, or if that is empty in any that may serve. Errors: as bounds_of().
std::vector<CertifiedBound> bounds_of_product(const GroupedGemmProblem& problem, const std::string& unit);

}  // namespace assay::conformance
