#include "conformance/judge/stated_numerics.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "conformance/backends/stated_plan.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {

std::string fault_in_numerics(const assay_numerics& stated) {
  for (const auto& [field, text, size] :
       {std::tuple("unit", stated.unit, sizeof stated.unit), std::tuple("plan", stated.plan, sizeof stated.plan),
        std::tuple("plan_line", stated.plan_line, sizeof stated.plan_line)}) {
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
  const AccumulationPlan* known = nullptr;
  for (const std::string_view each : {plan, std::string_view(stated.plan_line)}) {
    if (each.empty()) continue;
    const AccumulationPlan* const before = known;
    try {
      known = find_accumulation_plan(each);
    } catch (const InvalidArgument& error) {
      return fmt::format("the backend states the plan '{}': {}", each, error.what());
    }
    if (known == nullptr) return fmt::format("the backend states the plan '{}', which is not known (assay list --plans)", each);
    if (before != nullptr && plan_line(*before) != plan_line(*known))
      return fmt::format("the backend states two plans, '{}' and '{}'", plan, each);
  }
  if (known == nullptr) return "";
  if (!unit.empty() && unit != known->unit) {
    return fmt::format("the backend states the unit '{}' and the plan '{}', whose unit is '{}'", unit, plan_of(stated),
                       known->unit);
  }
  return "";
}

std::string unit_of(const assay_numerics& stated) {
  if (stated.unit[0] != 0) return stated.unit;
  const AccumulationPlan* plan = find_accumulation_plan(plan_of(stated));
  return plan == nullptr ? "" : std::string(plan->unit);
}

}  // namespace assay::conformance
