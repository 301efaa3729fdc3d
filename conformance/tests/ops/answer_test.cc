// Every op of the reference, called through case lines: the lists that golden fixtures are made from, and a list of corner cases.
// Each line must generate, both layers must give the same answer, and the bytes stated as written must be those that two poisons
// show to be written.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

using Outputs = std::map<std::string, Tensor>;

// Corner cases that the fixtures leave out.
constexpr const char* kLines[] = {
    "quantize recipe=tensor_current splits=3,0,5 K=7 otype=e5m2 direction=rowwise extra_rows=2 seed=1",
    "quantize recipe=tensor_current splits=3,0,5 K=7 direction=columnwise seed=2",
    "quantize recipe=tensor_current R=1 K=1 noop=1 seed=3",
    "quantize recipe=tensor_current R=5 K=9 noop=0.5 dbias=1 seed=4",
    "quantize recipe=tensor_current splits=0,0 K=16 dbias=1 seed=5",
    "quantize recipe=tensor_delayed x_type=f16 splits=5,9 K=3 direction=columnwise scales=pow2 seed=6",
    "quantize recipe=tensor_delayed R=4 K=4 scales=edge zero_sign=positive seed=7",
    "quantize recipe=block_1x128 splits=1,0,5 K=3 direction=rowwise seed=8",
    "quantize recipe=block_1x128 splits=1,0,5 K=3 direction=columnwise dbias=1 extra_rows=4 seed=9",
    "quantize recipe=block_1x128 R=2 K=130 noop=1 seed=10",
    "quantize recipe=block_1x128 x_type=f32 otype=e5m2 R=3 K=129 data=nans seed=11",
    "quantize recipe=block_128x128 splits=127,2 K=131 direction=columnwise seed=12",
    "quantize recipe=block_128x128 x_type=f16 R=2 K=5 direction=rowwise data=zeros seed=13",
    "quantize recipe=block_128x128 splits=129,130,1 K=129 pow2=1 eps=0.5 extra_rows=1 data=near_underflow seed=14",
    "quantize recipe=mxfp8 splits=1,0,33 K=31 direction=rowwise seed=15",
    "quantize recipe=mxfp8 splits=1,0,33 K=31 direction=columnwise scale_layout=swizzled extra_rows=3 seed=16",
    "quantize recipe=mxfp8 two_dimensional=1 otype=e5m2 R=33 K=65 noop=2 seed=17",
    "quantize recipe=mxfp8 R=33 K=65 noop=1 scale_layout=swizzled seed=18",
    "quantize recipe=nvfp4 splits=2,0,30 K=18 direction=columnwise scale_layout=swizzled seed=19",
    "quantize recipe=nvfp4 splits=2,0,30 K=18 direction=rowwise amax=given extra_rows=2 seed=20",
    "quantize recipe=nvfp4 R=18 K=34 hadamard=1 sign_mask=65535 direction=columnwise seed=21",
    "quantize recipe=nvfp4 R=16 K=16 noop=1 two_dimensional=1 seed=22",
    "quantize recipe=nvfp4 splits=16,16 K=16 stochastic=1 two_dimensional=1 seed=23",
    "quantize recipe=nvfp4 x_type=f16 R=16 K=32 four_over_six=mae data=ties seed=24",
    "grouped_gemm kind=bf16 splits=0,0 N=3 K=5 seed=25",
    "grouped_gemm kind=bf16 splits=2,0,1 N=3 K=0 bias=1 seed=26",
    "grouped_gemm kind=bf16 layout=NT splits=0,3,0 N=5 K=7 beta=0.5 seed=27",
    "grouped_gemm kind=bf16 splits=3 N=0 K=4 seed=28",
    "grouped_gemm kind=f16 layout=NN splits=5,6 N=17 K=3 extra_rows=4 arch=sm80 d_type=f16 seed=29",
    "grouped_gemm kind=bf16 layout=TN splits=5,6 N=17 K=33 extra_rows=4 arch=sm100 alpha=0.5,2 beta=0,1 seed=30",
    "grouped_gemm kind=bf16 layout=TN splits=5,6 N=17 K=33 arch=sm120 seed=31",
    "grouped_gemm kind=fp8_per_tensor layout=NT x_type=e5m2 dy_type=e4m3 splits=3,0,5 N=9 K=11 scales=edge seed=32",
    "grouped_gemm kind=fp8_per_tensor layout=TN w_type=e5m2 splits=3,5 N=9 K=40 arch=sm89 seed=33",
    "grouped_gemm kind=fp8_per_tensor layout=NN splits=3,5 N=9 K=40 arch=sm100 bias=0 extra_rows=1 seed=34",
    "grouped_gemm kind=fp8_block layout=TN splits=3,0,5 N=130 K=3 bias=1 d_type=f16 seed=35",
    "grouped_gemm kind=fp8_block layout=NN weight_block=1x128 splits=3,5 N=130 K=3 seed=36",
    "grouped_gemm kind=mxfp8 layout=NT splits=3,0,33 N=5 K=7 scale_layout=compact seed=37",
    "grouped_gemm kind=mxfp8 layout=NN splits=3,0,33 N=33 K=7 extra_rows=2 arch=sm120 seed=38",
    "grouped_gemm kind=nvfp4 layout=NN splits=3,4 N=32 K=16 scale_layout=compact seed=39",
    "grouped_gemm kind=nvfp4 layout=NT splits=0,16 N=16 K=32 beta=1 seed=40",
    "splits_to_offsets splits=5",
    "splits_to_offsets splits=0,0 stride=3",
    "splits_to_offsets_multi splits=4,0,2 outputs=3:i32:inclusive",
    "splits_to_offsets_2d first=0 last=9",
    "delayed_update tensors=1 length=1",
    "delayed_update tensors=3 length=2 bulk=0 algorithm=most_recent otype=e5m2 margin=1 seed=45",
    "dequantize recipe=tensor_delayed direction=columnwise splits=3,0,4 K=5 d_type=f16 seed=46",
    "dequantize recipe=block_1x128 splits=3,0,4 K=5 extra_rows=3 seed=47",
    "dequantize recipe=block_128x128 direction=columnwise R=129 K=130 otype=e5m2 seed=48",
    "dequantize recipe=mxfp8 scale_layout=swizzled R=5 K=3 seed=49",
    "dequantize recipe=nvfp4 scale_layout=swizzled splits=2,0,4 K=6 extra_rows=2 e4m3_max=256 seed=50",
    "swizzle recipe=nvfp4 splits=1,0,2 K=16 seed=51",
    "unswizzle recipe=nvfp4 direction=columnwise R=34 K=6 seed=52",
    "permute R=5 topk=3 experts=2 dropped=4 alignment=4 K=7 seed=60",
    "permute x_type=e4m3 token_scales=f32 R=9 topk=1 K=130 seed=61",
    "permute x_type=f32 token_scales=e8m0 R=3 topk=4 dropped=12 K=33 seed=62",
    "permute R=0 K=8 alignment=8 seed=63",
    "unpermute R=9 topk=4 dropped=7 K=33 weights=1 data=every_special seed=64",
    "unpermute x_type=f16 R=9 topk=4 dropped=7 K=33 weights=1 sums=in_type seed=65",
    "unpermute x_type=f32 R=9 topk=4 alignment=3 K=33 weights=1 sums=f32 data=full_exponent seed=66",
    "unpermute R=4 topk=2 dropped=8 K=5 sums=in_type seed=67",
    "unpermute R=9 topk=4 dropped=7 K=33 weights=1 sums=fma_in_type data=full_exponent seed=68",
    "unpermute x_type=f16 R=9 topk=4 K=33 weights=1 sums=fma_in_type data=every_special seed=69",
    "unpermute x_type=f32 R=9 topk=4 K=33 weights=1 sums=fma_in_type data=near_underflow seed=70",
    "quantize_by_rule preset=deepgemm splits=1,0,70 K=130 extra_rows=2 seed=57",
    "quantize_by_rule preset=nvfp4.te_row_scaled R=5 K=32 data=every_special seed=58",
    "quantize_by_rule preset=torchao.mx_even otype=e2m3 storage=packed transposed=1 splits=4,0,8 K=40 seed=59",
    "grouped_dbias splits=0 K=3",
    "grouped_dbias x_type=f32 splits=1,0,70 K=1 accumulate=1 extra_rows=2 seed=54",
    "linear_forward recipe=none x_type=f16 splits=3,0,5 N=7 K=9 extra_rows=2 seed=55",
    "linear_forward recipe=none arch=sm80 splits=3,0,5 N=7 K=9 bias=1 data=integers seed=56",
    "linear_forward recipe=tensor_current x_type=f16 pow2=1 eps=0.25 splits=3,0,5 N=7 K=33 extra_rows=1 noop=0 seed=57",
    "linear_forward recipe=tensor_current splits=3,0,5 N=7 K=33 noop=1 otype=e5m2 seed=58",
    "linear_forward recipe=tensor_delayed splits=3,0,5 N=7 K=33 bias=1 noop=1 seed=59",
    "linear_forward recipe=tensor_delayed splits=3,0,5 N=7 K=33 noop=0.5 arch=sm100 seed=60",
    "linear_forward recipe=fp8_block splits=1,127,2 N=130 K=129 noop=0 pow2=0 bias=1 seed=61",
    "linear_forward recipe=fp8_block splits=0,129 N=5 K=7 otype=e5m2 eps=0.5 seed=62",
    "linear_forward recipe=mxfp8 splits=3,0,33 N=7 K=40 noop=1 seed=63",
    "linear_forward recipe=mxfp8 splits=3,0,33 N=7 K=40 noop=2 bias=1 extra_rows=3 seed=64",
    "linear_forward recipe=nvfp4 splits=3,0,17 N=6 K=20 noop=1 seed=65",
    "linear_forward recipe=nvfp4 x_type=f16 splits=3,0,17 N=6 K=20 noop=0 seed=66",
    "linear_dgrad recipe=none splits=1,0,2 N=3 K=2 extra_rows=1 bias=1 seed=67",
    "linear_dgrad recipe=tensor_current arch=sm89 splits=4,0,1 N=33 K=6 seed=68",
    "linear_dgrad recipe=tensor_delayed grad_otype=e5m2 splits=4,0,1 N=150 K=6 bias=1 extra_rows=5 seed=69",
    "linear_dgrad recipe=fp8_block x_type=f16 pow2=0 splits=4,0,1 N=150 K=6 seed=70",
    "linear_dgrad recipe=mxfp8 grad_otype=e5m2 splits=4,0,35 N=40 K=6 arch=sm120 bias=1 seed=71",
    "linear_dgrad recipe=nvfp4 x_type=f16 splits=3,0,17 N=18 K=6 extra_rows=1 seed=72",
    "linear_wgrad recipe=none x_type=f16 d_type=f16 accumulate=1 deferred=1 splits=0,3,0 N=5 K=4 bias=1 seed=73",
    "linear_wgrad recipe=tensor_current d_type=bf16 splits=0,3,150 N=5 K=4 extra_rows=3 seed=74",
    "linear_wgrad recipe=tensor_current x_type=f16 pow2=1 deferred=1 accumulate=1 splits=0,3,9 N=5 K=4 seed=75",
    "linear_wgrad recipe=tensor_delayed arch=sm100 splits=0,3,9 N=5 K=4 bias=1 deferred=1 extra_rows=1 seed=76",
    "linear_wgrad recipe=fp8_block otype=e5m2 pow2=0 splits=1,127,129 N=5 K=4 d_type=bf16 accumulate=1 seed=77",
    "linear_wgrad recipe=fp8_block deferred=1 splits=0,0 N=5 K=4 bias=1 seed=78",
    "linear_wgrad recipe=mxfp8 splits=1,0,33 N=5 K=4 accumulate=1 grad_otype=e5m2 bias=1 seed=79",
    "linear_wgrad recipe=nvfp4 sign_mask=45576 splits=2,0,18 N=5 K=4 accumulate=1 deferred=1 extra_rows=3 seed=80",
    "linear_wgrad recipe=nvfp4 sign_mask=1 splits=16 N=5 K=4 d_type=bf16 bias=1 arch=sm120 seed=81",
};

struct Line {
  std::string from, text;
};
void PrintTo(const Line& line, std::ostream* out) { *out << line.from << ": " << line.text; }

// The lists of golden/cases without their comments, then those above.
std::vector<Line> every_line() {
  std::vector<std::filesystem::path> lists;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_GOLDEN_CASES)) {
    if (entry.path().extension() == ".txt") lists.push_back(entry.path());
  }
  std::sort(lists.begin(), lists.end());
  std::vector<Line> lines;
  for (const auto& list : lists) {
    std::ifstream file(list);
    for (std::string text; std::getline(file, text);) {
      if (!text.empty() && text[0] != '#') lines.push_back({list.filename().string(), text});
    }
  }
  for (const char* text : kLines) lines.push_back({"here", text});
  return lines;
}

std::map<std::string, Tensor> poisoned(const std::vector<OutputSpec>& specs, std::byte poison) {
  Outputs outputs;
  for (const OutputSpec& spec : specs) {
    Tensor tensor = make_tensor(spec.type, spec.shape);
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), poison);
    outputs.emplace(spec.name, std::move(tensor));
  }
  return outputs;
}

Outputs answered(Case asked, const std::vector<OutputSpec>& specs, Layer layer, std::byte poison) {
  asked.out = poisoned(specs, poison);
  const std::map<std::string, Tensor> in = asked.in;
  answer(Request::of(asked), layer);
  for (const auto& [name, tensor] : in) EXPECT_TRUE(same_tensor(asked.in.at(name), tensor)) << name << " was changed";
  return asked.out;
}

void expect_same(const Outputs& got, const Outputs& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    const auto& other = got.at(name).bytes;
    const auto at = std::mismatch(tensor.bytes.begin(), tensor.bytes.end(), other.begin()).first - tensor.bytes.begin();
    EXPECT_EQ(at, static_cast<std::ptrdiff_t>(tensor.bytes.size())) << what << ": " << name << " differs first at that byte";
  }
}

constexpr std::byte kPoison{0xA5}, kOtherPoison{0x5A};

class Answer : public testing::TestWithParam<Line> {};

TEST_P(Answer, IsTheSameFromBothLayersAndWritesWhatItSays) {
  const CaseLine line = parse_case_line(GetParam().text);
  Case asked = generate(line);
  const std::vector<OutputSpec> specs = outputs_of(Request::of(asked));
  for (const std::string& wanted : wanted_outputs(line)) {
    const auto named = [&](const OutputSpec& spec) { return spec.name == wanted; };
    EXPECT_EQ(std::count_if(specs.begin(), specs.end(), named), 1) << wanted;
  }

  const Outputs fast = answered(asked, specs, Layer::fast, kPoison);
  const Outputs plain = answered(asked, specs, Layer::scalar, kPoison);
  const Outputs other = answered(asked, specs, Layer::scalar, kOtherPoison);
  expect_same(fast, plain, "fast against scalar");

  // A byte that keeps both poisons was not written; the two poisons have no bit in common.
  asked.out = poisoned(specs, kPoison);
  const auto written = written_bytes(Request::of(asked));
  ASSERT_EQ(written.size(), specs.size());
  for (const auto& [name, mask] : written) {
    std::vector<std::uint8_t> seen(plain.at(name).bytes.size());
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = plain.at(name).bytes[i] == other.at(name).bytes[i];
    EXPECT_EQ(mask, seen) << name;
  }
  EXPECT_NO_THROW(numerics_of(Request::of(asked)));
}

TEST_P(Answer, OfOneOutputIsThatOfAll) {
  const Case asked = generate(parse_case_line(GetParam().text));
  Case copy = asked;
  const std::vector<OutputSpec> specs = outputs_of(Request::of(copy));
  const Outputs all = answered(asked, specs, Layer::fast, kPoison);
  for (const OutputSpec& spec : specs) {
    const Outputs one = answered(asked, {spec}, Layer::fast, kPoison);
    EXPECT_TRUE(same_tensor(one.at(spec.name), all.at(spec.name))) << spec.name;
  }
}

// An unknown attribute or input might change the answer, and an input of the wrong size does not fit: both are refused, and
// nothing is written.
TEST_P(Answer, IsRefusedWhereARequestMakesNoSense) {
  Case good = generate(parse_case_line(GetParam().text));
  const std::vector<OutputSpec> specs = outputs_of(Request::of(good));
  const Outputs before = poisoned(specs, kPoison);
  const auto refused = [&](Case bad, const char* what) {
    if (bad.out.empty()) bad.out = before;
    const Outputs given = bad.out;
    for (const Layer layer : {Layer::fast, Layer::scalar}) {
      EXPECT_ANY_THROW(answer(Request::of(bad), layer)) << what;
      expect_same(bad.out, given, what);
    }
  };
  Case bad = good;
  bad.attributes["colour"] = std::string("blue");
  refused(bad, "an attribute of no meaning");
  bad = good;
  bad.in["colour"] = make_tensor(Format::f32, {1});
  refused(bad, "an input of no meaning");
  // Without one of these a request means something else, and is valid.
  const std::set<std::string> optional = {"noop", "bias",  "splits", "amax",    "columnwise_amax",
                                          "c",    "alpha", "beta",   "reduced", "weights"};
  for (const auto& [name, tensor] : good.in) {
    if (optional.count(name) != 0) continue;
    bad = good;
    bad.in.erase(name);
    refused(bad, ("without in/" + name).c_str());
  }
  for (const OutputSpec& spec : specs) {
    bad = good;
    bad.out = before;
    bad.out[spec.name] = make_tensor(spec.type, {before.at(spec.name).elements() + 1});
    refused(bad, ("out/" + spec.name + " one element too long").c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryLine, Answer, testing::ValuesIn(every_line()), [](const auto& info) {
  const std::string op = info.param.text.substr(0, info.param.text.find(' '));
  return std::to_string(info.index) + "_" + op;
});

TEST(AnswerList, HoldsEveryOpAndEveryLinearRecipe) {
  std::set<std::string> ops, linear;
  for (const Line& line : every_line()) {
    const CaseLine parsed = parse_case_line(line.text);
    ops.insert(parsed.op);
    if (parsed.op.starts_with("linear_")) linear.insert(parsed.op + " " + parsed.text("recipe"));
  }
  std::set<std::string> known;
  for (const std::string_view op : known_ops()) known.emplace(op);
  EXPECT_EQ(ops, known);
  EXPECT_EQ(linear.size(), 18u);
  std::set<std::string> schema;
  for (const OpSchema& op : case_schema()) schema.emplace(op.op);
  EXPECT_EQ(schema.erase("scenario"), 1u);  // several calls, each of another op
  EXPECT_EQ(schema, known) << "case lines and answers know the same ops";
}

// A fixture without an attribute for powers of two means the same as a case line without one.
TEST(AnswerList, PowersOfTwoAreTheRecipesUnlessAFixtureSaysOtherwise) {
  for (const std::string recipe : {"tensor_current", "fp8_block"}) {
    Case asked = generate(parse_case_line("linear_forward recipe=" + recipe + " splits=16,3 N=32 K=48 data=normal seed=5"));
    const std::vector<OutputSpec> specs = outputs_of(Request::of(asked));
    const auto with = [&](std::int64_t pow2) {
      Case each = asked;
      each.attributes["pow2"] = pow2;
      return answered(each, specs, Layer::fast, kPoison);
    };
    const Outputs said = answered(asked, specs, Layer::fast, kPoison);
    asked.attributes.erase("pow2");
    expect_same(answered(asked, specs, Layer::fast, kPoison), said, "unsaid");
    expect_same(with(recipe == "fp8_block" ? 1 : 0), said, "the recipe's own");
    EXPECT_NE(with(0).at("y").bytes, with(1).at("y").bytes) << recipe << ": the option must show";
  }
}

TEST(AnswerList, AnUnknownOpIsNotSupported) {
  Case asked;
  asked.op = "transmogrify";
  EXPECT_THROW(answer(Request::of(asked), Layer::fast), NotSupported);
  EXPECT_THROW(outputs_of(Request::of(asked)), NotSupported);
}

// spec conventions-1.3: the NaN that an accumulating sum stores has no sign and no payload of its own.
TEST(AccumulatedDbias, StoresOneNan) {
  Case asked = generate(parse_case_line("grouped_dbias x_type=f32 accumulate=1 splits=1 K=4 data=integers"));
  constexpr std::uint32_t kBefore[] = {0xFFC1'2345, 0x3F80'0000, 0xFFC1'2345, 0x3F80'0000};
  constexpr std::uint32_t kAdded[] = {0x3F80'0000, 0xFFC0'0777, 0xFFC0'0777, 0x3F80'0000};
  std::memcpy(asked.in.at("dbias").bytes.data(), kBefore, sizeof kBefore);
  std::memcpy(asked.in.at("dy").bytes.data(), kAdded, sizeof kAdded);
  const std::vector<OutputSpec> specs = outputs_of(Request::of(asked));
  for (const Layer layer : {Layer::fast, Layer::scalar}) {
    const Outputs got = answered(asked, specs, layer, kPoison);
    const auto* sums = got.at("dbias").as<std::uint32_t>();
    EXPECT_EQ(std::vector<std::uint32_t>(sums, sums + 4),
              (std::vector<std::uint32_t>{0x7FFF'FFFF, 0x7FFF'FFFF, 0x7FFF'FFFF, 0x4000'0000}));
  }
}

}  // namespace
}  // namespace assay::conformance
