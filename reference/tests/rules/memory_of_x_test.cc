// What a call by a scale rule asks of the memory of x.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "reference/rules/quantize_by_rule.h"
#include "reference/types/error.h"

namespace assay {
namespace {

RuleProblem problem_at(const void* x, std::int64_t rows) {
  RuleProblem problem;
  problem.rule = find_scale_rule("te");
  problem.block = problem.rule->blocks.front();
  problem.x = x;
  problem.rows = rows;
  problem.columns = 3;
  return problem;
}

TEST(MemoryOfX, IsLookedAtOnlyWhereThereAreElements) {
  std::vector<std::uint16_t> values(8);
  const auto* odd = reinterpret_cast<const std::uint8_t*>(values.data()) + 1;
  EXPECT_NO_THROW(scalar::quantize_by_rule(problem_at(odd, 0), {}));
  EXPECT_NO_THROW(quantize_by_rule(problem_at(odd, 0), {}));
  EXPECT_NO_THROW(quantize_by_rule(problem_at(nullptr, 0), {}));
  EXPECT_NO_THROW(quantize_by_rule(problem_at(values.data(), 2), {}));
  EXPECT_THROW(quantize_by_rule(problem_at(odd, 2), {}), InvalidArgument);
  EXPECT_THROW(quantize_by_rule(problem_at(nullptr, 2), {}), InvalidArgument);
}

}  // namespace
}  // namespace assay
