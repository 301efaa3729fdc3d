// The text and the data of a failure say the same, and the data survives conversion to JSON and back.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "conformance/backends/built_in.h"
#include "conformance/generate/generator.h"
#include "conformance/report/judgement_json.h"

namespace assay::conformance {
namespace {

Judgement judged(const char* text, const assay_backend& table) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  options.title = text;
  Backend backend(table);
  return judge(backend, generate(line), nullptr, options);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Findings, SayWhatTheTextSays) {
  const Judgement judgement = judged("quantize recipe=block_1x128 splits=3,0,5 K=130 seed=4", *null_backend());
  ASSERT_EQ(judgement.verdict, Verdict::failed);
  ASSERT_GE(judgement.findings.size(), 2u) << "codes and scales";
  for (const Finding& each : judgement.findings) {
    EXPECT_EQ(each.kind, "bits");
    EXPECT_GT(each.wrong, 0);
    EXPECT_LE(each.wrong, each.compared);
    EXPECT_TRUE(contains(judgement.text, fmt::format("output  {}: {} of {} differ", each.output, each.wrong, each.compared)))
        << judgement.text;
    EXPECT_TRUE(contains(judgement.text, fmt::format("first   {}: got {} ({}), want {} ({})", each.place, each.got_hex, each.got,
                                                     each.want_hex, each.want)))
        << judgement.text << "\n"
        << to_json(each);
  }
}

TEST(Findings, OfWholeNumbersHaveBitsToo) {
  const Judgement judgement = judged("splits_to_offsets splits=3,0,5", *null_backend());
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].want_hex, "0x0");
  EXPECT_EQ(judgement.findings[0].want, "0");
  EXPECT_EQ(judgement.findings[0].got_hex, "0xFFFFFFFFFFFFFFFF");
  EXPECT_EQ(judgement.findings[0].got, "-1");
}

// A backend that states no plan is checked against bounds: the bits that it gave, and the expected interval.
TEST(Findings, OfBounds) {
  static assay_backend silent = *null_backend();
  silent.numerics = [](assay_context*, const assay_call*, assay_numerics* numerics) {
    numerics->plan[0] = numerics->unit[0] = '\0';
    return ASSAY_OK;
  };
  const Judgement judgement = judged("grouped_gemm kind=bf16 d_type=f32 splits=3,5 N=8 K=16 seed=1", silent);
  ASSERT_EQ(judgement.verdict, Verdict::failed);
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.kind, "bound");
  EXPECT_EQ(finding.element, 0);
  EXPECT_EQ(finding.wrong, 64);
  EXPECT_EQ(finding.got_hex, "0xFFFFFFFF");
  EXPECT_EQ(finding.want_hex, "");
  EXPECT_TRUE(contains(finding.want, " to ")) << finding.want;
}

TEST(Findings, SurviveJson) {
  Judgement judgement = judged("quantize recipe=nvfp4 splits=32,0,16 K=32 seed=4", *null_backend());
  judgement.details = {"a tile"};
  judgement.plan = "a plan";
  judgement.unit = "a unit";
  judgement.expected_by = "another";
  judgement.findings.push_back(finding_of("memory", "a canary"));
  judgement.findings.back().when = "replay 2 of 3";
  for (const Verdict verdict : {Verdict::passed, Verdict::failed, Verdict::not_run, Verdict::unproven_skip, Verdict::unfinished,
                                Verdict::not_tried, Verdict::machine_failed}) {
    judgement.verdict = verdict;
    const nlohmann::json once = to_json(judgement);
    EXPECT_EQ(once.at("verdict"), name_of(verdict));
    EXPECT_EQ(to_json(judgement_from(nlohmann::json::parse(line_of(once)))), once);
  }
}

// Text from a backend may hold any bytes.
TEST(Findings, ThatAreNotUtf8AreKeptAsFarAsTheyAre) {
  Judgement judgement;
  judgement.verdict = Verdict::failed;
  judgement.text = "wrong \xff\xc3( end";
  const std::string line = line_of(to_json(judgement));
  EXPECT_EQ(nlohmann::json::parse(line).at("text"), "wrong \xEF\xBF\xBD\xEF\xBF\xBD( end");
}

}  // namespace
}  // namespace assay::conformance
