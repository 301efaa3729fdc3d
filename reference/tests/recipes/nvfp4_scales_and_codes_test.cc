// Scales and codes of NVFP4 in both layers: blocks worked out by hand, the thresholds of E2M1, and scales of every exponent against
// operations in double.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "reference/recipes/nvfp4.h"
#include "reference/tests/recipes/block_scaled_case.h"
#include "reference/tests/recipes/nvfp4_second_route.h"

namespace assay {
namespace {

using namespace block_scaled;

// Worked out by hand from spec nvfp4-1.1.
struct BlockCase {
  const char* what;
  float tensor_amax;
  float x, other;  // first element of a block of 16, and the rest
  std::uint8_t scale, code, other_code;
};
void PrintTo(const BlockCase& c, std::ostream* out) { *out << c.what; }

class Nvfp4Block : public ::testing::TestWithParam<BlockCase> {};

TEST_P(Nvfp4Block, ScaleAndCodes) {
  const BlockCase& c = GetParam();
  std::vector<float> x(16, c.other);
  x[0] = c.x;
  for (const Layer layer : {Layer::scalar, Layer::fast}) {
    QuantizeProblem problem;
    problem.config.recipe = Recipe::nvfp4;
    problem.config.output = Format::e2m1;
    problem.x_type = Format::f32;
    problem.x = x.data();
    problem.rows = 1;
    problem.columns = 16;
    problem.amax = &c.tensor_amax;
    std::vector<std::uint8_t> data(8), scales(512, 0xa5);
    QuantizeOutput output;
    output.rowwise_data = data.data();
    output.rowwise_scale_inv = scales.data();
    layer == Layer::fast ? quantize_nvfp4(problem, output) : scalar::quantize_nvfp4(problem, output);
    EXPECT_EQ(scales[0], c.scale);
    EXPECT_EQ(scales[1], 0xa5);
    EXPECT_EQ(data[0], c.code | c.other_code << 4) << "first in the low nibble";
    EXPECT_EQ(data[7], c.other_code | c.other_code << 4);
  }
}

const BlockCase kBlockCases[] = {
    {"the block of the tensor's amax has scale 448", 6, 6, 1, 0x7e, 0x7, 0x2},
    {"half of it: 224", 12, 6, -1, 0x76, 0x7, 0xa},
    {"zero block: scale 0, zeros stay", 6, 0, 0, 0x00, 0x0, 0x0},
    {"minus zero keeps its sign", 6, -0.0f, 0, 0x00, 0x8, 0x0},
    {"small block: scale 0, codes of 6 all the same", 2688, 0x1p-9f, -0x1p-20f, 0x00, 0x7, 0xf},
    {"small block below 1.47e-38: the multiplier is FLT_MAX", 2688, 0x1p-9f, 0x1p-130f, 0x00, 0x7, 0x0},
    {"A*t at 2^-10 is a tie and goes to 0", 2688, 6 * 0x1p-10f, 1e-30f, 0x00, 0x7, 0x7},
    {"just above: scale 2^-9, x/scale is a little over 3", 2688, 6 * 0x1.00001p-10f, 0, 0x01, 0x5, 0x0},
    {"amax 0: S = 1", 0, 6, 3, 0x38, 0x7, 0x5},
    {"amax infinite: S = 1", INFINITY, 6, 3, 0x38, 0x7, 0x5},
    {"amax NaN: S = FLT_MAX, A*t saturates", NAN, 6, 1, 0x7e, 0x7, 0x7},
    {"infinity: scale 448, code 6", 6, INFINITY, 1, 0x7e, 0x7, 0x2},
    {"NaN of either sign is +6", 6, -NAN, 6, 0x7e, 0x7, 0x7},
};
INSTANTIATE_TEST_SUITE_P(ByHand, Nvfp4Block, ::testing::ValuesIn(kBlockCases));

// Thresholds of spec formats-1.3, seen through a block whose multiplier is 1: G = 2688 makes S = 1, and a block of amax 6 has
// t * 6 = 1, d8 = 1.
TEST(Nvfp4Codes, ThresholdsOfE2m1) {
  struct Row {
    float x;
    std::uint8_t code;
  };
  const auto below = [](float v) { return std::nextafter(v, 0.0f); };
  const auto above = [](float v) { return std::nextafter(v, 9.0f); };
  const Row rows[] = {{0.25f, 0},
                      {above(0.25f), 1},
                      {below(0.75f), 1},
                      {0.75f, 2},
                      {1.25f, 2},
                      {above(1.25f), 3},
                      {below(1.75f), 3},
                      {1.75f, 4},
                      {2.5f, 4},
                      {above(2.5f), 5},
                      {below(3.5f), 5},
                      {3.5f, 6},
                      {5, 6},
                      {above(5.0f), 7},
                      {6, 7}};
  for (const float sign : {1.0f, -1.0f}) {
    for (const Row& row : rows) {
      std::vector<float> x(16, 6);
      x[5] = sign * row.x;
      for (const Layer layer : {Layer::scalar, Layer::fast}) {
        const float g = 2688;
        QuantizeProblem problem;
        problem.config.recipe = Recipe::nvfp4;
        problem.config.output = Format::e2m1;
        problem.x_type = Format::f32;
        problem.x = x.data();
        problem.rows = 1;
        problem.columns = 16;
        problem.amax = &g;
        std::vector<std::uint8_t> data(8), scales(512);
        QuantizeOutput output;
        output.rowwise_data = data.data();
        output.rowwise_scale_inv = scales.data();
        layer == Layer::fast ? quantize_nvfp4(problem, output) : scalar::quantize_nvfp4(problem, output);
        ASSERT_EQ(scales[0], 0x38);
        EXPECT_EQ(data[2] >> 4, row.code | (sign < 0 ? 8 : 0)) << sign * row.x;
      }
    }
  }
}

// S, d8 and c over amaxes of every exponent, against operations in double.
TEST(Nvfp4Scaling, EveryExponent) {
  for (const float e4m3_max : {448.0f, 256.0f}) {
    for (std::uint32_t bits = 0; bits <= 0x7f80'0000; bits += 65521) {
      const float g = std::bit_cast<float>(bits);
      const float s = tensor_scale(g, e4m3_max);
      ASSERT_EQ(scalar::nvfp4_tensor_scale(g, e4m3_max), s) << g;
      for (const float ratio : {1.0f, 0.7f, 1e-3f, 3e-6f, 1e-9f}) {
        const float a = g * ratio;
        const int d8 = block_scale(a, s);
        ASSERT_EQ(scalar::nvfp4_block_scale(a, s), d8) << g << " " << a;
        ASSERT_EQ(scalar::nvfp4_multiplier(static_cast<std::uint8_t>(d8), s), multiplier(d8, s)) << g << " " << d8;
      }
    }
  }
}

}  // namespace
}  // namespace assay
