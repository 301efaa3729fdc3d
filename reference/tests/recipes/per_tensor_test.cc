// Scales per tensor: the scale formula over all of f32, then whole calls against a second route.

#include "reference/recipes/per_tensor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/tests/recipes/fp8_case.h"

namespace assay {
namespace {

using namespace fp8_suite;

constexpr float kFltMax = 0x1.fffffep127f;

using ScaleFromAmax = float (*)(float amax, float max, bool pow2, float epsilon, float overflow);
float fast_scale(float amax, float max, bool pow2, float epsilon, float overflow) {
  return scale_from_amax(amax, max, pow2, epsilon, overflow);
}
constexpr ScaleFromAmax kLayers[] = {scalar::scale_from_amax, fast_scale};

// spec per-tensor-1.2: E = max(0, e - emax + [m > 0x600000]) and scale 2^(127-E), in integers.
std::uint32_t pow2_scale_bits(std::uint32_t amax, int emax) {
  const int e = static_cast<int>(amax >> 23);
  const int up = (amax & 0x7f'ffff) > 0x60'0000;
  const int exponent = e == 0 ? 0 : std::max(0, e - emax + up);
  return static_cast<std::uint32_t>(254 - exponent) << 23;
}

class ScaleFormula : public ::testing::TestWithParam<Format> {
 protected:
  float max() const { return GetParam() == Format::e4m3 ? 448.0f : 57344.0f; }
  int emax() const { return GetParam() == Format::e4m3 ? 8 : 15; }
};

// The number of amax patterns from `begin` on that the fast formula gets wrong: a plain loop that compilers vectorize.
ASSAY_CLONES std::int64_t fast_pow2_mistakes(std::uint32_t begin, std::int32_t count, float max, std::int32_t emax) {
  std::int32_t wrong = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint32_t bits = begin + static_cast<std::uint32_t>(i);
    const std::int32_t e = static_cast<std::int32_t>(bits >> 23), up = (bits & 0x7f'ffff) > 0x60'0000;
    const std::int32_t exponent = e == 0 ? 0 : std::max(0, e - emax + up);
    const float scale = scale_from_amax(std::bit_cast<float>(bits), max, true, 0, kFltMax);
    wrong += std::bit_cast<std::uint32_t>(scale) != static_cast<std::uint32_t>(254 - exponent) << 23;
  }
  return wrong;
}

TEST_P(ScaleFormula, PowersOfTwoForEveryPositiveAmax) {
  std::atomic<std::int64_t> fast_mistakes{0}, scalar_mistakes{0};
  parallel_for(0x7f80'0000 - 1, 1 << 22, [&](std::int64_t begin, std::int64_t end) {
    fast_mistakes +=
        fast_pow2_mistakes(static_cast<std::uint32_t>(begin + 1), static_cast<std::int32_t>(end - begin), max(), emax());
    std::int64_t wrong = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto bits = static_cast<std::uint32_t>(i + 1);
      const float scale = scalar::scale_from_amax(std::bit_cast<float>(bits), max(), true, 0, kFltMax);
      wrong += std::bit_cast<std::uint32_t>(scale) != pow2_scale_bits(bits, emax());
    }
    scalar_mistakes += wrong;
  });
  EXPECT_EQ(fast_mistakes, 0);
  EXPECT_EQ(scalar_mistakes, 0);
}

// The quotient 7 * 2^a / (m * 2^b) in integers: every mantissa, for exponents whose quotient is normal.
TEST_P(ScaleFormula, QuotientOfEveryMantissa) {
  for (const ScaleFromAmax layer : kLayers) {
    std::atomic<std::uint32_t> wrong{0}, example{0};
    parallel_for(1 << 23, 1 << 18, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = begin; m < end; ++m) {
        const std::uint64_t divisor = (1u << 23) + static_cast<std::uint64_t>(m);  // amax = divisor * 2^(e-150)
        // 7/4 over divisor/2^23 lies in (7/8, 7/4]: 24 bits of it, and the remainder decides.
        const int down = 7 * (1ull << 21) < divisor;  // below 1: one more bit
        const std::uint64_t numerator = 7ull << (21 + 23 + down);
        std::uint64_t quotient = numerator / divisor;
        const std::uint64_t rest = numerator % divisor;
        if (2 * rest > divisor || (2 * rest == divisor && quotient % 2 != 0)) ++quotient;
        for (const int e : {20, 100, 127, 254}) {
          const float amax = std::ldexp(static_cast<float>(divisor), e - 150);
          const float want = std::ldexp(static_cast<float>(quotient), emax() - (e - 127) - 23 - down);
          if (layer(amax, max(), false, 0, kFltMax) != want) ++wrong, example = std::bit_cast<std::uint32_t>(amax);
        }
      }
    });
    EXPECT_EQ(wrong, 0u) << "for example amax bits 0x" << std::hex << example;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ScaleFormula, ::testing::Values(Format::e4m3, Format::e5m2),
                         [](const auto& info) { return std::string(name_of(info.param)); });

struct ScaleCase {
  const char* what;
  float amax, max;
  bool pow2;
  float epsilon, overflow, want;
};
void PrintTo(const ScaleCase& c, std::ostream* out) { *out << c.what; }

const float kE4m3Last = std::bit_cast<float>(0x03e0'0000u);  // the largest amax whose quotient with 448 overflows
const float kE5m2Last = std::bit_cast<float>(0x0760'0000u);
// clang-format off
const ScaleCase kScaleCases[] = {
    {"zero", 0, 448, false, 0, kFltMax, 1},
    {"infinity", INFINITY, 448, false, 0, kFltMax, 1},
    {"NaN", NAN, 448, false, 0, kFltMax, 1},
    {"NaN is not below epsilon", NAN, 448, false, 2, kFltMax, 1},
    {"zero raised to epsilon", 0, 448, false, 2, kFltMax, 224},
    {"epsilon is a floor, not an addend", 4, 448, false, 2, kFltMax, 112},
    {"epsilon comes before the power of two", 1, 448, true, 3, kFltMax, 128},
    {"infinite epsilon", 1, 448, false, INFINITY, kFltMax, 1},
    {"a tiny epsilon overflows", 0, 448, false, 0x1p-149f, 65504, 65504},
    {"largest amax", kFltMax, 448, false, 0, kFltMax, static_cast<float>(448.0 / 0x1.fffffep127)},
    {"e4m3 overflows up to 1.75*2^-120", kE4m3Last, 448, false, 0, kFltMax, kFltMax},
    {"e4m3 fits just above", std::bit_cast<float>(0x03e0'0001u), 448, false, 0, 0,
     static_cast<float>(448.0 / 0x1.c00002p-120)},
    {"e5m2 overflows up to 1.75*2^-113", kE5m2Last, 57344, false, 0, kFltMax, kFltMax},
    {"e5m2 fits just above", std::bit_cast<float>(0x0760'0001u), 57344, false, 0, 0,
     static_cast<float>(57344.0 / 0x1.c00002p-113)},
    {"overflow of bf16", kE4m3Last, 448, false, 0, 0x1.fep127f, 0x1.fep127f},
    {"overflow of f16, power of two", 0x1p-149f, 448, true, 0, 65504, 0x1p15f},
    {"overflow of f32, power of two", 0x1p-149f, 448, true, 0, kFltMax, 0x1p127f},
    {"448 is 1", 448, 448, true, 0, kFltMax, 1},
    {"just above 448 is a half", 448.00003f, 448, true, 0, kFltMax, 0.5f},
};
// clang-format on

class ScaleSpecials : public ::testing::TestWithParam<ScaleCase> {};
TEST_P(ScaleSpecials, BothLayers) {
  const ScaleCase& c = GetParam();
  for (const ScaleFromAmax layer : kLayers) EXPECT_EQ(layer(c.amax, c.max, c.pow2, c.epsilon, c.overflow), c.want);
}
INSTANTIATE_TEST_SUITE_P(Table, ScaleSpecials, ::testing::ValuesIn(kScaleCases));

// ---- Whole calls ----------------------------------------------------------------------------------------------------

class PerTensor : public ::testing::TestWithParam<Case> {};

TEST_P(PerTensor, BothLayersEqualTheSecondRoute) {
  for (const std::uint8_t poison : {0xa5, 0xff}) {
    const Outputs want = expected(GetParam(), poison);
    for (const Layer layer : {Layer::scalar, Layer::fast}) {
      SCOPED_TRACE(layer == Layer::fast ? "fast" : "scalar");
      expect_same(run(GetParam(), layer, poison), want);
    }
  }
}

std::vector<Case> per_tensor_cases() {
  const std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> shapes = {
      {{1}, 1},  {{33}, 272},  {{127}, 96}, {{129}, 130}, {{1024}, 1}, {{3}, 512}, {{0, 1, 127, 0}, 144}, {{100, 300, 5}, 80},
      {{}, 128}, {{0, 0}, 16}, {{7, 3}, 0}};
  std::vector<Case> cases;
  std::uint64_t seed = 1;
  for (const auto& [splits, columns] : shapes) {
    for (const Format x_type : {Format::bf16, Format::f16, Format::f32}) {
      for (const Pattern pattern : {Pattern::uniform, Pattern::wide, Pattern::specials, Pattern::tiny, Pattern::zeros}) {
        Case c;
        c.recipe = seed % 4 == 0 ? Recipe::tensor_delayed : Recipe::tensor_current;
        c.x = {.x_type = x_type, .output = seed % 3 == 0 ? Format::e5m2 : Format::e4m3, .splits = splits, .columns = columns};
        c.x.pattern = pattern;
        c.x.grouped = splits.size() != 1;
        c.x.rows_beyond = c.x.grouped && seed % 2 ? 2 : 0;
        c.x.rowwise = seed % 5 != 1;
        c.x.columnwise = seed % 5 != 2;
        c.x.positive_zero = seed % 6 == 0;
        c.x.seed = seed;
        c.pow2 = seed % 2;
        c.epsilon = seed % 7 == 0 ? 3.0f : 0;
        if (c.recipe == Recipe::tensor_delayed) {
          const float given[] = {1, 0.3f, INFINITY, 0, NAN, -2, 0x1p-140f, kFltMax};
          for (std::size_t t = 0; t < splits.size(); ++t) c.scale.push_back(given[(seed / 4 + t) % std::size(given)]);
        }
        cases.push_back(c);
        ++seed;
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, PerTensor, ::testing::ValuesIn(per_tensor_cases()));

// Long enough for several runs of the threaded passes, with groups that end inside one.
TEST(PerTensorLayers, EqualOnLongGroups) {
  for (const bool columnwise : {false, true}) {
    Case c;
    c.recipe = Recipe::tensor_current;
    c.x = {.x_type = Format::bf16, .splits = {700, 1, 0, 399}, .columns = 257, .columnwise = columnwise};
    expect_same(run(c, Layer::fast, 0xa5), run(c, Layer::scalar, 0xa5));
  }
}

}  // namespace
}  // namespace assay
