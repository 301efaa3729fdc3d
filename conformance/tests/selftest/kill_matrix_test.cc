// Kill matrices as files, joined matrices, proofs and the summary of them.

#include "conformance/selftest/hunt/kill_matrix.h"

#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "conformance/selftest/hunt/proofs.h"
#include "conformance/selftest/hunt/summary.h"
#include "golden/io/fixture_error.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

KillMatrix example() {
  KillMatrix made;
  made.version = "0.1", made.commit = "abc", made.date = "2026-01-02", made.profile = "smoke", made.words = {"quantize"};
  made.seed = 3, made.kills = 2, made.mutants = 9, made.mutants_digest = "d", made.judged_cases = 5, made.cases_digest = "e";
  made.cases = {{"quantize R=1 K=1", 2.5}, {"quantize R=2 K=2", 3}};
  made.rows = {{"a", "points", 4, 2, "outputs", {0, 1}}, {"b", "once", 3, 3, "passed", {}}};
  return made;
}

std::string put(const golden::TemporaryFolder& folder, const std::string& text, const char* name = "file.json") {
  const std::string path = (folder / name).string();
  std::ofstream(path) << text;
  return path;
}

TEST(KillMatrix, ReadsWhatItWrites) {
  const golden::TemporaryFolder folder;
  const KillMatrix read = read_kill_matrix(put(folder, text_of(example())));
  EXPECT_EQ(text_of(read), text_of(example()));
  EXPECT_EQ(read.rows.at(0).killers, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(read.cases.at(1).line, "quantize R=2 K=2");
  EXPECT_EQ(read.seed, 3);
}

TEST(KillMatrix, IsJsonForOtherPrograms) {
  const auto file = nlohmann::json::parse(text_of(example()));
  EXPECT_EQ(file.at("library").at("mutants"), 9);
  EXPECT_EQ(file.at("rows").at(0).at(5), (std::vector<int>{0, 1}));
  EXPECT_EQ(file.at("columns").size(), file.at("rows").at(0).size());
}

TEST(KillMatrix, RefusesAFileThatIsNone) {
  const golden::TemporaryFolder folder;
  const std::string whole = text_of(example());
  std::string killer = whole, format = whole;
  killer.replace(killer.find("[0,1]"), 5, "[0,2]");
  format.replace(format.find("matrix 1"), 8, "matrix 7");
  for (const auto& [text, reason] :
       std::vector<std::pair<std::string, std::string>>{{whole.substr(0, whole.size() / 2), "parse error"},
                                                        {"{}", "format"},
                                                        {killer, "expected 0 to 1"},
                                                        {format, "kill matrix 1"}}) {
    try {
      read_kill_matrix(put(folder, text));
      ADD_FAILURE() << text;
    } catch (const golden::FixtureError& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("file.json"), std::string::npos) << error.what();
    }
  }
}

TEST(KillMatrix, JoinsShardsAndFurtherKills) {
  KillMatrix first = example(), second = example();
  second.cases = {{"quantize R=2 K=2", 3}, {"quantize R=3 K=3", 4}};
  second.rows = {
      {"b", "once", 7, 7, "memory", {1}}, {"a", "points", 4, 2, "outputs", {0}}, {"c", "points", 1, 1, "outputs", {0}}};
  const KillMatrix all = joined({first, second}, {"1.json", "2.json"}, {"c", "b", "a"});
  ASSERT_EQ(all.rows.size(), 3u);
  EXPECT_EQ(all.rows[0].id, "c");
  EXPECT_EQ(all.rows[1].how, "memory");
  EXPECT_EQ(all.rows[1].differs, 7);
  const auto lines = [&](const KillRow& row) {
    std::vector<std::string> made;
    for (const std::int32_t each : row.killers) made.push_back(all.cases.at(static_cast<std::size_t>(each)).line);
    return made;
  };
  EXPECT_EQ(lines(all.rows[1]), (std::vector<std::string>{"quantize R=3 K=3"}));
  EXPECT_EQ(lines(all.rows[2]), (std::vector<std::string>{"quantize R=1 K=1", "quantize R=2 K=2"}));
  EXPECT_EQ(all.commit, "abc");
  second.commit = "abd", second.date = "2026-03-01";
  const KillMatrix later = joined({first, second, first}, {"1.json", "2.json", "3.json"}, {"a"});
  EXPECT_EQ(later.commit, "abc, abd");
  EXPECT_EQ(later.date, "2026-03-01");
  second.version = "0.2";
  EXPECT_THROW(joined({first, second}, {"1.json", "2.json"}, {"a"}), golden::FixtureError);
}

const std::vector<Mutant> kMutants = {{0, "a", "points", "e4m3.h:1: '<'", false, 0, 1},
                                      {1, "b", "points", "e4m3.h:2: '+'", false, 1, 1},
                                      {2, "c", "points", "e5m2.h:1: '<'", false, 2, 1},
                                      {3, "d", "benign", "another order", true, 3, 1}};

TEST(Proofs, OfOneMutantAndOfASet) {
  const golden::TemporaryFolder folder;
  const auto proofs = Proofs::read(
      put(folder, R"({"c": "never", "gone": "x", "sets": [{"mutants": "*e4m3.h:*", "count": 2, "proof": "masked"}]})"), kMutants);
  EXPECT_EQ(*proofs.of("c"), "never");
  EXPECT_EQ(*proofs.of("a"), "masked");
  EXPECT_EQ(*proofs.of("b"), "masked");
  EXPECT_EQ(proofs.of("d"), nullptr);
  EXPECT_EQ(proofs.unknown(), (std::vector<std::string>{"gone"}));
}

TEST(Proofs, OfASetThatNamesItsMutantsOneByOne) {
  const golden::TemporaryFolder folder;
  const auto proofs =
      Proofs::read(put(folder, R"({"sets": [{"mutants": ["a", "*e5m2.h:*"], "count": 2, "proof": "masked"}]})"), kMutants);
  EXPECT_EQ(*proofs.of("a"), "masked");
  EXPECT_EQ(proofs.of("b"), nullptr);
  EXPECT_EQ(*proofs.of("c"), "masked");
  for (const char* text : {R"({"sets": [{"mutants": ["a", "gone"], "count": 1, "proof": "masked"}]})",
                           R"({"sets": [{"mutants": ["a", "a"], "count": 1, "proof": "masked"}]})",
                           R"({"sets": [{"mutants": ["a", "b"], "count": 1, "proof": "masked"}]})",
                           R"({"sets": [{"mutants": [], "count": 1, "proof": "masked"}]})"})
    EXPECT_THROW(Proofs::read(put(folder, text), kMutants), golden::FixtureError) << text;
}

TEST(Proofs, ASetThatGrowsIsRefused) {
  const golden::TemporaryFolder folder;
  for (const char* text : {R"({"sets": [{"mutants": "*.h:*", "count": 2, "proof": "masked"}]})",
                           R"({"sets": [{"mutants": "*.h:*", "count": 3, "proof": ""}]})", R"({"a": 3})", "[", R"({"a": ""})"})
    EXPECT_THROW(Proofs::read(put(folder, text), kMutants), golden::FixtureError) << text;
  EXPECT_NO_THROW(Proofs::read(put(folder, R"({"sets": [{"mutants": "*.h:*", "count": 3, "proof": "x"}]})"), kMutants));
}

TEST(Proofs, OfAllFilesOfAFolder) {
  const golden::TemporaryFolder folder;
  put(folder, R"({"a": "first"})", "one.json");
  put(folder, R"({"sets": [{"mutants": "*e5m2.h:*", "count": 1, "proof": "second"}]})", "two.json");
  put(folder, "no proofs", "README.md");
  const Proofs proofs = Proofs::read(folder.path().string(), kMutants);
  EXPECT_EQ(*proofs.of("a"), "first");
  EXPECT_EQ(*proofs.of("c"), "second");
  EXPECT_EQ(proofs.size(), 2u);
}

TEST(Proofs, ErrorsNameTheFileOfAFolder) {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"({"a": "again"})", "one.json has a proof of it too"},
           {R"({"sets": [{"mutants": "*e4m3.h:*", "count": 2, "proof": "again"}]})", "one.json has a proof of it too"},
           {R"({"b": "x", "b": "y"})", "b stands twice"},
           {"[", "parse error"}}) {
    const golden::TemporaryFolder folder;
    put(folder, R"({"a": "first"})", "one.json");
    put(folder, text, "two.json");
    try {
      Proofs::read(folder.path().string(), kMutants);
      ADD_FAILURE() << text;
    } catch (const golden::FixtureError& error) {
      EXPECT_NE(std::string(error.what()).find("two.json"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
  const golden::TemporaryFolder empty;
  EXPECT_THROW(Proofs::read(empty.path().string(), kMutants), golden::FixtureError);
}

TEST(Proofs, PatternsStandForTheWholeText) {
  EXPECT_TRUE(matches_pattern("*b*d", "abcd"));
  EXPECT_TRUE(matches_pattern("abcd", "abcd"));
  EXPECT_FALSE(matches_pattern("abc", "abcd"));
  EXPECT_FALSE(matches_pattern("*c*b*", "abcd"));
  EXPECT_TRUE(matches_pattern("*", ""));
}

class Summaries : public testing::Test {
 protected:
  ExitCode code(const std::vector<KillRow>& rows, const std::string& proofs_text) {
    matrix.rows = rows;
    const golden::TemporaryFolder folder;
    const Proofs proofs = Proofs::read(put(folder, proofs_text), kMutants);
    std::vector<const Mutant*> mutants;
    for (const KillRow& row : rows) {
      for (const Mutant& each : kMutants) {
        if (each.id == row.id) mutants.push_back(&each);
      }
    }
    const MutantSummary summary(matrix, mutants, proofs);
    Outcome outcome;
    summary.add_to(outcome);
    text = summary.findings(10, "lib.so") + summary.table();
    counts = summary.counts("");
    return outcome.exit_code();
  }
  KillMatrix matrix = example();
  std::string text;
  FateCounts counts;
};

TEST_F(Summaries, KilledOrNotReachedIsNoFailure) {
  EXPECT_EQ(
      code({{"a", "points", 3, 3, "outputs", {0}}, {"b", "points", 0, 0, "passed", {}}, {"d", "benign", 3, 3, "passed", {}}},
           "{}"),
      ExitCode::passed);
  EXPECT_EQ(counts.killed, 1);
  EXPECT_EQ(counts.killed_once, 1);
  EXPECT_EQ(counts.not_reached, 1);
  EXPECT_EQ(counts.mutants, 2);
  EXPECT_NE(text.find("benign: 1 variations: 1 passed, 0 failed"), std::string::npos) << text;
}

TEST_F(Summaries, KilledOnceIsSaidOnlyWhereAllCasesWereJudged) {
  code({{"a", "points", 3, 2, "outputs", {0}}}, "{}");
  EXPECT_EQ(counts.killed_once, 0);
}

TEST_F(Summaries, ASurvivorFailsWithoutAProof) {
  const std::vector<KillRow> rows = {{"a", "points", 3, 3, "passed", {}}};
  EXPECT_EQ(code(rows, "{}"), ExitCode::failed);
  EXPECT_NE(text.find("e4m3.h:1: '<'"), std::string::npos) << text;
  EXPECT_EQ(code(rows, R"({"a": "masked"})"), ExitCode::passed);
  EXPECT_EQ(counts.proved, 1);
}

TEST_F(Summaries, AProofOfAKilledMutantFails) {
  EXPECT_EQ(code({{"a", "points", 3, 3, "outputs", {0}}}, R"({"a": "masked"})"), ExitCode::failed);
  EXPECT_NE(text.find("contradicted"), std::string::npos) << text;
}

TEST_F(Summaries, ABenignVariationThatFailsFails) {
  EXPECT_EQ(code({{"d", "benign", 3, 3, "outputs", {1}}}, "{}"), ExitCode::failed);
  EXPECT_NE(text.find("repro 'quantize R=2 K=2' --backend lib.so --backend-options mutant=d"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::conformance
