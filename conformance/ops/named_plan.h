#pragma once
// The accumulation plan that a request asks for.

#include <string>

#include "conformance/ops/request.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {

// By the attribute `plan`, a name or a line; null without it. Errors: NotSupported for one that is not known.
inline const AccumulationPlan* named_plan(const Request& request) {
  const std::string plan = request.text_or("plan", "");
  if (plan.empty()) return nullptr;
  const AccumulationPlan* const found = find_accumulation_plan(plan);
  if (found == nullptr) throw NotSupported("no accumulation plan is named '" + plan + "'");
  return found;
}

}  // namespace assay::conformance
