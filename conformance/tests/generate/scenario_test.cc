// Scenarios: their calls and graphs, the inputs of every replay, and the edges of splits.

#include "conformance/cases/scenario.h"
#include "conformance/generate/scenario_inputs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <ostream>
#include <set>

#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::vector<std::int64_t> splits_in(const Case& inputs) {
  const Tensor& tensor = inputs.in.at("splits");
  std::vector<std::int64_t> splits(tensor.bytes.size() / 8);
  std::memcpy(splits.data(), tensor.bytes.data(), tensor.bytes.size());
  return splits;
}

float flag_in(const Case& inputs) {
  float flag = 0;
  std::memcpy(&flag, inputs.in.at("noop").bytes.data(), sizeof flag);
  return flag;
}

std::string graphs_text(const Scenario& scenario) {
  std::string text;
  for (const std::size_t g : scenario.launches) {
    text += text.empty() ? "" : " | ";
    for (const std::size_t c : scenario.graphs[g]) {
      const ScenarioCall& call = scenario.calls[c];
      text += (text.empty() || text.back() == ' ' ? "" : ",") + call.step + std::to_string(call.module) +
              std::to_string(call.microbatch);
    }
  }
  return text;
}

struct Launches {
  const char* line;
  const char* text;  // step, module and microbatch of each call, | between graphs, in the order of a replay
};
void PrintTo(const Launches& each, std::ostream* out) { *out << each.line; }
class ScenarioGraphs : public testing::TestWithParam<Launches> {};
TEST_P(ScenarioGraphs, AreLaunchedInThisOrder) {
  EXPECT_EQ(graphs_text(scenario_of(
                parse_case_line(std::string("scenario recipe=fp8_block splits=3,0,5 N=8 K=16 replay=3 ") + GetParam().line))),
            GetParam().text);
}
const Launches kLaunches[] = {
    {"steps=forward,dgrad,wgrad", "forward00,dgrad00,wgrad00"},
    {"steps=forward/dgrad,wgrad", "forward00 | dgrad00,wgrad00"},
    {"steps=forward/dgrad,wgrad modules=2", "forward00 | dgrad00,wgrad00 | forward10 | dgrad10,wgrad10"},
    {"steps=forward/dgrad,wgrad modules=2 order=interleaved", "forward00 | forward10 | dgrad00,wgrad00 | dgrad10,wgrad10"},
    {"steps=TN/NN/NT modules=2 order=streams", "TN00 | TN10 | NN00 | NN10 | NT00 | NT10"},
    {"steps=forward,forward/dgrad,wgrad/dgrad,wgrad", "forward00,forward01 | dgrad00,wgrad00 | dgrad01,wgrad01"},
};
INSTANTIATE_TEST_SUITE_P(All, ScenarioGraphs, testing::ValuesIn(kLaunches));

struct StepLine {
  const char* keys;
  const char* step;
  const char* line;  // of that step alone
};
void PrintTo(const StepLine& each, std::ostream* out) { *out << each.keys; }
class ScenarioSteps : public testing::TestWithParam<StepLine> {};
TEST_P(ScenarioSteps, AreTheseLines) {
  const Scenario scenario =
      scenario_of(parse_case_line(std::string("scenario replay=3 ") + GetParam().keys + " steps=" + GetParam().step));
  EXPECT_EQ(to_text(scenario.calls.back().line), to_text(parse_case_line(GetParam().line)));
}
// clang-format off
const StepLine kSteps[] = {
    {"recipe=fp8_block splits=3,5 N=8 K=16 seed=9 eps=0.5 otype=e5m2 extra_rows=2", "quantize",
     "quantize recipe=block_1x128 pow2=1 eps=0.5 otype=e5m2 splits=3,5 extra_rows=2 K=16 seed=9"},
    {"recipe=fp8_block splits=3,5 N=8 K=16 noop=0 pow2=0", "weights", "quantize recipe=block_128x128 noop=0 splits=8,8 K=16"},
    {"recipe=nvfp4 splits=16,32 N=16 K=32", "weights", "quantize recipe=nvfp4 two_dimensional=1 scale_layout=swizzled splits=16,16 K=32"},
    {"recipe=tensor_delayed splits=3,5 N=8 K=16 scales=pow2 grad_otype=e5m2 bias=1", "gradients",
     "quantize recipe=tensor_delayed otype=e5m2 scales=pow2 dbias=1 splits=3,5 K=8"},
    {"recipe=fp8_block splits=3,5 N=8 K=16 bias=1 x_type=f16 noop=1", "forward", "linear_forward recipe=fp8_block x_type=f16 bias=1 noop=1 splits=3,5 N=8 K=16"},
    {"recipe=tensor_current splits=3,5 N=8 K=16 grad_otype=e5m2 deferred=1 accumulate=1 d_type=bf16", "wgrad",
     "linear_wgrad recipe=tensor_current grad_otype=e5m2 deferred=1 accumulate=1 d_type=bf16 splits=3,5 N=8 K=16"},
    {"recipe=none splits=3,5 N=8 K=16 x_type=f16 bias=1", "TN", "grouped_gemm kind=f16 d_type=f16 bias=1 splits=3,5 N=8 K=16"},
    {"recipe=tensor_delayed splits=3,5 N=8 K=16 grad_otype=e5m2", "NN",
     "grouped_gemm kind=fp8_per_tensor layout=NN dy_type=e5m2 split_accumulator=1 splits=3,5 N=8 K=16"},
    {"recipe=fp8_block splits=3,5 N=8 K=16 accumulate=1", "NT", "grouped_gemm kind=fp8_block layout=NT d_type=f32 beta=1 splits=3,5 N=8 K=16"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, ScenarioSteps, testing::ValuesIn(kSteps));

TEST(ScenarioInputs, ShareMemoryWithinALayerAndMicrobatchAlone) {
  const CaseLine line =
      parse_case_line("scenario recipe=none steps=forward,forward,dgrad,wgrad modules=2 splits=3,0,5 N=8 K=16 replay=3:data");
  const Scenario scenario = scenario_of(line);
  const std::vector<Case> inputs = scenario_inputs(line, scenario, 1);
  const auto& bytes = [&](std::size_t call, const char* name) { return inputs[call].in.at(name).bytes; };
  EXPECT_EQ(bytes(0, "x"), bytes(3, "x"));  // forward and wgrad
  EXPECT_EQ(bytes(2, "dy"), bytes(3, "dy"));
  EXPECT_EQ(bytes(0, "w"), bytes(1, "w"));  // microbatches have the layer's weights
  EXPECT_EQ(bytes(0, "w"), bytes(2, "w"));
  EXPECT_NE(bytes(0, "x"), bytes(1, "x"));
  EXPECT_NE(bytes(0, "w"), bytes(4, "w"));  // the other layer
  EXPECT_NE(bytes(0, "x"), bytes(4, "x"));
  EXPECT_EQ(scenario_memory(line, scenario.calls[0], inputs[0]).at("x"),
            scenario_memory(line, scenario.calls[3], inputs[3]).at("x"));
  std::set<std::string> names;
  for (const std::size_t call : {0u, 1u, 4u, 5u}) names.insert(scenario_memory(line, scenario.calls[call], inputs[call]).at("x"));
  EXPECT_EQ(names.size(), 4u);
}

TEST(ScenarioInputs, ChangeWhatIsToChangeAndNothingElse) {
  const std::string base = "scenario recipe=tensor_delayed steps=weights,forward,wgrad noop=0 splits=3,0,5 N=8 K=16 replay=6:";
  for (const bool data : {false, true}) {
    for (const bool scales : {false, true}) {
      for (const bool splits : {false, true}) {
        for (const bool noop : {false, true}) {
          std::string what;
          if (data) what += ",data";
          if (scales) what += ",scales";
          if (splits) what += ",splits";
          if (noop) what += ",noop";
          const CaseLine line = parse_case_line(what.empty() ? base.substr(0, base.size() - 1) : base + what.substr(1));
          const Scenario scenario = scenario_of(line);
          const std::vector<Case> first = scenario_inputs(line, scenario, 0), later = scenario_inputs(line, scenario, 1);
          for (std::size_t c = 0; c < first.size(); ++c) {
            EXPECT_EQ(first[c].attributes, later[c].attributes);
            for (const auto& [name, tensor] : first[c].in) {
              const Tensor& other = later[c].in.at(name);
              EXPECT_TRUE(tensor.type == other.type && tensor.shape == other.shape) << name;
              const bool weights_splits = scenario.calls[c].step == "weights" && name == "splits";
              const bool changes = name == "noop"                            ? noop
                                   : name == "splits"                        ? splits && !weights_splits
                                   : name.find("scale") != std::string::npos ? scales
                                                                             : data;
              EXPECT_EQ(tensor.bytes != other.bytes, changes) << to_text(line) << ": " << scenario.calls[c].step << " " << name;
            }
          }
        }
      }
    }
  }
}

TEST(ScenarioInputs, FollowTheFlag) {
  for (const auto& [noop, run] : {std::pair{"0", 0.0f}, {"0.5", 0.5f}, {"1", 0.0f}}) {
    const CaseLine line = parse_case_line(
        std::string("scenario recipe=fp8_block steps=weights,forward splits=3 N=8 K=16 replay=6:data,noop noop=") + noop);
    const Scenario scenario = scenario_of(line);
    std::vector<float> flags;
    for (int round = 0; round < 6; ++round) {
      const auto inputs = scenario_inputs(line, scenario, round);
      flags.push_back(flag_in(inputs[0]));
      EXPECT_EQ(flag_in(inputs[1]), flags.back());
    }
    EXPECT_EQ(flags, (std::vector<float>{run, 1, 1, run, 1, run}));
  }
}

TEST(ScenarioInputs, LinkGradientsAndCachesOfMicrobatches) {
  const auto chained = [](const char* keys, std::size_t call) {
    std::string text;
    const Scenario scenario = scenario_of(parse_case_line(std::string("scenario splits=3 N=8 K=16 replay=2 ") + keys));
    for (const ScenarioLink& link : scenario.calls[call].chained) {
      text += link.input + "<-" + std::to_string(link.call) + "." + link.output + " ";
    }
    return text;
  };
  EXPECT_EQ(chained("recipe=none steps=wgrad,wgrad accumulate=1", 0), "");
  EXPECT_EQ(chained("recipe=none steps=wgrad,wgrad accumulate=1", 1), "main_grad<-0.dw ");
  EXPECT_EQ(chained("recipe=none steps=wgrad,wgrad", 1), "");
  EXPECT_EQ(chained("recipe=none steps=NT/NT accumulate=rest modules=2", 3), "c<-2.d ");
  EXPECT_EQ(chained("recipe=fp8_block steps=forward,forward noop=0", 1),
            "w_rowwise_data<-0.w_rowwise_data w_rowwise_scale_inv<-0.w_rowwise_scale_inv ");
  const Scenario rest =
      scenario_of(parse_case_line("scenario splits=3 N=8 K=16 replay=2 recipe=none steps=wgrad,wgrad accumulate=rest"));
  EXPECT_EQ(rest.calls[0].line.integer("accumulate"), 0);
  EXPECT_EQ(rest.calls[1].line.integer("accumulate"), 1);
  const Scenario cached =
      scenario_of(parse_case_line("scenario splits=3 N=8 K=16 replay=2 recipe=fp8_block steps=forward,forward noop=0"));
  ASSERT_EQ(cached.calls[0].carried.size(), 2u);  // the last forward of the replay before
  EXPECT_EQ(cached.calls[0].carried[0].call, 1u);
  EXPECT_TRUE(cached.calls[1].carried.empty());
}

TEST(ScenarioSplits, MeetEveryEdge) {
  const auto turns = scenario_splits({4, 0, 8, 2}, 16, 2);
  const std::vector<std::vector<std::int64_t>> wanted{{4, 0, 8, 2},  {16, 0, 0, 0}, {0, 0, 0, 16}, {0, 0, 16, 0},
                                                      {0, 2, 4, 10}, {2, 4, 10, 0}, {2, 4, 0, 10}, {6, 0, 0, 10},
                                                      {0, 6, 0, 10}, {2, 2, 2, 2},  {0, 0, 0, 0},  {2, 8, 0, 4}};
  EXPECT_EQ(turns, wanted);
  EXPECT_EQ(scenario_splits({}, 0, 1), (std::vector<std::vector<std::int64_t>>{{}}));
  EXPECT_EQ(scenario_splits({5}, 7, 1), (std::vector<std::vector<std::int64_t>>{{5}, {7}, {3}, {0}}));
}

TEST(ScenarioSplits, AreWhatReplaysGoThrough) {
  const CaseLine line =
      parse_case_line("scenario recipe=none steps=forward splits=4,0,8,2 extra_rows=2 change=edges N=8 K=16 replay=13:splits");
  const Scenario scenario = scenario_of(line);
  EXPECT_EQ(scenario.turns, scenario_splits({4, 0, 8, 2}, 16, 2));
  for (int round = 0; round < 13; ++round) {
    EXPECT_EQ(splits_in(scenario_inputs(line, scenario, round)[0]), scenario.turns[static_cast<std::size_t>(round) % 12]);
  }
}

// The size of compact scales depends on the rows: splits whose scales would not fit the captured tensors are skipped.
TEST(ScenarioSplits, KeepTheSizeOfEveryTensor) {
  const CaseLine line = parse_case_line(
      "scenario recipe=fp8_block steps=TN,NN,NT splits=128,0,256,128 change=edges N=8 K=16 replay=16:data,splits,scales");
  const Scenario scenario = scenario_of(line);
  EXPECT_EQ(scenario.turns.size(), 10u);
  const auto first = scenario_inputs(line, scenario, 0);
  for (int round = 1; round < 10; ++round) {
    const auto later = scenario_inputs(line, scenario, round);
    for (std::size_t c = 0; c < first.size(); ++c) {
      for (const auto& [name, tensor] : first[c].in) EXPECT_EQ(tensor.shape, later[c].in.at(name).shape) << name;
    }
    const std::vector<std::int64_t> splits = splits_in(later[0]);
    EXPECT_EQ(std::accumulate(splits.begin(), splits.end(), std::int64_t{0}), 512);
  }
}

TEST(ScenarioSplits, RotateFurtherInMicrobatchesAndLayers) {
  const CaseLine line =
      parse_case_line("scenario recipe=none steps=forward,forward modules=2 splits=1,2,3 N=8 K=16 replay=3:splits");
  const auto inputs = scenario_inputs(line, scenario_of(line), 1);
  EXPECT_EQ(splits_in(inputs[0]), (std::vector<std::int64_t>{2, 3, 1}));
  EXPECT_EQ(splits_in(inputs[1]), (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(splits_in(inputs[2]), (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(splits_in(inputs[3]), (std::vector<std::int64_t>{1, 2, 3}));
}

// Replays go through as many orders of the groups: with many groups they would take more memory than a machine has.
TEST(Scenario, SizesThatNoMachineHoldsAreRefused) {
  const std::string words = "scenario recipe=none steps=forward N=8 K=16 replay=2:splits ";
  EXPECT_NO_THROW(parse_case_line(words + "splits=1024x1"));
  EXPECT_THROW(parse_case_line(words + "splits=65536x1"), InvalidArgument);
  EXPECT_THROW(parse_case_line(words + "splits=1,68719476736"), InvalidArgument);
  EXPECT_THROW(parse_case_line(words + "splits=1 change=edges extra_rows=9223372036854775806"), InvalidArgument);
  EXPECT_THROW(parse_case_line(words + "splits=1 modules=2 seed=9223372036854775807"), InvalidArgument);
}

TEST(Scenario, IsNoSingleCall) {
  EXPECT_THROW(generate(parse_case_line("scenario recipe=none steps=forward splits=3 N=8 K=16 replay=2")), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance
