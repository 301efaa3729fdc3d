// Every plan that has a name and every unit that an op can use are in cases of their own.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

std::set<std::string> plans_of(Profile profile) {
  std::set<std::string> plans;
  for (const CaseLine& line : catalogue(profile)) {
    if (line.op == "grouped_gemm" && line.has("plan")) plans.insert(line.text("plan"));
  }
  return plans;
}

TEST(PlanCases, NameEveryPlanInTheStandardProfile) {
  const std::set<std::string> plans = plans_of(Profile::standard);
  for (const AccumulationPlan& plan : accumulation_plans()) EXPECT_EQ(plans.count(std::string(plan.name)), 1u) << plan.name;
}

// Operands that no kind of product has, and scales that none has.
bool is_beyond_ops(const TensorCoreUnit& unit) {
  const auto has = [&](Format format) {
    return std::find(unit.operands.begin(), unit.operands.end(), format) != unit.operands.end();
  };
  if (unit.scaling == StepScaling::e8m0_per_16) return true;
  if (unit.scaling == StepScaling::e8m0_per_32) return !has(Format::e4m3);
  return !has(Format::bf16) && !has(Format::f16) && !has(Format::e4m3) && !has(Format::e2m1);
}

TEST(PlanCases, NameEveryUnitThatAnOpCanUse) {
  const std::set<std::string> plans = plans_of(Profile::standard);
  int beyond = 0;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    EXPECT_EQ(plans.count("unit=" + std::string(unit.name)), is_beyond_ops(unit) ? 0u : 1u) << unit.name;
    beyond += is_beyond_ops(unit);
  }
  EXPECT_EQ(beyond, 17);
}

TEST(PlanCases, AreMoreInTheFullProfile) {
  const auto count = [](Profile profile) {
    const auto lines = catalogue_without_covers(profile);
    return std::count_if(lines.begin(), lines.end(),
                         [](const CaseLine& line) { return line.op == "grouped_gemm" && line.has("plan"); });
  };
  EXPECT_GE(count(Profile::full), 5 * count(Profile::standard));
}

}  // namespace
}  // namespace assay::conformance
