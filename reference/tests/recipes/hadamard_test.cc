// The 16-term transform: sums worked out by hand that distinguish the fused step from other arithmetic, exact sums of small
// integers, and random bits of every exponent against a model in double.

#include "reference/recipes/hadamard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "reference/tests/recipes/block_scaled_case.h"
#include "reference/tests/recipes/nvfp4_second_route.h"

namespace assay {
namespace {

using namespace block_scaled;

std::uint16_t bf16(float v) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16); }

// Both layers; they must agree.
std::vector<std::uint16_t> transform(std::uint16_t mask, const std::vector<std::uint16_t>& x) {
  const auto y = scalar::hadamard_transform(mask, x);
  std::uint16_t fast[16];
  hadamard_transform(mask, x.data(), 1, static_cast<std::int64_t>(x.size()), 1, fast, 1);
  for (int j = 0; j < 16; ++j) EXPECT_EQ(fast[j], y[static_cast<std::size_t>(j)]) << "y[" << j << "]";
  return {y.begin(), y.end()};
}

struct SumCase {
  const char* what;
  std::vector<float> x;  // from x[0]; exact in bf16
  std::uint16_t mask;
  int j;
  std::uint16_t y;
};
void PrintTo(const SumCase& c, std::ostream* out) { *out << c.what; }
class HadamardSum : public ::testing::TestWithParam<SumCase> {};

TEST_P(HadamardSum, OneFusedStep) {
  std::vector<std::uint16_t> x;
  for (const float v : GetParam().x) x.push_back(bf16(v));
  EXPECT_EQ(transform(GetParam().mask, x)[static_cast<std::size_t>(GetParam().j)], GetParam().y);
}

const float kInf = INFINITY, kMax = 0x1.fep127f;
const SumCase kSums[] = {
    {"a quarter of one term", {3}, 0, 0, 0x3f40},
    {"the sign of H at (1,1)", {0, 4}, 0, 1, 0xbf80},
    {"the sign of H at (3,2): popcount 1", {0, 0, 0, 4}, 0, 2, 0xbf80},
    {"the sign of H at (3,3): popcount 2", {0, 0, 0, 4}, 0, 3, 0x3f80},
    {"the mask negates x[3]", {0, 0, 0, 4}, 0x0008, 0, 0xbf80},
    {"a term 2^-25 of the largest is kept", {4, -4, 0x1p-23f}, 0, 0, 0x3300},
    {"a term 2^-26 of it is cut (a sum in f32 would keep it)", {4, -4, 0x1p-24f}, 0, 0, 0x0000},
    {"one and a half units are cut to one, toward zero", {4, -4, 0x1.8p-23f}, 0, 0, 0x3300},
    {"the same below zero", {4, -4, -0x1.8p-23f}, 0, 0, 0xb300},
    {"sixteen cut terms stay cut", {4, -4, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f, 0x1p-24f}, 0, 0, 0x0000},
    {"the sum is cut to f32 before bf16: 1 + 2^-8 + 2^-25 is a tie", {4, 0x1p-6f, 0x1p-23f}, 0, 0, 0x3f80},
    {"with 2^-23 in the place of 2^-25 it is none", {4, 0x1p-6f, 0x1p-21f}, 0, 0, 0x3f81},
    {"1 + 3 * 2^-8 ties to even, upward", {4, 0x1.8p-5f}, 0, 0, 0x3f82},
    {"the exponent of 1.5 is that of 1: not normalised", {6, -6, 0x1p-23f}, 0, 0, 0x3300},
    {"zero is +0", {4, -4}, 0, 0, 0x0000},
    {"minus zeros are +0", {-0.0f, -0.0f}, 0, 0, 0x0000},
    {"the smallest subnormal goes to 2^-135, below bf16", {0x1p-133f}, 0, 0, 0x0000},
    {"minus that keeps its sign in bf16", {-0x1p-133f}, 0, 0, 0x8000},
    {"4 of them are 2^-133", {0x1p-133f, 0x1p-133f, 0x1p-133f, 0x1p-133f}, 0, 0, 0x0001},
    {"largest, once", {kMax}, 0, 0, 0x7e7f},
    {"four of the largest are one", {kMax, kMax, kMax, kMax}, 0, 0, 0x7f7f},
    {"five pass 2^128", {kMax, kMax, kMax, kMax, kMax}, 0, 0, 0x7f80},
    {"overflow in the middle of a sum does not count", {kMax, kMax, kMax, kMax, kMax, -kMax}, 0, 0, 0x7f7f},
    {"near 2^128 bf16 rounds up to infinity", {kMax, kMax, kMax, kMax, 0x1p120f, 0x1p120f, 0x1p120f}, 0, 0, 0x7f80},
    {"infinity", {1, kInf}, 0, 0, 0x7f80},
    {"infinity negated", {1, kInf}, 0, 1, 0xff80},
    {"both infinities", {kInf, -kInf}, 0, 0, 0x7fff},
    {"the same two, of one sign in y[1]", {kInf, -kInf}, 0, 1, 0x7f80},
    {"NaN", {1, NAN}, 0, 0, 0x7fff},
};
INSTANTIATE_TEST_SUITE_P(ByHand, HadamardSum, ::testing::ValuesIn(kSums));

// Small integers: nothing is cut, so y is the rational sum over 4, rounded to bf16. H from its recursive definition.
TEST(Hadamard, SmallIntegersAreExact) {
  int h[16][16] = {{1}};
  for (int n = 1; n < 16; n *= 2) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        h[i + n][j] = h[i][j + n] = h[i][j];
        h[i + n][j + n] = -h[i][j];
      }
    }
  }
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto mask = static_cast<std::uint16_t>(draw(seed, 99));
    int x[16];
    std::vector<std::uint16_t> codes;
    for (std::uint64_t i = 0; i < 16; ++i) {
      x[i] = static_cast<int>(draw(seed, i) % 511) - 255;
      codes.push_back(bf16(static_cast<float>(x[i])));
    }
    const auto y = transform(mask, codes);
    for (int j = 0; j < 16; ++j) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) sum += (mask >> i & 1 ? -1 : 1) * h[i][j] * x[i];
      ASSERT_EQ(y[static_cast<std::size_t>(j)], nearest_half(Format::bf16, sum == 0 ? 0.0 : sum / 4.0))
          << "seed " << seed << " y[" << j << "]";
    }
  }
}

// Exponents drawn from windows of several widths, anywhere in the range: cutting happens at every depth.
TEST(Hadamard, EveryExponentAgainstTheModelInDouble) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const auto mask = static_cast<std::uint16_t>(draw(seed, 99));
    const std::uint64_t width = 1 + draw(seed, 98) % 40, base = draw(seed, 97) % 255;
    const std::size_t terms = 1 + draw(seed, 96) % 16;
    std::vector<std::uint16_t> codes;
    std::vector<double> values;
    for (std::uint64_t i = 0; i < terms; ++i) {
      const std::uint64_t r = draw(seed, i);
      const std::uint64_t exponent = std::min<std::uint64_t>(base + (r >> 32) % width, 254);
      codes.push_back(static_cast<std::uint16_t>((r & 0x807f) | exponent << 7));
      if (i % 2 == 1 && (r >> 20 & 3) == 0) codes.back() = codes[i - 1] ^ 0x8000;  // cancels its neighbour
      values.push_back(exact_value(Format::bf16, codes.back()));
    }
    const auto y = transform(mask, codes);
    for (unsigned j = 0; j < 16; ++j) {
      ASSERT_EQ(y[j], nearest_half(Format::bf16, hadamard_sum(values, mask, j))) << "seed " << seed << " y[" << j << "]";
    }
  }
}

// Adjacent columns are independent, whatever their number and strides; nothing else is written.
class HadamardColumns : public ::testing::TestWithParam<int> {};

TEST_P(HadamardColumns, EachIsTransformedAlone) {
  const std::int64_t columns = GetParam(), x_stride = columns + 3, y_stride = columns + 5;
  for (const std::int64_t terms : {1, 2, 15, 16}) {
    std::vector<std::uint16_t> x(static_cast<std::size_t>(terms * x_stride)), y(static_cast<std::size_t>(16 * y_stride), 0xa5a5);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(draw(5, i));  // NaN and infinity among them
    hadamard_transform(0xd7e8, x.data(), x_stride, terms, columns, y.data(), y_stride);
    for (std::int64_t column = 0; column < columns; ++column) {
      std::vector<std::uint16_t> one;
      for (std::int64_t i = 0; i < terms; ++i) one.push_back(x[static_cast<std::size_t>(i * x_stride + column)]);
      const auto want = scalar::hadamard_transform(0xd7e8, one);
      for (std::int64_t j = 0; j < 16; ++j) {
        ASSERT_EQ(y[static_cast<std::size_t>(j * y_stride + column)], want[static_cast<std::size_t>(j)]) << column << "," << j;
      }
    }
    for (std::int64_t j = 0; j < 16; ++j) {
      for (std::int64_t i = columns; i < y_stride; ++i) ASSERT_EQ(y[static_cast<std::size_t>(j * y_stride + i)], 0xa5a5);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Widths, HadamardColumns, ::testing::Values(1, 2, 63, 64, 65, 130));

}  // namespace
}  // namespace assay
