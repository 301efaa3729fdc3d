// Covers of kill matrices, compared with every subset of the cases of small ones.

#include "conformance/selftest/hunt/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

namespace assay::conformance {
namespace {

// A matrix of `cases` cases and `rows` mutants; a mutant is killed by about one case in `rare`.
KillMatrix drawn(int cases, int rows, unsigned rare, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761u + 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
  KillMatrix made;
  for (int i = 0; i < cases; ++i) made.cases.push_back({"case " + std::to_string(i), static_cast<double>(1 + next() % 9)});
  for (int i = 0; i < rows; ++i) {
    KillRow row{"m" + std::to_string(i), "points", 1, 1, "outputs", {}};
    for (int each = 0; each < cases; ++each) {
      if (next() % rare == 0) row.killers.push_back(each);
    }
    made.rows.push_back(row);
  }
  return made;
}

// By counting: whether the cases of a set of bits kill each mutant as often as is asked for.
bool covers(const KillMatrix& matrix, unsigned set, int times) {
  return std::all_of(matrix.rows.begin(), matrix.rows.end(), [&](const KillRow& row) {
    unsigned killers = 0;
    for (const std::int32_t each : row.killers) killers |= 1u << each;
    return std::popcount(killers & set) >= std::min(times, std::popcount(killers));
  });
}

class Covers : public testing::TestWithParam<int> {};

TEST_P(Covers, AreWholeAndIrreducible) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const KillMatrix matrix = drawn(3 + static_cast<int>(seed % 8), 1 + static_cast<int>(seed % 25), 2 + seed % 4, seed);
    const std::vector<std::int32_t> cover = cover_of(matrix, {GetParam(), seed});
    unsigned set = 0;
    for (const std::int32_t each : cover) set |= 1u << each;
    EXPECT_EQ(std::popcount(set), static_cast<int>(cover.size())) << "seed " << seed;
    EXPECT_TRUE(std::is_sorted(cover.begin(), cover.end()));
    EXPECT_TRUE(covers(matrix, set, GetParam())) << "seed " << seed;
    // No proper subset covers: it is enough to try all of them.
    for (unsigned subset = set; subset != 0;) {
      subset = (subset - 1) & set;
      EXPECT_FALSE(covers(matrix, subset, GetParam())) << "seed " << seed << ": " << subset << " of " << set;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Times, Covers, testing::Values(1, 2, 3));

TEST(Cover, PrefersTheCaseThatKillsMostForItsCost) {
  KillMatrix matrix;
  matrix.cases = {{"dear", 100}, {"cheap", 1}, {"other", 1}};
  matrix.rows = {{"a", "points", 2, 2, "outputs", {0, 1}}, {"b", "points", 2, 2, "outputs", {0, 2}}};
  EXPECT_EQ(cover_of(matrix, {}), (std::vector<std::int32_t>{1, 2}));
}

TEST(Cover, TakesNoCaseForRowsThatDoNotCount) {
  KillMatrix matrix;
  matrix.cases = {{"one", 1}, {"two", 1}};
  matrix.rows = {{"a", "points", 1, 1, "outputs", {0}}, {"b", "benign", 1, 1, "outputs", {1}}};
  EXPECT_EQ(cover_of(matrix, {1, 1, {true, false}}), (std::vector<std::int32_t>{0}));
}

// With cases that are there anyway and cases that are not offered, by trying every set of the others.
TEST(Cover, GivenCasesAreNotTakenAndThoseThatAreNotOfferedNeedNotBe) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const KillMatrix matrix = drawn(8, 12, 3, seed);
    CoverDemand demand{1 + static_cast<int>(seed % 2), seed, {}, std::vector<bool>(8), std::vector<bool>(8)};
    unsigned given = 0, usable = 0;
    for (unsigned i = 0; i < 8; ++i) {
      if ((seed >> (i % 5) & 1) != 0 && i % 3 == 0) {
        demand.given[i] = true;
        given |= 1u << i;
      }
      demand.offered[i] = matrix.cases[i].work <= 6;
      if (demand.given[i] || demand.offered[i]) usable |= 1u << i;
    }
    KillMatrix possible = matrix;
    for (KillRow& row : possible.rows) std::erase_if(row.killers, [&](std::int32_t each) { return (usable >> each & 1) == 0; });
    unsigned set = 0;
    for (const std::int32_t each : cover_of(matrix, demand)) set |= 1u << each;
    EXPECT_EQ(set & given, 0u);
    EXPECT_EQ(set & ~usable, 0u);
    EXPECT_TRUE(covers(possible, set | given, demand.times)) << "seed " << seed;
    for (unsigned subset = set; subset != 0;) {
      subset = (subset - 1) & set;
      EXPECT_FALSE(covers(possible, subset | given, demand.times)) << "seed " << seed;
    }
  }
}

TEST(Cover, TheSeedDecidesBetweenEqualCases) {
  KillMatrix matrix;
  for (int i = 0; i < 6; ++i) matrix.cases.push_back({"case " + std::to_string(i), 1});
  matrix.rows = {{"a", "points", 6, 6, "outputs", {0, 1, 2, 3, 4, 5}}};
  std::set<std::int32_t> chosen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto cover = cover_of(matrix, {1, seed});
    ASSERT_EQ(cover.size(), 1u);
    EXPECT_EQ(cover, cover_of(matrix, {1, seed}));
    chosen.insert(cover[0]);
  }
  EXPECT_GT(chosen.size(), 2u);
}

TEST(Cover, ARecordHasOneKillerOfTheCover) {
  KillMatrix matrix;
  matrix.cases = {{"one", 1}, {"two", 1}, {"three", 1}};
  matrix.rows = {
      {"a", "points", 2, 2, "outputs", {0, 2}}, {"b", "points", 2, 2, "outputs", {1, 2}}, {"c", "points", 1, 1, "passed", {}}};
  const KillMatrix record = with_one_killer(matrix, {1, 2});
  ASSERT_EQ(record.cases.size(), 2u);
  EXPECT_EQ(record.cases[0].line, "two");
  EXPECT_EQ(record.cases[1].line, "three");
  EXPECT_EQ(record.rows[0].killers, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(record.rows[1].killers, (std::vector<std::int32_t>{0}));
  EXPECT_TRUE(record.rows[2].killers.empty());
}

}  // namespace
}  // namespace assay::conformance
