// Values joined over a block: sums whose order shows, worked out by hand; blocks at the edge; NaN; what a rule may not say.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "reference/rules/quantize_by_rule.h"
#include "reference/types/error.h"

namespace assay {
namespace {

constexpr const char* kRow = "name=own blocks=1x16 source=\"a test\" amax_nan=propagated rule=";

// The scales of one row by a rule whose scale is `expression`, in one layer.
std::vector<float> scales(const std::string& expression, const std::vector<float>& x, bool fast) {
  const std::deque<ScaleRule> rules = parse_scale_rules(kRow + ("\"e = " + expression + "; scale = e; code = x\""), "own");
  RuleProblem problem;
  problem.rule = &rules.front();
  problem.block = kReducedBlock;
  problem.x_type = Format::f32;
  problem.x = x.data();
  problem.rows = 1;
  problem.columns = static_cast<std::int64_t>(x.size());
  std::vector<float> made((x.size() + 15) / 16);
  RuleOutput output;
  output.scale = made.data();
  fast ? quantize_by_rule(problem, output) : scalar::quantize_by_rule(problem, output);
  return made;
}

void expect_scales(const std::string& expression, const std::vector<float>& x, const std::vector<float>& want) {
  for (const bool fast : {true, false}) EXPECT_EQ(scales(expression, x, fast), want) << expression << " " << fast;
}

TEST(BlockSum, AddsTheHalvesFirst) {
  // 2^24 + 1 is rounded to 2^24: what is lost shows the order.
  std::vector<float> x(16, 0.0f);
  x[0] = 0x1p24f;
  x[1] = 1;
  x[8] = 1;  // added to x[0] first, and lost
  x[9] = 1;  // to x[1]: 2, which is not lost
  expect_scales("block_sum(x)", x, {0x1p24f + 2});
  x[9] = 0;  // the 1 of x[1] comes after 2^24, and is lost
  expect_scales("block_sum(x)", x, {0x1p24f});
  x = {0x1p24f, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // in order, not in pairs: both are lost
  expect_scales("block_sum(x)", x, {0x1p24f});
}

TEST(BlockSum, TakesAnExpressionAndMissingColumnsAsNothing) {
  std::vector<float> x;
  for (int i = 1; i <= 21; ++i) x.push_back(static_cast<float>(i));
  expect_scales("block_sum(x * 2 + amax)", x, {136 * 2 + 16 * 16, (17 + 18 + 19 + 20 + 21) * 2 + 5 * 21});
  expect_scales("block_squares(x - 1)", x, {1240, 256 + 289 + 324 + 361 + 400});
  expect_scales("block_max(abs(x - 18))", x, {17, 3});
  expect_scales("block_max(-x)", x, {0, 0});
}

TEST(BlockMax, IsNanWhereOneIs) {
  std::vector<float> x(40, 2.0f);
  x[20] = std::numeric_limits<float>::quiet_NaN();
  for (const bool fast : {true, false}) {
    const std::vector<float> made = scales("block_max(x)", x, fast);
    EXPECT_EQ(made[0], 2);
    EXPECT_TRUE(std::isnan(made[1]));
    EXPECT_EQ(made[2], 2);
  }
}

// More columns than are computed at a time, and a name that is joined from another joined one.
TEST(BlockSum, IsTheSameInBothLayersForLongRows) {
  std::vector<float> x;
  for (int i = 0; i < 1003; ++i) x.push_back(static_cast<float>(i * 7919 % 1009) / 37);
  const std::string rule = "block_sum(x); f = block_squares(x - e / 16); g = block_max(x * f)";
  const std::vector<float> fast = scales(rule, x, true);
  EXPECT_EQ(fast, scales(rule, x, false));
  EXPECT_NE(fast[0], fast[1]);
}

TEST(Reductions, AreRefusedElsewhere) {
  const std::string bad[] = {
      "\"s = 1 + block_sum(x); scale = s; code = x\"",               // a part of an expression
      "\"s = block_sum(x) + 1; scale = s; code = x\"",               // the same
      "\"code = x * amax; s = block_sum(code); scale = s\"",         // of what is computed later
      "\"s = block_sum(x, x); scale = s; code = x\"",                // two arguments
      "\"s = block_sum(x; scale = s; code = x\"",                    // no end
      "\"scale = amax; code = block_sum(x)\"",                       // a code that no element has
      "\"scale = 1; code = x\" activation=\"x = block_sum(gate)\"",  // an activation has no blocks
  };
  for (const std::string& each : bad) EXPECT_THROW(parse_scale_rules(kRow + each, "own"), InvalidArgument) << each;
  EXPECT_THROW(parse_scale_rules("name=own blocks=1x16,1x32 source=s rule=\"s = block_sum(x); scale = s; code = x\"", "own"),
               InvalidArgument);
  const std::deque<ScaleRule> rules = parse_scale_rules(std::string(kRow) + "\"s = block_sum(x); scale = s; code = x\"", "own");
  EXPECT_TRUE(rules.front().reduces());
  RuleProblem problem;
  problem.rule = &rules.front();
  problem.block = {1, 32};
  EXPECT_THROW(rule_outputs(problem), InvalidArgument);
  EXPECT_FALSE(find_scale_rule("deepgemm")->reduces());
  EXPECT_TRUE(find_scale_rule("fouroversix.mse")->reduces());
}

}  // namespace
}  // namespace assay
