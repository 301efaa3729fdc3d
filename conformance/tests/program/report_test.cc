// The report of a run does not depend on threads, locale, sharding or its reader.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// Two runs may differ only in seconds, and in the fields that say when, where and how they were run.
json without_seconds(json report) {
  for (const char* key : {"seconds", "date", "host", "arguments", "sha256"}) report.erase(key);
  for (json* place : {&report.at("verdict")})
    *place = place->get<std::string>().substr(0, place->get<std::string>().find(" elements compared"));
  for (json& each : report.at("cases")) each.erase("seconds");
  return report;
}

// With a golden folder of one small fixture file: the others are verified elsewhere.
json report_of(Words words, ProcessOptions options = {}, int code = 0) {
  const golden::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "golden");
  std::filesystem::copy_file(std::filesystem::path(ASSAY_GOLDEN_FOLDER) / "offsets.h5", folder / "golden" / "offsets.h5");
  options.environment.emplace_back("ASSAY_GOLDEN", (folder / "golden").string());
  words.insert(words.end(), {"--json", (folder / "report.json").string()});
  const Ran ran = assay(words, options);
  EXPECT_EQ(ran.code, code) << ran.out << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "report.json.part"));
  return read_json(folder / "report.json");
}

const Words kSmoke{"run", "--profile", "smoke", "--backend", "reference"};

std::set<std::string> names_of(const json& report, const std::string& suite) {
  std::set<std::string> names;
  for (const json& each : report.at("cases")) {
    if (each.at("suite") != suite) continue;
    EXPECT_TRUE(names.insert(each.at("name")).second) << each.at("name") << " occurs twice";
  }
  return names;
}

TEST(Json, HoldsEveryVerdict) {
  const json report = report_of(kSmoke);
  EXPECT_EQ(report.at("format"), 2);
  EXPECT_EQ(report.at("verb"), "run --profile smoke");
  EXPECT_EQ(report.at("backend").at("name"), "reference");
  EXPECT_TRUE(report.at("backend").at("device").is_string() && report.at("backend").at("software").is_string());
  EXPECT_EQ(report.at("exit"), 0);
  EXPECT_EQ(report.at("exits"), json::array());
  EXPECT_EQ(report.at("bad_fixtures"), json::array());
  EXPECT_EQ(report.at("troubles"), json::array());
  EXPECT_GT(report.at("seconds"), 0.0);

  std::int64_t passed = 0, elements = 0;
  std::vector<std::pair<std::string, std::string>> order;
  for (const json& each : report.at("cases")) {
    EXPECT_EQ(each.at("verdict"), "passed") << each;
    EXPECT_TRUE(each.at("ground") == "bits" || each.at("ground") == "bound") << each;
    EXPECT_FALSE(each.contains("text")) << each;
    if (each.at("suite") == "generated") {
      EXPECT_TRUE(each.at("case").get<std::string>().starts_with(each.at("op").get<std::string>() + " ")) << each;
    }
    order.emplace_back(each.at("suite"), each.at("name"));
    if (each.at("suite") == "self-check") continue;
    ++passed;
    elements += each.at("elements").get<std::int64_t>();
    EXPECT_EQ(each.at("words"), each.at("elements"));  // the former name
  }
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(report.at("counts"), json({{"passed", passed},
                                       {"failed", 0},
                                       {"not_run", 0},
                                       {"other", 0},
                                       {"flaky", 0},
                                       {"waived", 0},
                                       {"elements", elements},
                                       {"words", elements}}));
  EXPECT_EQ(names_of(report, "self-check"), names_of(report, "generated"));
  EXPECT_GE(names_of(report, "offsets.h5").size(), 5u);
}

TEST(Json, HoldsFailuresWithTheirText) {
  const json report = report_of({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "null", "--show", "0"}, {}, 1);
  EXPECT_EQ(report.at("exits"), json::array({{{"code", 1}, {"meaning", "failed"}}}));
  EXPECT_EQ(report.at("counts").at("failed"), report.at("cases").size());
  for (const json& each : report.at("cases")) {
    EXPECT_EQ(each.at("verdict"), "failed");
    EXPECT_EQ(each.at("ground"), "bits") << each;
    const bool generated = each.contains("case");  // a case of a fixture has a path instead
    const std::string title = each.at(generated ? "case" : "name").get<std::string>();
    // A long title takes several lines.
    const std::string text = std::regex_replace(each.at("text").get<std::string>(), std::regex("\n {8}"), " ");
    EXPECT_TRUE(generated ? text.starts_with("FAILED  " + title)
                          : text.starts_with("FAILED  ") && text.find(": " + title + "\n") < text.find('\n'))
        << each;
  }
}

TEST(Json, SaysWhatWasNotRun) {
  const json report = report_of(
      {"run", "swizzle", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "absent"}, {}, 4);
  EXPECT_EQ(report.at("exit"), 4);
  EXPECT_EQ(report.at("counts").at("not_run"), report.at("cases").size());
  for (const json& each : report.at("cases")) {
    EXPECT_EQ(each.at("verdict"), "not run");
    EXPECT_EQ(each.at("text"), "absent");
  }
}

TEST(Json, NamesDamagedFixtures) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "text.h5").string();
  std::ofstream(file) << "not HDF5\n";
  const json report = report_of({"verify", file}, {}, 3);
  ASSERT_EQ(report.at("bad_fixtures").size(), 1u);
  EXPECT_EQ(report.at("bad_fixtures").at(0).at("file"), file);
  EXPECT_TRUE(report.at("bad_fixtures").at(0).at("why").get<std::string>().starts_with(file + ": "));
}

// Each wrong piece of the map, with every scale that it read.
TEST(Json, HoldsTheMapOfScales) {
  const golden::TemporaryFolder folder;
  const std::string json = (folder / "map.json").string();
  const Ran ran = assay({"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=256 N=384 K=384", "--json", json,
                         "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", "scales=4"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  std::ifstream file(json);
  const nlohmann::json reported = nlohmann::json::parse(file);
  EXPECT_EQ(reported.at("verb"), "scale-map");
  EXPECT_EQ(reported.at("exit"), 1);
  ASSERT_EQ(reported.at("scale_map").size(), 2u);
  EXPECT_EQ(reported.at("scale_map")[0].at("wrong_pairs"), 0);
  const nlohmann::json& side = reported.at("scale_map")[1];
  EXPECT_EQ(side.at("tensor"), "w_rowwise_scale_inv");
  EXPECT_EQ(side.at("pairs"), 18);
  EXPECT_EQ(side.at("wrong_pairs"), 6);
  EXPECT_EQ(side.at("pieces_cut"), false);
  ASSERT_EQ(side.at("pieces").size(), 2u);
  const nlohmann::json last{{"group", 0},         {"tile", {1, 2}},        {"number_by_rows", 5},  {"number_by_columns", 5},
                            {"rows", {128, 256}}, {"columns", {256, 384}}, {"wanted", {8, 9, 10}}, {"read", {4, 5, 6}}};
  EXPECT_EQ(side.at("pieces")[1], last);
}

// A path that is no regular file is written to, not replaced.
TEST(Json, GoesToAPipe) {
  const Ran ran = assay({"repro", "splits_to_offsets splits=1", "--json", "/dev/stdout"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(json::parse(ran.out.substr(ran.out.find("{\n"))).at("verb"), "repro");
  const Ran full = assay({"repro", "splits_to_offsets splits=1", "--json", "/dev/full"});
  EXPECT_EQ(full.code, 9);
  EXPECT_EQ(full.err, "assay: /dev/full: cannot be written: No space left on device\n");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Json, InAMissingFolderIsAnError) {
  const golden::TemporaryFolder folder;
  const std::string path = (folder / "none" / "report.json").string();
  const Ran ran = assay({"repro", "splits_to_offsets splits=1", "--json", path});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "assay: " + path + ": cannot be written: No such file or directory\n");
}

struct Setting {
  const char* name;
  std::vector<std::pair<std::string, std::string>> environment;
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

// The whole report is the same, including failing cases.
class SameReport : public testing::TestWithParam<Setting> {};

TEST_P(SameReport, WhateverTheSetting) {
  static const Words failing{"run", "nvfp4", "--profile", "smoke", "--backend", "null", "--show", "0"};  // of most ops
  static const json passes = without_seconds(report_of(kSmoke)), fails = without_seconds(report_of(failing, {}, 1));
  ProcessOptions changed;
  changed.environment = GetParam().environment;
  EXPECT_EQ(without_seconds(report_of(kSmoke, changed)), passes);
  EXPECT_EQ(without_seconds(report_of(failing, changed, 1)), fails);
}
INSTANTIATE_TEST_SUITE_P(Settings, SameReport,
                         testing::Values(Setting{"again", {}}, Setting{"one_thread", {{"ASSAY_THREADS", "1"}}},
                                         Setting{"three_threads", {{"ASSAY_THREADS", "3"}}},
                                         Setting{"another_locale", {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}}},
                                         Setting{"no_locale", {{"LC_ALL", "C"}}}, Setting{"no_colour", {{"NO_COLOR", "1"}}}),
                         [](const auto& each) { return each.param.name; });

// Three shards hold every case exactly once: generated ones, those of fixtures, those of the self-check.
TEST(Shards, PartTheCases) {
  const json whole = report_of(kSmoke);
  std::map<std::string, int> seen;
  for (int index = 0; index < 3; ++index) {
    Words words = kSmoke;
    words.insert(words.end(), {"--shard", std::to_string(index) + "/3"});
    const json by_option = report_of(words);
    ProcessOptions options;
    options.environment = {{"GTEST_TOTAL_SHARDS", "3"}, {"GTEST_SHARD_INDEX", std::to_string(index)}};
    const json by_environment = report_of(kSmoke, options);
    EXPECT_EQ(by_option.at("selection").at("shard"), by_environment.at("selection").at("shard"));
    EXPECT_EQ(by_option.at("counts"), by_environment.at("counts"));
    for (const char* suite : {"generated", "self-check", "offsets.h5"}) {
      EXPECT_EQ(names_of(by_option, suite), names_of(by_environment, suite)) << "shard " << index;
      EXPECT_GE(names_of(by_option, suite).size(), names_of(whole, suite).size() / 6) << suite << " in shard " << index;
    }
    for (const json& each : by_option.at("cases")) ++seen[std::string(each.at("suite")) + ":" + std::string(each.at("name"))];
  }
  EXPECT_EQ(seen.size(), whole.at("cases").size());
  for (const json& each : whole.at("cases")) {
    EXPECT_EQ(seen[std::string(each.at("suite")) + ":" + std::string(each.at("name"))], 1) << each.at("name");
  }
}

TEST(Shards, SayThatTheyAreUnderstood) {
  const golden::TemporaryFolder folder;
  ProcessOptions options;
  options.environment = {{"GTEST_TOTAL_SHARDS", "2"}, {"GTEST_SHARD_STATUS_FILE", (folder / "status").string()}};
  assay({"run", "swizzle", "--profile", "smoke"}, options);
  EXPECT_TRUE(std::filesystem::exists(folder / "status"));
}

constexpr const char* kColour = "\033[32mPASS\033[0m";

// Progress and colour are for people at a terminal: progress is on standard error, colour on standard output.
TEST(Terminal, ShowsProgressBesideTheResults) {
  ProcessOptions options;
  options.terminal = true;
  const Ran ran = assay({"run", "grouped_gemm", "--profile", "smoke"}, options);
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(contains(ran.err, "\r\033[Kcases ")) << ran.err;
  EXPECT_TRUE(ran.err.ends_with("\r\033[K")) << "the line is left behind: " << ran.err;
  EXPECT_FALSE(contains(ran.err, "passed"));
  EXPECT_TRUE(contains(ran.out, kColour)) << ran.out;
  EXPECT_FALSE(contains(ran.out, "\033[K"));
}

// After two seconds the remaining time is estimated.
TEST(Terminal, ProgressSaysHowLongItWillTake) {
  const golden::TemporaryFolder folder;
  ProcessOptions options;
  options.terminal = true;
  options.environment = {{"ASSAY_GOLDEN", folder.path().string()}, {"ASSAY_THREADS", "1"}};
  const Ran longer = assay({"run", "quantize", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options",
                            "slow=" + (folder / "started").string()},
                           options);
  EXPECT_TRUE(contains(longer.err, " s left")) << longer.err;
}

TEST(Terminal, QuietShowsNone) {
  ProcessOptions options;
  options.terminal = true;
  const Ran ran = assay({"run", "swizzle", "--profile", "smoke", "--quiet"}, options);
  EXPECT_EQ(without_judged_line(ran.err), "");
  EXPECT_TRUE(contains(ran.out, kColour));
}

TEST(Terminal, NoColorIsHonoured) {
  ProcessOptions options;
  options.terminal = true;
  options.environment = {{"NO_COLOR", "1"}};
  const Ran ran = assay({"run", "swizzle", "--profile", "smoke"}, options);
  EXPECT_TRUE(contains(ran.out, "PASS run")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "\033["));
}

TEST(Terminal, NoneMeansNeitherColourNorProgress) {
  const Ran ran = assay({"run", "swizzle", "--profile", "smoke"});
  EXPECT_EQ(without_judged_line(ran.err), "");
  EXPECT_FALSE(contains(ran.out, "\033"));
}

}  // namespace
}  // namespace assay::conformance
