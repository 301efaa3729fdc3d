// The program writes what conformance/report/report.schema.json describes.

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

struct Evidence {
  json report;
  std::vector<json> results;
};

Evidence evidence_of(Words words, int code) {
  const EmptyGolden golden;
  const std::string report = (golden.folder / "report.json").string(), results = (golden.folder / "results.jsonl").string();
  words.insert(words.end(), {"--json", report});
  if (words[0] == "run") words.insert(words.end(), {"--results", results});
  const Ran ran = assay(words, golden.options);
  EXPECT_EQ(ran.code, code) << ran.out << ran.err;
  Evidence made{json::parse(text_of(report)), words[0] == "run" ? results_of(results) : std::vector<json>{}};
  expect_valid(made.report, "report");
  return made;
}

// One line of results for each case of the report, with the same fields.
void expect_same_cases(const Evidence& evidence) {
  std::map<std::string, json> lines;
  for (json each : evidence.results) {
    if (each.at("record") != "case") continue;
    each.erase("record");
    each.erase("of");
    each.erase("chain");
    const std::string key = each.at("suite").get<std::string>() + each.at("name").get<std::string>() + each.value("setting", "");
    EXPECT_TRUE(lines.emplace(key, each).second) << "two lines for " << key;
  }
  EXPECT_EQ(lines.size(), evidence.report.at("cases").size());
  for (const json& each : evidence.report.at("cases")) {
    EXPECT_EQ(lines[each.at("suite").get<std::string>() + each.at("name").get<std::string>() + each.value("setting", "")], each);
  }
  ASSERT_GE(evidence.results.size(), 2u);
  json first = evidence.results.front(), last = evidence.results.back();
  EXPECT_EQ(first.at("record"), "header");
  EXPECT_EQ(last.at("record"), "summary");
  first.erase("record");
  first.erase("chain");
  for (const auto& [key, value] : first.items()) EXPECT_EQ(evidence.report.at(key), value) << key;
  EXPECT_EQ(last.at("counts"), evidence.report.at("counts"));
  EXPECT_EQ(last.at("verdict"), evidence.report.at("verdict"));
}

TEST(ReportSchema, OfPasses) {
  const Evidence evidence =
      evidence_of({"run", "splits_to_offsets", "--profile", "smoke", "--backend", "reference", "--quiet"}, 0);
  expect_same_cases(evidence);
  for (const json& each : evidence.report.at("cases")) {
    EXPECT_EQ(each.at("ground"), "bits");
    EXPECT_FALSE(each.contains("findings") || each.contains("reason"));
  }
  const json& backend = evidence.report.at("backend");
  EXPECT_EQ(backend.at("name"), "reference");
  EXPECT_EQ(backend.at("built_in"), true);
  EXPECT_EQ(backend.at("library").at("path"), std::filesystem::canonical(ASSAY_PROGRAM).string());
  EXPECT_EQ(evidence.report.at("selection").at("words"), json::array({"splits_to_offsets"}));
  EXPECT_EQ(evidence.report.at("arguments")[0], "run");
}

TEST(ReportSchema, OfFailures) {
  const Evidence evidence = evidence_of(faulty_run("wrong", {"splits_to_offsets"}), 1);
  expect_same_cases(evidence);
  int failed = 0;
  for (const json& each : evidence.report.at("cases")) {
    if (each.at("verdict") != "failed") continue;
    ++failed;
    const json& finding = each.at("findings")[0];
    EXPECT_EQ(finding.at("kind"), "bits");
    EXPECT_EQ(finding.at("wrong"), 1) << "one byte was changed";
    EXPECT_EQ(finding.at("first").at("element"), 0);
  }
  EXPECT_GE(failed, 5);
  const json& library = evidence.report.at("backend").at("library");
  EXPECT_EQ(library.at("path"), std::filesystem::canonical(ASSAY_FAULTY_BACKEND).string());
  EXPECT_EQ(evidence.report.at("backend").at("built_in"), false);
  const Ran sum = run_program({"sha256sum", ASSAY_FAULTY_BACKEND});  // from coreutils: an independent implementation
  EXPECT_EQ(library.at("sha256"), sum.out.substr(0, 64));
}

TEST(ReportSchema, OfAbsences) {
  const Evidence evidence = evidence_of(faulty_run("absent", {"swizzle"}), 4);
  expect_same_cases(evidence);
  for (const json& each : evidence.report.at("cases")) {
    EXPECT_EQ(each.at("verdict"), "not run");
    EXPECT_EQ(each.at("reason"), "absent");
  }
}

TEST(ReportSchema, OfUnfinishedRuns) {
  const Evidence evidence = evidence_of(faulty_run("busy", {"splits_to_offsets", "--timeout", "1"}), 5);
  std::set<std::string> verdicts;
  for (const json& each : evidence.report.at("cases")) verdicts.insert(each.at("verdict"));
  EXPECT_TRUE(verdicts.count("unfinished")) << evidence.report.at("counts");
  EXPECT_EQ(evidence.report.at("exit"), 5);
}

TEST(ReportSchema, OfSkipsWithoutProofAndFailingDevices) {
  for (const auto& [fault, code, verdict] : {std::tuple("unproven", 6, "skip without proof"), std::tuple("lost", 1, "failed"),
                                             std::tuple("full", 9, "machine failed")}) {
    const Evidence evidence = evidence_of(faulty_run(fault, {"splits_to_offsets"}), code);
    EXPECT_EQ(evidence.report.at("cases")[0].at("verdict"), verdict);
    EXPECT_FALSE(evidence.report.at("cases")[0].at("findings").empty());
  }
}

TEST(ReportSchema, OfOtherVerbs) {
  evidence_of({"repro", "splits_to_offsets splits=1,2"}, 0);
  evidence_of({"verify", std::string(ASSAY_GOLDEN_FOLDER) + "/offsets.h5"}, 0);
  evidence_of({"scale-map", "grouped_gemm kind=fp8_block d_type=f32 splits=128 N=128 K=128"}, 0);
}

TEST(ReportSchema, OfSettings) {
  const Evidence evidence =
      evidence_of(faulty_run("settings", {"grouped_gemm kind=bf16", "--algorithms", "all", "--axes", "size=2,twice"}), 1);
  expect_same_cases(evidence);
}

// The check itself finds errors.
TEST(ReportSchema, RefusesWhatIsNotInIt) {
  const json report = evidence_of({"repro", "splits_to_offsets splits=1,2"}, 0).report;
  const auto faults = [](const json& value) { return report_schema().faults(value, "/$defs/report").size(); };
  EXPECT_EQ(faults(report), 0u);
  json changed = report;
  changed["more"] = 1;
  EXPECT_EQ(faults(changed), 1u);
  changed = report;
  changed.erase("date");
  EXPECT_EQ(faults(changed), 1u);
  changed = report;
  changed["cases"][0]["verdict"] = "good";
  EXPECT_EQ(faults(changed), 1u);
  changed = report;
  changed["cases"][0]["elements"] = "3";
  EXPECT_EQ(faults(changed), 1u);
  changed["backend"]["library"]["sha256"] = "12";
  EXPECT_EQ(faults(changed), 2u);
}

}  // namespace
}  // namespace assay::conformance
