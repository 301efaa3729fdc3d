// The generator's random numbers, against the known answers that the authors of Random123 publish.

#include "conformance/support/counter_random.h"

#include <gtest/gtest.h>

#include <memory>

namespace assay::conformance {
namespace {

TEST(Philox4x32, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Fnv1a, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(CounterRandom, DependsOnSeedStreamAndIndex) {
  const CounterRandom base(1, "x");
  EXPECT_EQ(base.words(5), CounterRandom(1, "x").words(5));
  EXPECT_NE(base.words(5), base.words(6));
  EXPECT_NE(base.words(5), base.words(5 + (std::uint64_t{1} << 32)));
  EXPECT_NE(base.words(5), CounterRandom(1 + (std::uint64_t{1} << 32), "x").words(5));
  EXPECT_NE(base.words(5), CounterRandom(1, "y").words(5));
}

TEST(CounterRandom, BelowStaysBelowAndReachesBothEnds) {
  const CounterRandom random(3, "bound");
  bool low = false, high = false;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint32_t value = random.below(i, 7);
    ASSERT_LT(value, 7u);
    low |= value == 0;
    high |= value == 6;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(random.below(0, 1), 0u);
}

TEST(CounterRandom, GivesTheSameWordsManyAtATime) {
  const CounterRandom random(0x123456789abcdef, "many");
  auto run = std::make_unique<WordRun>();
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{16}, std::size_t{100}, WordRun::kMax}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3}, (std::uint64_t{1} << 32) - 5, std::uint64_t{1} << 40}) {
      random.fill(first, count, *run);
      for (std::size_t i = 0; i < count; ++i) {
        const Words want = random.words(first + i), got{run->words[0][i], run->words[1][i], run->words[2][i], run->words[3][i]};
        ASSERT_EQ(got, want) << "index " << first + i << " of " << count << " from " << first;
      }
    }
  }
}

}  // namespace
}  // namespace assay::conformance
