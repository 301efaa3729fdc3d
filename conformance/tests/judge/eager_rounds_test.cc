// Judging of backends without capture, of questions that write, and of a failing call among others.

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/generate/replay_steps.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

constexpr const char* kReplayed = "quantize recipe=block_1x128 splits=128,5,0 K=136 seed=74 replay=4:data,splits";
constexpr const char* kOffsets = "splits_to_offsets splits=3,0,5";

const assay_backend& uncaptured() {
  static const assay_backend made = [] {
    assay_backend table = Rogue::table();
    table.capture_begin = nullptr;
    table.capture_end = nullptr;
    table.graph_launch = nullptr;
    table.graph_destroy = nullptr;
    return table;
  }();
  return made;
}

Judgement replayed(const char* text) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  options.title = to_text(line);
  Backend backend(uncaptured());
  return judge_replay(backend, replay_steps(line), options);
}

// Uses the splits that it read in the first call on that pointer, like a backend that copies them to the host once.
void plant_host_copy_of_splits(Rogue& rogue) {
  rogue.execute = [&rogue, copies = std::map<const void*, std::vector<std::uint8_t>>()](const assay_call& call) mutable {
    std::vector<assay_tensor> inputs(call.inputs, call.inputs + call.input_count);
    for (assay_tensor& each : inputs) {
      if (each.name != std::string("splits")) continue;
      const auto* now = static_cast<const std::uint8_t*>(each.data);
      const auto [kept, added] = copies.try_emplace(each.data, now, now + each.bytes);
      each.data = kept->second.data();
    }
    assay_call stale = call;
    stale.inputs = inputs.data();
    return rogue.honest(stale);
  };
}

TEST(WithoutCapture, RoundsAreMadeEagerlyAndSayso) {
  Rogue rogue;
  const Judgement judgement = replayed(kReplayed);
  EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
  EXPECT_TRUE(contains(judgement.way, "made eagerly instead of replayed")) << judgement.way;
  EXPECT_GE(rogue.calls, 5) << "each of four rounds, and the first inputs once more";
}

TEST(WithoutCapture, AHostCopyOfSplitsKeptByPointerFails) {
  Rogue rogue;
  plant_host_copy_of_splits(rogue);
  const Judgement judgement = replayed(kReplayed);
  EXPECT_EQ(name_of(judgement.verdict), "failed");
  EXPECT_TRUE(contains(judgement.text, "  when    made eagerly, round 2 of 4")) << judgement.text;
}

// A single call cannot show it.
TEST(WithoutCapture, TheSameBackendPassesACallThatIsMadeOnce) {
  Rogue rogue;
  plant_host_copy_of_splits(rogue);
  EXPECT_EQ(name_of(judge_text(rogue, "quantize recipe=block_1x128 splits=128,5,0 K=136 seed=74").verdict), "passed");
}

TEST(Questions, ListAlgorithmsThatWritesToATensorIsNoticed) {
  Rogue rogue;
  static bool writes = false;
  assay_backend table = Rogue::table();
  table.list_algorithms = [](assay_context*, const assay_call* call, assay_algorithm*, std::int32_t, std::int32_t* count) {
    *count = 0;
    if (writes) bytes(*call, "offsets")[5] = 0x11;
    return ASSAY_OK;
  };
  const CaseLine line = parse_case_line(kOffsets);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  for (const bool does : {false, true}) {
    writes = does;
    Backend backend(table);
    const std::vector<JudgedSetting> judged = judge_settings(backend, generate(line), true, {}, options);
    ASSERT_EQ(judged.size(), does ? 2u : 1u);
    EXPECT_EQ(name_of(judged[0].judgement.verdict), "passed") << judged[0].judgement.text;
    if (!does) continue;
    EXPECT_EQ(judged[1].setting.text, "the list of algorithms");
    EXPECT_EQ(name_of(judged[1].judgement.verdict), "failed");
    EXPECT_TRUE(contains(judged[1].judgement.text,
                         "  memory  list_algorithms() changed memory: offsets was written, first at byte 5: 0x11"))
        << judged[1].judgement.text;
  }
}

TEST(TwoRuns, ACallThatFailsInOneOfThemSaysInWhich) {
  for (const auto& [failing, when] :
       {std::pair{1, "over the first poison (0xff) only"}, std::pair{2, "over the second poison (0xa5) only"}}) {
    Rogue rogue;
    rogue.error = "no tile fits";
    rogue.execute = [&rogue, failing = failing](const assay_call& call) {
      return rogue.calls == failing ? ASSAY_FAILED : rogue.honest(call);
    };
    const Judgement judgement = judge_text(rogue, kOffsets);
    EXPECT_EQ(name_of(judgement.verdict), "failed");
    EXPECT_TRUE(contains(judgement.text, std::string("  when    ") + when + "\n  call    returned 'failed': no tile fits"))
        << judgement.text;
    ASSERT_FALSE(judgement.findings.empty());
    EXPECT_EQ(judgement.findings[0].when, when);
  }
}

}  // namespace
}  // namespace assay::conformance
