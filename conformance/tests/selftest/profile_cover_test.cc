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

// The lines of conformance/cases/cover_smoke.txt or cover_standard.txt.
Texts cover_lines(Profile profile) {
  const std::string file = profile == Profile::smoke ? "cover_smoke.txt" : "cover_standard.txt";
  Texts made;
  for (const CaseText& each : written_cases()) {
    if (each.file == file) made.merge(texts_of(each.of(profile)));
  }
  return made;
}

// Of each mutant of the recorded matrices, the lines that kill it, with their work.
using Killers = std::map<std::string, double>;
std::map<std::string, Killers> recorded(Profile profile) {
  std::map<std::string, Killers> made;
  for (const char* file : {"standard.json", "full.json", "full_open.json", "full_rare.json", "full_activation.json"}) {
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
};

// Of the lines that kill, those that the cover may have: each is asked once.
Texts offered(const std::map<std::string, Killers>& mutants, const Complemented& cover) {
  std::map<std::string, double> all;
  for (const auto& mutant : mutants) all.insert(mutant.second.begin(), mutant.second.end());
  Texts made;
  for (const auto& [line, work] : all) {
    if (work <= cover.most_work && is_for(cover.profile, line)) made.insert(line);
  }
  return made;
}

// How many of the mutants, or with `killed_by` of those that this line kills, the lines do not kill as often as they have to.
std::int64_t lacking(const std::map<std::string, Killers>& mutants, const Texts& lines, const Texts& may_be_taken, int times,
                     const std::string& killed_by = "") {
  return std::count_if(mutants.begin(), mutants.end(), [&](const auto& mutant) {
    if (!killed_by.empty() && mutant.second.count(killed_by) == 0) return false;
    int possible = 0, there = 0;
    for (const auto& killer : mutant.second) {
      const bool is_there = lines.count(killer.first) != 0;
      possible += is_there || may_be_taken.count(killer.first) != 0;
      there += is_there;
    }
    return there < std::min(times, possible);
  });
}

class ProfileCovers : public testing::TestWithParam<Complemented> {};

TEST_P(ProfileCovers, KillWhatAnyRecordedCaseKillsAndNoLineCanBeLeftOut) {
  const auto& [profile, times, most_work] = GetParam();
  const auto mutants = recorded(profile);
  ASSERT_GT(mutants.size(), 8000u);
  Texts lines = texts_of(catalogue(profile));
  lines.merge(cover_lines(profile));
  const Texts may_be_taken = offered(mutants, GetParam());
  EXPECT_EQ(lacking(mutants, lines, may_be_taken, times), 0) << "make the covers again: docs/selftest.md";
  const Texts others = texts_of(catalogue_without_covers(profile));
  for (const std::string& each : cover_lines(profile)) {
    EXPECT_EQ(others.count(each), 0u) << each;
    lines.erase(each);
    EXPECT_GT(lacking(mutants, lines, may_be_taken, times, each), 0)
        << each << " can be left out: make the covers again (docs/selftest.md)";
    lines.insert(each);
  }
}
INSTANTIATE_TEST_SUITE_P(Selftest, ProfileCovers,
                         testing::Values(Complemented{Profile::smoke, kSmokeTimes, kSmokeWork},
                                         Complemented{Profile::standard, kStandardTimes, kStandardWork}));

TEST(ProfileCovers, SmokeHasOneWithoutWrongCallsOfCallsThatWriteSomething) {
  const Texts lines = cover_lines(Profile::smoke);
  EXPECT_GT(lines.size(), 100u);
  for (const std::string& each : lines) EXPECT_TRUE(is_for(Profile::smoke, each)) << each;
  for (const char* other :
       {"splits_to_offsets splits=3,0,5 stride=24 contract=1", "splits_to_offsets splits=3,0,5 fault=negative_split",
        "quantize recipe=mxfp8 R=0 K=64", "quantize recipe=tensor_current R=9 K=64 noop=1", "permute R=9 K=0",
        "grouped_gemm kind=bf16 splits=5,3 N=0 K=16", "grouped_gemm kind=bf16 splits=3x0 N=16 K=16 replay=2:splits"}) {
    EXPECT_FALSE(is_for(Profile::smoke, other)) << other;
    EXPECT_TRUE(is_for(Profile::standard, other)) << other;
  }
  // Without a row, but not without an element: an offset more than there are groups, the sums of no rows.
  for (const char* written : {"splits_to_offsets splits=0x0", "grouped_gemm kind=bf16 layout=NT splits=3x0 N=16 K=16",
                              "quantize recipe=mxfp8 R=33 K=64", "splits_to_offsets splits=3,0,5 replay=3:splits"}) {
    EXPECT_TRUE(is_for(Profile::smoke, written)) << written;
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
  EXPECT_NE(text.find("\n[smoke]\ntwo\n"), std::string::npos);
  EXPECT_EQ(profile_cover(matrix, {}, 2, 1, {}, {}).lines, (std::vector<std::string>{"dear", "one", "two"}));
}

}  // namespace
}  // namespace assay::conformance
