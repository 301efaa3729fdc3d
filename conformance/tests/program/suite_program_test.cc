// assay_suite: the same cases as GoogleTest tests.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct SuiteRun {
  Ran ran;
  nlohmann::json report;  // GoogleTest's
};

SuiteRun suite(const Environment& environment, std::vector<std::string> words = {}) {
  const golden::TemporaryFolder folder;
  words.insert(words.begin(), {ASSAY_SUITE, "--gtest_output=json:" + (folder / "report.json").string()});
  ProcessOptions options;
  options.environment = environment;
  SuiteRun run{run_program(words, options), {}};
  std::ifstream file(folder / "report.json");
  if (file) run.report = nlohmann::json::parse(file);
  return run;
}

// Case line -> GoogleTest's result.
std::map<std::string, nlohmann::json> by_case(const nlohmann::json& report) {
  std::map<std::string, nlohmann::json> tests;
  for (const auto& each : report.at("testsuites")) {
    for (const auto& test : each.at("testsuite")) {
      if (test.at("status") != "RUN") continue;
      EXPECT_TRUE(tests.emplace(test.at("case"), test).second) << test;
    }
  }
  return tests;
}

std::set<std::string> smoke_lines() {
  std::set<std::string> lines;
  for (const CaseLine& line : catalogue(Profile::smoke)) lines.insert(to_text(line));
  return lines;
}

TEST(Suite, HasATestForEveryCase) {
  const SuiteRun run = suite({});
  EXPECT_EQ(run.ran.code, 0) << run.ran.out;
  std::set<std::string> lines;
  for (const auto& [line, test] : by_case(run.report)) {
    lines.insert(line);
    EXPECT_EQ(test.at("classname"), line.substr(0, line.find(' ')));
    EXPECT_EQ(test.at("result"), "COMPLETED");
    EXPECT_TRUE(test.at("ground") == "bits" || test.at("ground") == "bound") << test;
    EXPECT_TRUE(test.contains("elements")) << test;
    EXPECT_EQ(test.at("words"), test.at("elements"));  // the former name
  }
  EXPECT_EQ(lines, smoke_lines());
}

TEST(Suite, FailsWithTheTextOfTheFailure) {
  const SuiteRun run = suite({{"ASSAY_BACKEND", "null"}}, {"--gtest_filter=swizzle.*"});
  EXPECT_EQ(run.ran.code, 1);
  for (const auto& [line, test] : by_case(run.report)) {
    const std::string text = test.at("failures").at(0).at("failure");
    EXPECT_TRUE(contains(text, "FAILED  " + line + "\n  output  ")) << text;
    EXPECT_TRUE(contains(text, "  repro   assay repro '" + line + "' --backend null")) << text;
  }
}

TEST(Suite, SkipsWhatIsProvedAbsent) {
  const SuiteRun run =
      suite({{"ASSAY_BACKEND", ASSAY_FAULTY_BACKEND}, {"ASSAY_BACKEND_OPTIONS", "absent"}}, {"--gtest_filter=swizzle.*"});
  EXPECT_EQ(run.ran.code, 4) << "nothing was judged";
  EXPECT_TRUE(contains(run.ran.err, "no case was judged")) << run.ran.err;
  EXPECT_TRUE(contains(run.ran.out, "Skipped\nabsent\n")) << run.ran.out;
  for (const auto& [line, test] : by_case(run.report)) EXPECT_EQ(test.at("result"), "SKIPPED") << line;
}

TEST(Suite, FailsASkipWithoutProof) {
  const SuiteRun run =
      suite({{"ASSAY_BACKEND", ASSAY_FAULTY_BACKEND}, {"ASSAY_BACKEND_OPTIONS", "unproven"}}, {"--gtest_filter=swizzle.*"});
  EXPECT_EQ(run.ran.code, 1);
  EXPECT_TRUE(contains(run.ran.out, "skip    without proof")) << run.ran.out;
}

TEST(Suite, IsPartedByGoogleTest) {
  std::map<std::string, int> seen;
  for (const char* index : {"0", "1", "2"}) {
    const SuiteRun run = suite({{"GTEST_TOTAL_SHARDS", "3"}, {"GTEST_SHARD_INDEX", index}});
    EXPECT_EQ(run.ran.code, 0);
    for (const auto& [line, test] : by_case(run.report)) ++seen[line];
  }
  EXPECT_EQ(seen.size(), smoke_lines().size());
  for (const auto& [line, times] : seen) EXPECT_EQ(times, 1) << line;
}

TEST(Suite, ListsWithoutABackend) {
  const SuiteRun run = suite({{"ASSAY_BACKEND", "./none.so"}, {"ASSAY_PROFILE", "standard"}}, {"--gtest_list_tests"});
  EXPECT_EQ(run.ran.code, 0) << run.ran.err;
  EXPECT_TRUE(contains(run.ran.out, "splits_to_offsets.\n")) << run.ran.out;
  EXPECT_EQ(static_cast<std::size_t>(std::count(run.ran.out.begin(), run.ran.out.end(), '#')),
            catalogue(Profile::standard).size());
}

TEST(Suite, SaysWhatIsWrongWithItsEnvironment) {
  EXPECT_EQ(suite({{"ASSAY_PROFILE", "huge"}}).ran.err,
            "assay_suite: ASSAY_PROFILE is 'huge': expected smoke, standard or full\n");
  EXPECT_EQ(suite({{"ASSAY_PROFILE", "huge"}}).ran.code, 2);
  EXPECT_EQ(suite({{"ASSAY_BACKEND", "nul"}}).ran.code, 2);
  EXPECT_EQ(suite({{"ASSAY_BACKEND", ASSAY_FAULTY_BACKEND}, {"ASSAY_BACKEND_OPTIONS", "closed"}}).ran.code, 9);
  EXPECT_EQ(suite({}, {"--gtest_filter=nothing.*"}).ran.code, 4);
  EXPECT_EQ(suite({}, {"surplus"}).ran.code, 2);
}

}  // namespace
}  // namespace assay::conformance
