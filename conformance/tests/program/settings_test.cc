// Random products, other settings of a backend, another backend's answers: in run and repro.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

json report_of(Words words, int code) {
  const golden::TemporaryFolder folder;
  words.insert(words.end(), {"--json", (folder / "report.json").string()});
  const Ran ran = assay(words);
  EXPECT_EQ(ran.code, code) << ran.out << ran.err;
  std::ifstream file(folder / "report.json");
  return json::parse(file);
}

const Words kRandom{"run", "--random", "3", "--seed", "5", "splits=??", "N=???", "K=???", "--backend", "reference", "--quiet"};

TEST(Random, CasesAreOrdinaryOnesAndDependOnTheSeed) {
  const json first = report_of(kRandom, 0), again = report_of(kRandom, 0);
  EXPECT_EQ(first.at("verb"), R"(run --random 3 --seed 5 'splits=??' 'N=???' 'K=???')");
  ASSERT_EQ(first.at("cases").size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string line = first.at("cases")[i].at("case");
    EXPECT_EQ(line, again.at("cases")[i].at("case").get<std::string>());
    EXPECT_TRUE(contains(line, " kind=") && contains(line, " seed=")) << line;
    EXPECT_EQ(first.at("cases")[i].at("op"), "grouped_gemm");
    EXPECT_TRUE(first.at("cases")[i].contains("plan"));
  }
  Words other = kRandom;
  other[4] = "6";
  EXPECT_NE(report_of(other, 0).at("cases")[0].at("case"), first.at("cases")[0].at("case"));
  EXPECT_EQ(assay({"run", "--random", "2", "kind=none", "--backend", "reference"}).code, 2);  // no random case has that value
}

TEST(Settings, EachAlgorithmAndAxisIsJudged) {
  const json report = report_of({"run", "--profile", "smoke", "grouped_gemm kind=bf16", "--backend", ASSAY_FAULTY_BACKEND,
                                 "--backend-options", "settings", "--algorithms", "all", "--axes", "size=2,twice", "--quiet"},
                                1);
  std::map<std::string, json> settings;
  for (const json& each : report.at("settings")) settings[each.at("setting")] = each;
  ASSERT_EQ(settings.size(), 5u) << report.at("settings");
  const std::int64_t cases = settings.at("axis: size=2").at("passed");  // replayed cases have no other settings
  EXPECT_GE(cases, 2);
  EXPECT_GE(settings.at("").at("passed"), cases);
  EXPECT_EQ(settings.at("algorithm: tile 7").at("passed"), cases);
  for (const char* wrong : {"algorithm: tile 9, wrong", "axis: twice=no"}) {  // a case without output passes in any case
    EXPECT_GE(settings.at(wrong).at("failed"), 2);
    EXPECT_EQ(settings.at(wrong).at("failed").get<std::int64_t>() + settings.at(wrong).at("passed").get<std::int64_t>(), cases);
  }
  // The algorithm with tile 7 states no plan, which the report says; all others state one.
  EXPECT_EQ(settings.at("algorithm: tile 7").at("elements_with_known_plan"), 0);
  EXPECT_FALSE(settings.at("algorithm: tile 7").at("unknown").empty());
  EXPECT_EQ(settings.at("").at("elements_with_known_plan"), settings.at("").at("elements"));
  for (const auto& [setting, of] : settings) {  // the former names
    EXPECT_EQ(of.at("words"), of.at("elements")) << setting;
    EXPECT_EQ(of.at("words_with_known_plan"), of.at("elements_with_known_plan")) << setting;
  }
  for (const json& each : report.at("cases")) {
    if (each.at("verdict") != "failed") continue;
    const std::string text = each.at("text");
    EXPECT_TRUE(contains(text, "\n  under   " + each.at("setting").get<std::string>())) << text;
    EXPECT_TRUE(contains(text, each.at("setting") == "axis: twice=no" ? " --axis twice=no" : " --algorithm 90")) << text;
  }
}

TEST(Settings, AnAxisThatIsNotThereIsAnError) {
  const Ran ran = assay({"run", "--profile", "smoke", "kind=bf16", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options",
                         "settings", "--axes", "length"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "'length'") && contains(ran.err, "size, twice")) << ran.err;
}

constexpr const char* kSetProduct = "grouped_gemm kind=fp8_per_tensor d_type=f32 splits=17,0,9 N=24 K=48 seed=3";

TEST(ExpectBy, TheVerdictSaysWhoseAnswerItWas) {
  const Ran ran = assay({"repro", kSetProduct, "--backend", "reference", "--expect-by", ASSAY_FAULTY_BACKEND});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(contains(ran.out, "passed by bits, expected by faulty: ")) << ran.out;
  const json report = report_of({"repro", kSetProduct, "--backend", "reference", "--expect-by", ASSAY_FAULTY_BACKEND}, 0);
  EXPECT_EQ(report.at("cases")[0].at("expected_by"), "faulty");
}

TEST(ExpectBy, OtherOpsStayWithTheReference) {
  const Ran ran = assay({"repro", "splits_to_offsets splits=1,2", "--backend", "reference", "--expect-by", ASSAY_FAULTY_BACKEND});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(contains(ran.out, "passed by bits: ")) << ran.out;
}

TEST(ExpectBy, ABackendThatCannotOpenIsToldAtOnce) {
  const Ran ran = assay({"repro", kSetProduct, "--backend", "reference", "--expect-by", "no_such_backend"});
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(contains(ran.out + ran.err, "no_such_backend")) << ran.out << ran.err;
}

// A kernel that reads the scales of another block: the report names the tiles, and the scale that each reads.
TEST(ScalesOfAnotherBlock, AreNamed) {
  const Words words{"repro",
                    "grouped_gemm kind=fp8_block d_type=f32 splits=200,0,260 N=300 K=400 seed=1",
                    "--backend",
                    ASSAY_FAULTY_BACKEND,
                    "--backend-options",
                    "scales=4"};
  const Ran ran = assay(words);
  EXPECT_EQ(ran.code, 1);
  std::string text = ran.out;
  for (std::size_t at = 0; (at = text.find("\n          ", at)) != std::string::npos;)
    text.replace(at, 11, " ");  // wrapped lines
  EXPECT_TRUE(contains(text, "hint    scale of another block: scales of w explain all ")) << text;
  EXPECT_TRUE(contains(text, "; read from scale 4 (")) << text;
  EXPECT_TRUE(
      contains(text, "tile (group 0, 1, 0): w scale 0 (group 0, n-block 0, k-block 0) read at 4 (group 0, n-block 1, k-block 0)"))
      << text;
  const json report = report_of(words, 1);
  bool reported = false;
  for (const json& each : report.at("cases")[0].at("details")) {
    reported =
        reported ||
        each == "tile (group 2, 0, 2): w scale 32 (group 2, n-block 2, k-block 0) read at 4 (group 0, n-block 1, k-block 0)";
  }
  EXPECT_TRUE(reported) << report.at("cases")[0].at("details");
}

}  // namespace
}  // namespace assay::conformance
