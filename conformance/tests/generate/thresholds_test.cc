// data=adversarial_thresholds: its sums and its errors in double arithmetic, on the values of the codes.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "conformance/tests/generate/format_values.h"
#include "conformance/tests/generate/pattern_request.h"

namespace assay::conformance {
namespace {

struct Sums {
  Format operand, output;
  int exponent, bits;  // the smallest normal value is 2^exponent; bits of a significand
  std::int64_t length;
};
void PrintTo(const Sums& c, std::ostream* out) {
  *out << name_of(c.operand) << " to " << name_of(c.output) << " of " << c.length;
}
class SumsAtThresholds : public testing::TestWithParam<Sums> {};

// Every partial sum but the last is above the threshold and exact in D's bits; the last one lies there, or up to three quarters of
// the last place below it, half of them one quarter below. With room for it, all terms have even k.
TEST_P(SumsAtThresholds, LieAtTheSmallestNormalValueOrJustBelow) {
  const auto [operand, output, exponent, bits, length] = GetParam();
  PatternRequest request = request_of("adversarial_thresholds", operand, 128, length);
  request.output = output;
  request.role = Role::first;
  const std::vector<std::uint32_t> first = fill(request);
  request.role = Role::second;
  request.tensor = "w";
  const std::vector<std::uint32_t> second = fill(request);
  const double threshold = std::ldexp(1.0, exponent), quarter = std::ldexp(1.0, exponent - bits - 1);
  std::map<double, int> below;
  std::set<double> signs;
  for (std::int64_t line = 0; line < 128; ++line) {
    for (std::int64_t other = 0; other < 128; ++other) {
      double sum = 0, before = 0;
      for (std::int64_t k = 0; k < length; ++k) {
        const double term = value_of(operand, first[static_cast<std::size_t>(line * length + k)]) *
                            value_of(operand, second[static_cast<std::size_t>(other * length + k)]);
        if (term == 0) continue;
        ASSERT_TRUE(k % 2 == 0 || length < 9) << k;
        before = sum;
        sum += term;
      }
      ASSERT_GT(std::fabs(before), threshold);
      ASSERT_EQ(std::remainder(before, 4 * quarter), 0);  // of which a value from the threshold to twice that is a multiple
      ++below[(threshold - std::fabs(sum)) / quarter];
      signs.insert(std::copysign(1.0, sum));
    }
  }
  EXPECT_EQ(below.size(), 5u);
  for (const double each : {-1, 0, 1, 2, 3}) EXPECT_GT(below[each], 128 * 128 / 40) << each;
  EXPECT_NEAR(below[1], 128 * 128 / 2, 128 * 128 / 8);
  EXPECT_EQ(signs.size(), 2u);
}
INSTANTIATE_TEST_SUITE_P(All, SumsAtThresholds,
                         testing::Values(Sums{Format::bf16, Format::f32, -126, 24, 9}, Sums{Format::bf16, Format::f32, -126, 24, 40},
                                         Sums{Format::bf16, Format::f32, -126, 24, 5},
                                         Sums{Format::bf16, Format::bf16, -126, 8, 16},
                                         Sums{Format::bf16, Format::f16, -14, 11, 16}, Sums{Format::f16, Format::f32, -14, 11, 16},
                                         Sums{Format::f16, Format::f16, -14, 11, 7}));

// The values of E2M1 that are nearest to `value`: one, or two at a tie.
std::set<double> nearest_e2m1(double value) {
  std::map<double, std::set<double>> by_distance;
  for (const double code : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}) by_distance[std::fabs(value - code)].insert(code);
  return by_distance.begin()->second;
}

// Of each block of 16, along a row and along a column: 6 u is the largest value, and every other is a tie under u or 1.5 u and as far
// from E2M1 under either, in f32 but for a unit in the last place.
TEST(ValuesAtThresholds, AreTiesWithEqualErrors) {
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    for (const int largest_scale : {448, 256}) {
      PatternRequest request = request_of("adversarial_thresholds", type, 64, 128);
      request.target = Format::e2m1;
      request.block = 16;
      request.one_scale = true;
      request.e4m3_max = largest_scale;
      const std::vector<std::uint32_t> bits = fill(request);
      const auto at = [&](std::int64_t row, std::int64_t column) {
        return std::fabs(value_of(type, bits[static_cast<std::size_t>(row * request.columns + column)]));
      };
      const double slack = type == Format::f32 ? 0x1p-20 : 0;
      int ties_of_six = 0, ties_of_four = 0, beside = 0;
      for (std::int64_t row = 0; row < request.rows; ++row) {
        for (std::int64_t column = 0; column < request.columns; ++column) {
          double across = 0, down = 0;
          for (std::int64_t i = 0; i < 16; ++i) {
            across = std::max(across, at(row, column / 16 * 16 + i));
            down = std::max(down, at(row / 16 * 16 + i, column));
          }
          ASSERT_EQ(across, down);
          if (at(row, column) == across) continue;
          const double value = at(row, column) * 48 / across, eighths = std::round(value);  // of u
          ASSERT_NEAR(value, eighths, slack * 48);
          beside += value != eighths;
          const std::set<double> six = nearest_e2m1(eighths / 8), four = nearest_e2m1(eighths / 12);
          ASSERT_EQ(std::fabs(eighths / 8 - *six.begin()), std::fabs(eighths / 8 - 1.5 * *four.begin())) << value;
          ASSERT_EQ(six.size() + four.size(), 3u) << value;  // a tie of one of them
          ties_of_six += six.size() == 2;
          ties_of_four += four.size() == 2;
        }
      }
      EXPECT_GT(ties_of_six, 4000);
      EXPECT_GT(ties_of_four, 2000);
      if (type == Format::f32) {
        EXPECT_GT(beside, 4000);
      } else {
        EXPECT_EQ(beside, 0);
      }
    }
  }
}

// The largest value of the tensor gives the other blocks scales of 1/8 to 8.
TEST(ValuesAtThresholds, HaveTheTensorsLargestInEveryFourthTile) {
  for (const int largest_scale : {448, 256}) {
    PatternRequest request = request_of("adversarial_thresholds", Format::bf16, 64, 256);
    request.e4m3_max = largest_scale;
    const std::vector<std::uint32_t> bits = fill(request);
    std::set<double> largest;
    for (std::int64_t tile = 0; tile < 64; ++tile) {
      double most = 0;
      for (std::int64_t i = 0; i < 16 * 16; ++i) {
        const std::int64_t row = tile / 16 * 16 + i / 16, column = tile % 16 * 16 + i % 16;
        most = std::max(most, std::fabs(value_of(Format::bf16, bits[static_cast<std::size_t>(row * 256 + column)])));
      }
      if (tile % 4 == 1) {
        EXPECT_EQ(most, 6 * largest_scale);
      } else {
        largest.insert(most / 6);
      }
    }
    EXPECT_EQ(largest, (std::set<double>{0.125, 0.25, 0.5, 1, 2, 4, 8}));
  }
}

}  // namespace
}  // namespace assay::conformance
