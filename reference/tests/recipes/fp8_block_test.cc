// Block scaling, 1x128 and 128x128: both layers against a second route, and one against the other over many shapes.

#include "reference/recipes/fp8_block.h"

#include <gtest/gtest.h>

#include <cstring>

#include "reference/tests/recipes/fp8_case.h"

namespace assay {
namespace {

using namespace fp8_suite;

constexpr Format kBf16 = Format::bf16, kF16 = Format::f16, kF32 = Format::f32, kE4m3 = Format::e4m3, kE5m2 = Format::e5m2;

// ---- Shapes and options against the second route
// ----------------------------------------------------------------------

class Fp8Block : public ::testing::TestWithParam<Case> {};

TEST_P(Fp8Block, BothLayersEqualTheSecondRoute) {
  for (const std::uint8_t poison : {0xa5, 0xff}) {
    const Outputs want = expected(GetParam(), poison);
    for (const Layer layer : {Layer::scalar, Layer::fast}) {
      SCOPED_TRACE(layer == Layer::fast ? "fast" : "scalar");
      Outputs got = run(GetParam(), layer, poison);
      got.dbias = want.dbias;  // dbias_test.cc
      expect_same(got, want);
    }
  }
}

// clang-format off
const Case kCases[] = {
    {.x = {.x_type = kBf16, .splits = {1}, .columns = 1, .grouped = false}},                     // one element
    {.x = {.x_type = kF32, .splits = {33}, .columns = 272, .grouped = false}},                   // edges on both sides
    {.x = {.x_type = kF16, .output = kE5m2, .splits = {65}, .columns = 96, .grouped = false}},   // less than a block
    {.x = {.x_type = kBf16, .splits = {1024}, .columns = 1, .grouped = false}},                  // a single column
    {.x = {.x_type = kBf16, .splits = {1}, .columns = 16, .grouped = false}},                    // a single row
    {.x = {.x_type = kF32, .output = kE5m2, .splits = {16}, .columns = 512, .grouped = false}},  // few rows
    {.x = {.x_type = kBf16, .splits = {0, 1, 127, 128, 129, 0}, .columns = 144}},                // ragged, empty ends
    {.x =
         {.x_type = kF32, .splits = {5, 0, 0, 300}, .columns = 130, .rows_beyond = 7}},  // rows that belong to no group
    {.x = {.x_type = kBf16, .splits = {}, .columns = 128, .rows_beyond = 3}},            // no group
    {.x = {.x_type = kBf16, .splits = {0, 0}, .columns = 128}},                          // nothing in them
    {.x = {.x_type = kBf16, .splits = {7, 3}, .columns = 0}},                            // no columns
    {.x = {.x_type = kBf16, .splits = {128, 640, 384}, .columns = 200}},  // 1, 5 and 3 row blocks: padding between
    {.x = {.x_type = kF32, .splits = {40, 90}, .columns = 256, .pattern = Pattern::wide}},  // scales that overflow
    {.x = {.x_type = kBf16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::wide}},
    {.x = {.x_type = kF16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::wide}},
    {.x = {.x_type = kF32, .splits = {40, 90}, .columns = 256, .pattern = Pattern::specials}},  // NaN, infinity, -0
    {.x = {.x_type = kBf16, .output = kE5m2, .splits = {130}, .columns = 256, .pattern = Pattern::specials}},
    {.x = {.x_type = kF16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::specials}},
    {.x = {.x_type = kF32, .splits = {40, 90}, .columns = 256, .pattern = Pattern::tiny}},  // subnormal x and scales
    {.x = {.x_type = kBf16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::tiny}},
    {.x = {.x_type = kF16, .output = kE5m2, .splits = {40, 90}, .columns = 256, .pattern = Pattern::tiny}},
    {.x = {.x_type = kBf16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::zeros}},
    {.x = {.x_type = kBf16, .splits = {40, 90}, .columns = 256, .pattern = Pattern::ties}},
    {.x = {.x_type = kBf16, .splits = {50}, .columns = 200, .pattern = Pattern::specials, .columnwise = false}},
    {.x = {.x_type = kBf16, .splits = {50}, .columns = 200, .pattern = Pattern::specials, .rowwise = false}},
    {.x = {.x_type = kF32, .splits = {50}, .columns = 200, .pattern = Pattern::specials, .positive_zero = true}},
};
// clang-format on

// Each case for both recipes, with plain and power-of-two scales, with and without a floor under the amax.
std::vector<Case> with_options() {
  std::vector<Case> cases;
  for (Case c : kCases) {
    for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
      for (const bool pow2 : {false, true}) {
        for (const float epsilon : {0.0f, 0.75f}) {
          c.recipe = recipe;
          c.pow2 = pow2;
          c.epsilon = epsilon;
          cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, Fp8Block, ::testing::ValuesIn(with_options()));

// ---- One layer against the other ------------------------------------------------------------------------------------

TEST(Fp8BlockLayers, EqualForEveryTypeShapeAndPattern) {
  const std::vector<std::vector<std::int64_t>> splits = {
      {1}, {33}, {127}, {128}, {129}, {300}, {0, 1, 127, 128, 129, 0}, {64, 64}, {512, 1, 0, 255}};
  std::uint64_t seed = 1;
  for (const auto& groups : splits) {
    for (const std::int64_t columns : {1, 15, 16, 17, 96, 127, 128, 129, 255, 272}) {
      for (const Format x_type : {kBf16, kF16, kF32}) {
        Case c;
        c.x = {.x_type = x_type, .splits = groups, .columns = columns, .rows_beyond = static_cast<std::int64_t>(seed % 3)};
        c.x.seed = seed;
        c.x.pattern = static_cast<Pattern>(seed % 6);
        c.x.output = seed % 2 ? kE4m3 : kE5m2;
        c.x.positive_zero = seed % 5 == 0;
        c.x.rowwise = seed % 7 != 0;
        c.x.columnwise = seed % 11 != 0;
        c.pow2 = seed / 2 % 2;
        c.epsilon = seed % 4 == 0 ? 0.01f : 0;
        c.dbias = seed % 3 == 0;
        for (c.recipe = Recipe::block_1x128; c.recipe <= Recipe::block_128x128;
             c.recipe = static_cast<Recipe>(static_cast<int>(c.recipe) + 1)) {
          SCOPED_TRACE(::testing::PrintToString(c));
          const std::uint8_t poison = seed % 2 ? 0xa5 : 0xff;
          expect_same(run(c, Layer::fast, poison), run(c, Layer::scalar, poison));
          if (::testing::Test::HasFailure()) return;
        }
        ++seed;
      }
    }
  }
}

// ---- By hand --------------------------------------------------------------------------------------------------------

struct Quantized {
  std::vector<std::uint8_t> codes;
  float scale_inv;
};

// One row block of f32 values.
Quantized one_block(const std::vector<float>& x, bool pow2, float epsilon, Layer layer) {
  Quantized got = {std::vector<std::uint8_t>(x.size()), 0};
  float scales[4] = {-1, -1, -1, -1};
  QuantizeProblem problem;
  problem.config = {.recipe = Recipe::block_1x128, .force_pow_2_scales = pow2, .amax_epsilon = epsilon};
  problem.x_type = kF32;
  problem.x = x.data();
  problem.rows = 1;
  problem.columns = static_cast<std::int64_t>(x.size());
  QuantizeOutput output;
  output.rowwise_data = got.codes.data();
  output.rowwise_scale_inv = scales;
  layer == Layer::fast ? quantize(problem, output) : scalar::quantize(problem, output);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(scales[i], -1) << "padding was written";
  got.scale_inv = scales[0];
  return got;
}

struct SpecialBlock {
  const char* what;
  std::vector<float> x;
  bool pow2;
  float epsilon;
  std::vector<std::uint8_t> codes;
  float scale_inv;
};
void PrintTo(const SpecialBlock& block, std::ostream* out) { *out << block.what; }

class Fp8BlockSpecials : public ::testing::TestWithParam<SpecialBlock> {};

TEST_P(Fp8BlockSpecials, BothLayers) {
  for (const Layer layer : {Layer::scalar, Layer::fast}) {
    const Quantized got = one_block(GetParam().x, GetParam().pow2, GetParam().epsilon, layer);
    EXPECT_EQ(got.codes, GetParam().codes);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got.scale_inv), std::bit_cast<std::uint32_t>(GetParam().scale_inv));
  }
}

const float kInf = INFINITY, kNan = NAN;
const SpecialBlock kSpecialBlocks[] = {
    {"zeros keep their signs", {0.0f, -0.0f}, false, 0, {0x00, 0x80}, 1.0f},
    {"infinity gives scale 1 and saturates", {kInf, -kInf, 3.0f, 1000.0f}, false, 0, {0x7e, 0xfe, 0x44, 0x7e}, 1.0f},
    {"NaN is passed over", {kNan, 448.0f, -224.0f}, false, 0, {0x7f, 0x7e, 0xf6}, 1.0f},
    {"nothing but NaN", {kNan, -kNan}, false, 0, {0x7f, 0x7f}, 1.0f},
    {"a floor under zeros", {0.0f, -0.0f}, false, 2.0f, {0x00, 0x80}, 2.0f / 448.0f},
    {"amax at the floor", {2.0f}, false, 2.0f, {0x7e}, 2.0f / 448.0f},
    {"amax above the floor", {4.0f}, false, 2.0f, {0x7e}, 4.0f / 448.0f},
    {"a power of two below", {1.0f, 0.5f}, true, 0, {0x78, 0x70}, 0x1p-8f},
    {"an exact power of two stays", {448.0f}, true, 0, {0x7e}, 1.0f},
    {"scale past f32, plain", {0x1p-149f}, false, 0, {0x00}, 0x1.000002p-128f},
    {"scale past f32, power of two", {0x1p-120f}, true, 0, {0x70}, 0x1p-127f},
};
INSTANTIATE_TEST_SUITE_P(Blocks, Fp8BlockSpecials, ::testing::ValuesIn(kSpecialBlocks));

// The largest finite value of x's type replaces a scale that overflows: bf16's differs from f32's in the last bits.
TEST(Fp8BlockOverflow, TakesTheTypeOfX) {
  const std::uint16_t bf16 = 0x0001;
  const float f32 = std::bit_cast<float>(0x0001'0000u);  // the same value
  for (const bool pow2 : {false, true}) {
    for (const bool is_bf16 : {true, false}) {
      float scales[4] = {};
      std::uint8_t code = 0xa5;
      QuantizeProblem problem;
      problem.config = {.recipe = Recipe::block_1x128, .force_pow_2_scales = pow2};
      problem.x_type = is_bf16 ? kBf16 : kF32;
      problem.x = is_bf16 ? static_cast<const void*>(&bf16) : &f32;
      problem.rows = problem.columns = 1;
      QuantizeOutput output;
      output.rowwise_data = &code;
      output.rowwise_scale_inv = scales;
      const float want = pow2 ? 0x1p-127f : static_cast<float>(1.0 / (is_bf16 ? 0x1.fep127 : 0x1.fffffep127));
      quantize(problem, output);
      EXPECT_EQ(scales[0], want);
      scales[0] = 0;
      scalar::quantize(problem, output);
      EXPECT_EQ(scales[0], want);
    }
  }
}

}  // namespace
}  // namespace assay
