// The lines by which the profiles are complemented: they are covers of the recorded kill matrices.

#include "conformance/selftest/hunt/profile_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/catalogue/case_text.h"
#include "conformance/catalogue/catalogue.h"

namespace assay::conformance {
namespace {

using Texts = std::set<std::string>;

Texts texts_of(const std::vector<CaseLine>& lines) {
  Texts made;
  for (const CaseLine& each : lines) made.insert(to_text(each));
  return made;
}

// The lines of conformance/cases/cover_smoke.txt or cover_standard.txt. Both are of the standard profile: smoke has cases with a word to
// write alone, and is short.
Texts cover_lines(Profile profile) {
  const std::string file = profile == Profile::smoke ? "cover_smoke.txt" : "cover_standard.txt";
  Texts made;
  for (const CaseText& each : written_cases()) {
    if (each.file == file) made.merge(texts_of(each.of(Profile::standard)));
  }
  return made;
}

// Of each mutant of the recorded matrices, the lines that kill it, with their work.
using Killers = std::map<std::string, double>;
std::map<std::string, Killers> recorded(Profile profile) {
  std::map<std::string, Killers> made;
  for (const char* file : {"standard.json", "full.json"}) {
    const KillMatrix matrix = read_kill_matrix(std::string(ASSAY_SOURCE_SELFTEST "/") + file);
    for (const KillRow& row : matrix.rows) {
      if (row.family == "benign" || (profile == Profile::smoke && row.family == "rules")) continue;
      for (const std::int32_t each : row.killers) {
        const KillingCase& killer = matrix.cases[static_cast<std::size_t>(each)];
        made[row.id][killer.line] = killer.work;
      }
    }
  }
  return made;
}

struct Complemented {
  Profile profile;
  int times;
  double most_work;
  bool offers(const std::string& line, double work) const { return work <= most_work && is_for(profile, line); }
};

// How many of the mutants, or with `killed_by` of those that this line kills, the lines do not kill as often as they have to.
std::int64_t lacking(const std::map<std::string, Killers>& mutants, const Texts& lines, const Complemented& cover,
                     const std::string& killed_by = "") {
  return std::count_if(mutants.begin(), mutants.end(), [&](const auto& mutant) {
    if (!killed_by.empty() && mutant.second.count(killed_by) == 0) return false;
    int possible = 0, there = 0;
    for (const auto& [line, work] : mutant.second) {
      const bool is_there = lines.count(line) != 0;
      possible += is_there || cover.offers(line, work);
      there += is_there;
    }
    return there < std::min(cover.times, possible);
  });
}

class ProfileCovers : public testing::TestWithParam<Complemented> {};

TEST_P(ProfileCovers, KillWhatAnyRecordedCaseKillsAndNoLineCanBeLeftOut) {
  const Profile profile = GetParam().profile;
  const auto mutants = recorded(profile);
  ASSERT_GT(mutants.size(), 8000u);
  Texts lines = texts_of(catalogue(profile));
  lines.merge(cover_lines(profile));
  EXPECT_EQ(lacking(mutants, lines, GetParam()), 0) << "make the covers again: docs/selftest.md";
  const Texts others = texts_of(catalogue_without_covers(profile));
  for (const std::string& each : cover_lines(profile)) {
    EXPECT_EQ(others.count(each), 0u) << each;
    lines.erase(each);
    EXPECT_GT(lacking(mutants, lines, GetParam(), each), 0)
        << each << " can be left out: make the covers again (docs/selftest.md)";
    lines.insert(each);
  }
}
INSTANTIATE_TEST_SUITE_P(Selftest, ProfileCovers,
                         testing::Values(Complemented{Profile::smoke, kSmokeTimes, kSmokeWork},
                                         Complemented{Profile::standard, kStandardTimes, kStandardWork}));

TEST(ProfileCovers, SmokeHasOneWithoutWrongCalls) {
  const Texts lines = cover_lines(Profile::smoke);
  EXPECT_GT(lines.size(), 100u);
  for (const std::string& each : lines) EXPECT_TRUE(is_for(Profile::smoke, each)) << each;
  for (const char* wrong :
       {"splits_to_offsets splits=3,0,5 stride=24 contract=1", "splits_to_offsets splits=3,0,5 fault=negative_split"}) {
    EXPECT_FALSE(is_for(Profile::smoke, wrong));
    EXPECT_TRUE(is_for(Profile::standard, wrong));
  }
}

TEST(ProfileCovers, OtherComputedLinesDoNotDependOnThem) {
  for (const Profile profile : {Profile::smoke, Profile::standard}) {
    Texts all = texts_of(catalogue(profile));
    const Texts others = texts_of(catalogue_without_covers(profile));
    EXPECT_TRUE(std::includes(all.begin(), all.end(), others.begin(), others.end()));
    for (const Profile of : {Profile::smoke, Profile::standard}) {
      for (const std::string& each : cover_lines(of)) {
        if (others.count(each) == 0) all.erase(each);
      }
    }
    EXPECT_EQ(all, others);
  }
}

TEST(ProfileCover, LeavesOutWhatIsThereAndWhatCostsTooMuch) {
  KillMatrix matrix;
  matrix.date = "2026-01-02", matrix.mutants_digest = "0123456789abcdef0123";
  matrix.cases = {{"one", 400'000}, {"two", 500'000}, {"dear", 9e9}};
  matrix.rows = {{"a", "points", 3, 3, "outputs", {0}},
                 {"b", "points", 3, 3, "outputs", {1, 2}},
                 {"c", "points", 3, 3, "outputs", {2}},
                 {"d", "points", 3, 3, "passed", {}}};
  const ProfileCover cover = profile_cover(matrix, {"one", "other"}, 1, 1, {true, true, false}, {});
  EXPECT_EQ(cover.lines, (std::vector<std::string>{"two"}));
  EXPECT_EQ(cover.mutants, 2);
  EXPECT_EQ(cover.others, 1);
  const std::string text = text_of(cover, Profile::smoke, matrix, 1, 7);
  EXPECT_NE(text.find("2026-01-02"), std::string::npos);
  EXPECT_NE(text.find("seed 7"), std::string::npos);
  EXPECT_NE(text.find("the profile smoke kills each of 2 "), std::string::npos);
  EXPECT_NE(text.find("\n[standard]\ntwo\n"), std::string::npos);
  EXPECT_EQ(profile_cover(matrix, {}, 2, 1, {}, {}).lines, (std::vector<std::string>{"dear", "one", "two"}));
}

}  // namespace
}  // namespace assay::conformance
