// The interpreter's functions, the rounding to codes and the places of scales, as the host compiles them, against the reference's
// scalar layer.

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "device/quantize/by_rule/interpreter.cuh"
#include "device/quantize/by_rule/round_code.cuh"
#include "device/quantize/by_rule/storage.cuh"

namespace assay::device::by_rule {
namespace {

constexpr std::uint32_t kInfinity = 0x7F80'0000;

// Bits at which something changes: powers of two, halves of codes, ends of ranges, with their neighbours; then any bits.
std::vector<float> operands(std::uint32_t seed, int any) {
  std::vector<float> all;
  for (const std::uint32_t sign : {0u, 0x8000'0000u}) {
    for (std::uint32_t field = 0; field <= 255; ++field) {
      for (const std::uint32_t fraction :
           {0u, 0x8'0000u, 0x10'0000u, 0x18'0000u, 0x20'0000u, 0x28'0000u, 0x30'0000u, 0x38'0000u, 0x40'0000u, 0x48'0000u,
            0x50'0000u, 0x58'0000u, 0x60'0000u, 0x68'0000u, 0x70'0000u, 0x78'0000u}) {
        for (const int off : {-1, 0, 1}) {
          all.push_back(std::bit_cast<float>(sign | ((field << 23 | fraction) + static_cast<std::uint32_t>(off)) % 0x8000'0000u));
        }
      }
    }
  }
  std::mt19937 random(seed);
  for (int i = 0; i < any; ++i) all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return all;
}

// Every NaN counts as one: no operation of the language tells them apart.
std::uint32_t reported(float a) { return is_nan(a) ? 0x7FFF'FFFFu : std::bit_cast<std::uint32_t>(a); }

constexpr FormulaFunction kOfOne[] = {
    FormulaFunction::absolute,       FormulaFunction::power_up,        FormulaFunction::power_down,
    FormulaFunction::power_up_log2,  FormulaFunction::power_down_log2, FormulaFunction::to_bf16,
    FormulaFunction::to_f16,         FormulaFunction::to_e4m3,         FormulaFunction::to_e5m2,
    FormulaFunction::flush,          FormulaFunction::rcp_approx_ftz,  FormulaFunction::rcp_approx,
    FormulaFunction::ex2_approx_ftz, FormulaFunction::ex2_approx,      FormulaFunction::rsqrt_approx_ftz,
    FormulaFunction::rsqrt_approx,   FormulaFunction::tanh_approx};

TEST(Functions, OfOneValueAreTheReferences) {
  const std::vector<float> all = operands(1, 200'000);
  for (const FormulaFunction function : kOfOne) {
    SCOPED_TRACE(static_cast<int>(function));
    ASSERT_EQ(arguments_of(function), 1);
    for (const float a : all) {
      ASSERT_EQ(reported(call_function(function, a, 0, 0)), reported(scalar::call(function, a, 0, 0))) << std::hexfloat << a;
    }
  }
}

// log2 rounds to a whole number next to powers of two, at most 88 units of the smaller side away.
TEST(Functions, PowersOfLog2TurnWhereTheReferencesDo) {
  int rounded_down = 0, rounded_up = 0;
  for (int k = -149; k <= 127; ++k) {
    const std::uint32_t power = std::bit_cast<std::uint32_t>(std::ldexp(1.0f, k));
    for (int off = -120; off <= 120; ++off) {
      const std::uint32_t bits = power + static_cast<std::uint32_t>(off);
      if (bits == 0 || bits >= kInfinity) continue;
      const float a = std::bit_cast<float>(bits);
      for (const bool up : {false, true}) {
        const auto function = up ? FormulaFunction::power_up_log2 : FormulaFunction::power_down_log2;
        const float want = scalar::call(function, a, 0, 0);
        ASSERT_EQ(reported(power_of_log2(a, up)), reported(want)) << std::hexfloat << a << (up ? " up" : " down");
        rounded_down += up && want < a ? 1 : 0;
        rounded_up += !up && want > a ? 1 : 0;
      }
    }
  }
  EXPECT_GT(rounded_down, 1000);
  EXPECT_GT(rounded_up, 1000);
}

TEST(Functions, OfMoreValuesAreTheReferences) {
  const std::vector<float> few = operands(2, 2'000);
  std::mt19937 random(3);
  const auto any = [&] { return few[random() % few.size()]; };
  const float odd[] = {0.0f, -0.0f, 1.0f, std::bit_cast<float>(kInfinity), -std::bit_cast<float>(kInfinity), __builtin_nanf("")};
  const auto compare = [](FormulaFunction function, float a, float b, float c) {
    const float got = arguments_of(function) == 2 ? apply_call(function, a, b) : call_function(function, a, b, c);
    ASSERT_EQ(reported(got), reported(scalar::call(function, a, b, c)))
        << static_cast<int>(function) << std::hexfloat << " " << a << " " << b << " " << c;
  };
  for (const FormulaFunction function :
       {FormulaFunction::maximum, FormulaFunction::minimum, FormulaFunction::maximum_or_nan, FormulaFunction::minimum_or_nan,
        FormulaFunction::fused, FormulaFunction::div_full, FormulaFunction::div_approx_ftz}) {
    for (const float a : odd) {
      for (const float b : odd) compare(function, a, b, any());
    }
    for (int i = 0; i < 100'000; ++i) compare(function, any(), any(), any());
  }
  for (int bits = -2; bits <= 24; ++bits) {
    for (int i = 0; i < 20'000; ++i) compare(FormulaFunction::round_half_up, any(), static_cast<float>(bits), 0);
  }
}

// ---- Codes ----------------------------------------------------------------------------------------------------------

TEST(Rounding, EveryRuleGivesTheReferencesCodes) {
  using Rounding = CodeRounding;
  const std::vector<float> all = operands(4, 20'000);
  for (const Format format : {Format::e4m3, Format::e5m2, Format::e3m2, Format::e2m3, Format::e2m1}) {
    for (const auto round : {Rounding::Round::even, Rounding::Round::down, Rounding::Round::away, Rounding::Round::truncate}) {
      for (const auto overflow : {Rounding::Overflow::saturate, Rounding::Overflow::special}) {
        for (const auto nan : {Rounding::NanCode::largest, Rounding::NanCode::zero}) {
          for (const auto zero :
               {Rounding::NegativeZero::kept, Rounding::NegativeZero::underflow, Rounding::NegativeZero::never}) {
            const CodeRounding rounding{round, overflow, nan, zero};
            const RuleRounding own = rule_rounding(format, rounding);
            for (const float a : all) {
              ASSERT_EQ(round_to_code(own, a), scalar::round_to_code(format, rounding, a))
                  << name_of(format) << " " << static_cast<int>(round) << static_cast<int>(overflow) << static_cast<int>(nan)
                  << static_cast<int>(zero) << " " << std::hexfloat << a;
            }
          }
        }
      }
    }
  }
}

TEST(Rounding, FourCodesFollowOneAnotherFromTheLowestBit) {
  EXPECT_EQ(pack_four({0x01, 0x82, 0x03, 0xF4}, 8), 0xF403'8201u);
  EXPECT_EQ(pack_four({0x1, 0xF, 0x2, 0x8}, 4), 0x82F1u);
  EXPECT_EQ(pack_four({0x01, 0x3F, 0x00, 0x20}, 6), 0x01u | 0x3Fu << 6 | 0x20u << 18);
}

// ---- Scales ---------------------------------------------------------------------------------------------------------

TEST(Storage, PlacesAreTheReferences) {
  int compared = 0;
  for (const std::string& name : scale_storage_names()) {
    const ScaleStorage storage = parse_scale_storage("storage", name);
    EXPECT_EQ(clears_bytes(storage.order), clears_padding(storage)) << name;
    for (const Format type : {Format::f32, Format::e8m0, Format::e4m3}) {
      const bool one_byte = type != Format::f32;
      if (storage.order == ScaleStorage::Order::packed ? type != Format::e8m0 : clears_padding(storage) && !one_byte) continue;
      for (const std::int64_t rows : {0, 1, 7, 8, 33, 128, 300}) {
        for (const std::int64_t columns : {0, 1, 3, 4, 9, 17}) {
          const StoredScales stored = stored_scales(storage, type, rows, columns);
          const int size = one_byte ? 1 : 4;
          ASSERT_EQ(stored_bytes(storage.order, size, rows, columns), stored.bytes) << name;
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
              ASSERT_EQ(scale_place(storage.order, size, rows, columns, i, j), scale_byte(storage, type, stored, i, j))
                  << name << " " << rows << "x" << columns << " at " << i << "," << j;
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 100'000);
}

}  // namespace
}  // namespace assay::device::by_rule
