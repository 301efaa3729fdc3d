// Sizes that a file or a caller may give and that no memory holds: every op refuses them with an error that names them, or
// answers without overflow. Under UBSan the loop below ends the program if a product or a sum overflows.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTwo61 = std::int64_t{1} << 61, kTwo62 = std::int64_t{1} << 62;
constexpr std::int64_t kSizes[] = {
    std::numeric_limits<std::int64_t>::min(), -1, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 53, kTwo61, kTwo62, kMax};

Tensor splits_of(std::vector<std::int64_t> values) {
  Tensor tensor = make_tensor(Format::i64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>());
  return tensor;
}

// The text of the error of outputs_of(); "no error" if there is none.
std::string refusal(Case& with) {
  try {
    outputs_of(Request::of(with));
    return "no error";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

bool begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

TEST(HugeSizes, RowsOfAllWeightsPastInt64AreRefused) {
  Case with;
  with.op = "grouped_gemm";
  with.attributes = {{"kind", "bf16"}, {"layout", "TN"}, {"N", kTwo61}, {"K", std::int64_t{4}}};
  with.in["splits"] = splits_of(std::vector<std::int64_t>(8, 0));  // 8 * 2^61 wraps to 0, the rows of `w`
  with.in["x"] = with.in["w"] = make_tensor(Format::bf16, {0, 4});
  const std::string said = refusal(with);
  EXPECT_TRUE(begins(said, "attribute N is 2305843009213693952")) << said;
}

TEST(HugeSizes, ASumOfSplitsPastInt64IsRefused) {
  Case with;
  with.op = "grouped_gemm";
  with.attributes = {{"kind", "tensor"}, {"layout", "TN"}, {"N", std::int64_t{0}}, {"K", std::int64_t{0}}};
  with.in["splits"] = splits_of({kTwo62, kTwo62});
  with.in["x_rowwise_data"] = with.in["w_rowwise_data"] = make_tensor(Format::e4m3, {0, 0});
  with.in["x_rowwise_scale_inv"] = with.in["w_rowwise_scale_inv"] = make_tensor(Format::f32, {2});
  const std::string said = refusal(with);
  EXPECT_TRUE(begins(said, "in/splits is 4611686018427387904: expected a total that fits int64")) << said;
}

TEST(HugeSizes, AGradientOfTheBiasPastInt64IsRefused) {
  Case with;
  with.op = "grouped_dbias";
  with.in["splits"] = splits_of({0, 0, 0, 0});  // 4 * 2^62 wraps to 0
  with.in["dy"].type = Format::bf16;
  with.in["dy"].shape = {0, kTwo62};
  const std::string said = refusal(with);
  EXPECT_TRUE(begins(said, "columns of in/dy is 4611686018427387904")) << said;
}

TEST(HugeSizes, CodesOfTwoAByteArePastInt64) {
  Case with;
  with.op = "grouped_gemm";
  with.attributes = {{"kind", "nvfp4"}, {"layout", "TN"}, {"N", std::int64_t{2}}, {"K", std::int64_t{0}}};
  with.in["splits"] = splits_of({0});
  with.in["x_rowwise_data"].type = Format::e2m1;
  with.in["x_rowwise_data"].shape = {0, kTwo62};  // 2^63 columns
  with.in["x_rowwise_scale_inv"] = make_tensor(Format::e4m3, {0});
  const std::string said = refusal(with);
  EXPECT_TRUE(begins(said, "in/x is 4611686018427387904: expected a number of elements that fits int64")) << said;
}

// One line per op and storage; each integer attribute, split and extent takes each value of kSizes.
constexpr const char* kLines[] = {
    "quantize recipe=tensor_current splits=3,0,5 K=7 dbias=1 seed=1",
    "quantize recipe=block_128x128 R=2 K=5 seed=2",
    "quantize recipe=mxfp8 splits=1,0,33 K=31 scale_layout=swizzled seed=3",
    "quantize recipe=nvfp4 splits=16,16 K=16 amax=given seed=4",
    "dequantize recipe=nvfp4 splits=2,0,4 K=6 seed=5",
    "dequantize recipe=block_1x128 direction=columnwise R=5 K=3 seed=6",
    "swizzle recipe=mxfp8 R=5 K=3 seed=7",
    "unswizzle recipe=nvfp4 direction=columnwise R=34 K=6 seed=8",
    "splits_to_offsets splits=5,0 stride=3",
    "splits_to_offsets_multi splits=4,0,2 outputs=3:i64:inclusive",
    "splits_to_offsets_2d first=0,3 last=9,1",
    "delayed_update tensors=3 length=2 margin=1 seed=9",
    "grouped_dbias splits=5,0 K=3 accumulate=1 seed=10",
    "grouped_gemm kind=bf16 layout=TN splits=0,2 N=3 K=5 beta=0.5 bias=1 seed=11",
    "grouped_gemm kind=fp8_per_tensor layout=NT splits=0,0 N=3 K=5 seed=12",
    "grouped_gemm kind=fp8_block layout=NN splits=3,5 N=130 K=3 seed=13",
    "grouped_gemm kind=mxfp8 layout=TN splits=0,0 N=3 K=0 seed=14",
    "grouped_gemm kind=nvfp4 layout=TN splits=3,4 N=32 K=16 seed=15",
    "linear_forward recipe=fp8_block splits=1,2 N=3 K=9 noop=0 bias=1 seed=16",
    "linear_dgrad recipe=tensor_delayed splits=4,0 N=6 K=6 bias=1 seed=17",
    "linear_wgrad recipe=nvfp4 splits=2,0 N=6 K=4 accumulate=1 seed=18",
};

// Calls everything that computes sizes without memory for outputs.
void ask(Case& with) {
  try {
    Request request = Request::of(with);
    outputs_of(request);
    numerics_of(request);
    written_prefixes(request);
  } catch (const InvalidArgument&) {
  } catch (const NotSupported&) {}
}

class EveryOp : public testing::TestWithParam<const char*> {};

TEST_P(EveryOp, RefusesOrAnswersWhateverASizeIs) {
  Case sound = generate(parse_case_line(GetParam()));
  ASSERT_NO_THROW(outputs_of(Request::of(sound)));
  for (const std::int64_t size : kSizes) {
    for (const auto& [name, value] : sound.attributes) {
      if (!std::holds_alternative<std::int64_t>(value)) continue;
      Case changed = sound;
      changed.attributes[name] = size;
      EXPECT_NO_THROW(ask(changed)) << name << " " << size;
    }
    for (auto& [name, tensor] : sound.in) {
      if (tensor.type == Format::i64) {
        for (std::int64_t i = 0; i < tensor.elements(); ++i) {
          Case changed = sound;
          changed.in[name].as<std::int64_t>()[i] = size;
          EXPECT_NO_THROW(ask(changed)) << name << "[" << i << "] " << size;
          for (std::int64_t j = 0; j < tensor.elements(); ++j) changed.in[name].as<std::int64_t>()[j] = size;
          EXPECT_NO_THROW(ask(changed)) << "all of " << name << " " << size;
        }
      }
      for (std::size_t i = 0; i < tensor.shape.size() && size >= 0;
           ++i) {  // a tensor without elements may have any other extents
        Case changed = sound;
        Tensor& empty = changed.in[name];
        empty.bytes.clear();
        for (std::int64_t& extent : empty.shape) extent = 0;
        if (tensor.shape.size() > 1) empty.shape[i] = size;
        EXPECT_NO_THROW(ask(changed)) << name << " extent " << i << " " << size;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HugeSizes, EveryOp, testing::ValuesIn(kLines));

}  // namespace
}  // namespace assay::conformance
