// The order in which a mutant is tried on cases.

#include "conformance/selftest/hunt/trial_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace assay::conformance {
namespace {

std::vector<std::int32_t> numbers(int count) {
  std::vector<std::int32_t> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), 0);
  return made;
}

TEST(TrialOrder, TakesEachCaseOnceAndTheCheapestFirst) {
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.push_back("quantize kind=" + std::to_string(i % 7) + " seed=" + std::to_string(i));
  TrialOrder order(lines);
  std::vector<std::int32_t> cases = numbers(400);
  order.arrange(cases);
  EXPECT_TRUE(std::equal(cases.begin(), cases.begin() + 20, numbers(20).begin()));
  std::sort(cases.begin(), cases.end());
  EXPECT_EQ(cases, numbers(400));
}

TEST(TrialOrder, AWordThatNoCaseBeforeHadComesSoon) {
  std::vector<std::string> lines(500, "grouped_gemm kind=fp8_block unit=sm90");
  lines[450] += " round=nearest";
  lines[470] += " x_type=e5m2";
  TrialOrder order(lines);
  std::vector<std::int32_t> cases = numbers(500);
  order.arrange(cases);
  // One line of those that are alike, then the two that are not.
  EXPECT_EQ((std::vector<std::int32_t>(cases.begin() + 20, cases.begin() + 23)), (std::vector<std::int32_t>{20, 450, 470}));
}

TEST(TrialOrder, DependsOnNothingThatWasArrangedBefore) {
  std::vector<std::string> lines;
  for (int i = 0; i < 300; ++i) lines.push_back("quantize K=" + std::to_string(i * 37 % 200) + " data=" + std::to_string(i % 5));
  TrialOrder fresh(lines), used(lines);
  std::vector<std::int32_t> other, cases = numbers(300), again = cases;
  for (int i = 0; i < 300; i += 3) other.push_back(i);
  used.arrange(other);
  fresh.arrange(cases);
  used.arrange(again);
  EXPECT_EQ(cases, again);
}

TEST(TrialOrder, SizesAreAlikeByMagnitudeAndDivisibility) {
  EXPECT_EQ(feature_of("K=130"), feature_of("K=150"));
  EXPECT_NE(feature_of("K=130"), feature_of("K=128"));
  EXPECT_NE(feature_of("K=130"), feature_of("K=514"));
  EXPECT_NE(feature_of("K=130"), feature_of("N=130"));
  EXPECT_EQ(feature_of("splits=5,17,4"), feature_of("splits=3,18,9"));
  EXPECT_NE(feature_of("splits=5,17,4"), feature_of("splits=3,0,9"));
  EXPECT_EQ(feature_of("seed=1"), "");
  EXPECT_EQ(feature_of("recipe=mxfp8"), "recipe=mxfp8");
  EXPECT_EQ(feature_of("quantize"), "quantize");
}

}  // namespace
}  // namespace assay::conformance
