// What is computed for a case before the backend is called changes no verdict, whatever the backend then states.

#include "conformance/judge/prepared_case.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/backends/questions.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

constexpr const char* kProduct =
    "grouped_gemm kind=fp8_per_tensor layout=TN d_type=f32 splits=24,0,40 N=32 K=160 split_accumulator=0 seed=5";
constexpr const char* kQuantized = "quantize recipe=tensor_current splits=24,0,40 K=160 seed=5";
constexpr const char* kReplayed = "quantize recipe=block_1x128 splits=128,5,0 K=136 seed=74 replay=4:data,splits";

assay_numerics statement(const char* plan, std::int32_t keeps_zero_sign) {
  assay_numerics stated = Questions().stated;
  std::strncpy(stated.plan, plan, sizeof stated.plan - 1);
  stated.keeps_zero_sign = keeps_zero_sign;
  return stated;
}

struct Seen {
  Judgement judgement;
  std::optional<assay_numerics> stated;
};

Seen judged(const char* text, const std::optional<assay_numerics>& guess, bool prepared) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  options.title = to_text(line);
  Backend backend(Rogue::table());
  const bool replays = replay_plan(line).count > 0;
  std::vector<Case> steps;
  if (replays) {
    steps = replay_steps(line);
  } else {
    steps.push_back(generate(line));
  }
  if (!prepared) return {replays ? judge_replay(backend, steps, options) : judge(backend, steps[0], nullptr, options), {}};
  PreparedCase made(std::move(steps), options, guess);
  Judgement judgement = replays ? judge_replay(backend, made, options) : judge(backend, made, options);
  return {judgement, made.stated};
}

const std::optional<assay_numerics> kGuesses[] = {
    std::nullopt,
    statement("", -1),
    statement("", 1),
    statement("cublaslt.sm90.fp8_tensor.fast", -1),
    statement("cublaslt.sm90.fp8_tensor.split", 0),
    statement("no such plan", 1),
};

// A right backend and a wrong one, each of their statements, and every guess.
TEST(PreparedCase, ChangesNoVerdict) {
  for (const char* text : {kProduct, kQuantized, kReplayed}) {
    for (const char* plan : {"", "cublaslt.sm90.fp8_tensor.fast", "cublaslt.sm90.fp8_tensor.split"}) {
      for (const bool wrong : {false, true}) {
        if (*plan != '\0' && text != kProduct) continue;
        Rogue rogue;
        rogue.state = [&](assay_numerics& stated) {
          if (text == kProduct) stated = statement(plan, -1);
        };
        rogue.execute = [&](const assay_call& call) {
          const assay_status status = rogue.honest(call);
          if (wrong) static_cast<std::uint8_t*>(call.outputs[0].data)[call.outputs[0].bytes / 8 * 4 + 3] ^= 0x41;
          return status;
        };
        const Judgement alone = judged(text, std::nullopt, false).judgement;
        EXPECT_EQ(alone.verdict != Verdict::passed, wrong || (text == kProduct && std::strstr(plan, "split") != nullptr))
            << text << ' ' << plan << alone.text;
        for (const auto& guess : kGuesses) {
          const Seen seen = judged(text, guess, true);
          SCOPED_TRACE(std::string(text) + ", stated '" + plan + "', guessed '" + (guess ? guess->plan : "nothing") + "'");
          EXPECT_EQ(seen.judgement.verdict, alone.verdict) << seen.judgement.text;
          EXPECT_EQ(seen.judgement.text, alone.text);
          EXPECT_EQ(seen.judgement.elements, alone.elements);
          EXPECT_EQ(seen.judgement.elements_exact, alone.elements_exact);
          EXPECT_EQ(seen.judgement.elements_bounded, alone.elements_bounded);
          EXPECT_EQ(seen.judgement.basis, alone.basis);
          ASSERT_TRUE(seen.stated.has_value());
          if (text == kProduct) {
            EXPECT_STREQ(seen.stated->plan, plan);
          }
        }
      }
    }
  }
}

// The expectation under the guess is not computed again: the same object is used.
TEST(PreparedCase, IsUsedUnderTheSameStatement) {
  const CaseLine line = parse_case_line(kReplayed);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  const assay_numerics stated = statement("", 1);
  const PreparedCase made(replay_steps(line), options, stated);
  ASSERT_EQ(made.steps().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(made.of(i, stated), nullptr);
  EXPECT_EQ(made.of(4, stated), nullptr);
  EXPECT_EQ(made.of(0, statement("", 0)), nullptr);
  EXPECT_EQ(made.of(0, statement("f32", 1)), nullptr);
}

}  // namespace
}  // namespace assay::conformance
