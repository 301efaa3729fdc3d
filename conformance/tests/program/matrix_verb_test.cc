// assay matrix: pages from files that runs wrote.

#include <map>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

TEST(MatrixVerb, LeadsFromRunsToTheirFailures) {
  const EmptyGolden golden;
  const auto path = [&](const char* name) { return (golden.folder / name).string(); };
  ASSERT_EQ(assay(faulty_run("none", {"splits_to_offsets", "--json", path("sound.json")}), golden.options).code, 0);
  const Ran run = assay(faulty_run("wrong", {"splits_to_offsets", "--results", path("wrong.jsonl")}), golden.options);
  ASSERT_EQ(run.code, 1) << run.out << run.err;
  const Ran ran = assay(
      {"matrix", path("wrong.jsonl"), path("sound.json"), "--html", path("page.html"), "--markdown", path("page.markdown")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out + ran.err, "");
  const std::string html = text_of(path("page.html")), markdown = text_of(path("page.markdown"));
  // Counted from the file: each failure has its command, as the run printed it.
  std::map<std::string, std::pair<int, int>> counts;  // passed and failed of each op
  int failures = 0;
  for (const json& each : results_of(path("wrong.jsonl"))) {
    if (each.at("record") != "case") continue;
    auto& [passed, failed] = counts[each.at("op")];
    ++(each.at("verdict") == "passed" ? passed : failed);
    if (each.at("verdict") == "passed") continue;
    ++failures;
    const std::string text = each.at("text"), repro = text.substr(text.find("  repro   "));
    EXPECT_TRUE(contains(markdown, "\n" + repro + "\n```\n")) << repro;
    EXPECT_TRUE(contains(html, ">failed: " + each.at("case").get<std::string>() + "<")) << html;
  }
  EXPECT_GE(failures, 5);
  for (const auto& [op, each] : counts) {
    const auto link = [](int passed, int failed) {
      return ">" + std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, 0 absent</a>";
    };
    EXPECT_TRUE(contains(html, link(each.first, each.second))) << op;
    EXPECT_TRUE(contains(html, link(each.first + each.second, 0))) << op;  // with other options: another row
  }
  const Ran again = assay({"matrix", path("sound.json"), path("wrong.jsonl")});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, markdown);
}

TEST(MatrixVerb, WritesNothingAboutADamagedFile) {
  const EmptyGolden golden;
  const auto path = [&](const char* name) { return (golden.folder / name).string(); };
  ASSERT_EQ(assay(faulty_run("none", {"splits_to_offsets", "--results", path("whole.jsonl")}), golden.options).code, 0);
  const std::string whole = text_of(path("whole.jsonl"));
  std::ofstream(path("cut.jsonl")) << whole.substr(0, whole.size() - 20);
  const Ran ran = assay({"matrix", path("whole.jsonl"), path("cut.jsonl"), "--html", path("page.html")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err,
            "assay: " + path("cut.jsonl") + ": has no summary: its run did not end (--resume goes on), or the file is cut off\n");
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
}

TEST(MatrixVerb, SaysThatThereAreNoVerdicts) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "none.jsonl").string();
  ASSERT_EQ(assay(faulty_run("none", {"splits_to_offsets", "--results", results}), golden.options).code, 0);
  const std::string whole = text_of(results);
  const std::size_t summary = whole.rfind('\n', whole.size() - 2) + 1;
  std::ofstream(results) << whole.substr(0, whole.find('\n') + 1) << whole.substr(summary);
  const Ran ran = assay({"matrix", results});
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.err, "assay: the result files hold no verdicts on an implementation\n");
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace assay::conformance
