// The approximate instructions against results that a device gave, against the error bounds that PTX ISA 9.0 promises, and
// against IEEE arithmetic. (measure_approximations compares all operands with a device.)

#include "reference/approximations/approximations.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "reference/approximations/tables.h"
#include "reference/tests/approximations/recorded_operands.h"

namespace assay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

struct Column {
  const char* name;
  float (*function)(float);
};
const Column kColumns[] = {{"rcp_approx_ftz", rcp_approx_ftz},
                           {"rcp_approx", rcp_approx},
                           {"ex2_approx_ftz", ex2_approx_ftz},
                           {"ex2_approx", ex2_approx},
                           {"rsqrt_approx_ftz", rsqrt_approx_ftz},
                           {"rsqrt_approx", rsqrt_approx},
                           {"tanh_approx", tanh_approx}};

TEST(Approximations, GiveTheBitsThatADeviceGave) {
  for (const auto& row : kRecordedOperands) {
    for (int column = 0; column < 7; ++column) {
      const float got = kColumns[column].function(from_bits(row[0]));
      EXPECT_EQ(bits_of(got), row[column + 1]) << kColumns[column].name << " of 0x" << std::hex << row[0];
    }
  }
}

double relative_error(double got, double exact) { return std::fabs(got - exact) / std::fabs(exact); }

TEST(Approximations, RcpIsWithinOneUnitInTheLastPlace) {
  int differing = 0;
  for (std::uint32_t i = 0; i < 1u << 23; ++i) {
    const float a = from_bits(0x3F80'0000 | i), got = rcp_approx_ftz(a);
    const auto apart = static_cast<std::int32_t>(bits_of(got) - bits_of(1 / a));
    ASSERT_LE(std::abs(apart), 1) << a;
    differing += apart != 0 ? 1 : 0;
  }
  // Not IEEE division by another name: about one mantissa in eight differs.
  EXPECT_GT(differing, (1 << 23) / 10);
  EXPECT_LT(differing, (1 << 23) / 6);
}

TEST(Approximations, ErrorsAreBelowThoseThatPtxPromises) {
  std::mt19937 random(3);
  for (int i = 0; i < 4'000'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float a = from_bits(bits & 0x7FFF'FFFF);
    if (a >= 0x1p-126f && a < kInf) {
      ASSERT_LE(relative_error(rsqrt_approx_ftz(a), 1 / std::sqrt(static_cast<double>(a))), std::exp2(-22.9)) << a;
    }
    const float b = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-24f;  // within 128
    if (std::fabs(b) < 126) {
      ASSERT_LE(relative_error(ex2_approx_ftz(b), std::exp2(static_cast<double>(b))), std::exp2(-22.5)) << b;
    }
    const float c = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-27f;  // within 16
    if (c != 0) {
      ASSERT_LE(relative_error(tanh_approx(c), std::tanh(static_cast<double>(c))), std::exp2(-10.987)) << c;
    }
  }
}

TEST(Approximations, AScaledOperandScalesTheResult) {
  std::mt19937 random(5);
  for (int i = 0; i < 100'000; ++i) {
    const float a = from_bits(0x3F80'0000 | (static_cast<std::uint32_t>(random()) & 0x007F'FFFF));
    const int shift = static_cast<int>(random() % 200) - 100;
    ASSERT_EQ(rcp_approx_ftz(std::ldexp(a, shift)), std::ldexp(rcp_approx_ftz(a), -shift));
    ASSERT_EQ(rsqrt_approx_ftz(std::ldexp(a, 2 * (shift / 2))), std::ldexp(rsqrt_approx_ftz(a), -(shift / 2)));
    // ex2 has a table for each sign; the fraction of a sum is what is left of a in it.
    const float sum = a + static_cast<float>(std::abs(shift)), part = sum - std::floor(sum);
    ASSERT_EQ(ex2_approx_ftz(sum), std::ldexp(ex2_approx_ftz(part), static_cast<int>(std::floor(sum)))) << sum;
    ASSERT_EQ(tanh_approx(-a), -tanh_approx(a));
  }
}

// A cut toward zero: a small negative operand gives exactly 1, as a small positive one does.
TEST(Approximations, Ex2CutsItsOperandTowardZero) {
  EXPECT_EQ(ex2_approx_ftz(0x1.fffffep-24f), 1);
  EXPECT_EQ(ex2_approx_ftz(-0x1.fffffep-24f), 1);
  EXPECT_EQ(ex2_approx_ftz(-0x1p-149f), 1);
  EXPECT_EQ(ex2_approx_ftz(3.25f + 0x1p-22f), ex2_approx_ftz(0.25f + 0x1p-22f) * 8);
}

TEST(Approximations, SubnormalsAreFlushedByTheFormsThatSayIt) {
  EXPECT_EQ(bits_of(flush_subnormal(-0x1p-127f)), 0x8000'0000u);
  EXPECT_EQ(flush_subnormal(0x1p-126f), 0x1p-126f);
  EXPECT_EQ(rcp_approx_ftz(0x1.8p126f), 0);
  EXPECT_EQ(rcp_approx(0x1.8p126f), std::ldexp(rcp_approx_ftz(1.5f), -126));
  EXPECT_EQ(ex2_approx_ftz(-128), 0);
  EXPECT_EQ(ex2_approx(-128), 0x1p-128f);
  EXPECT_EQ(rsqrt_approx_ftz(0x1p-140f), kInf);
  EXPECT_EQ(rsqrt_approx(0x1p-140f), 0x1p70f);
  EXPECT_EQ(tanh_approx(0x1p-140f), 0x1p-140f);
}

TEST(Approximations, DivisionsFollowTheRangesOfPtx) {
  std::mt19937 random(7);
  for (int i = 0; i < 1'000'000; ++i) {
    const float a = from_bits(0x3000'0000 + static_cast<std::uint32_t>(random()) % 0x2000'0000);
    const float b = from_bits(0x3000'0000 + static_cast<std::uint32_t>(random()) % 0x2000'0000);
    ASSERT_EQ(div_full(a, b), div_approx_ftz(a, b));
    ASSERT_LE(std::abs(static_cast<std::int32_t>(bits_of(div_full(a, b)) - bits_of(a / b))), 2) << a << " / " << b;
  }
  // div.approx.ftz: for a divisor above 2^126 zero, or NaN where the dividend is infinite; div.full scales.
  EXPECT_EQ(div_approx_ftz(0x1p127f, 0x1.8p126f), 0);
  EXPECT_TRUE(std::isnan(div_approx_ftz(kInf, 0x1.8p126f)));
  EXPECT_EQ(div_full(0x1p127f, 0x1p127f), 1);
  EXPECT_EQ(div_full(0x1p-140f, 0x1p-140f), 1);
  EXPECT_TRUE(std::isnan(div_approx_ftz(0x1p-140f, 0x1p-140f)));
  EXPECT_EQ(div_full(1, 0), kInf);
  EXPECT_EQ(bits_of(div_full(0, 0)), 0x7FFF'FFFFu);
}

TEST(Approximations, CudaExpf) {
  std::mt19937 random(11);
  for (int i = 0; i < 1'000'000; ++i) {
    const float a = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1.4p-25f;  // within 80
    ASSERT_LE(relative_error(cuda_expf(a), std::exp(static_cast<double>(a))), 0x1p-22)
        << a;  // 2 units: CUDA C++ Programming Guide
  }
  EXPECT_EQ(cuda_expf(0), 1);
  EXPECT_EQ(cuda_expf(-kInf), 0);
  EXPECT_EQ(cuda_expf(kInf), kInf);
  EXPECT_EQ(bits_of(cuda_expf(std::nanf(""))), 0x7FFF'FFFFu);
  EXPECT_GT(cuda_expf(-100), 0);  // a subnormal
  EXPECT_EQ(cuda_expf(89), kInf);
}

TEST(Approximations, TablesAreExpandedOnceForAllThreads) {
  std::vector<const std::uint32_t*> seen(8);
  std::vector<std::thread> threads;
  for (auto& place : seen) threads.emplace_back([&place] { place = tanh_table().data(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::uint32_t* place : seen) EXPECT_EQ(place, tanh_table().data());
  std::size_t entries = 0;
  for (const int bits : kTanhBits) entries += std::size_t{1} << bits;
  EXPECT_EQ(tanh_table().size(), entries);
}

}  // namespace
}  // namespace assay
