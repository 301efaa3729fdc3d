// The language of formulas: values worked out by hand, and every error with its place.

#include "reference/rules/formula.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "reference/rules/batch_formula.h"
#include "reference/types/error.h"

namespace assay {
namespace {

constexpr std::string_view kGiven[] = {"a", "b", "x"};
constexpr float kInf = std::numeric_limits<float>::infinity();

float value(std::string_view text, float a = 0, float b = 0) {
  const Formula formula = parse_formula("rule", "r = " + std::string(text), kGiven);
  const float variables[] = {a, b, 0};
  return scalar::evaluate(formula.statements[0].steps, variables);
}

TEST(Formula, BindsAsArithmeticDoes) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("8 / 4 / 2"), 1);
  EXPECT_EQ(value("8 - 4 - 2"), 2);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("1 < 2 ? 10 : 20"), 10);
  EXPECT_EQ(value("2 < 1 ? 10 : 3 > 2 ? 30 : 40"), 30);
  EXPECT_EQ(value("a > b", 1, 2), 0);
  EXPECT_EQ(value("a >= b", 2, 2), 1);
  EXPECT_EQ(value("a / b > b - a ? a : b", 3, 1), 3);
}

TEST(Formula, RoundsEveryOperationToF32) {
  EXPECT_EQ(value("0.1"), 0.1f);
  EXPECT_EQ(value("16777216 + 1"), 16777216.0f);  // 2^24 + 1 is no f32
  EXPECT_EQ(value("16777216 + 1 - 16777216"), 0.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(value("1 / 448")), 0x3B124925u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(value("1 / 6")), 0x3E2AAAABu);
  EXPECT_EQ(value("fma(a, a, b)", 1 + 0x1p-12f, -1 - 0x1p-11f), 0x1p-24f);
  EXPECT_EQ(value("a * a + b", 1 + 0x1p-12f, -1 - 0x1p-11f), 0);
}

TEST(Formula, ReadsNumbersOfEveryForm) {
  EXPECT_EQ(value("0x1p-126"), 0x1p-126f);
  EXPECT_EQ(value("0x1.fffffep127"), std::numeric_limits<float>::max());
  EXPECT_EQ(value("1e-4"), 1e-4f);
  EXPECT_EQ(value(".5"), 0.5f);
  EXPECT_EQ(value("-inf"), -kInf);
  EXPECT_TRUE(std::isnan(value("nan")));
}

TEST(Formula, FunctionsTreatNanAsTheirNamesSay) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(value("max(a, b)", nan, 2), 2);
  EXPECT_EQ(value("min(a, b)", 2, nan), 2);
  EXPECT_TRUE(std::isnan(value("max_nan(a, b)", nan, 2)));
  EXPECT_TRUE(std::isnan(value("min_nan(a, b)", 2, nan)));
  EXPECT_EQ(value("a == a ? 1 : 2", nan), 2);
  EXPECT_EQ(value("a != a ? 1 : 2", nan), 1);
}

TEST(Formula, PowersOfTwo) {
  EXPECT_EQ(value("pow2_ceil(a)", 1), 1);
  EXPECT_EQ(value("pow2_ceil(a)", 1.0000001f), 2);
  EXPECT_EQ(value("pow2_ceil(a)", 0), 0x1p-127f);
  EXPECT_EQ(value("pow2_ceil(a)", kInf), 0x1p127f);
  EXPECT_EQ(value("pow2_floor(a)", 1.999f), 1);
  EXPECT_EQ(value("pow2_floor(a)", 0x1p-130f), 0);
  EXPECT_EQ(value("pow2_floor(a)", kInf), kInf);
  // log2 of the value after 2^100 rounds to 100, that after 2 does not round to 1.
  EXPECT_EQ(value("pow2_ceil_log2(a)", std::nextafter(0x1p100f, kInf)), 0x1p100f);
  EXPECT_EQ(value("pow2_ceil(a)", std::nextafter(0x1p100f, kInf)), 0x1p101f);
  EXPECT_EQ(value("pow2_ceil_log2(a)", std::nextafter(2.0f, kInf)), 4);
  EXPECT_EQ(value("pow2_floor_log2(a)", std::nextafter(0x1p100f, 0.0f)), 0x1p100f);
  EXPECT_EQ(value("pow2_floor_log2(a)", 0), 0);
  EXPECT_TRUE(std::isnan(value("pow2_floor_log2(a)", -1)));
  EXPECT_EQ(value("round_mantissa(a, 3)", 1.0625f), 1.125f);  // a half, away from zero
  EXPECT_EQ(value("round_mantissa(a, 3)", 1.0624f), 1.0f);
  EXPECT_EQ(value("round_mantissa(a, 1)", 1.75f), 2.0f);
  EXPECT_EQ(value("e4m3(a)", 449), 448);
  EXPECT_EQ(value("bf16(a)", 1.00390625f), 1);
}

TEST(Formula, AssignsNamesInOrder) {
  const Formula formula = parse_formula("rule", "s = a * 2; t = s + b; c = x / t;", kGiven);
  ASSERT_EQ(formula.statements.size(), 3u);
  EXPECT_EQ(formula.find("t"), 4);
  EXPECT_EQ(formula.find("u"), -1);
  EXPECT_TRUE(formula.depends(1, 0));   // t on a, through s
  EXPECT_FALSE(formula.depends(1, 2));  // t not on x
  EXPECT_TRUE(formula.depends(2, 1));
}

struct Wrong {
  const char* text;
  const char* message;
};
const Wrong kWrong[] = {
    {"", "a name to assign to at character 1, found its end"},
    {"1 = 2", "a name to assign to at character 1"},
    {"s", "'=' at character 2, found its end"},
    {"s = ", "a number, a name or '(' at character 5, found its end"},
    {"s = a +", "a number, a name or '(' at character 8"},
    {"s = (a", "')' at character 7"},
    {"s = q", "one of the names a, b, x at character 5, found 'q'"},
    {"s = cos(a)", "one of the functions max, min"},
    {"s = max(a)", "2 arguments of max at character 10"},
    {"s = max(a, b, x)", "')' after 2 arguments of max at character 13"},
    {"s = a; s = b", "a name that has no value yet at character 8"},
    {"a = 1", "a name that has no value yet at character 1"},
    {"s = 1 ? 2", "':' at character 10"},
    {"s = a b", "an operator or ';' at character 7, found 'b'"},
    {"s = 2a", "an operator after the number at character 6, found 'a'"},
    {"s = 1e999", "a number that an f32 holds"},
    {"s = s", "one of the names a, b, x at character 5"},
};

TEST(Formula, ErrorsNameThePlaceAndWhatWasExpected) {
  for (const Wrong& each : kWrong) {
    try {
      parse_formula("my.txt:3: rule", each.text, kGiven);
      ADD_FAILURE() << each.text << " was read";
    } catch (const InvalidArgument& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(each.message), std::string::npos) << text;
      EXPECT_EQ(text.rfind("my.txt:3: rule is '", 0), 0u) << text;
    }
  }
}

TEST(Formula, DeepNestingIsRefused) {
  const std::string deep = "s = " + std::string(5000, '(') + "a" + std::string(5000, ')');
  EXPECT_THROW(parse_formula("rule", deep, kGiven), InvalidArgument);
  EXPECT_THROW(parse_formula("rule", "s = " + std::string(5000, '-') + "a", kGiven), InvalidArgument);
  std::string tall = "s = ";
  for (int i = 0; i < 40; ++i) tall += "max(a, ";
  tall += "b" + std::string(40, ')');
  EXPECT_THROW(parse_formula("rule", tall, kGiven), InvalidArgument);
}

// Every function and operation, on values of all kinds: the layer for many values against that for a single value.
TEST(Formula, BothLayersGiveEqualBits) {
  std::mt19937 random(9);
  const float odd[] = {0.0f, -0.0f, kInf, -kInf, 1, 2, 448, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f, std::nanf("")};
  for (const char* text : {"-a",
                           "a + b",
                           "a - b",
                           "a * b",
                           "a / b",
                           "a < b",
                           "a <= b",
                           "a > b",
                           "a == b",
                           "a != b",
                           "a ? b : x",
                           "max(a, b)",
                           "min(a, b)",
                           "max_nan(a, b)",
                           "min_nan(a, b)",
                           "abs(a)",
                           "fma(a, b, x)",
                           "pow2_ceil(a)",
                           "pow2_floor(a)",
                           "pow2_ceil_log2(a)",
                           "pow2_floor_log2(a)",
                           "round_mantissa(a, 3)",
                           "round_mantissa(a, 1)",
                           "bf16(a)",
                           "f16(a)",
                           "e4m3(a)",
                           "e5m2(a)",
                           "ftz(a)",
                           "rcp_approx_ftz(a)",
                           "rcp_approx(a)",
                           "ex2_approx_ftz(a)",
                           "ex2_approx(a)",
                           "rsqrt_approx_ftz(a)",
                           "rsqrt_approx(a)",
                           "tanh_approx(a)",
                           "div_full(a, b)",
                           "div_approx_ftz(a, b)",
                           "cuda_expf(a)",
                           "max(a, b) / (a * b - x) < x ? fma(a, x, 1 - b) : 3 / a"}) {
    const Formula formula = parse_formula("rule", std::string("r = ") + text, kGiven);
    fast::BatchFormula batch(formula.statements[0].steps);
    for (int round = 0; round < 40; ++round) {
      const int count = 1 + static_cast<int>(random() % fast::kBatch);
      std::vector<float> values[3];
      for (auto& column : values) {
        for (int i = 0; i < count; ++i) {
          column.push_back(random() % 3 == 0 ? odd[random() % std::size(odd)]
                                             : std::bit_cast<float>(static_cast<std::uint32_t>(random())));
        }
      }
      const float* pointers[] = {values[0].data(), values[1].data(), values[2].data()};
      const float* got = batch.run(pointers, count);
      for (int i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float variables[] = {values[0][at], values[1][at], values[2][at]};
        const float want = scalar::evaluate(formula.statements[0].steps, variables);
        if (std::isnan(want) && std::isnan(got[i])) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want))
            << text << " of " << variables[0] << ", " << variables[1] << ", " << variables[2];
      }
    }
  }
}

}  // namespace
}  // namespace assay
