// Negative scales: the sign of a scale is a sign of the values that it scales, in products and in dequantization, in both layers.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/layout/scale_shape.h"

namespace assay::conformance {
namespace {

Tensor answered(Case problem, const std::string& output, Layer layer) {
  problem.out.clear();
  for (const OutputSpec& spec : outputs_of(Request::of(problem))) {
    if (spec.name != output) continue;
    std::int64_t bytes = bytes_of(spec.type, 1);
    for (const std::int64_t extent : spec.shape) bytes *= extent;
    problem.out[output] = {spec.type, spec.shape, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  }
  answer(Request::of(problem), layer);
  return problem.out.at(output);
}

// Values `begin` to `end` with their signs changed.
void negate(Tensor& tensor, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = bits_of(tensor.type) / 8;
  for (std::int64_t i = begin; i < end; ++i) tensor.bytes[static_cast<std::size_t>((i + 1) * width - 1)] ^= std::byte{0x80};
}

// A product over the splits of `line`, data=integers, whose sums any order gives: with negative scales in every second group of an
// operand, and with negative codes there.
class NegativeScales : public testing::TestWithParam<const char*> {};

TEST_P(NegativeScales, GiveTheProductOfNegativeCodes) {
  const CaseLine line = parse_case_line(GetParam());
  const Case plain = generate(line);
  const std::string layout = line.text("layout");
  const std::string operand = layout == "TN" ? "x_rowwise_" : layout == "NN" ? "dy_rowwise_" : "x_columnwise_";
  const std::int64_t width = line.integer(layout == "NN" ? "N" : "K");
  const std::vector<std::int64_t> splits = line.splits();
  const Recipe recipe = line.text("kind") == "fp8_per_tensor" ? Recipe::tensor_current : Recipe::block_1x128;
  const Direction direction = layout == "NT" ? Direction::columnwise : Direction::rowwise;
  const std::vector<std::int64_t> scales = scale_offsets(recipe, direction, splits, width);
  Case by_scale = plain, by_code = plain;
  std::int64_t row = 0;
  for (std::size_t g = 0; g < splits.size(); ++g) {
    if (g % 2 == 0) {
      negate(by_scale.in.at(operand + "scale_inv"), scales[g], scales[g + 1]);
      negate(by_code.in.at(operand + "data"), row * width, (row + splits[g]) * width);
    }
    row += splits[g];
  }
  const Tensor want = answered(by_code, "d", Layer::scalar);
  ASSERT_NE(want.bytes, answered(plain, "d", Layer::scalar).bytes);
  EXPECT_EQ(answered(by_scale, "d", Layer::fast).bytes, want.bytes);
  EXPECT_EQ(answered(by_scale, "d", Layer::scalar).bytes, want.bytes);
}

INSTANTIATE_TEST_SUITE_P(
    All, NegativeScales,
    testing::Values(
        "grouped_gemm kind=fp8_per_tensor data=integers d_type=f32 splits=16,0,17,5 N=24 K=272 seed=1",
        "grouped_gemm kind=fp8_per_tensor layout=NN data=integers splits=16,0,17,5 N=272 K=24 alpha=-2 beta=1 seed=2",
        "grouped_gemm kind=fp8_per_tensor layout=NT data=integers d_type=f16 splits=16,0,272,5 N=24 K=16 seed=3",
        "grouped_gemm kind=fp8_per_tensor split_accumulator=1 data=integers d_type=f32 splits=16,0,17,5 N=24 K=272 bias=1 seed=4",
        "grouped_gemm kind=fp8_block data=integers d_type=f32 splits=16,0,17,5 N=136 K=272 seed=5",
        "grouped_gemm kind=fp8_block layout=NN data=integers splits=16,0,17,5 N=272 K=24 seed=6",
        "grouped_gemm kind=fp8_block layout=NT data=integers d_type=f32 splits=16,0,272,5 N=24 K=16 beta=1 seed=7",
        "grouped_gemm kind=fp8_block weight_block=1x128 data=integers splits=16,0,17,5 N=24 K=272 seed=8"));

// The same with sums in double, which are exact: every operand has scales of both signs.
TEST(NegativeScales, GiveTheProductThatDoublesGive) {
  const CaseLine line =
      parse_case_line("grouped_gemm kind=fp8_per_tensor data=integers d_type=f32 splits=5,0,7,3,6 N=9 K=40 seed=9");
  Case problem = generate(line);
  Tensor &x_scale = problem.in.at("x_rowwise_scale_inv"), &w_scale = problem.in.at("w_rowwise_scale_inv");
  for (const std::int64_t g : {0, 2}) negate(x_scale, g, g + 1);
  for (const std::int64_t g : {2, 3}) negate(w_scale, g, g + 1);
  const Tensor fast = answered(problem, "d", Layer::fast), scalar = answered(problem, "d", Layer::scalar);
  const Tensor &x = problem.in.at("x_rowwise_data"), &w = problem.in.at("w_rowwise_data");
  const auto code = [](const Tensor& tensor, std::int64_t i) {
    const std::uint32_t bits = tensor.as<std::uint8_t>()[i], exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10);
    return (bits & 0x80) != 0 ? -value : value;
  };
  std::int64_t row = 0;
  const std::vector<std::int64_t> splits = line.splits();
  for (std::size_t g = 0; g < splits.size(); ++g) {
    for (const std::int64_t end = row + splits[g]; row < end; ++row) {
      for (std::int64_t n = 0; n < 9; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < 40; ++k)
          sum += code(x, row * 40 + k) * code(w, (static_cast<std::int64_t>(g) * 9 + n) * 40 + k);
        const double value = sum * x_scale.as<float>()[g] * w_scale.as<float>()[g] + 0.0;
        EXPECT_EQ(fast.as<float>()[row * 9 + n], static_cast<float>(value)) << row << " " << n;
        EXPECT_EQ(scalar.as<float>()[row * 9 + n], static_cast<float>(value)) << row << " " << n;
      }
    }
  }
}

TEST(NegativeScales, ChangeTheSignOfEveryDequantizedValue) {
  for (const char* recipe : {"tensor_current", "block_1x128", "block_128x128", "nvfp4"}) {
    for (const char* direction : {"rowwise", "columnwise"}) {
      const CaseLine line = parse_case_line(std::string("dequantize recipe=") + recipe + " direction=" + direction +
                                            " d_type=f32 splits=16,0,34,130 K=144 seed=3");
      Case problem = generate(line);
      const Tensor plain = answered(problem, "x", Layer::scalar);
      Tensor& scales = problem.in.at(std::string(direction) + "_scale_inv");
      negate(scales, 0, scales.elements());
      for (const Layer layer : {Layer::fast, Layer::scalar}) {
        Tensor other = answered(problem, "x", layer);
        negate(other, 0, other.elements());
        EXPECT_EQ(other.bytes, plain.bytes) << recipe << " " << direction;
      }
    }
  }
}

}  // namespace
}  // namespace assay::conformance
