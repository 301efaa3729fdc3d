// Patterns made to reach the edges of a rounding: ties, thresholds of scales, orders and widths of sums. The property of each,
// checked in double arithmetic on the values of its bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "conformance/generate/compose.h"
#include "conformance/tests/generate/format_values.h"
#include "conformance/tests/generate/pattern_request.h"

namespace assay::conformance {
namespace {

// The nearest codes of the target below and above |v|, from the list of all its values.
bool is_midpoint(Format target, double v) {
  static std::map<Format, std::vector<double>> values;
  std::vector<double>& list = values[target];
  if (list.empty()) {
    for (std::uint32_t code = 0; code <= fields_of(target).top; ++code) list.push_back(value_of(target, code));
  }
  const auto above = std::upper_bound(list.begin(), list.end(), std::fabs(v));
  if (above == list.end() || above == list.begin()) return false;
  return (*(above - 1) + *above) / 2 == std::fabs(v);
}

struct TieCase {
  Format type, target;
  std::int64_t block;
};
void PrintTo(const TieCase& c, std::ostream* out) {
  *out << name_of(c.type) << " to " << name_of(c.target) << " block " << c.block;
}
class Ties : public testing::TestWithParam<TieCase> {};

// With the scale that 448 / amax gives in exact arithmetic, every element that is not a block's largest is a midpoint.
TEST_P(Ties, AreExactMidpointsUnderAnExactPowerOfTwo) {
  const auto [type, target, block] = GetParam();
  for (const bool beside : {false, true}) {
    PatternRequest request = request_of(beside ? "adversarial_midpoints" : "ties", type, 256, 512);
    request.target = target;
    request.block = block;
    request.one_scale = target == Format::e2m1;
    const auto bits = fill(request);
    const double largest = target == Format::e4m3 ? 448 : target == Format::e5m2 ? 57344 : 6;
    int midpoints = 0, others = 0, near = 0;
    for (std::int64_t row = 0; row < request.rows; ++row) {
      for (std::int64_t b = 0; b < request.columns / block; ++b) {
        double amax = 0;
        for (std::int64_t c = 0; c < block; ++c) {
          amax = std::max(amax, std::fabs(value_of(type, bits[static_cast<std::size_t>(row * request.columns + b * block + c)])));
        }
        const double scale = largest / amax;
        int exponent;
        ASSERT_EQ(std::frexp(scale, &exponent), 0.5) << "row " << row << " block " << b;
        for (std::int64_t c = 0; c < block; ++c) {
          const std::uint32_t code = bits[static_cast<std::size_t>(row * request.columns + b * block + c)];
          const double v = value_of(type, code) * scale;
          if (std::fabs(v) == largest) continue;
          if (is_midpoint(target, v)) {
            ++midpoints;
          } else {
            ++others;
            near += is_midpoint(target, value_of(type, neighbour(fields_of(type), code, 1)) * scale) ||
                    is_midpoint(target, value_of(type, neighbour(fields_of(type), code, -1)) * scale);
          }
        }
      }
    }
    EXPECT_GT(midpoints, 30000);
    if (beside) {
      EXPECT_GT(near, 60000);
      EXPECT_EQ(near, others);
    } else {
      EXPECT_EQ(others, 0);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Ties,
                         testing::Values(TieCase{Format::bf16, Format::e4m3, 128}, TieCase{Format::f16, Format::e4m3, 128},
                                         TieCase{Format::f32, Format::e4m3, 32}, TieCase{Format::bf16, Format::e5m2, 32},
                                         TieCase{Format::f16, Format::e5m2, 128}, TieCase{Format::f32, Format::e5m2, 128},
                                         TieCase{Format::bf16, Format::e2m1, 16}, TieCase{Format::f32, Format::e2m1, 16}));

TEST(Patterns, AmaxStandsAtTheThresholdAndBesideIt) {
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    for (const std::int64_t block : {32, 128}) {
      PatternRequest request = request_of("adversarial_amax", type, 256, 1024);
      request.block = block;
      const auto bits = fill(request);
      std::map<int, int> steps;
      // Any run of `block` rows of a column, wherever it starts, has its largest value at a threshold, and so has a block of a
      // row.
      const auto check = [&](std::int64_t row, std::int64_t column, std::int64_t down, std::int64_t across) {
        std::uint32_t amax = 0;
        for (std::int64_t i = 0; i < block; ++i) {
          const auto at = static_cast<std::size_t>((row + i * down) * request.columns + column + i * across);
          amax = std::max(amax, bits[at] & (sign_bit(fields_of(type)) - 1));
        }
        int found = 99;
        for (int step = -3; step <= 3; ++step) {
          int exponent;
          const double v = value_of(type, neighbour(fields_of(type), amax, -step));
          if (std::frexp(v, &exponent) == 0.875) found = step;
        }
        ASSERT_NE(found, 99) << name_of(type) << " row " << row << " column " << column;
        ++steps[found];
      };
      for (std::int64_t line = 0; line < 96; ++line) {
        check(line, line / 8 * block % request.columns, 0, 1);
        check(line, line * 7, 1, 0);
      }
      EXPECT_EQ(steps.size(), 7u);
    }
  }
}

TEST(Patterns, AmaxReachesScaleOverflowAndTheSmallestE8M0) {
  PatternRequest request = request_of("adversarial_amax", Format::f32, 128, 1024);
  std::set<std::uint32_t> peaks;
  for (const std::uint32_t code : fill(request)) peaks.insert(code & 0x7fff'ffff);
  EXPECT_TRUE(peaks.count(0x03E0'0000));  // the last amax whose 448/amax overflows
  EXPECT_TRUE(peaks.count(0x03E0'0001));
  EXPECT_TRUE(peaks.count(0x0460'0001));  // the one amax at which the two forms of E8M0 rounding differ
  request.target = Format::e5m2;
  peaks.clear();
  for (const std::uint32_t code : fill(request)) peaks.insert(code & 0x7fff'ffff);
  EXPECT_TRUE(peaks.count(0x0760'0000));
  EXPECT_TRUE(peaks.count(0x07E0'0001));
}

TEST(Patterns, EpsHasBlocksBelowAtAndAbove) {
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    PatternRequest request = request_of("adversarial_eps", type, 128, 512);
    const auto bits = fill(request);
    const double eps = request.eps;
    for (std::int64_t stripe = 0; stripe < 4; ++stripe) {
      double amax = 0;
      for (std::int64_t c = 0; c < 128; ++c)
        amax = std::max(amax, std::fabs(value_of(type, bits[static_cast<std::size_t>(stripe * 128 + c)])));
      const std::uint32_t at = compose(fields_of(type), false, 1, -7);
      EXPECT_EQ(amax, stripe == 0 ? 0 : value_of(type, neighbour(fields_of(type), at, static_cast<int>(stripe) - 2)));
    }
    EXPECT_EQ(eps, 0x1p-7);
  }
}

// With u a sixth of the block's largest value: the sums of distances to codes of 6 (times u) and to codes of 4 (times 1.5 u).
std::pair<double, double> four_over_six_errors(const std::vector<double>& block) {
  double largest = 0, six = 0, four = 0;
  for (const double x : block) largest = std::max(largest, std::fabs(x));
  for (const double x : block) {
    double nearest_six = 100, nearest_four = 100;
    for (const double code : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}) {
      nearest_six = std::min(nearest_six, std::fabs(std::fabs(x) * 6 / largest - code));
      nearest_four = std::min(nearest_four, std::fabs(std::fabs(x) * 6 / largest - 1.5 * code));
    }
    six += nearest_six, four += nearest_four;
  }
  return {six, four};
}

TEST(Patterns, FourOverSixErrorsOfEveryBlockAreEqual) {
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    PatternRequest request = request_of("adversarial_four_over_six", type, 64, 192);
    request.e4m3_max = 256;
    const auto bits = fill(request);
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return value_of(type, bits[static_cast<std::size_t>(row * request.columns + column)]);
    };
    std::set<double> largest;
    for (std::int64_t row = 0; row < request.rows; ++row) {
      for (std::int64_t column = 0; column < request.columns; column += 16) {
        std::vector<double> across, down;  // the block that starts at (row, column), and the column block of its tile
        for (std::int64_t i = 0; i < 16; ++i) {
          across.push_back(at(row, column + i));
          down.push_back(at(row / 16 * 16 + i, column + row % 16));
        }
        for (const auto& block : {across, down}) {
          const auto [six, four] = four_over_six_errors(block);  // sixteenths of 2^-24 at most: exact in double
          EXPECT_EQ(six, four) << name_of(type) << " row " << row << ", column " << column;
          EXPECT_GT(six, 0.5);
          largest.insert(std::fabs(
              *std::max_element(block.begin(), block.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); })));
        }
      }
    }
    EXPECT_TRUE(largest.count(6 * 256)) << "of the tensor, under which the units are powers of two";
    EXPECT_GE(largest.size(), 6u);
    for (const double each : largest) EXPECT_EQ(std::ilogb(each / 6), std::log2(each / 6)) << each;
  }
}

// Sums that are exact ties of the rounding to bf16 or f16, and some next to a tie.
TEST(Patterns, OutputTiesAreTies) {
  for (const Format output : {Format::bf16, Format::f16}) {
    for (const Format type : {Format::bf16, Format::f16, Format::e4m3, Format::e5m2}) {
      PatternRequest x = request_of("adversarial_output_ties", type, 64, 64), w = x;
      x.role = Role::first, x.output = output;
      w.role = Role::second, w.output = output, w.tensor = "w";
      const auto xs = fill(x), ws = fill(w);
      int ties = 0, beside = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t j = 0; j < 64; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < 64; ++k) sum += value_of(type, xs[i * 64 + k]) * value_of(type, ws[j * 64 + k]);
          ties += is_midpoint(output, sum);
          beside += is_midpoint(output, sum + 0.25) || is_midpoint(output, sum - 0.25);
        }
      }
      EXPECT_GT(ties, 1000) << name_of(type) << " " << name_of(output);
      EXPECT_GT(beside, 200) << name_of(type) << " " << name_of(output);
    }
  }
}

// Additions of the sums of 128 products are f32 ties: each result lies half way between two f32.
TEST(Patterns, PromotionTiesAreTies) {
  for (const Format type : {Format::e4m3, Format::e5m2, Format::bf16}) {
    PatternRequest x = request_of("adversarial_promotion", type, 16, 512), w = x;
    x.role = Role::first;
    w.role = Role::second, w.tensor = "w";
    const auto xs = fill(x), ws = fill(w);
    int ties = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t j = 0; j < 16; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < 512; k += 128) {
          const double t = value_of(type, xs[i * 512 + k]) * value_of(type, ws[j * 512 + k]);
          const double exact = static_cast<double>(sum) + t;
          const float rounded = static_cast<float>(exact);
          const double other = 2 * exact - static_cast<double>(rounded);
          ties += exact != static_cast<double>(rounded) && static_cast<double>(static_cast<float>(other)) == other;
          sum = rounded;
        }
      }
    }
    EXPECT_GT(ties, 300) << name_of(type);
  }
}

// How much of the other products remains after alignment to the largest one depends on the position of the cut.
TEST(Patterns, AlignmentCutsProductsInPart) {
  for (const int fraction_bits : {13, 25}) {
    const Format type = fraction_bits == 13 ? Format::e4m3 : Format::bf16;
    PatternRequest x = request_of("adversarial_alignment", type, 8, 128), w = x;
    x.role = Role::first, x.fraction_bits = w.fraction_bits = fraction_bits;
    w.role = Role::second, w.tensor = "w";
    const auto xs = fill(x), ws = fill(w);
    int cut = 0, gone = 0, whole = 0;
    for (std::size_t k = 0; k < 128; ++k) {
      if (k % 32 == 0) continue;
      const double unit = std::ldexp(1.0, 6 - fraction_bits);  // largest product has exponent 3 + 3
      const double units = std::fabs(value_of(type, xs[k]) * value_of(type, ws[k])) / unit;
      gone += units < 1, cut += units >= 1 && units != std::floor(units), whole += units >= 1 && units == std::floor(units);
    }
    EXPECT_GT(gone, 20);
    EXPECT_GT(cut, 20);
    EXPECT_EQ(gone + cut + whole, 124);
  }
}

}  // namespace
}  // namespace assay::conformance
