#include "conformance/judge/statement.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {

std::string fault_in_statement(const assay_numerics& stated) {
  for (const auto& [field, text, size] :
       {std::tuple("unit", stated.unit, sizeof stated.unit), std::tuple("plan", stated.plan, sizeof stated.plan)}) {
    if (std::memchr(text, 0, size) == nullptr)
      return fmt::format("the backend's {} is text without an end: expected at most {} bytes and a 0", field, size - 1);
  }
  for (const auto& [field, value] :
       {std::pair("keeps_zero_sign", stated.keeps_zero_sign), std::pair("deterministic", stated.deterministic),
        std::pair("batch_invariant", stated.batch_invariant)}) {
    if (value < -1 || value > 1) return fmt::format("the backend states {} = {}: expected 1, 0 or -1", field, value);
  }
  const std::string_view unit = stated.unit, plan = stated.plan;
  if (!unit.empty() && find_tensor_core_unit(unit) == nullptr) {
    return fmt::format("the backend states the unit '{}', which is not a row of the tensor-core table (assay list --units)",
                       unit);
  }
  if (plan.empty()) return "";
  const AccumulationPlan* known = find_accumulation_plan(plan);
  if (known == nullptr) return fmt::format("the backend states the plan '{}', which is not known (assay list --plans)", plan);
  if (!unit.empty() && unit != known->unit) {
    return fmt::format("the backend states the unit '{}' and the plan '{}', whose unit is '{}'", unit, plan, known->unit);
  }
  return "";
}

std::string unit_of(const assay_numerics& stated) {
  if (stated.unit[0] != 0) return stated.unit;
  const AccumulationPlan* plan = find_accumulation_plan(stated.plan);
  return plan == nullptr ? "" : std::string(plan->unit);
}

}  // namespace assay::conformance
