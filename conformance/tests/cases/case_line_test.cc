// Case lines: canonical text, round trips, and errors that name the word, its value and what was expected.

#include "conformance/cases/case_line.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "conformance/cases/case_schema.h"
#include "reference/linear/linear_config.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

struct Canonical {
  const char* given;
  const char* text;
};
void PrintTo(const Canonical& c, std::ostream* out) { *out << c.given; }

class CanonicalText : public testing::TestWithParam<Canonical> {};
TEST_P(CanonicalText, IsThis) {
  const CaseLine line = parse_case_line(GetParam().given);
  EXPECT_EQ(to_text(line), GetParam().text);
  EXPECT_EQ(parse_case_line(to_text(line)), line);
}

// clang-format off
const Canonical kCanonical[] = {
    {"quantize recipe=block_1x128 x_type=bf16 otype=e4m3 pow2=1 eps=0 splits=0,128,127 K=512 data=uniform seed=7",
     "quantize recipe=block_1x128 pow2=1 splits=0,128,127 K=512 seed=7"},
    {"  quantize\tK=272 R=33   recipe=mxfp8 ", "quantize recipe=mxfp8 R=33 K=272"},             // any order, any space
    {"quantize recipe=nvfp4 otype=e2m1 R=16 K=32", "quantize recipe=nvfp4 R=16 K=32"},          // default follows the recipe
    {"quantize recipe=nvfp4 direction=columnwise R=2 K=3", "quantize recipe=nvfp4 direction=columnwise R=2 K=3"},  // codes of columns
    {"quantize recipe=block_1x128 eps=0.010 R=1 K=1", "quantize recipe=block_1x128 eps=0.01 R=1 K=1"},
    {"quantize recipe=block_1x128 eps=-0 R=1 K=1", "quantize recipe=block_1x128 R=1 K=1"},      // one spelling of zero
    {"quantize recipe=block_1x128 splits=0x0 K=8", "quantize recipe=block_1x128 splits=0x0 K=8"},  // no groups is not "single"
    {"quantize recipe=block_1x128 splits=1,2,2,2,3x2,0,0 K=8", "quantize recipe=block_1x128 splits=1,6x2,0,0 K=8"},
    {"quantize recipe=block_1x128 splits=one(8,512,3) K=8", "quantize recipe=block_1x128 splits=3x0,512,4x0 K=8"},
    {"quantize recipe=block_1x128 splits=256x0,128x4 K=8 noop=1", "quantize recipe=block_1x128 noop=1 splits=256x0,128x4 K=8"},
    {"quantize recipe=block_1x128 splits=4 K=8 noop=0 replay=016:noop,data,splits,data",
     "quantize recipe=block_1x128 noop=0 splits=4 K=8 replay=16:data,splits,noop"},
    {"grouped_gemm kind=fp8_block split_accumulator=1 weight_block=128x128 splits=128 N=256 K=384 alpha=1.0 beta=0.0",
     "grouped_gemm kind=fp8_block splits=128 N=256 K=384"},
    {"grouped_gemm kind=fp8_block split_accumulator=0 splits=128 N=256 K=384", "grouped_gemm kind=fp8_block split_accumulator=0 splits=128 N=256 K=384"},
    {"grouped_gemm kind=mxfp8 arch=sm100 scale_layout=swizzled alpha=0.5,2 splits=32,32 N=32 K=32",
     "grouped_gemm kind=mxfp8 alpha=0.5,2 splits=32,32 N=32 K=32"},
    {"grouped_gemm kind=fp8_block data=integers scales=pow2 check=order_free splits=1 N=1 K=1",
     "grouped_gemm kind=fp8_block splits=1 N=1 K=1 data=integers"},
    {"splits_to_offsets splits=5000000000,1 stride=7168", "splits_to_offsets splits=5000000000,1 stride=7168"},
    {"splits_to_offsets_multi outputs=01:i64,7:i32:inclusive splits=1,2", "splits_to_offsets_multi splits=1,2 outputs=1:i64,7:i32:inclusive"},
    {"splits_to_offsets_2d first=1,2 last=2x3", "splits_to_offsets_2d first=1,2 last=3,3"},
    {"grouped_gemm kind=bf16 beta=-inf,nan alpha=inf arch=sm100 splits=4,5 N=8 K=8", "grouped_gemm kind=bf16 alpha=inf beta=-inf,nan arch=sm100 splits=4,5 N=8 K=8"},
    {"quantize noop=nan recipe=mxfp8 R=1 K=1", "quantize recipe=mxfp8 noop=nan R=1 K=1"},
    {"delayed_update tensors=3 length=16 margin=-1", "delayed_update margin=-1 tensors=3 length=16"},
    {"linear_wgrad recipe=fp8_block pow2=1 splits=4 N=8 K=16 accumulate=1", "linear_wgrad recipe=fp8_block accumulate=1 splits=4 N=8 K=16"},
    {"scenario K=16 N=8 splits=4,4,4 replay=04:noop,data noop=0.0 modules=1 order=in_turn steps=weights,forward/dgrad,wgrad recipe=fp8_block pow2=1 accumulate=0",
     "scenario recipe=fp8_block steps=weights,forward/dgrad,wgrad noop=0 splits=3x4 N=8 K=16 replay=4:data,noop"},
    {"quantize R=2 recipe=nvfp4 direction=columnwise K=3", "quantize recipe=nvfp4 direction=columnwise R=2 K=3"},
    {"linear_wgrad accumulate=1 recipe=none splits=4 plan=unit=sm80.mma.f16 N=8 K=8",
     "linear_wgrad recipe=none plan=unit=sm80.mma.f16 accumulate=1 splits=4 N=8 K=8"},
    {"scenario recipe=nvfp4 otype=e2m1 modules=2 order=streams steps=TN splits=16 N=16 K=16 replay=3:splits",
     "scenario recipe=nvfp4 steps=TN modules=2 order=streams splits=16 N=16 K=16 replay=3:splits"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, CanonicalText, testing::ValuesIn(kCanonical));

struct Bad {
  const char* line;
  const char* message;  // the start of it
};
void PrintTo(const Bad& b, std::ostream* out) { *out << b.line; }

class BadLine : public testing::TestWithParam<Bad> {};
TEST_P(BadLine, IsRefusedWithThisMessage) {
  try {
    parse_case_line(GetParam().line);
    FAIL() << "was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, std::string(GetParam().message).size()), GetParam().message) << error.what();
  }
}

// clang-format off
const Bad kBad[] = {
    {"", "case line is empty: expected an op and key=value words"},
    {"quantise recipe=mxfp8", "op is quantise: expected one of quantize quantize_by_rule permute unpermute grouped_gemm"},
    {"quantize recipe=mxfp R=1 K=1",
     "recipe is mxfp: expected one of tensor_current tensor_delayed block_1x128 block_128x128 mxfp8 nvfp4 (did you mean mxfp8?)"},
    {"quantize recipe", "word is recipe: expected key=value"},
    {"quantize recipes=mxfp8", "key is recipes: expected a key of quantize: recipe x_type"},
    {"quantize recipe=mxfp8 K=1 K=1 R=1", "K is 1: expected to be given once"},
    {"quantize recipe=mxfp8 R=1", "K is not given: expected quantize to have K=..."},
    {"quantize recipe=mxfp8 K=1", "R is not given: expected either splits or R, and not both"},
    {"quantize recipe=mxfp8 K=1 R=1 splits=1", "R is 1: expected either splits or R, and not both"},
    {"quantize recipe=mxfp8 K=-1 R=1", "K is -1: expected an integer of at least 0"},
    {"quantize recipe=mxfp8 K=1x R=1", "K is 1x: expected an integer of at least 0"},
    {"quantize recipe=mxfp8 K=1 R=99999999999999999999", "R is 99999999999999999999: expected an integer"},
    {"grouped_gemm kind=bf16 alpha=infinity splits=4 N=8 K=8", "alpha is infinity: expected a decimal number, inf, -inf or nan"},
    {"grouped_gemm kind=bf16 addends=every_special splits=4 N=8 K=8", "addends is every_special: expected plain where there is neither beta nor bias"},
    {"grouped_gemm kind=mxfp8 scales=two_roundings splits=4 N=8 K=8", "scales is two_roundings: expected kind=fp8_per_tensor or kind=fp8_block"},
    {"quantize recipe=mxfp8 outputs=all K=16 R=16", "outputs is all: expected a recipe with further outputs"},
    {"grouped_gemm kind=mxfp8 scales=negative splits=16 N=16 K=32", "scales is negative: expected scales of a type with a sign"},
    {"dequantize recipe=mxfp8 scales=negative R=16 K=32", "scales is negative: expected scales of a type with a sign"},
    {"quantize recipe=mxfp8 outputs=amax K=16 R=16", "outputs is amax: expected a recipe with an amax: tensor_current, tensor_delayed or nvfp4"},
    {"quantize recipe=tensor_delayed outputs=scale K=16 R=16", "outputs is scale: expected a recipe that makes a scale: tensor_current"},
    {"quantize recipe=mxfp8 outputs=dbias K=16 R=16", "outputs is dbias: expected dbias=1"},
    {"quantize recipe=nvfp4 outputs=codes splits=2 K=16 fault=unaligned_rows", "outputs is codes: expected usual or all with fault=unaligned_rows"},
    {"linear_forward recipe=mxfp8 outputs=y splits=16 N=16 K=32", "outputs is y: expected usual without noop"},
    {"linear_forward recipe=mxfp8 noop=0 outputs=w_rowwise_amax splits=16 N=16 K=32", "outputs is w_rowwise_amax: expected recipe=nvfp4"},
    {"linear_dgrad recipe=mxfp8 outputs=dbias splits=16 N=16 K=32", "outputs is dbias: expected to be given only with bias=1"},
    {"splits_to_offsets_multi outputs=1:i64:absent splits=3", "outputs is 1:i64:absent: expected one output at least that is not absent"},
    {"splits_to_offsets_multi outputs=1:i64:absent:inclusive splits=3", "outputs is 1:i64:absent:inclusive: expected STRIDE:TYPE[:inclusive][:absent], STRIDE at least 0"},
    {"linear_forward recipe=none noop=1 splits=4 N=8 K=8", "noop is 1: expected to be given only with recipe=tensor_current|"},
    {"quantize recipe=block_1x128 eps=nan K=1 R=1", "eps is nan: expected a finite decimal number"},
    {"quantize recipe=block_1x128 eps=-1 K=1 R=1", "eps is -1: expected a value of at least 0"},
    {"quantize recipe=mxfp8 eps=0.5 K=1 R=1", "eps is 0.5: expected to be given only with recipe=tensor_current|"},
    {"quantize recipe=mxfp8 otype=e2m1 K=2 R=2", "otype is e2m1: expected e4m3 or e5m2 with recipe=mxfp8"},
    {"quantize recipe=nvfp4 otype=e4m3 K=2 R=2", "otype is e4m3: expected e2m1 with recipe=nvfp4"},
    {"quantize recipe=nvfp4 K=3 R=2", "K is 3: expected an even number with recipe=nvfp4"},
    {"quantize recipe=nvfp4 K=16 splits=16,3", "splits is 3: expected even numbers of rows"},
    {"quantize recipe=nvfp4 hadamard=1 x_type=f32 K=16 R=16", "x_type is f32: expected bf16 with hadamard=1"},
    {"quantize recipe=mxfp8 extra_rows=4 K=1 R=1", "extra_rows is 4: expected 0 where there are no splits"},
    {"quantize recipe=mxfp8 data=unifrom K=1 R=1", "data is unifrom: expected one of uniform normal"},
    {"quantize recipe=block_1x128 data=adversarial_eps K=1 R=1", "eps is 0: expected more than 0"},
    {"quantize recipe=nvfp4 data=adversarial_transform K=16 R=16", "hadamard is 0: expected 1 with data=adversarial_transform"},
    {"quantize recipe=nvfp4 data=adversarial_four_over_six K=16 R=16", "four_over_six is off: expected mae or mse"},
    {"quantize recipe=nvfp4 data=adversarial_thresholds K=16 R=16", "four_over_six is off: expected mae or mse with data=adversarial_thresholds"},
    {"grouped_gemm kind=mxfp8 data=adversarial_thresholds splits=4 N=8 K=8", "kind is mxfp8: expected bf16 or f16 with data=adversarial_thresholds"},
    {"quantize recipe=mxfp8 splits=1,,2 K=1", "splits is : expected rows separated by commas"},
    {"quantize recipe=mxfp8 splits=1,-2 K=1", "splits is -2: expected rows separated by commas"},
    {"quantize recipe=mxfp8 splits=one(4,8,4) K=1", "splits is one(4,8,4): expected a group below 4"},
    {"quantize recipe=mxfp8 splits=zipf(4,8) K=1", "splits is zipf(4,8): expected zipf(GROUPS,ROWS,SEED)"},
    {"quantize recipe=mxfp8 splits=zapf(4,8,1) K=1", "splits is zapf(4,8,1): expected rows separated by commas"},
    {"quantize recipe=mxfp8 splits=9999999999x1 K=1", "splits is 9999999999x1: expected rows separated by commas"},
    {"quantize recipe=mxfp8 R=1 K=1 replay=0:data", "replay is 0: expected an integer of at least 1"},
    {"quantize recipe=mxfp8 R=1 K=1 replay=4:dates", "replay is dates: expected one of data splits scales noop pieces (did you mean data?)"},
    {"quantize recipe=mxfp8 R=1 K=1 replay=4:splits", "replay is 4:splits: expected no change of splits where there are none"},
    {"quantize recipe=mxfp8 R=1 K=1 replay=4:noop", "replay is 4:noop: expected a change of noop only where the case has noop"},
    {"grouped_gemm kind=bf16 splits=1,1 N=1 K=1 alpha=1,2", "alpha is 1,2: expected one value: per-group factors need arch=sm100"},
    {"grouped_gemm kind=mxfp8 splits=1,1 N=1 K=1 alpha=1,2,3", "alpha is 1,2,3: expected one value, or one for each of the 2 groups"},
    {"grouped_gemm kind=fp8_block layout=NT weight_block=1x128 splits=1 N=1 K=1", "weight_block is 1x128: expected layout TN or NN"},
    {"grouped_gemm kind=fp8_per_tensor weight_block=1x128 splits=1 N=1 K=1", "weight_block is 1x128: expected to be given only with kind=fp8_block"},
    {"grouped_gemm kind=bf16 layout=NN bias=1 splits=1 N=1 K=1", "bias is 1: expected to be given only with layout=TN"},
    {"grouped_gemm kind=fp8_block check=order_free splits=1 N=1 K=1", "data is uniform: expected integers or wide_sums with check=order_free"},
    {"grouped_gemm kind=fp8_block data=integers scales=plain splits=1 N=1 K=1", "scales is plain: expected pow2 or ones"},
    {"linear_wgrad recipe=nvfp4 x_type=f16 splits=16 N=16 K=16", "x_type is f16: expected bf16 with recipe=nvfp4"},
    {"quantize recipe=nvfp4 hadamard=1 two_dimensional=1 R=16 K=16", "two_dimensional is 1: expected 0 with hadamard=1"},
    {"quantize recipe=nvfp4 e4m3_max=256 R=16 K=16", "e4m3_max is 256: expected 448 with four_over_six=off"},
    {"quantize recipe=nvfp4 stochastic=1 four_over_six=mae R=16 K=16", "four_over_six is mae: expected off with stochastic=1"},
    {"grouped_gemm kind=nvfp4 data=integers check=order_free splits=16 N=16 K=16", "kind is nvfp4: expected another kind"},
    {"linear_forward recipe=none plan=unit=sm90.wgmma.fp8 splits=4 N=8 K=8", "plan is unit=sm90.wgmma.fp8: expected a plan whose unit sm90.wgmma.fp8 takes"},
    {"linear_dgrad recipe=fp8_block plan=unit=sm90.wgmma.fp8 splits=4 N=8 K=8", "plan.association is none: expected scales_first"},
    {"linear_wgrad recipe=mxfp8 plan=unit=sm90.wgmma.fp8 splits=4 N=8 K=8", "plan.unit is sm90.wgmma.fp8: expected a unit that scales its operands"},
    {"linear_wgrad recipe=none plan=unit=sm90.wgmma.f16,slices=2x64,merge=sequential_output splits=200,4 N=8 K=8",
     "plan is unit=sm90.wgmma.f16,slices=2x64,merge=sequential_output: expected slices that cover a contraction of 200"},
    {"linear_wgrad recipe=none plan=unit=sm90.wgmma.f16,epilogue=reduce_add accumulate=1 splits=4 N=8 K=8",
     "plan is unit=sm90.wgmma.f16,epilogue=reduce_add: expected a plan that does not add in memory"},
    {"grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,epilogue=reduce_add d_type=f32 splits=4 N=8 K=8", "beta is 0: expected 1 with a plan that adds"},
    {"splits_to_offsets splits=1 stride=0", "stride is 0: expected an integer of at least 1"},
    {"splits_to_offsets_multi splits=1 outputs=1:i16", "outputs is 1:i16: expected STRIDE:TYPE"},
    {"splits_to_offsets_2d first=1,2 last=1", "last is 1 values: expected as many as first has, 2"},
    {"scenario recipe=fp8_block steps=forward splits=4 N=8 K=16", "replay is not given: expected scenario to have replay=..."},
    {"scenario recipe=fp8_block steps=forwards splits=4 N=8 K=16 replay=2", "steps is forwards: expected one of quantize weights gradients forward dgrad "},
    {"scenario recipe=fp8_block steps=forward//dgrad splits=4 N=8 K=16 replay=2", "steps is forward//dgrad: expected 1 to 64 steps, commas between calls"},
    {"scenario recipe=fp8_block steps=forward,,dgrad splits=4 N=8 K=16 replay=2", "steps is : expected one of"},
    {"scenario recipe=fp8_block steps=/dgrad splits=4 N=8 K=16 replay=2", "steps is /dgrad: expected 1 to 64 steps"},
    {"scenario recipe=none steps=weights splits=4 N=8 K=16 replay=2", "steps is weights: expected no quantization with recipe=none"},
    {"scenario recipe=none steps=forward noop=0 splits=4 N=8 K=16 replay=2", "noop is 0: expected to be given only with recipe=tensor_current"},
    {"scenario recipe=fp8_block steps=forward splits=4 N=8 K=16 replay=2:noop", "replay is 2:noop: expected a change of noop only where the case has noop"},
    {"scenario recipe=fp8_block steps=forward order=streams splits=4 N=8 K=16 replay=2", "order is streams: expected to be given only with modules=2"},
    {"scenario recipe=nvfp4 steps=TN splits=16 N=8 K=16 replay=2", "N is 8: expected a multiple of 16 with kind=nvfp4"},
    {"scenario recipe=nvfp4 steps=wgrad x_type=f16 splits=16 N=16 K=16 replay=2", "x_type is f16: expected bf16 with recipe=nvfp4"},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(All, BadLine, testing::ValuesIn(kBad));

// A random value of a key, mostly well formed.
std::string random_value(const KeySchema& key, std::mt19937& random) {
  const auto pick = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  const auto list = [&](int most) {
    constexpr const char* kItems[] = {"0", "16", "128", "3x32", "one(4,64,2)", "zipf(5,160,3)", "2x0"};
    std::string text = kItems[pick(7)];
    for (int i = pick(most); i > 0; --i) text += std::string(",") + kItems[pick(7)];
    return text;
  };
  switch (key.kind) {
    case ValueKind::choice: {
      const auto words = words_of(key.allowed);
      return std::string(words[static_cast<std::size_t>(pick(static_cast<int>(words.size())))]);
    }
    case ValueKind::integer: {
      if (!key.allowed.empty()) return std::string(words_of(key.allowed)[static_cast<std::size_t>(pick(2))]);
      return std::to_string(16 * pick(20) + (key.minimum > 0 ? 1 : 0));
    }
    case ValueKind::real:
      return std::vector<std::string>{"0", "1", "0.01", "1e-30", "-2.5", "0.5"}[static_cast<std::size_t>(pick(6))];
    case ValueKind::reals: return std::vector<std::string>{"0", "1", "0.25", "-3", "1,2"}[static_cast<std::size_t>(pick(5))];
    case ValueKind::splits:
    case ValueKind::dims: return list(4);
    case ValueKind::outputs:
      return std::vector<std::string>{"1:i64", "7:i32:inclusive,0:i64", "128:i64:inclusive"}[static_cast<std::size_t>(pick(3))];
    case ValueKind::replay: return std::vector<std::string>{"3", "16:data", "4:splits,data"}[static_cast<std::size_t>(pick(3))];
    case ValueKind::preset:
      return std::vector<std::string>{"deepgemm", "torchao.mx_floor", "nvfp4.te"}[static_cast<std::size_t>(pick(3))];
    case ValueKind::block: return std::vector<std::string>{"1x128", "allx1", "16x16", "usual"}[static_cast<std::size_t>(pick(4))];
    case ValueKind::plan:
      return std::vector<std::string>{"cublaslt.sm90.bf16", "unit=sm90.wgmma.fp8,promote=128,association=rows_first",
                                      "promote=32,unit=sm90.wgmma.fp8"}[static_cast<std::size_t>(pick(3))];
    case ValueKind::steps:
      return std::vector<std::string>{"forward", "dgrad,wgrad", "weights,forward/dgrad/wgrad",
                                      "TN,NN/NT"}[static_cast<std::size_t>(pick(4))];
  }
  return "";
}

TEST(CaseLine, RoundTripsThroughItsText) {
  std::mt19937 random(2024);
  for (const OpSchema& op : case_schema()) {
    int accepted = 0;
    for (int attempt = 0; attempt < 60000 && accepted < 300; ++attempt) {
      std::string text(op.op);
      for (const KeySchema& key : op.keys) {
        const bool wanted = key.fallback == "required" || random() % 5 == 0;
        if (wanted) text += " " + std::string(key.key) + "=" + random_value(key, random);
      }
      CaseLine line;
      try {
        line = parse_case_line(text);
      } catch (const InvalidArgument&) {
        continue;  // keys that do not go together
      }
      ++accepted;
      ASSERT_EQ(parse_case_line(to_text(line)), line) << text << "\n" << to_text(line);
      ASSERT_EQ(to_text(parse_case_line(to_text(line))), to_text(line));
      // Every value that holds by default may be written out without changing the case.
      for (const KeySchema& key : op.keys) {
        if (line.has(key.key)) {
          ASSERT_EQ(with(line, key.key, line.text(key.key)), line) << key.key << " of " << to_text(line);
        }
      }
    }
    EXPECT_GE(accepted, 50) << op.op;
  }
}

TEST(CaseLine, ReadsValuesInEffect) {
  const CaseLine line = parse_case_line("grouped_gemm kind=mxfp8 splits=2x128,0 N=256 K=384 alpha=1,2,4 replay=16:data,splits");
  EXPECT_EQ(line.text("layout"), "TN");
  EXPECT_EQ(line.text("arch"), "sm100");
  EXPECT_EQ(line.text("scale_layout"), "swizzled");
  EXPECT_EQ(line.integer("K"), 384);
  EXPECT_EQ(line.reals("alpha"), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(line.splits(), (std::vector<std::int64_t>{128, 128, 0}));
  EXPECT_TRUE(line.has("beta"));
  EXPECT_FALSE(parse_case_line("quantize recipe=mxfp8 R=1 K=1").has("splits"));
  EXPECT_THROW(line.text("recipe"), InvalidArgument);
  const ReplayPlan plan = replay_plan(line);
  EXPECT_EQ(plan.count, 16);
  EXPECT_TRUE(plan.data && plan.splits && !plan.scales && !plan.noop);
  EXPECT_EQ(check_kind(line), CheckKind::bits);
  EXPECT_EQ(check_kind(with(line, "data", "integers")), CheckKind::order_free);
  EXPECT_EQ(check_kind(with(line, "check", "bound")), CheckKind::bound);
  EXPECT_EQ(with(with(line, "seed", "9"), "seed", ""), line);
}

// A layer's configuration, the case lines of its steps, scenarios and the frameworks' recipes have the same defaults.
TEST(CaseLine, PowersOfTwoAreOnAsInTheLayersConfiguration) {
  for (const std::string recipe : {"tensor_current", "fp8_block"}) {
    LinearConfig config;
    config.recipe = linear_recipe_named(recipe == "fp8_block" ? "block" : recipe).value();
    EXPECT_EQ(config.powers_of_two(), recipe == "fp8_block");
    for (const std::string op : {"linear_forward", "linear_dgrad", "linear_wgrad", "scenario"}) {
      const std::string steps = op == "scenario" ? " steps=forward replay=2:data" : "";
      const CaseLine line = parse_case_line(op + " recipe=" + recipe + steps + " splits=16 N=16 K=16");
      EXPECT_EQ(line.integer("pow2") == 1, config.powers_of_two()) << op << " " << recipe;
    }
    for (const bool set : {false, true}) {
      config.force_pow_2_scales = set;
      EXPECT_EQ(config.powers_of_two(), set);
    }
  }
}

TEST(CaseLine, SplitsOfZipfKeepTheSumAndTheShape) {
  for (const std::int64_t groups : {1, 2, 64, 1024}) {
    for (const std::int64_t rows : {0, 1, 4096, 65537}) {
      const std::vector<std::int64_t> splits = zipf_splits(groups, rows, 5);
      ASSERT_EQ(splits.size(), static_cast<std::size_t>(groups));
      EXPECT_EQ(std::accumulate(splits.begin(), splits.end(), std::int64_t{0}), rows);
      std::vector<std::int64_t> sorted = splits;
      std::sort(sorted.rbegin(), sorted.rend());
      EXPECT_GE(sorted.back(), 0);
      if (rows == 4096 && groups == 64) {
        EXPECT_NEAR(static_cast<double>(sorted[1]) / static_cast<double>(sorted[3]), 2.0, 0.02);  // rank 2 : rank 4
      }
    }
  }
  EXPECT_NE(zipf_splits(16, 1024, 1), zipf_splits(16, 1024, 2));
}

TEST(CaseLine, NamesAreDistinctAndReadable) {
  const CaseLine line = parse_case_line("quantize recipe=block_1x128 x_type=f16 splits=1,2 K=8 data=ties");
  EXPECT_EQ(name_of(line).substr(0, name_of(line).rfind('/')), "quantize/block_1x128/f16/e4m3/grouped/ties");
  std::set<std::string> names;
  for (int seed = 0; seed < 1000; ++seed) names.insert(name_of(with(line, "seed", std::to_string(seed))));
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_EQ(name_of(parse_case_line("grouped_gemm kind=fp8_per_tensor layout=NN dy_type=e5m2 splits=1 N=1 K=1")).substr(0, 37),
            "grouped_gemm/tensor/NN/e5m2/bf16/unif");
}

TEST(CaseSchema, DescribesEveryKeyOfEveryOp) {
  for (const OpSchema& op : case_schema()) {
    const std::string text = describe_keys(op);
    for (const KeySchema& key : op.keys) {
      EXPECT_FALSE(key.help.empty()) << op.op << " " << key.key;
      EXPECT_NE(("\n" + text).find("\n  " + std::string(key.key) + "="), std::string::npos) << op.op << " " << key.key;
    }
  }
  EXPECT_EQ(op_named("swizzle").op, "swizzle");
  try {
    op_named("quantise");
    FAIL() << "quantise is not an op";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean quantize?"), std::string::npos) << error.what();
  }
}

// Conditions and defaults in the table are text: without this test a mistake shows only when a line uses it.
TEST(CaseSchema, ConditionsNameKeysAndValuesThatExist) {
  for (const OpSchema& op : case_schema()) {
    std::set<std::string_view> seen;
    for (const KeySchema& key : op.keys) {
      EXPECT_TRUE(seen.insert(key.key).second) << "twice: " << key.key;
      std::vector<std::string> conditions;
      for (const auto each : words_of(key.only_with, ';')) conditions.emplace_back(each);
      const auto clauses = words_of(key.fallback, ';');
      for (std::size_t i = 1; i < clauses.size(); ++i) conditions.emplace_back(clauses[i].substr(0, clauses[i].find(':')));
      for (const std::string& condition : conditions) {
        const std::size_t equals = condition.find('='), begin = condition.find_first_not_of(' ');
        const KeySchema* other = find_key(op, std::string_view(condition).substr(begin, equals - begin));
        ASSERT_NE(other, nullptr) << op.op << " " << key.key << ": " << condition;
        const auto allowed = words_of(other->allowed);
        for (const auto word : words_of(std::string_view(condition).substr(equals + 1), '|')) {
          EXPECT_NE(std::find(allowed.begin(), allowed.end(), word), allowed.end()) << op.op << " " << key.key << ": " << word;
        }
      }
      if (key.kind == ValueKind::choice && key.fallback != "required" && key.fallback != "none") {
        const auto allowed = words_of(key.allowed);
        EXPECT_NE(std::find(allowed.begin(), allowed.end(), clauses[0]), allowed.end()) << op.op << " " << key.key;
      }
    }
  }
}

TEST(CaseSchema, SaysWhatEveryValueLooksLike) {
  for (const OpSchema& op : case_schema()) {
    for (const KeySchema& key : op.keys) EXPECT_NE(value_text(key), "") << op.op << " " << key.key;
  }
}

}  // namespace
}  // namespace assay::conformance
