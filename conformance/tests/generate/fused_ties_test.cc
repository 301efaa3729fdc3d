// data=fused_ties: what each token's choices are, in doubles, which hold a product of two values of a type exactly.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"

namespace assay::conformance {
namespace {

double value_at(const Tensor& tensor, std::int64_t at) {
  switch (tensor.type) {
    case Format::bf16: return scalar::decode_bf16(tensor.as<std::uint16_t>()[at]);
    case Format::f16: return scalar::decode_f16(tensor.as<std::uint16_t>()[at]);
    default: return tensor.as<float>()[at];
  }
}

// The bits of a value from its first to its last 1.
int significant_bits(double value) {
  int exponent = 0;
  double fraction = std::fabs(std::frexp(value, &exponent));
  int bits = 0;
  for (; fraction != 0; ++bits) fraction = fraction * 2 - std::floor(fraction * 2);
  return bits;
}

struct Type {
  const char* name;
  int bits;
};

class FusedTies : public testing::TestWithParam<Type> {};

TEST_P(FusedTies, AreAProductOfOneBitMoreThanTheTypeAndATinyValue) {
  const CaseLine line = parse_case_line(std::string("unpermute x_type=") + GetParam().name +
                                        " R=33 topk=2 experts=16 K=40 weights=1 data=fused_ties seed=7");
  const Case made = generate(line);
  const Tensor &rows = made.in.at("permuted"), &map = made.in.at("row_map"), &weights = made.in.at("weights");
  int near = 0, above_one = 0, below_one = 0, against = 0;
  for (std::int64_t token = 0; token < 33; ++token) {
    for (std::int64_t column = 0; column < 40; ++column) {
      const auto product = [&](int choice) {
        const std::int64_t entry = 2 * token + choice;
        return static_cast<double>(weights.as<float>()[entry]) * value_at(rows, map.as<std::int32_t>()[entry] * 40 + column);
      };
      const double tiny = product(0), tie = product(1);
      ASSERT_EQ(significant_bits(tie), GetParam().bits + 1) << token << " " << column;
      ASSERT_NE(tiny, 0);
      near += std::fabs(tiny) < std::ldexp(std::fabs(tie), -GetParam().bits - 2);
      above_one += std::fabs(tie) > 1;
      below_one += std::fabs(tie) < 1;
      against += (tiny < 0) != (tie < 0);
    }
  }
  EXPECT_GT(near, 33 * 40 / 2);
  EXPECT_GT(above_one, 100);
  EXPECT_GT(against, 33 * 40 / 4);
  EXPECT_LT(against, 33 * 40 * 3 / 4);
  if (GetParam().bits == 8) EXPECT_GT(below_one, 100);
}

INSTANTIATE_TEST_SUITE_P(Types, FusedTies, testing::Values(Type{"bf16", 8}, Type{"f16", 11}, Type{"f32", 24}),
                         [](const auto& type) { return std::string(type.param.name); });

TEST(FusedTiesLine, NeedWeightsAndTwoChoices) {
  for (const char* text :
       {"unpermute R=9 K=8 data=fused_ties seed=1", "unpermute R=9 K=8 topk=1 weights=1 data=fused_ties seed=1"}) {
    EXPECT_THROW(parse_case_line(text), std::exception) << text;
  }
}

}  // namespace
}  // namespace assay::conformance
