// The basis of a verdict is shown and counted: elements compared by bits, within bounds, and those that cannot be checked.

#include "conformance/generate/generator.h"
#include "conformance/report/report_counts.h"
#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

CaseReport passed(CheckBasis basis, std::int64_t exact, std::int64_t bounded, std::int64_t unbounded,
                  const char* expected_by = "") {
  CaseReport made{kGenerated, "name", "line", "op", "-", {}};
  made.judgement.verdict = Verdict::passed;
  made.judgement.basis = basis;
  made.judgement.elements = exact + bounded;
  made.judgement.elements_exact = exact;
  made.judgement.elements_bounded = bounded;
  made.judgement.elements_unbounded = unbounded;
  made.judgement.expected_by = expected_by;
  return made;
}

TEST(CheckBasis, WordsAreToldByWhatTheyRestOn) {
  const std::vector<CaseReport> cases{passed(CheckBasis::bits, 40, 0, 0),           passed(CheckBasis::bits, 48, 0, 0),
                                      passed(CheckBasis::order_free_bits, 7, 0, 0), passed(CheckBasis::bound, 5, 20, 3),
                                      passed(CheckBasis::bound, 0, 4, 1),           passed(CheckBasis::bits, 9, 0, 0, "bringup")};
  EXPECT_EQ(elements_text(bases_of(cases)),
            "88 by bits, 9 by bits, expected by bringup, 12 by order-free bits, 24 within bounds; 4 unbounded, not compared");
  EXPECT_EQ(elements_text(bases_of({cases[0]})), "40 by bits");
  EXPECT_EQ(elements_text(bases_of({})), "");
}

TEST(CheckBasis, SurvivesTheWayThroughJson) {
  const CaseReport report = passed(CheckBasis::bound, 5, 20, 3);
  const json entry = to_json(report);
  EXPECT_EQ(entry.at("elements"), 25);
  EXPECT_EQ(entry.at("words"), 25);  // the former name
  EXPECT_EQ(entry.at("bounded"), 20);
  EXPECT_EQ(entry.at("unbounded"), 3);
  const CaseReport again = report_from(entry);
  EXPECT_EQ(again.judgement.elements_exact, 5);
  EXPECT_EQ(to_json(again), entry);
  EXPECT_FALSE(to_json(passed(CheckBasis::bits, 5, 0, 0)).contains("unbounded"));
}

// Algorithm 70 states no plan.
TEST(CheckBasis, OfABackendThatStatesNoPlan) {
  const EmptyGolden golden;
  const std::string path = (golden.folder / "report.json").string();
  const Words words = faulty_run("settings", {"grouped_gemm", "--algorithm", "70", "--json", path});
  const Ran ran = assay(words, golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const json report = json::parse(text_of(path));
  expect_valid(report, "report");
  std::int64_t bounded = 0, unbounded = 0;
  for (const json& each : report.at("cases")) {
    const std::string text = each.value("case", "");
    if (contains(text, " plan=")) continue;  // the case names its plan
    EXPECT_NE(each.at("ground"), "bits") << each;
    EXPECT_FALSE(each.at("ground") != "bound" && each.contains("bounded")) << each;
    bounded += each.value("bounded", std::int64_t{0});
    unbounded += each.value("unbounded", std::int64_t{0});
  }
  EXPECT_GT(bounded, 0);
  EXPECT_EQ(report.at("bases").at("bound").at("bounded"), bounded);
  EXPECT_EQ(report.at("bases").at("bound").at("unbounded"), unbounded);
  const std::string verdict = report.at("verdict");
  EXPECT_TRUE(contains(verdict, std::to_string(bounded) + " within bounds")) << verdict;
  EXPECT_EQ(contains(verdict, " unbounded, not compared"), unbounded > 0) << verdict;
  EXPECT_TRUE(contains(verdict, " by order-free bits")) << verdict;
}

// The same backend without capture: replays are made eagerly, and the text of a failure says so.
TEST(CheckBasis, WhatWasDoneInPlaceOfAReplayIsTold) {
  EmptyGolden golden;
  golden.options.environment.emplace_back("FAULTY_UNCAPTURED", "1");
  for (const bool wrong : {false, true}) {
    const std::string path = (golden.folder / "report.json").string();
    const Ran ran = assay(faulty_run(wrong ? "wrong" : "", {"quantize", "replay=*", "--json", path}), golden.options);
    EXPECT_EQ(ran.code, wrong ? 1 : 0) << ran.out << ran.err;
    const json report = json::parse(text_of(path));
    expect_valid(report, "report");
    ASSERT_FALSE(report.at("cases").empty());
    for (const json& each : report.at("cases")) EXPECT_TRUE(contains(each.at("way"), "made eagerly instead of replayed")) << each;
    EXPECT_TRUE(contains(ran.out, "\njudged otherwise, " + std::to_string(report.at("cases").size()) + " case")) << ran.out;
    EXPECT_EQ(contains(ran.out, "\n  judged  made eagerly instead of replayed"), wrong) << ran.out;
  }
}

}  // namespace
}  // namespace assay::conformance
