// How requests become calls of the device library. No device is needed: sizes, types and plans must be the reference's, and the
// library's own checks must accept the call.
#ifdef ASSAY_HAS_DEVICE

#include <gtest/gtest.h>

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/gemm_request.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/backends/device/rule_call.h"
#include "conformance/backends/device/token_call.h"
#include "conformance/backends/stated_plan.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/named_plan.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr GemmOptions kEmulated{GemmPath::emulated, 0};

// Each small case of one op, as the call that a backend would see; tensors lie in the reference's memory.
template <class Look>
void for_each_call(const std::string& op, Look look, std::int64_t least = 51) {
  Backend backend("reference");
  std::int64_t seen = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (!line.op.starts_with(op)) continue;
    SCOPED_TRACE(to_text(line));
    Case problem = generate(line);
    std::vector<OutputSpec> specs;
    const std::vector<std::string> wanted = wanted_outputs(line);
    for (const OutputSpec& spec : outputs_of(Request::of(problem))) {
      if (std::find(wanted.begin(), wanted.end(), spec.name) != wanted.end()) specs.push_back(spec);
    }
    CallRunner runner(backend, problem, specs, -1, 60'000);
    look(problem, runner.call());
    ++seen;
  }
  EXPECT_GE(seen, least);
}

// Groups without rows have no scales of x or dy, and no groups have no scales at all; the library still requires an address when
// there are rows beyond the splits.
TEST(GemmRequest, ScalesOfNoRowsHaveAnAddress) {
  for (const char* text :
       {"grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=0 N=20 K=448 extra_rows=30",
        "grouped_gemm kind=fp8_block layout=NN d_type=f16 alpha=2 splits=0 N=2800 K=176 extra_rows=155",
        "grouped_gemm kind=fp8_block layout=NT alpha=2 beta=1 splits=0 N=368 K=80 extra_rows=1504",
        "grouped_gemm kind=mxfp8 splits=3x0 N=32 K=64 extra_rows=7", "grouped_gemm kind=nvfp4 splits=0,0 N=32 K=64 extra_rows=2",
        "grouped_gemm kind=nvfp4 layout=NT splits=0 N=32 K=64 extra_rows=16",
        "grouped_gemm kind=fp8_per_tensor splits=0x0 N=32 K=64 extra_rows=16",
        "grouped_gemm kind=nvfp4 splits=0x0 N=32 K=64 extra_rows=16"}) {
    SCOPED_TRACE(text);
    Case problem = generate(parse_case_line(text));
    Backend backend("reference");
    CallRunner runner(backend, problem, outputs_of(Request::of(problem)), -1, 60'000);
    const GemmRequest request(Request::of(runner.call()));
    EXPECT_GT(request.shape().rows.capacity, 0);
    EXPECT_NO_THROW(device::check_grouped_gemm(request.shape()));
    if (!request.has_plain_scalars()) continue;  // which bind() would send to a device
    alignas(256) std::uint32_t status = 0;
    alignas(256) std::byte workspace[4096];
    device::GroupedGemmCall ready;
    ASSERT_NO_THROW(ready = request.bind(workspace, &status, nullptr));
    EXPECT_NO_THROW(device::check_grouped_gemm(ready));
    const device::GemmOperand& rows = ready.layout == GemmLayout::TN ? ready.x : ready.dy;
    EXPECT_EQ(rows.scale_inv, &status);
  }
}

// A wgrad without rows still has a D, which the library itself may leave unwritten. Operands that are not read need no alignment
// (N=8 of dy in FP8).
TEST(WhyNotWritten, SumsWithoutTermsNeedAlignedRowsOfD) {
  const struct {
    const char* text;
    const char* reported;
    // clang-format off
  } rows[] = {
      {"grouped_gemm kind=bf16 layout=NT splits=0 N=952 K=99 seed=604649", "K is 99: cuBLASLt's grouped kernels need rows of D (bf16) that are a multiple of 16 bytes"},
      {"grouped_gemm kind=bf16 layout=NT splits=8,0 N=952 K=99", "K is 99"},
      {"grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3x0 N=8 K=98", "rows of D (f32)"},
      {"grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3x0 N=8 K=100", ""},
      {"grouped_gemm kind=bf16 layout=NT splits=0 N=952 K=104", ""},
      {"grouped_gemm kind=fp8_block layout=NT d_type=f32 beta=1 splits=3x0 N=8 K=16 seed=57", ""},
      {"grouped_gemm kind=bf16 splits=5,0 N=12 K=0", "N is 12"},
      {"grouped_gemm kind=bf16 beta=1 splits=20,0,9 N=8 K=0 seed=258", ""},
  };
  // clang-format on
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    Case problem = generate(parse_case_line(row.text));
    Backend backend("reference");
    CallRunner runner(backend, problem, outputs_of(Request::of(problem)), -1, 60'000);
    const GemmRequest request(Request::of(runner.call()));
    EXPECT_TRUE(request.is_wanted());
    const std::string why = why_not_written(request.shape());
    EXPECT_EQ(why.empty(), std::string(row.reported).empty()) << why;
    EXPECT_NE(why.find(row.reported), std::string::npos) << why;
  }
}

// Groups of a product or a layer, wherever they lie.
std::int64_t groups_of(const Case& problem) {
  const auto groups = problem.attributes.find("groups");  // of m_indices
  if (groups != problem.attributes.end()) return std::get<std::int64_t>(groups->second);
  for (const char* name : {"splits", "psum"}) {
    if (const auto found = problem.in.find(name); found != problem.in.end()) return found->second.elements();
  }
  return 1;
}

// Declared absent: the kernels take 1024 groups.
bool has_too_many_groups(const Case& problem) { return groups_of(problem) > device::kMaxGroups; }

// The attribute as text, "" where absent.
std::string text_of(const Case& problem, const std::string& name) {
  const auto found = problem.attributes.find(name);
  return found == problem.attributes.end() ? "" : std::get<std::string>(found->second);
}

TEST(GemmRequest, SaysWhatTheReferenceReads) {
  for_each_call("grouped_gemm", [](Case& problem, const assay_call& call) {
    if (has_too_many_groups(problem)) {
      EXPECT_THROW(GemmRequest{Request::of(call)}, NotSupported);
      return;
    }
    const GemmRequest request(Request::of(call));
    const device::GroupedGemmCall& shape = request.shape();
    EXPECT_NO_THROW(device::check_grouped_gemm(shape));
    EXPECT_EQ(shape.rows.groups, groups_of(problem));
    const OutputSpec d = outputs_of(Request::of(problem)).at(0);
    EXPECT_EQ(shape.d_type, d.type);
    EXPECT_EQ(shape.layout == GemmLayout::NT ? shape.rows.groups * shape.N : shape.rows.capacity, d.shape[0]);
    EXPECT_EQ(shape.layout == GemmLayout::TN ? shape.N : shape.K, d.shape[1]);
    const std::string named = text_of(problem, "plan"), followed = numerics_of(Request::of(problem)).plan;
    const AccumulationPlan* plan = named.empty() ? plan_for(request.key()) : request.plan();
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->name, followed);
    if (!device::emulation_missing(*find_tensor_core_unit(plan->unit)).empty()) {
      EXPECT_THROW(gemm_call(Request::of(call), kEmulated), NotSupported);
      return;
    }
    assay_numerics stated{};
    state_gemm(Request::of(call), kEmulated, stated);
    EXPECT_EQ(plan_of(stated), followed);
    EXPECT_NO_THROW(gemm_call(Request::of(call), kEmulated));
  });
}

// A plan that no unit of the emulation follows is refused with the field of the unit that is at fault.
TEST(GemmCall, RefusesUnitsWithoutFusedSteps) {
  Case problem =
      generate(parse_case_line("grouped_gemm kind=bf16 plan=unit=amx.tdpbf16ps d_type=f32 splits=5,0,20 N=24 K=136 seed=1"));
  Backend backend("reference");
  CallRunner runner(backend, problem, outputs_of(Request::of(problem)), -1, 60'000);
  try {
    gemm_call(Request::of(runner.call()), kEmulated);
    FAIL() << "taken";
  } catch (const NotSupported& error) {
    EXPECT_NE(std::string(error.what()).find("sum=chains"), std::string::npos) << error.what();
  }
}

TEST(QuantizeCall, CanBeMadeOfEveryCase) {
  std::int64_t drawn = 0;
  for_each_call("quantize", [&](Case& problem, const assay_call& call) {
    if (problem.op != "quantize") return;
    if (has_too_many_groups(problem)) {
      EXPECT_THROW(device_call(Request::of(call)), NotSupported);
      return;
    }
    DeviceCall made;
    ASSERT_NO_THROW(made = device_call(Request::of(call)));
    EXPECT_GE(made.workspace_bytes, 0);
    if (!text_of(problem, "draws").empty()) ++drawn;
  });
  EXPECT_GE(drawn, 63);
}

// The state of the generator is an input like others: its type and shape are checked, and so is what goes with it.
TEST(QuantizeCall, RefusesDrawsThatMakeNoSense) {
  const struct {
    void (*change)(Case&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {[](Case& each) { each.in.erase("rng_state"); }, "rng_state"},
      {[](Case& each) { each.in.at("rng_state") = make_tensor(Format::i64, {1, 3}); }, "in/rng_state"},
      {[](Case& each) { each.in.at("rng_state") = make_tensor(Format::i32, {1, 2}); }, "in/rng_state"},
      {[](Case& each) { each.attributes["draws"] = std::string("te_3d"); }, "'te_3d'"},
      {[](Case& each) { each.attributes["draws"] = std::string("te_tuned_1d"); }, "two_dimensional is true: expected false"},
      {[](Case& each) { each.attributes["direction"] = std::string("down"); }, "'down'"},
      {[](Case& each) { each.attributes["direction"] = std::string("rowwise"); }, "columnwise is true: expected false"},
      {[](Case& each) { each.attributes["stochastic"] = std::int64_t{0}; }, "draws is te_2d: expected given"},
  };
  // clang-format on
  for (const auto& row : rows) {
    Case problem = generate(parse_case_line("quantize recipe=nvfp4 stochastic=1 draws=te_2d two_dimensional=1 R=32 K=32 seed=1"));
    for (const OutputSpec& spec : outputs_of(Request::of(problem))) problem.out[spec.name] = make_tensor(spec.type, spec.shape);
    ASSERT_NO_THROW(device_call(Request::of(problem)));
    row.change(problem);
    try {
      device_call(Request::of(problem));
      FAIL() << row.reported << " was taken";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << row.reported << ": " << error.what();
    }
  }
}

TEST(TokenCall, CanBeMadeOfEveryCase) {
  for (const char* op : {"permute", "unpermute"}) {
    for_each_call(
        op,
        [](Case&, const assay_call& call) {
          DeviceCall made;
          ASSERT_NO_THROW(made = device_call(Request::of(call)));
          EXPECT_GT(made.workspace_bytes, 0);
        },
        15);
  }
}

TEST(LinearCall, CanBeMadeOfEveryCase) {
  for_each_call("linear_", [](Case& problem, const assay_call& call) {
    if (has_too_many_groups(problem)) {
      EXPECT_THROW(linear_call(Request::of(call), kEmulated), NotSupported);
      return;
    }
    const AccumulationPlan* const plan = named_plan(Request::of(call));
    if (plan != nullptr && !device::emulation_missing(*find_tensor_core_unit(plan->unit)).empty()) {
      EXPECT_THROW(linear_call(Request::of(call), kEmulated), NotSupported);
      return;
    }
    const DeviceCall made = linear_call(Request::of(call), kEmulated);
    EXPECT_GE(made.workspace_bytes, 0);
  });
}

TEST(RuleCall, CanBeMadeOfEveryCase) {
  for_each_call("quantize_by_rule", [](Case& problem, const assay_call& call) {
    if (has_too_many_groups(problem)) {
      EXPECT_THROW(rule_call(Request::of(call)), NotSupported);
      return;
    }
    DeviceCall made;
    ASSERT_NO_THROW(made = rule_call(Request::of(call)));
    EXPECT_GT(made.workspace_bytes, 0);
    EXPECT_EQ(made.workspace_bytes, device_call(Request::of(call)).workspace_bytes);
  });
}

Case ruled(const std::string& words) {
  Case problem = generate(parse_case_line("quantize_by_rule " + words));
  for (const OutputSpec& spec : outputs_of(Request::of(problem))) problem.out[spec.name] = make_tensor(spec.type, spec.shape);
  return problem;
}

TEST(RuleCall, RefusesWhatMakesNoSense) {
  const struct {
    const char* line;
    void (*change)(Case&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.attributes["speed"] = std::int64_t{1}; }, "speed"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.attributes["block"] = std::string("0x1"); }, "block"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.attributes["storage"] = std::string("packed"); }, "packed"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.in.at("x").shape = {4096}; }, "in/x"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.in["amax"] = make_tensor(Format::f32, {1}); }, "in/amax"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.out["amax"] = make_tensor(Format::f32, {1}); }, "amax"},
      {"preset=deepgemm R=16 K=256", [](Case& each) { each.out.at("data") = make_tensor(Format::e4m3, {15, 256}); }, "data"},
      {"preset=nvfp4.te R=16 K=256 amax=given", [](Case& each) { each.in.at("amax") = make_tensor(Format::f32, {2}); }, "in/amax"},
  };
  // clang-format on
  Case right = ruled("preset=deepgemm R=16 K=256");
  EXPECT_NO_THROW(rule_call(Request::of(right)));
  for (const auto& row : rows) {
    Case problem = ruled(row.line);
    row.change(problem);
    try {
      rule_call(Request::of(problem));
      FAIL() << row.reported << " was taken";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << row.reported << ": " << error.what();
    }
  }
}

Case product() {
  return generate(parse_case_line("grouped_gemm kind=fp8_block d_type=f32 splits=5,0,20 N=24 K=136 beta=1 seed=1"));
}

TEST(GemmRequest, RefusesWhatMakesNoSense) {
  const struct {
    const char* name;
    void (*change)(Case&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {"scales of w", [](Case& each) { each.in.at("w_rowwise_scale_inv").shape = {3}; }, "w_rowwise_scale_inv"},
      {"C of another shape", [](Case& each) { each.in.at("c").shape = {24, 25}; }, "in/c"},
      {"no C", [](Case& each) { each.in.erase("c"); }, "in/c"},
      {"an unknown attribute", [](Case& each) { each.attributes["speed"] = std::int64_t{1}; }, "speed"},
      {"an unknown plan", [](Case& each) { each.attributes["plan"] = std::string("none"); }, "'none'"},
      {"an unknown kind", [](Case& each) { each.attributes["kind"] = std::string("fp6"); }, "'fp6'"},
      {"x in another orientation", [](Case& each) { each.in.at("x_rowwise_data").shape = {136, 25}; }, "in/x"},
      {"one row of w too few", [](Case& each) { each.attributes["N"] = std::int64_t{25}; }, "in/w"},
  };
  // clang-format on
  for (const auto& row : rows) {
    Case problem = product();
    row.change(problem);
    problem.out["d"] = make_tensor(Format::f32, {25, 24});
    try {
      const GemmRequest request(Request::of(problem));
      FAIL() << row.name << " was taken";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << row.name << ": " << error.what();
    }
  }
}

// In its other storage, in the shape that it has there.
void store_otherwise(Case& problem, const std::string& operand) {
  Tensor data = problem.in.at(operand + "_rowwise_data"), scale = problem.in.at(operand + "_rowwise_scale_inv");
  data.shape = {data.shape[0] * data.shape[1]};
  problem.in.erase(operand + "_rowwise_data");
  problem.in.erase(operand + "_rowwise_scale_inv");
  problem.in[operand + "_columnwise_data"] = data;
  problem.in[operand + "_columnwise_scale_inv"] = scale;
}

// spec grouped-gemm-1.2: SM89 and SM90 read FP8 with the contraction innermost, in every kind.
TEST(GemmRequest, RefusesTheOtherStorageWhereTheArchitectureDoes) {
  for (const char* arch : {"", "arch=sm89 ", "arch=sm90 ", "arch=sm100 "}) {
    for (const char* operand : {"x", "w"}) {
      Case problem =
          generate(parse_case_line("grouped_gemm kind=fp8_per_tensor " + std::string(arch) + "splits=16,0,32 N=32 K=48 seed=1"));
      problem.out["d"] = make_tensor(Format::bf16, {48, 32});
      EXPECT_NO_THROW(GemmRequest{Request::of(problem)}) << arch;
      store_otherwise(problem, operand);
      if (arch == std::string("arch=sm100 ")) {
        EXPECT_NO_THROW(GemmRequest{Request::of(problem)}) << operand;
      } else {
        EXPECT_THROW(GemmRequest{Request::of(problem)}, InvalidArgument) << arch << operand;
      }
    }
  }
}

TEST(GemmOptions, AreRead) {
  EXPECT_EQ(gemm_options({"gemm=emulated"}, true).path, GemmPath::emulated);
  EXPECT_EQ(gemm_options({"gemm=bringup"}, true).path, GemmPath::emulated);
  EXPECT_EQ(gemm_options({"gemm=assay"}, true).path, GemmPath::assay);
  EXPECT_EQ(gemm_options({"gemm=cublaslt"}, true).path, GemmPath::cublaslt);
  EXPECT_EQ(gemm_options({"gemm=auto", "assume_plan=13.10"}, true).assumed_version, 131000);
  EXPECT_EQ(gemm_options({"assume_plan=13.4.1"}, false).assumed_version, 130401);
  EXPECT_EQ(gemm_options({}, true).promises.rows_multiple, 1);
  EXPECT_EQ(gemm_options({"rows_multiple=16"}, true).promises.rows_multiple, 16);
  EXPECT_FALSE(gemm_options({"lists=off"}, true).passes_lists);
  EXPECT_TRUE(gemm_options({"lists=on"}, true).passes_lists);
  EXPECT_FALSE(gemm_options({"pow2_scales=off"}, true).promises.pow2_scales ||
               gemm_options({"lists=on"}, true).promises.pow2_scales);
  EXPECT_TRUE(gemm_options({"pow2_scales=on"}, true).promises.pow2_scales);
  for (const char* wrong :
       {"lists=", "lists=yes", "pow2_scales=16", "rows_multiple=0", "rows_multiple=-16", "rows_multiple=16x",
        "rows_multiple=", "gemm=fast", "assume_plan=13", "assume_plan=13.x", "assume_plan=13.10.1.1", "speed=1"}) {
    EXPECT_THROW(gemm_options({wrong}, true), InvalidArgument) << wrong;
  }
  // Our own kernel: by itself, unless the plans of a version of cuBLASLt are asked for, and where it is named.
  for (const char* own : {"gemm=auto", "rows_multiple=16", "gemm=assay"})
    EXPECT_TRUE(gemm_options({own}, true).may_take_assay()) << own;
  EXPECT_TRUE(gemm_options({"gemm=assay", "assume_plan=13.10"}, true).may_take_assay());
  for (const char* other : {"gemm=cublaslt", "gemm=emulated", "assume_plan=13.10"})
    EXPECT_FALSE(gemm_options({other}, true).may_take_assay()) << other;
  EXPECT_THROW(gemm_options({"gemm=emulated"}, false), InvalidArgument);
  EXPECT_THROW(gemm_options({"rows_multiple=16"}, false), InvalidArgument);
  EXPECT_THROW(gemm_options({"lists=on"}, false), InvalidArgument);
  EXPECT_THROW(gemm_options({"pow2_scales=on"}, false), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance

#endif
