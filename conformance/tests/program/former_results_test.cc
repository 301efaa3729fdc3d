// Reports and files of results that an earlier version wrote, with the former words of case lines and the former name of
// `elements`, are resumed and compared as baselines.

#include <regex>

#include "conformance/program/run_selection.h"
#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

std::string formerly(const std::string& text, const std::string& from, const std::string& to) {
  return std::regex_replace(text, std::regex("( " + from + ")\\b(?!_)"), " " + to);
}

// The entry in the form of the earlier version.
json in_former_words(json entry) {
  entry.erase("elements");
  if (!entry.contains("case")) return entry;
  std::string line = entry.at("case");
  line = formerly(line, "kind=fp8_per_tensor", "kind=tensor");
  line = formerly(line, "kind=fp8_block", "kind=block");
  line = formerly(line, "recipe=fp8_block", "recipe=block");
  line = formerly(line, "d_type", "dtype_d");
  if (!line.starts_with("grouped_gemm")) line = formerly(line, "x_type", "itype");
  entry["case"] = line;
  if (entry.at("recipe") == "fp8_per_tensor") entry["recipe"] = "tensor";
  if (entry.at("recipe") == "fp8_block") entry["recipe"] = "block";
  return entry;
}

Words run(Words more) {
  more.insert(more.begin(), "grouped_gemm");
  return faulty_run("none", more);
}

TEST(FormerResults, AreResumed) {
  const EmptyGolden golden;
  const std::string results = (golden.folder / "results.jsonl").string(), report = (golden.folder / "report.json").string();
  ASSERT_EQ(assay(run({"--results", results}), golden.options).code, 0);
  const std::vector<json> entries = results_of(results);
  std::ofstream file(results, std::ios::trunc);
  std::int64_t cases = 0, kept = 0, elements = 0;
  bool any_former = false;
  for (const json& each : entries) {
    if (each.at("record") == "summary") continue;
    if (each.at("record") == "case") {
      elements += each.at("elements").get<std::int64_t>();
      if (++cases % 4 == 0) continue;  // still to be judged
      ++kept;
    }
    const json former = in_former_words(each);
    any_former = any_former || former.value("case", "").find("kind=block dtype_d=f32") != std::string::npos;
    file << former.dump() << "\n";
  }
  file.close();
  ASSERT_TRUE(any_former);
  const Ran ran = assay(run({"--resume", results, "--json", report}), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const json whole = json::parse(text_of(report));
  expect_valid(whole, "report");
  EXPECT_EQ(whole.at("resumed"), kept);
  EXPECT_EQ(whole.at("cases").size(), static_cast<std::size_t>(cases));
  EXPECT_EQ(whole.at("counts").at("elements"), elements);
  for (const json& each : whole.at("cases")) {
    const std::string line = each.at("case");
    EXPECT_EQ(in_former_words(each).at("case") == line,
              line.find("fp8_") == std::string::npos && line.find("d_type") == std::string::npos)
        << line;
    EXPECT_TRUE(each.at("recipe") != "block" && each.at("recipe") != "tensor") << line;
  }
}

TEST(FormerResults, AreABaseline) {
  const EmptyGolden golden;
  const std::string report = (golden.folder / "report.json").string(), former = (golden.folder / "former.json").string();
  ASSERT_EQ(assay(run({"--json", report}), golden.options).code, 0);
  json whole = json::parse(text_of(report));
  const std::size_t cases = whole.at("cases").size();
  for (json& each : whole.at("cases")) {
    each = in_former_words(each);
    if (each.contains("case")) each.at("name") = "former/" + each.at("name").get<std::string>();  // names may change, lines do not
  }
  std::ofstream(former) << whole.dump();
  const Ran ran = assay(run({"--baseline", former, "--json", report}), golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const json claims = json::parse(text_of(report)).at("claims");
  EXPECT_EQ(claims.at("baseline").at("kept"), cases) << claims;
  EXPECT_EQ(claims.at("baseline").at("lost"), json::array()) << claims;
  // A case of the baseline that is not selected now is recognized by its line.
  const Ran part = assay(run({"kind=bf16", "--baseline", former}), golden.options);
  EXPECT_EQ(part.code, 1) << part.out;
  EXPECT_TRUE(contains(part.out, "grouped_gemm kind=fp8_block d_type=f32") && contains(part.out, "not selected")) << part.out;
}

// The digest by which --resume recognizes a selection is the one that earlier versions wrote: sha256sum of "grouped_gemm
// kind=block dtype_d=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45" and a newline.
TEST(FormerResults, HaveTheDigestOfTheSameSelection) {
  RunSelection selection;
  selection.cases = {
      parse_case_line("grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45")};
  EXPECT_EQ(digest_of(selection), "82f02227954d9eacc71afd09783d998a44200dd47c1de7af827b065e02ce48bc");
}

}  // namespace
}  // namespace assay::conformance
