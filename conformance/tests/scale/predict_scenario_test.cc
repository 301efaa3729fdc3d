// assay predict, and run --predicted, of scenarios: a call may read what other calls gave, in this replay or in the one before.

#include <map>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

// Accumulated gradients of several microbatches, caches of weights with and without padding that keeps its poison, calls made before
// the capture, two layers, products that follow plans.
const char* const kLines =
    "scenario recipe=none steps=forward,wgrad,forward,wgrad accumulate=1 splits=8,0,24 N=24 K=40 seed=3 replay=3:data\n"
    "scenario recipe=none steps=NT,NT accumulate=rest splits=8,0,24 N=24 K=40 seed=4 replay=2:data,splits\n"
    "scenario recipe=fp8_block steps=forward,dgrad/forward,wgrad noop=0 warm=1 splits=16,0,32 N=136 K=144 seed=5 "
    "replay=6:data,noop\n"
    "scenario recipe=mxfp8 steps=quantize,forward,forward noop=1 splits=32,0,64 N=96 K=64 seed=6 replay=5:data,noop\n"
    "scenario recipe=tensor_current steps=weights/gradients,forward modules=2 order=interleaved splits=16,16 N=32 K=48 seed=7 "
    "replay=2:data\n"
    "scenario recipe=none steps=forward,wgrad bias=1 data=integers splits=8,24 N=24 K=40 seed=8 replay=2:data\n";

struct Scenarios {
  EmptyGolden golden;
  std::string cases = path("scenarios.txt"), file = path("predicted.jsonl"), plain = path("plain.jsonl");

  Scenarios() { std::ofstream(cases) << kLines; }
  std::string path(const std::string& name) const { return (golden.folder / name).string(); }
  Ran predict(Words more = {}) const {
    more.insert(more.begin(), {"predict", "--cases", cases, "--quiet", "--out", file});
    return assay(more, golden.options);
  }
  Ran run(const std::string& results, const char* fault, Words more = {}) const {
    more.insert(more.begin(), {"run", "--cases", cases, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", fault, "--quiet",
                               "--show", "0", "--results", results});
    return assay(more, golden.options);
  }
};

// Verdicts by case; `predicted` counts how expected outputs were had.
std::map<std::string, json> scenario_verdicts_of(const std::string& path, std::map<std::string, int>& predicted) {
  std::map<std::string, json> made;
  for (json each : results_of(path)) {
    if (each.at("record") != "case" || each.at("suite") != "generated") continue;
    if (each.contains("predicted")) ++predicted[each.at("predicted")];
    for (const char* name : {"seconds", "chain", "predicted"}) each.erase(name);
    made[each.at("case")] = each;
  }
  return made;
}

TEST(PredictScenarios, NothingIsComputed) {
  const Scenarios made;
  const Ran ran = made.predict();
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "predicted: 6 of 6 cases")) << ran.out;
  ASSERT_EQ(made.run(made.plain, "none").code, 0);
  const std::string with = made.path("with.jsonl");
  const Ran compared = made.run(with, "none", {"--predicted", made.file});
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  std::map<std::string, int> none, predicted;
  EXPECT_EQ(scenario_verdicts_of(with, predicted), scenario_verdicts_of(made.plain, none));
  EXPECT_EQ(predicted, (std::map<std::string, int>{{"by digest", 6}}));
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(made.run(with, "none", {"--predicted", made.file, "--predicted-only"}).code, 0);
}

TEST(PredictScenarios, FailuresReadTheSame) {
  const Scenarios made;
  ASSERT_EQ(made.predict().code, 0);
  for (const char* fault : {"doubled=dw", "turned=rowwise_data", "doubled=y"}) {
    const std::string with = made.path("with.jsonl");
    const Ran one = made.run(made.plain, fault), other = made.run(with, fault, {"--predicted", made.file});
    EXPECT_EQ(one.code, 1) << fault << one.out << one.err;
    EXPECT_EQ(other.code, one.code) << fault << other.out << other.err;
    std::map<std::string, int> none, predicted;
    EXPECT_EQ(scenario_verdicts_of(with, predicted), scenario_verdicts_of(made.plain, none)) << fault;
    EXPECT_GT(predicted["computed: the outputs differ from the prediction"], 0) << fault;
    EXPECT_EQ(predicted.count("computed: the prediction is wrong"), 0u) << fault;
  }
}

// A prediction is of a plan, and of what the calls before gave under it: another plan finds none, and finds no fault in the file.
TEST(PredictScenarios, OtherPlansAreComputed) {
  const Scenarios made;
  const Ran ran = made.predict({"--plan", "sm80.bf16.chain", "steps=NT,NT"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const std::string with = made.path("with.jsonl");
  const Ran compared = made.run(with, "none", {"--predicted", made.file, "steps=NT,NT"});
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  std::map<std::string, int> predicted;
  scenario_verdicts_of(with, predicted);
  EXPECT_EQ(predicted, (std::map<std::string, int>{{"computed: predicted under other plans only", 1}}));
  const Ran left_out = made.run(with, "none", {"--predicted", made.file, "--predicted-only", "steps=NT,NT"});
  EXPECT_EQ(left_out.code, 5) << left_out.out;
  // What an earlier run recorded, and what the backend says when it is asked.
  ASSERT_EQ(made.run(made.plain, "none").code, 0);
  for (const Words& words : {Words{"--stated", made.plain}, Words{"--backend", ASSAY_FAULTY_BACKEND}}) {
    ASSERT_EQ(made.predict(words).code, 0);
    EXPECT_EQ(made.run(with, "none", {"--predicted", made.file, "--predicted-only"}).code, 0) << words[0];
  }
}

}  // namespace
}  // namespace assay::conformance
