// Stochastic rounding to E2M1: for every byte, the value at which the code changes; how many of the 256 bytes round up; and
// the two layers over values of every exponent.

#include "reference/recipes/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "reference/tests/recipes/nvfp4_second_route.h"

namespace assay {
namespace {

using block_scaled::kE2m1;

std::uint8_t both(float v, int byte) {
  const std::uint8_t code = scalar::stochastic_e2m1(v, static_cast<std::uint8_t>(byte));
  EXPECT_EQ(stochastic_e2m1(v, static_cast<std::uint8_t>(byte)), code) << v << " byte " << byte;
  return code;
}

class StochasticInterval : public ::testing::TestWithParam<int> {};  // from code c to the next

// u moves the point of change from the upper code (u = 0) down by u times the spacing: at (c+1) - u * spacing the sum is
// the upper code exactly. A 4096th of the spacing below that, which no rounding to f32 bridges, it is not reached.
TEST_P(StochasticInterval, ChangesAtOneMinusU) {
  const int code = GetParam();
  const double low = kE2m1[code], high = kE2m1[code + 1];
  for (int byte = 0; byte < 256; ++byte) {
    const auto change = static_cast<float>(high - (high - low) * byte / 256);
    for (const float sign : {1.0f, -1.0f}) {
      const int sign_bit = sign < 0 ? 8 : 0;
      EXPECT_EQ(both(sign * change, byte), (code + 1) | sign_bit) << change << " byte " << byte;
      const auto below = static_cast<float>(change - (high - low) / 4096);
      if (below >= low) {
        EXPECT_EQ(both(sign * below, byte), code | sign_bit) << below << " byte " << byte;
      }
    }
  }
}

// 64 places inside the interval: the share of bytes that round up is the place's share of the interval.
TEST_P(StochasticInterval, BytesThatRoundUp) {
  const int code = GetParam();
  const double low = kE2m1[code], spacing = kE2m1[code + 1] - low;
  for (int part = 0; part < 64; ++part) {
    const auto v = static_cast<float>(low + spacing * part / 64);
    int up = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const int got = both(v, byte);
      ASSERT_TRUE(got == code || got == code + 1) << v << " byte " << byte;
      up += got - code;
    }
    EXPECT_EQ(up, part * 4) << v;
  }
}
INSTANTIATE_TEST_SUITE_P(Codes, StochasticInterval, ::testing::Range(0, 7));

TEST(StochasticRounding, ValuesOfCodesStay) {
  for (int code = 0; code < 16; ++code) {
    for (int byte = 0; byte < 256; ++byte) {
      EXPECT_EQ(both(static_cast<float>(code & 8 ? -kE2m1[code & 7] : kE2m1[code & 7]), byte), code);
    }
  }
}

TEST(StochasticRounding, Specials) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(both(INFINITY, byte), 0x7);
    EXPECT_EQ(both(-INFINITY, byte), 0xf);
    EXPECT_EQ(both(NAN, byte), 0x7);
    EXPECT_EQ(both(-NAN, byte), 0x7);
    EXPECT_EQ(both(7.5f, byte), 0x7);
    EXPECT_EQ(both(0x1p-149f, byte), 0x0);
    EXPECT_EQ(both(-0x1p-149f, byte), 0x8);
  }
}

// All upper halves of a float, with lower halves at both ends and around the middle.
TEST(StochasticRounding, EveryExponentAgainstTheSecondRoute) {
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0xffffu}) {
      const float v = std::bit_cast<float>(high << 16 | low);
      for (const int byte : {0, 1, 2, 63, 64, 127, 128, 129, 200, 254, 255}) {
        ASSERT_EQ(both(v, byte), block_scaled::stochastic_code(v, byte)) << v << " byte " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace assay
