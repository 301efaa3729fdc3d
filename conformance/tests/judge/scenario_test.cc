// Scenarios on backends that answer, refuse, or do nothing.

#include "conformance/judge/calls/scenario.h"

#include <gtest/gtest.h>

#include "conformance/tests/judge/rogue_backend.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kLine =
    "scenario recipe=none steps=forward/dgrad,wgrad modules=2 order=interleaved bias=1 splits=5,0,7 N=8 K=16 seed=401 "
    "replay=4:data,splits";
// y [12,8], dx [12,16], dw [24,16] and two dbias [3,8], for two layers in each of five replays
constexpr std::int64_t kWords = 5 * 2 * (12 * 8 + 12 * 16 + 24 * 16 + 2 * 3 * 8);

Judgement judged(const assay_backend& table, const std::string& text = kLine) {
  const CaseLine line = parse_case_line(text);
  JudgeOptions options;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  Backend backend(table);
  return judge_scenario(backend, line, options);
}

TEST(JudgeScenario, ComparesEveryOutputOfEveryReplay) {
  const Judgement judgement = judged(*reference_backend());
  EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
  EXPECT_EQ(judgement.text, "");
  EXPECT_EQ(judgement.elements, kWords);
  EXPECT_EQ(judgement.basis, CheckBasis::bits);
}

TEST(JudgeScenario, FailsABackendThatDoesNothing) {
  const Judgement judgement = judged(*null_backend());
  EXPECT_EQ(name_of(judgement.verdict), "failed");
  EXPECT_TRUE(contains(judgement.text, "when    replay 1 of 4, module 1, step forward")) << judgement.text;
  EXPECT_TRUE(contains(judgement.text, "0 outside their bound, 96 not written")) << judgement.text;
}

TEST(JudgeScenario, IsMadeEagerlyWithoutCapture) {
  static assay_backend table = *reference_backend();
  table.capture_begin = nullptr;
  table.capture_end = nullptr;
  table.graph_launch = nullptr;
  table.graph_destroy = nullptr;
  const Judgement judgement = judged(table);
  EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
  EXPECT_TRUE(contains(judgement.way, "the backend has no capture")) << judgement.way;
}

TEST(JudgeScenario, NeedsProofOfWhatIsDeclaredAbsent) {
  Rogue rogue;
  const auto absent = [](const assay_call& call) { return call.op == std::string("linear_wgrad"); };
  rogue.error = "no weight gradients here";
  rogue.supports = [&](const assay_call& call) { return absent(call) ? ASSAY_NOT_SUPPORTED : rogue.honest_supports(call); };
  rogue.execute = [&](const assay_call& call) { return absent(call) ? ASSAY_NOT_SUPPORTED : rogue.honest(call); };
  const Judgement proved = judged(Rogue::table());
  EXPECT_EQ(name_of(proved.verdict), "not run") << proved.text;
  EXPECT_EQ(proved.text, "no weight gradients here");
  rogue.execute = {};
  const Judgement unproven = judged(Rogue::table());
  EXPECT_EQ(name_of(unproven.verdict), "skip without proof") << unproven.text;
  EXPECT_TRUE(rogue.buffers.empty());
}

TEST(JudgeScenario, TellsMachinesThatFail) {
  for (const auto& [status, verdict] :
       {std::pair{ASSAY_DEVICE_LOST, "failed"}, {ASSAY_OUT_OF_MEMORY, "machine failed"}, {ASSAY_FAILED, "failed"}}) {
    Rogue rogue;
    rogue.error = "gone";
    rogue.execute = [status = status](const assay_call&) { return status; };
    const Judgement judgement = judged(Rogue::table());
    EXPECT_EQ(name_of(judgement.verdict), verdict) << judgement.text;
    EXPECT_TRUE(contains(judgement.text, "when    capture\n  call    under capture module 1, step forward returned '"))
        << judgement.text;
    EXPECT_TRUE(contains(judgement.text, ": gone")) << judgement.text;
    EXPECT_TRUE(rogue.buffers.empty());
  }
}

// The effects of fills, copies and waits are not attributed to questions; a question that writes is named with its call.
TEST(JudgeScenario, NamesWhoHasWrittenBeforeTheCalls) {
  {
    Rogue rogue;
    rogue.not_filled = 1;
    const Judgement judgement = judged(Rogue::table());
    EXPECT_EQ(name_of(judgement.verdict), "failed");
    EXPECT_TRUE(contains(judgement.text, "  memory  fill() left memory in another state, before any question: module "))
        << judgement.text;
    EXPECT_FALSE(contains(judgement.text, "numerics()")) << judgement.text;
  }
  {
    Rogue rogue;
    rogue.synchronize = [&rogue] {  // the first byte of the first allocation, a canary
      if (!rogue.buffers.empty()) *static_cast<std::uint8_t*>(rogue.buffers.begin()->first) ^= 1;
      return ASSAY_OK;
    };
    const Judgement judgement = judged(Rogue::table());
    EXPECT_EQ(name_of(judgement.verdict), "failed");
    EXPECT_TRUE(contains(judgement.text, "  memory  fill(), the copies or synchronize() left memory in another state"))
        << judgement.text;
  }
  {
    Rogue rogue;
    rogue.asked = [](const assay_call& call) {
      if (call.op == std::string("linear_dgrad")) bytes(call, "splits")[0] = 0x70;
    };
    const Judgement judgement = judged(Rogue::table());
    EXPECT_EQ(name_of(judgement.verdict), "failed");
    // An error about the contents that it has read.
    EXPECT_TRUE(contains(judgement.text, "numerics() returned 'invalid argument': ")) << judgement.text;
    EXPECT_TRUE(contains(judgement.text, "  memory  numerics() of module 1, step dgrad")) << judgement.text;
    EXPECT_TRUE(contains(judgement.text, "in/splits: the input was changed, first at byte 0")) << judgement.text;
  }
  {
    Rogue rogue;
    rogue.sized = [](const assay_call& call) {
      if (call.op == std::string("linear_forward")) static_cast<std::uint8_t*>(call.outputs[0].data)[0] = 0x11;
    };
    const Judgement judgement = judged(Rogue::table());
    EXPECT_TRUE(contains(judgement.text, "  memory  workspace_bytes() of module 1, step forward")) << judgement.text;
  }
}

TEST(JudgeScenario, TellsMemoryThatIsNotTheCalls) {
  struct Damage {
    const char* name;
    const char* reported;
    void (*plant)(const assay_call&);
  };
  const Damage damages[] = {
      {"an input", "step dgrad, in/dy: the input was changed", [](const assay_call& call) { bytes(call, "dy")[0] ^= 1; }},
      {"past an output", "step dgrad, dx: 1 bytes written past its end",
       [](const assay_call& call) { bytes(call, "dx")[tensor(call, "dx").bytes] = 1; }},
      {"past the workspace", "workspace: 1 bytes written past its end",
       [](const assay_call& call) { static_cast<std::uint8_t*>(call.workspace)[call.workspace_bytes] = 1; }},
  };
  for (const Damage& damage : damages) {
    Rogue rogue;
    rogue.workspace = 64;
    rogue.execute = [&](const assay_call& call) {
      const assay_status status = rogue.honest(call);
      if (call.op == std::string("linear_dgrad") && rogue.calls > 3) damage.plant(call);
      return status;
    };
    // made eagerly before the capture: the rogue's graphs are the reference's own
    const Judgement judgement =
        judged(Rogue::table(), "scenario recipe=none steps=dgrad,dgrad,dgrad,dgrad warm=1 splits=5,0,7 N=8 K=16 replay=2");
    EXPECT_EQ(name_of(judgement.verdict), "failed") << damage.name;
    EXPECT_TRUE(contains(judgement.text, damage.reported)) << damage.reported << "\nis not in\n" << judgement.text;
    EXPECT_TRUE(contains(judgement.text, "when    made once before the capture")) << judgement.text;
  }
}

// Without a stated plan a product is checked against bounds, which two runs with different bits may both meet.
TEST(JudgeScenario, HoldsGraphsToTheBitsOfEagerExecution) {
  Rogue rogue;
  rogue.state = [](assay_numerics& numerics) { numerics.plan[0] = numerics.unit[0] = '\0'; };
  const char* line = "scenario recipe=none steps=NT splits=40,0,70 N=8 K=16 replay=2:data";
  EXPECT_EQ(name_of(judged(Rogue::table(), line).verdict), "passed");
  int eager = 0;
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    if (rogue.calls > 1 && eager++ >= 0)
      bytes(call, "d")[0] ^= 1;  // the first call is that of the capture; one unit in the last place of one element
    return status;
  };
  rogue.calls = 0;
  const Judgement judgement = judged(Rogue::table(), line);
  EXPECT_EQ(name_of(judgement.verdict), "failed");
  EXPECT_TRUE(contains(judgement.text,
                       "made one by one, on the inputs of replay 1 of 2\n  output  step NT, d: other bits than in replay 1"))
      << judgement.text;
  EXPECT_EQ(judgement.basis, CheckBasis::bound);
}

}  // namespace
}  // namespace assay::conformance
