// The hint names the input that a backend keeps from an earlier replay, and which replay.

#include <map>

#include "conformance/generate/replay_steps.h"
#include "conformance/tests/diagnose/planted.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using planted::hints_of;

struct Stale {
  const char* name;
  const char* line;
  const char* output;
  std::vector<const char*> inputs;  // kept from the first call; empty: the whole output is
  const char* hint;
};
void PrintTo(const Stale& fault, std::ostream* out) { *out << fault.name; }

class InputsKept : public testing::TestWithParam<Stale> {};

TEST_P(InputsKept, AreNamed) {
  const Stale& fault = GetParam();
  std::map<std::string, std::vector<std::byte>> kept;
  Rogue rogue;
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    if (status != ASSAY_OK) return status;
    for (const char* input : fault.inputs) {
      const TensorView given = Request::of(call).in.at(input);
      const auto* from = static_cast<const std::byte*>(given.data);
      kept.try_emplace(input, from, from + given.bytes);
    }
    planted::spoil(call, fault.output, [&](Request& request) {
      for (const char* input : fault.inputs) request.in.at(input).data = kept.at(input).data();
    });
    return status;
  };
  const CaseLine line = parse_case_line(fault.line);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options;
  options.wanted = &wanted;
  assay_backend table = Rogue::table();
  table.capture_begin = nullptr;  // every replay is a call
  table.capture_end = nullptr;
  table.graph_launch = nullptr;
  table.graph_destroy = nullptr;
  Backend backend(table);
  const Judgement judged = judge_replay(backend, replay_steps(line), options);
  EXPECT_EQ(judged.verdict, Verdict::failed);
  EXPECT_TRUE(contains(hints_of(judged.text), fault.hint)) << judged.text;
}

const Stale kStale[] = {
    {"scales_of_quantize", "quantize recipe=tensor_delayed replay=3:scales,data splits=33,40 K=96 seed=1", "rowwise_data", {"scale"}, "with scale of the call before"},
    {"data_of_quantize", "quantize recipe=mxfp8 replay=3:data data=clustered splits=33,40 K=96 seed=2", "rowwise_scale_inv", {"x"}, "with x of the call before"},
    {"splits_of_quantize", "quantize recipe=block_1x128 replay=3:splits splits=33,47,16 K=300 seed=3", "columnwise_scale_inv", {"splits"}, "with splits of the call before"},
    {"x_of_a_product", "grouped_gemm kind=bf16 replay=3:data splits=33,40 N=48 K=96 seed=4", "d", {"x"}, "with x of the call before"},
    {"w_scales_of_a_product", "grouped_gemm kind=fp8_block replay=3:data,scales splits=33,40 N=48 K=196 seed=5", "d", {"w_rowwise_scale_inv"}, "with w_rowwise_scale_inv of the call before"},
    {"weights_of_a_product", "grouped_gemm kind=fp8_block replay=3:data,scales splits=32,64 N=48 K=196 seed=6", "d", {"w_rowwise_data", "w_rowwise_scale_inv"}, "with all of w of the call before"},
    {"alpha_of_a_product", "grouped_gemm kind=mxfp8 alpha=0.4,1.7 replay=3:data splits=32,64 N=48 K=96 seed=7", "d", {"alpha"}, "with alpha of the call before"},
    {"splits_of_a_product", "grouped_gemm kind=bf16 replay=3:splits splits=33,40,7 N=48 K=96 seed=8", "d", {"splits"}, "with splits of the call before"},
    {"c_of_a_product", "grouped_gemm kind=bf16 beta=0.5 replay=3:data splits=33,40,7 N=48 K=96 seed=9", "d", {"c"}, "with c of the call before"},
    {"everything_of_a_product", "grouped_gemm kind=bf16 replay=3:data splits=33,40,7 N=48 K=96 seed=10", "d", {"x", "w"}, "with all inputs of the call before"},
    {"scales_of_dequantize", "dequantize recipe=tensor_current replay=3:data,scales splits=33,40,7 K=96 seed=11", "x", {"rowwise_scale_inv"}, "with rowwise_scale_inv of the call before"},
    {"splits_of_dbias", "grouped_dbias replay=3:splits splits=33,40,7 K=96 seed=12", "dbias", {"splits"}, "with splits of the call before"},
    {"offsets", "splits_to_offsets replay=3:splits splits=5,0,7,300,2,9,33,41", "offsets", {"splits"}, "with splits of the call before"},
    {"swizzle", "swizzle recipe=mxfp8 replay=3:data,scales splits=128,64 K=256 seed=13", "swizzled", {"compact"}, "with compact of the call before"},
    {"linear_weights", "linear_forward recipe=fp8_block replay=3:data splits=33,40,7 N=48 K=196 seed=14", "y", {"w"}, "with w of the call before"},
    {"linear_main_gradient", "linear_wgrad recipe=none accumulate=1 replay=3:data splits=33,40,7 N=48 K=96 seed=15", "dw", {"main_grad"}, "with main_grad of the call before"},
    {"update_history", "delayed_update replay=3:data,scales tensors=40 length=5 seed=16", "scale", {"amax_history"}, "with amax_history of the call before"},
};
INSTANTIATE_TEST_SUITE_P(Diagnosis, InputsKept, testing::ValuesIn(kStale), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
