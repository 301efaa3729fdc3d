// Words of case lines that were renamed: the former words are still read, and the names of cases are still made of them.

#include "conformance/cases/former_words.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Lines and names that a build before the change of words printed.
struct Renamed {
  const char *former, *present, *name;
};
// clang-format off
constexpr Renamed kRenamed[] = {
    {"splits_to_offsets_2d first=1,2,3 last=4,5,6 itype=i32", "splits_to_offsets_2d first=1,2,3 last=4,5,6 x_type=i32",
     "splits_to_offsets_2d/i32/929cf527"},
    {"grouped_gemm kind=tensor splits=17,0,33 N=24 K=288 data=clustered seed=42",
     "grouped_gemm kind=fp8_per_tensor splits=17,0,33 N=24 K=288 data=clustered seed=42", "grouped_gemm/tensor/TN/e4m3/bf16/clustered/64f02ca7"},
    {"grouped_gemm kind=block dtype_d=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45",
     "grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45",
     "grouped_gemm/block/TN/e4m3/f32/block_scales/41982012"},
    {"linear_wgrad recipe=block accumulate=1 splits=128,0,20 N=24 K=40 seed=68",
     "linear_wgrad recipe=fp8_block accumulate=1 splits=128,0,20 N=24 K=40 seed=68", "linear_wgrad/block/bf16/e4m3/f32/uniform/37abb9db"},
    {"scenario recipe=block steps=TN,NN,NT workspace=shared splits=9,0,17 N=24 K=40 seed=402 replay=4:data,splits,scales",
     "scenario recipe=fp8_block steps=TN,NN,NT workspace=shared splits=9,0,17 N=24 K=40 seed=402 replay=4:data,splits,scales",
     "scenario/block/bf16/e4m3/f32/TN,NN,NT/uniform/replay/4f50dbdc"},
};
// clang-format on

TEST(FormerWords, ReadAsTheSameCaseUnderTheNameThatItHad) {
  for (const Renamed& each : kRenamed) {
    const CaseLine line = parse_case_line(each.former);
    EXPECT_EQ(to_text(line), each.present);
    EXPECT_EQ(parse_case_line(each.present), line);
    EXPECT_EQ(name_of(line), each.name);
    EXPECT_EQ(former_text(each.present), each.former);
    EXPECT_EQ(former_text(each.former), each.former);
    EXPECT_EQ(present_text(each.former), each.present);
    EXPECT_EQ(present_text(each.present), each.present);
  }
  EXPECT_EQ(present_text("transmogrify kind=block"), "transmogrify kind=block") << "no op";
}

TEST(FormerWords, AreNoWordsOfOtherOps) {
  EXPECT_THROW(parse_case_line("quantize recipe=block R=8 K=8"), InvalidArgument);
  EXPECT_THROW(parse_case_line("quantize recipe=fp8_block R=8 K=8"), InvalidArgument);
  EXPECT_THROW(parse_case_line("grouped_gemm kind=bf16 itype=e5m2 splits=8 N=8 K=8"), InvalidArgument)
      << "x_type of a product had this name always";
  EXPECT_THROW(parse_case_line("grouped_dbias itype=f32 x_type=f32 splits=8 K=8"), InvalidArgument) << "one key, given twice";
}

// Backends and fixtures know attributes by the former words.
TEST(FormerWords, AreThoseOfAttributes) {
  const auto product = generate(parse_case_line("grouped_gemm kind=fp8_block d_type=f32 splits=8 N=16 K=16"));
  EXPECT_EQ(std::get<std::string>(product.attributes.at("kind")), "block");
  EXPECT_EQ(std::get<std::string>(product.attributes.at("dtype_d")), "f32");
  EXPECT_EQ(product.attributes.count("d_type") + product.attributes.count("x_type"), 0u);
  const auto tensor = generate(parse_case_line("grouped_gemm kind=fp8_per_tensor splits=8 N=16 K=16"));
  EXPECT_EQ(std::get<std::string>(tensor.attributes.at("kind")), "tensor");
  const auto layer = generate(parse_case_line("linear_wgrad recipe=fp8_block x_type=f16 d_type=bf16 splits=8 N=16 K=16"));
  EXPECT_EQ(std::get<std::string>(layer.attributes.at("recipe")), "block");
  EXPECT_EQ(std::get<std::string>(layer.attributes.at("itype")), "f16");
  EXPECT_EQ(std::get<std::string>(layer.attributes.at("dtype_d")), "bf16");
  const auto values = generate(parse_case_line("dequantize recipe=mxfp8 d_type=f16 R=32 K=32"));
  EXPECT_EQ(std::get<std::string>(values.attributes.at("dtype_d")), "f16");
}

TEST(FormerWords, SelectTheCasesThatTheySelected) {
  const std::vector<CaseLine> cases = catalogue(Profile::smoke);
  for (const auto& [former, present] : {std::pair("kind=tensor", "kind=fp8_per_tensor"),
                                        {"kind=block", "kind=fp8_block"},
                                        {"itype=f16", "x_type=f16"},
                                        {"dtype_d=f32", "d_type=f32"},
                                        {"grouped_gemm kind=block dtype_d=f32", "grouped_gemm kind=fp8_block d_type=f32"}}) {
    const Selection by_former = select(cases, {former}), by_present = select(cases, {present});
    EXPECT_FALSE(by_former.cases.empty()) << former;
    EXPECT_EQ(by_former.cases, by_present.cases) << former;
  }
  std::set<std::string> ops;
  for (const CaseLine& each : select(cases, {"recipe=block"}).cases) ops.insert(each.op);
  EXPECT_TRUE(ops.count("quantize") == 1 && ops.count("linear_forward") == 1) << "block_1x128 and the layer's block";
}

// Every entry of the table has a word of the present schema, and a former word that is not in it.
TEST(FormerWords, NameWordsOfTheSchema) {
  for (const FormerKey& each : former_keys()) {
    int ops = 0;
    for (const OpSchema& op : case_schema()) {
      ops += op.op != each.not_of && find_key(op, each.key) != nullptr;
      EXPECT_EQ(find_key(op, each.former), nullptr) << op.op;
    }
    EXPECT_GT(ops, 0) << each.key;
  }
  for (const FormerValue& each : former_values()) {
    for (const std::string_view op : words_of(each.ops)) {
      ASSERT_NE(find_op(op), nullptr) << op;
      const KeySchema* key = find_key(*find_op(op), each.key);
      ASSERT_NE(key, nullptr) << op << " " << each.key;
      const std::vector<std::string_view> allowed = words_of(key->allowed);
      EXPECT_EQ(std::count(allowed.begin(), allowed.end(), each.value), 1) << op << " " << each.value;
      EXPECT_EQ(std::count(allowed.begin(), allowed.end(), each.former), 0) << op << " " << each.former;
    }
  }
}

}  // namespace
}  // namespace assay::conformance
