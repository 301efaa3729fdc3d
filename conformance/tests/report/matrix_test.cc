// Result files joined as a matrix, and its two pages.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "conformance/report/matrix.h"
#include "golden/io/fixture_error.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

json header_of(const std::string& library, const std::string& date, const std::string& software = "Vendor 1.2") {
  return {{"assay", "0.1.0"},
          {"commit", "abc"},
          {"format", 2},
          {"verb", "run --profile standard"},
          {"date", date},
          {"backend",
           {{"name", "vendor"},
            {"device", "Chip 9"},
            {"architecture", "arch9"},
            {"software", software},
            {"built_in", false},
            {"options", ""},
            {"algorithm", -1},
            {"library", {{"path", library}, {"sha256", ""}}}}}};
}

json case_of(const std::string& name, const std::string& verdict, const std::string& text = "",
             const std::string& op = "quantize", const std::string& recipe = "mxfp8") {
  json made{{"suite", "generated"},         {"name", name},       {"op", op},       {"recipe", recipe},
            {"case", op + " case=" + name}, {"verdict", verdict}, {"elements", 10}, {"seconds", 0.5}};
  if (!text.empty()) made["text"] = text;
  if (verdict == "passed") made["ground"] = "bits";
  return made;
}

std::string lines_of_run(json header, std::vector<json> cases, int exit = 0) {
  header["record"] = "header";
  std::string text = header.dump() + "\n";
  for (json& each : cases) {
    each["record"] = "case";
    text += each.dump() + "\n";
  }
  return text + json{{"record", "summary"}, {"exit", exit}}.dump() + "\n";
}

std::string report_of_run(json header, std::vector<json> cases) {
  header["cases"] = std::move(cases);
  header["exit"] = 0;
  return header.dump(1) + "\n";
}

class MatrixPage : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  golden::TemporaryFolder folder_;
};

const char* const kFailure =
    "FAILED  quantize case=b\n  first   row 1: got 3, want 4\n  repro   assay repro 'quantize case=b' --backend lib.so";

// Two files of one implementation, one of them a report of --json, and one of another.
std::vector<std::string> three_files(const std::function<std::string(std::string, std::string)>& put) {
  json product = case_of("p", "passed", "", "grouped_gemm", "bf16");
  product["plan"] = "cublaslt.sm90.bf16";
  return {put("old.jsonl", lines_of_run(header_of("/a/lib.so", "2026-11-01T10:00:00Z"),
                                        {case_of("a", "passed"), case_of("b", "passed"), case_of("c", "not run", "R is odd"),
                                         case_of("d", "not run", "R is odd"), case_of("e", "not run", "K is 3")})),
          put("new.json", report_of_run(header_of("/b/lib.so", "2026-11-02T10:00:00Z"),
                                        {case_of("b", "failed", kFailure), case_of("a", "passed"), product,
                                         case_of("u", "unfinished", "returned 'timeout'")})),
          put("other.jsonl", lines_of_run(header_of("zlib.so", "2026-11-03T10:00:00Z"), {case_of("a", "passed")}, 1))};
}

TEST_F(MatrixPage, CountsTheNewestVerdictOfEachCase) {
  const Matrix matrix = collect_matrix(three_files([&](auto name, auto text) { return put(name, text); }));
  const std::vector<std::pair<std::string, std::string>> columns{{"grouped_gemm", "bf16"}, {"quantize", "mxfp8"}};
  EXPECT_EQ(matrix.columns, columns);
  ASSERT_EQ(matrix.rows.size(), 2u);
  EXPECT_EQ(matrix.rows[0].implementation.name, "lib.so");
  EXPECT_EQ(matrix.rows[1].implementation.name, "zlib.so");
  ASSERT_EQ(matrix.rows[0].cells.count(1), 1u);
  const MatrixCell& cell = matrix.rows[0].cells.at(1);
  EXPECT_EQ(cell.passed, 1);  // a; the pass of b is older than its failure
  EXPECT_EQ(cell.failed, 1);
  EXPECT_EQ(cell.absent, 3);
  EXPECT_EQ(cell.other, 1);
  EXPECT_EQ(cell.elements, 60);
  EXPECT_EQ(cell.replaced, 2);
  EXPECT_EQ(cell.changed, 1);
  const std::map<std::string, std::int64_t> reasons{{"R is odd", 2}, {"K is 3", 1}}, bases{{"bits", 1}};
  EXPECT_EQ(cell.reasons, reasons);
  EXPECT_EQ(cell.bases, bases);
  EXPECT_EQ(sorted_reasons(cell).front().first, "R is odd");
  ASSERT_EQ(cell.failures.size(), 2u);
  EXPECT_EQ(cell.failures[0].title, "quantize case=b");
  EXPECT_EQ(cell.failures[0].repro, "assay repro 'quantize case=b' --backend lib.so");
  EXPECT_EQ(cell.failures[0].text, "FAILED  quantize case=b\n  first   row 1: got 3, want 4");
  EXPECT_EQ(cell.failures[1].verdict, "unfinished");  // without a command in its text
  EXPECT_EQ(cell.failures[1].repro, "assay repro 'quantize case=u' --backend /b/lib.so");
  const MatrixCell& product = matrix.rows[0].cells.at(0);
  ASSERT_EQ(product.plans.count("cublaslt.sm90.bf16"), 1u);
  EXPECT_EQ(product.plans.at("cublaslt.sm90.bf16").passed, 1);
  EXPECT_TRUE(holds(product.plans.at("cublaslt.sm90.bf16").ground, "measured"));
  EXPECT_EQ(matrix.rows[1].cells.count(0), 0u);
  EXPECT_EQ(matrix.files[2].exit, "1 (failed)");
}

TEST_F(MatrixPage, EveryCellLeadsToItsFailuresAndReasons) {
  const Matrix matrix = collect_matrix(three_files([&](auto name, auto text) { return put(name, text); }));
  const std::string html = matrix_html(matrix), markdown = matrix_markdown(matrix);
  for (const char* anchor : {"r1c1", "r1c2", "r2c2"}) {
    EXPECT_EQ(times(html, "<a href=\"#" + std::string(anchor) + "\""), 1u) << anchor;
    EXPECT_EQ(times(html, "<section id=\"" + std::string(anchor) + "\">"), 1u) << anchor;
    EXPECT_EQ(times(markdown, "](#" + std::string(anchor) + ")"), 1u) << anchor;
    EXPECT_EQ(times(markdown, "\n### " + std::string(anchor) + "\n"), 1u) << anchor;
  }
  EXPECT_FALSE(holds(html, "r2c1") || holds(markdown, "r2c1"));
  for (const std::string& page : {html, markdown}) {
    for (const std::string part :
         {"1 passed, 1 failed, 3 absent, 1 other", "2026-11-01 to 2026-11-02", "R is odd", "first   row 1: got 3, want 4",
          "Vendor 1.2", "Chip 9 (arch9)", "by bits; plan cublaslt.sm90.bf16",
          "2 older verdicts on cases that a newer file judges again are not counted; 1 of them differs from the newer "
          "verdict."}) {
      EXPECT_TRUE(holds(page, part)) << part << "\nis not in\n" << page;
    }
    for (const MatrixFile& file : matrix.files) EXPECT_TRUE(holds(page, file.sha256) && holds(page, file.name));
    EXPECT_FALSE(holds(page, folder_.path().string()));  // pages are published
  }
  const std::string section = html.substr(html.find("<section id=\"r1c2\">"));
  EXPECT_LT(section.find("assay repro &#39;quantize case=b&#39; --backend lib.so"), section.find("</section>"));
  EXPECT_FALSE(std::regex_search(html, std::regex(R"((src|href)="[^#"]|url\(|@import|<script)")))
      << "the page needs no other file";
}

TEST_F(MatrixPage, DoesNotDependOnTheOrderOfFiles) {
  std::vector<std::string> files = three_files([&](auto name, auto text) { return put(name, text); });
  // Of the same date as another, with another verdict on the same case.
  files.push_back(
      put("tie.jsonl", lines_of_run(header_of("zlib.so", "2026-11-03T10:00:00Z"), {case_of("a", "failed", kFailure)})));
  files.push_back(put("copy.jsonl", lines_of_run(header_of("zlib.so", "2026-11-03T10:00:00Z"), {case_of("a", "passed")}, 1)));
  std::sort(files.begin(), files.end());
  const Matrix first = collect_matrix(files);
  EXPECT_EQ(first.same_files, 1);  // copy.jsonl is other.jsonl
  const std::string html = matrix_html(first), markdown = matrix_markdown(first);
  EXPECT_TRUE(holds(html, "counted once: 1") && holds(markdown, "counted once: 1"));
  while (std::next_permutation(files.begin(), files.end())) {
    const Matrix again = collect_matrix(files);
    ASSERT_EQ(matrix_html(again), html);
    ASSERT_EQ(matrix_markdown(again), markdown);
  }
}

TEST_F(MatrixPage, KeepsVersionsDevicesAndSettingsApart) {
  json other_device = header_of("lib.so", "2026-11-01T10:00:00Z"), options = other_device, built = other_device;
  other_device["backend"]["device"] = "Chip 8";
  options["backend"]["options"] = "fast";
  built["backend"]["library"]["sha256"] = std::string(64, 'a');
  json twice = case_of("a", "passed");
  twice["setting"] = "axis: workspace=0";
  const Matrix matrix = collect_matrix(
      {put("1", lines_of_run(header_of("lib.so", "2026-11-01T10:00:00Z"), {case_of("a", "passed"), twice})),
       put("2", lines_of_run(header_of("lib.so", "2026-11-02T10:00:00Z", "Vendor 1.3"), {case_of("a", "passed")})),
       put("3", lines_of_run(other_device, {case_of("a", "passed")})), put("4", lines_of_run(options, {case_of("a", "passed")})),
       put("5", lines_of_run(built, {case_of("a", "passed")}))});
  ASSERT_EQ(matrix.rows.size(), 5u);
  std::int64_t passed = 0;
  for (const MatrixRow& row : matrix.rows) {
    passed += row.cells.at(0).passed;
    EXPECT_EQ(row.cells.at(0).replaced, 0);
  }
  EXPECT_EQ(passed, 6);
}

TEST_F(MatrixPage, SaysHowAPlanIsKnown) {
  std::vector<json> cases;
  for (const char* plan : {"unit=sm90.wgmma.fp8,promote=128", "another.program.s.plan"}) {
    cases.push_back(case_of(plan, "passed"));
    cases.back()["plan"] = plan;
  }
  cases.push_back(case_of("absent", "not run", "no"));
  cases.back()["plan"] = "of no call";
  const Matrix matrix = collect_matrix({put("1", lines_of_run(header_of("lib.so", "2026-11-01T10:00:00Z"), cases))});
  const std::map<std::string, MatrixPlan>& plans = matrix.rows.at(0).cells.at(0).plans;
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans.begin()->second.ground, "a name that this version of the program does not know");
  EXPECT_EQ(plans.rbegin()->second.ground, "a line that the implementation stated");
}

// The self-check judges the suite.
TEST_F(MatrixPage, LeavesTheSelfCheckOut) {
  json check = case_of("self", "passed");
  check["suite"] = "self-check";
  EXPECT_EQ(collect_matrix({put("1", lines_of_run(header_of("lib.so", "2026-11-01T10:00:00Z"), {check}))}).verdicts(), 0);
}

TEST_F(MatrixPage, EscapesEveryText) {
  const std::string hostile =
      "<script>alert(1)</script>\"'><img src=x onerror=y> | [a](javascript:b) `c` ``` *d* _e_ &lt; \\ \x01 \xE2\x80\xAE";
  json header = header_of("lib" + hostile, "2026-11-01T10:00:00Z", hostile);
  for (const char* field : {"device", "architecture", "options"}) header["backend"][field] = hostile;
  for (const char* field : {"verb", "assay", "commit"}) header[field] = hostile;
  json failed = case_of(hostile, "failed", hostile + "\n```\n# heading\n" + hostile, hostile, hostile);
  failed["plan"] = hostile;
  failed["setting"] = hostile;
  json passed = case_of("p", "passed", "", hostile, hostile);
  passed["expected_by"] = hostile;
  const Matrix matrix = collect_matrix(
      {put("<b>|`.jsonl", lines_of_run(header, {failed, passed, case_of("n", "not run", hostile, hostile, hostile)}))});
  const std::string html = matrix_html(matrix), markdown = matrix_markdown(matrix);
  // Only the tags and attributes that the page itself writes.
  const std::regex known(
      R"(<(/?(html|head|body|title|style|h1|h2|h3|p|a|b|small|table|thead|tbody|tr|th|td|pre|details|summary|section|code|wbr|div)|!DOCTYPE html|meta)( (lang|charset|name|content|http-equiv|href|class|id|data-title|open)(="[^"<>]*")?)*>)");
  const std::string rest = std::regex_replace(html, known, "");
  EXPECT_EQ(rest.find('<'), std::string::npos) << rest.substr(rest.find('<'), 200);
  EXPECT_FALSE(holds(html, "<b>") || holds(html, "<img") || holds(html, "\x01") || holds(html, "\xE2\x80\xAE"));
  EXPECT_TRUE(holds(html, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;"));
  // Markdown: outside blocks, no tag but the line breaks of the page, no link but its own, no row of a table with cells of its own making.
  std::istringstream lines(markdown);
  std::string fence, outside;
  int blocks = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_fence = line.starts_with("```");
    if (!fence.empty()) {
      if (line == fence) fence.clear();
      continue;
    }
    if (is_fence) {
      fence = line.substr(0, line.find_first_not_of('`'));
      ++blocks;
      continue;
    }
    outside += line + "\n";
  }
  EXPECT_EQ(fence, "");
  EXPECT_EQ(blocks, 1);
  EXPECT_FALSE(holds(outside, "# heading"));
  outside = std::regex_replace(outside, std::regex("<br>|&lt;|&gt;|&amp;"), "");
  outside = std::regex_replace(outside, std::regex(R"(\\[!-/:-@\[-`{-~])"), "");
  EXPECT_EQ(outside.find('<'), std::string::npos) << outside;
  EXPECT_EQ(times(outside, "]("), 1u) << outside;
  std::istringstream rows(outside);
  std::size_t bars = 0;  // of the table's first row; none: outside a table
  for (std::string line; std::getline(rows, line);) {
    const std::size_t here = line.starts_with('|') ? times(line, "|") : 0;
    EXPECT_TRUE(bars == 0 || here == 0 || here == bars) << line;
    EXPECT_TRUE(here > 0 || !holds(line, "|")) << line;
    bars = here == 0 ? 0 : bars == 0 ? here : bars;
  }
  EXPECT_FALSE(holds(outside, "``")) << outside;
  EXPECT_FALSE(holds(markdown, "\x01") || holds(markdown, "\xE2\x80\xAE"));
}

TEST_F(MatrixPage, RefusesWhatIsNoResultFile) {
  const std::string good = lines_of_run(header_of("lib.so", "2026-11-01T10:00:00Z"), {case_of("a", "passed")});
  json undated = header_of("lib.so", "yesterday");
  json no_backend = header_of("lib.so", "2026-11-01T10:00:00Z");
  no_backend.erase("backend");
  json wrong_type = header_of("lib.so", "2026-11-01T10:00:00Z");
  wrong_type["backend"]["software"] = 7;
  json odd = case_of("a", "passed");
  odd["elements"] = "many";
  struct Bad {
    const char* name;
    std::string text, reason;
  };
  const std::string report = report_of_run(header_of("lib.so", "2026-11-01T10:00:00Z"), {case_of("a", "passed")});
  for (const Bad& each :
       {Bad{"empty", "", "holds no header"}, Bad{"text", "hello\n", "line 1: is not a header"},
        Bad{"cut", good.substr(0, good.size() - 5), "has no summary"},
        Bad{"cut_line", good.substr(0, good.find("verdict")), "has no summary"},
        Bad{"cut_report", report.substr(0, report.size() / 2), "is not a header"},
        Bad{"foreign", "{\"context\": {}, \"benchmarks\": []}\n", "neither a report of --json nor a file of --results"},
        Bad{"array", "[1, 2]\n", "is JSON, but neither"}, Bad{"date", lines_of_run(undated, {}), "its date is 'yesterday'"},
        Bad{"backend", lines_of_run(no_backend, {}), "is not a result file of this program: "},
        Bad{"type", lines_of_run(wrong_type, {}), "is not a result file of this program: "},
        Bad{"case", lines_of_run(header_of("l", "2026-11-01T10:00:00Z"), {odd}), "is not a result file of this program: "}}) {
    const std::string path = put(each.name, each.text), sound = put("good", good);
    try {
      collect_matrix({sound, path});
      ADD_FAILURE() << each.name;
    } catch (const golden::FixtureError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(path + ": ") && holds(text, each.reason)) << text;
      EXPECT_FALSE(holds(text, "\n"));
    }
  }
  EXPECT_THROW(collect_matrix({(folder_ / "none").string()}), golden::FixtureError);
  EXPECT_THROW(collect_matrix({folder_.path().string()}), golden::FixtureError);
}

}  // namespace
}  // namespace assay::conformance
