// Weights of E2M1 beside FP8: every value of E2M1 is one of E4M3, so that the product is that of the weights as E4M3.

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

// By magnitude: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
constexpr std::uint8_t kAsE4m3[] = {0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C};

Tensor product(Case problem, Layer layer) {
  Request request = Request::of(problem);
  request.out.clear();
  const OutputSpec spec = outputs_of(request).at(0);
  Tensor d = make_tensor(spec.type, spec.shape);
  request.out["d"] = {d.type, d.shape, d.bytes.data(), static_cast<std::int64_t>(d.bytes.size())};
  answer(request, layer);
  return d;
}

class Fp4Weights : public testing::TestWithParam<const char*> {};

TEST_P(Fp4Weights, GiveTheBitsOfTheSameValuesInE4m3) {
  const Case packed = generate(parse_case_line(GetParam()));
  Case wide = packed;
  const Tensor& codes = packed.in.at("w_rowwise_data");
  ASSERT_EQ(codes.type, Format::e2m1);
  Tensor as_bytes = make_tensor(Format::e4m3, {codes.shape[0], codes.shape[1] * 2});
  for (std::size_t i = 0; i < codes.bytes.size(); ++i) {
    for (const int half : {0, 1}) {
      const auto code = static_cast<std::uint8_t>(static_cast<std::uint8_t>(codes.bytes[i]) >> (4 * half) & 0xF);
      as_bytes.bytes[2 * i + static_cast<std::size_t>(half)] = static_cast<std::byte>(kAsE4m3[code & 7] | (code & 8) << 4);
    }
  }
  wide.in["w_rowwise_data"] = as_bytes;
  for (const Layer layer : {Layer::fast, Layer::scalar}) EXPECT_EQ(product(packed, layer).bytes, product(wide, layer).bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Fp4Weights,
    testing::Values(
        "grouped_gemm kind=mxfp8 w_type=e2m1 d_type=f32 splits=17,0,33 N=32 K=96 data=clustered seed=1",
        "grouped_gemm kind=mxfp8 w_type=e2m1 x_type=e5m2 arch=sm120 splits=17,0,33 N=48 K=272 scales=edge bias=1 seed=2",
        "grouped_gemm kind=mxfp8 w_type=e2m1 scale_layout=compact d_type=f16 splits=5,9 N=16 K=34 data=every_code beta=1 seed=3",
        "grouped_gemm kind=mxfp8 w_type=e2m1 d_type=f32 splits=17,0,33 N=32 K=160 grouped_layout=psum alignment=16 seed=4"));

TEST(Fp4Weights, AreTakenWhereTheSourceHasThem) {
  const char* rest = " w_type=e2m1 splits=16 N=16 K=32";
  for (const char* kind : {"kind=fp8_block", "kind=fp8_per_tensor", "kind=mxfp8 layout=NN"})
    EXPECT_THROW(parse_case_line(std::string("grouped_gemm ") + kind + rest), InvalidArgument) << kind;
  EXPECT_THROW(parse_case_line("grouped_gemm kind=mxfp8 w_type=e2m1 splits=16 N=16 K=33"), InvalidArgument);
  Case turned = generate(parse_case_line("grouped_gemm kind=mxfp8 layout=NN splits=16 N=32 K=32"));
  Tensor& w = turned.in.at("w_columnwise_data");
  w = make_tensor(Format::e2m1, {32, 16});
  EXPECT_THROW(product(turned, Layer::fast), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance
