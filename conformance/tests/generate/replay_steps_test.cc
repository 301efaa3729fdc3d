// The steps of a replayed line: what changes from one to the next.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"

namespace assay::conformance {
namespace {

// The first and the last 16-bit word in which two tensors differ.
std::pair<std::int64_t, std::int64_t> differing(const Tensor& before, const Tensor& after) {
  std::pair<std::int64_t, std::int64_t> ends{-1, -1};
  for (std::int64_t at = 0; at < before.elements(); ++at) {
    if (before.as<std::uint16_t>()[at] == after.as<std::uint16_t>()[at]) continue;
    if (ends.first < 0) ends.first = at;
    ends.second = at;
  }
  return ends;
}

// 8 words of bf16 change in each round: at the end, at the start, in the middle. All the rest is what the backend had in the
// round before, whichever part it compares. Every word of this pattern differs from seed to seed.
TEST(ReplaySteps, KeepAPieceOfEachInput) {
  const CaseLine line = parse_case_line("grouped_gemm kind=bf16 splits=5,9 N=24 K=40 seed=3 replay=4:data,pieces");
  const std::vector<Case> steps = replay_steps(line);
  ASSERT_EQ(steps.size(), 4u);
  const auto x = [&](int round) -> const Tensor& { return steps[static_cast<std::size_t>(round)].in.at("x"); };
  const auto all = x(0).elements();
  EXPECT_EQ(differing(x(0), x(1)).second, all - 1);
  EXPECT_EQ(differing(x(1), x(2)).first, 0);
  const auto [first, last] = differing(x(2), x(3));
  EXPECT_NEAR(static_cast<double>(first + last) / 2, static_cast<double>(all) / 2, 4);
  for (int i = 1; i < 4; ++i) {
    const Case whole = generate(with(with(line, "seed", std::to_string(3 + i)), "replay", ""));
    const auto ends = differing(x(i - 1), x(i));
    EXPECT_LE(ends.second - ends.first, 12) << i;
    EXPECT_GE(ends.second - ends.first, 7) << i;
    EXPECT_EQ(x(i).as<std::uint16_t>()[ends.first], whole.in.at("x").as<std::uint16_t>()[ends.first]);
    EXPECT_EQ(steps[static_cast<std::size_t>(i)].in.at("splits").bytes, steps[0].in.at("splits").bytes);
  }
}

}  // namespace
}  // namespace assay::conformance
