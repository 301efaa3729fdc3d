// NVFP4 4over6: choices worked out by hand, the order of the sums, and whole blocks against a second route.

#include "reference/recipes/four_over_six.h"

#include <gtest/gtest.h>

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

struct Outcome {
  std::uint8_t scale;
  std::vector<std::uint8_t> codes;
};

// Quantizes [rows, 16] f32 in one direction; the first scale and all codes.
Outcome quantize_tile(const std::vector<float>& x, std::int64_t rows, float g, FourOverSix error, float e4m3_max,
                      bool two_dimensional, bool columnwise, Layer layer) {
  QuantizeProblem problem;
  problem.config.recipe = Recipe::nvfp4;
  problem.config.output = Format::e2m1;
  problem.config.rowwise = !columnwise;
  problem.config.columnwise = columnwise;
  problem.config.four_over_six = error;
  problem.config.nvfp4_e4m3_max = e4m3_max;
  problem.config.two_dimensional = two_dimensional;
  problem.x_type = Format::f32;
  problem.x = x.data();
  problem.rows = rows;
  problem.columns = static_cast<std::int64_t>(x.size()) / rows;
  problem.amax = &g;
  std::vector<std::uint8_t> data(x.size() / 2), scales(4096);
  QuantizeOutput output;
  (columnwise ? output.columnwise_data : output.rowwise_data) = data.data();
  (columnwise ? output.columnwise_scale_inv : output.rowwise_scale_inv) = scales.data();
  layer == Layer::fast ? quantize_nvfp4(problem, output) : scalar::quantize_nvfp4(problem, output);
  Outcome outcome{scales[0], {}};
  for (const std::uint8_t byte : data) outcome.codes.push_back(byte & 15), outcome.codes.push_back(byte >> 4);
  return outcome;
}

struct ChoiceCase {
  const char* what;
  FourOverSix error;
  float g, e4m3_max;
  std::vector<float> x;  // a block; missing elements are 0
  std::uint8_t scale, first_code;
};
void PrintTo(const ChoiceCase& c, std::ostream* out) { *out << c.what; }
class FourOverSixChoice : public ::testing::TestWithParam<ChoiceCase> {};

TEST_P(FourOverSixChoice, SmallerErrorWins) {
  const ChoiceCase& c = GetParam();
  std::vector<float> x = c.x;
  x.resize(16);
  for (const Layer layer : {Layer::scalar, Layer::fast}) {
    for (const bool columnwise : {false, true}) {
      // Columnwise: 16 rows of 1 column; the same block.
      const Outcome got = quantize_tile(x, columnwise ? 16 : 1, c.g, c.error, c.e4m3_max, false, columnwise, layer);
      EXPECT_EQ(got.scale, c.scale) << "columnwise " << columnwise;
      EXPECT_EQ(got.codes[0], c.first_code) << "columnwise " << columnwise;
    }
  }
}

constexpr FourOverSix kMae = FourOverSix::mean_absolute_error, kMse = FourOverSix::mean_squared_error;
constexpr float t = 0x1.cp-26f;
// G = 1536 with M = 256, and G = 2688 with M = 448, make S = 1; a block of amax 6 then has d6 = 1 (0x38), d4 = 1.5 (0x3c).
const ChoiceCase kChoices[] = {
    {"6 and 1 are codes: no error with six", kMae, 1536, 256, {6, 1}, 0x38, 7},
    {"the same with M = 448", kMae, 2688, 448, {6, 1}, 0x38, 7},
    {"6 and 4.5 are codes times 1.5: no error with four", kMae, 1536, 256, {6, 4.5f}, 0x3c, 6},
    {"both without error: six", kMae, 1536, 256, {6, 3}, 0x38, 7},
    // 5 under six is 4 (tie to even, error 1); under four 5/1.5 = 3.33 -> 3 -> 4.5 (error 0.5).
    {"one element: four", kMae, 1536, 256, {6, 5}, 0x3c, 6},
    // Two elements of 2 cost 0.25 each under four (1.33 -> 1.5 -> 2.25) and nothing under six.
    {"absolute: 0.5 + 2 * 0.25 equals 1: six", kMae, 1536, 256, {6, 5, 2, 2}, 0x38, 7},
    {"squared: 0.25 + 2 * 0.0625 is below 1: four", kMse, 1536, 256, {6, 5, 2, 2}, 0x3c, 6},
    // 12 elements t = 0.875 * 2^-25 cost t under both, and t is lost beside 0.5 or 1. After the 5 they are lost under both:
    // 1 and 0.5, then 0.5 + 2 * 0.25. Before it they add up beside 0 under six, and are lost beside 2 * 0.25 under four.
    {"in order, large first: equal, six", kMae, 1536, 256, {6, 5, t, t, t, t, t, t, t, t, t, t, t, t, 2, 2}, 0x38, 7},
    {"in order, large last: four", kMae, 1536, 256, {2, 2, t, t, t, t, t, t, t, t, t, t, t, t, 5, 6}, 0x3c, 3},
    // The float below 7.125: divided by 6 it is the float below the tie 1.1875, d6 = 1.125; times fl(1/6) it would be the tie
    // itself, d6 = 1.25, under which the 3.375 are no codes any more.
    {"a true division by 6", kMae, 1536, 256, {0x1.c7fffep2f, 3.375f, 3.375f, 3.375f}, 0x39, 7},
    {"a zero block", kMse, 1536, 256, {0}, 0x00, 0},
    {"NaN among the elements makes both errors NaN: six", kMae, 1536, 256, {6, 4.5f, NAN}, 0x38, 7},
    {"d4 is limited to 448: amax 2688 at S = 1", kMae, 2688, 448, {2688, 2016}, 0x7e, 7},
};
INSTANTIATE_TEST_SUITE_P(ByHand, FourOverSixChoice, ::testing::ValuesIn(kChoices));

std::vector<float> transposed(const std::vector<float>& x) {  // of 16 x 16
  std::vector<float> turned(256);
  for (std::size_t i = 0; i < 256; ++i) turned[i] = x[i % 16 * 16 + i / 16];
  return turned;
}

// The 16 row errors of a tile, from the tile's rows under one of the two scales.
std::vector<float> row_errors(const std::vector<float>& x, int d) {
  std::vector<float> errors;
  for (std::int64_t r = 0; r < 16; ++r) {
    errors.push_back(line_error(std::vector<double>(x.begin() + r * 16, x.begin() + r * 16 + 16), d, 1536, kMae, 256));
  }
  return errors;
}

float sum_in_order(const std::vector<float>& e) {
  float sum = 0;
  for (const float each : e) sum += each;
  return sum;
}

float sum_neighbours_first(std::vector<float> e) {  // distances 1, 2, 4, 8
  while (e.size() > 1) {
    std::vector<float> pairs;
    for (std::size_t r = 0; r < e.size(); r += 2) pairs.push_back(e[r] + e[r + 1]);
    e = pairs;
  }
  return e[0];
}

// 2-D: e[r] of the 16 rows are added with distances 8, 4, 2, 1. Tiles of one row that costs 1 under six and 0.5 under four,
// one that costs 0.5 under four, and others of a few tiny errors: which scale wins depends on when the tiny ones meet. So too
// for the columns of the tile turned over, whose errors are summed anew: the other direction of a tile may take the other scale.
TEST(FourOverSix, TileErrorsAreAddedByHalvesInEachDirection) {
  int unlike_in_order = 0, unlike_neighbours = 0, apart = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> x(256);
    const std::size_t six_row = draw(seed, 1) % 16, four_row = (six_row + 1 + draw(seed, 2) % 15) % 16;
    for (std::size_t r = 0; r < 16; ++r) {
      for (std::size_t i = 3; i < 16; ++i)
        x[r * 16 + i] = draw(seed, 10 + r) % 3 == 0 ? 0 : static_cast<float>(draw(seed, 100 + r) % 8) * 0x1p-28f;
    }
    x[six_row * 16] = 6;
    x[six_row * 16 + 1] = 5;
    x[four_row * 16] = x[four_row * 16 + 1] = 2;
    const std::vector<float> turned = transposed(x);
    const auto choose = [&](const auto& sum) { return sum(row_errors(x, 0x3c)) < sum(row_errors(x, 0x38)) ? 0x3c : 0x38; };
    const int want = choose(tree_sum);
    const int want_turned = tree_sum(row_errors(turned, 0x3c)) < tree_sum(row_errors(turned, 0x38)) ? 0x3c : 0x38;
    apart += want != want_turned;
    unlike_in_order += choose(sum_in_order) != want;
    unlike_neighbours += choose(sum_neighbours_first) != want;
    for (const Layer layer : {Layer::scalar, Layer::fast}) {
      for (const bool columnwise : {false, true}) {
        const Outcome got = quantize_tile(x, 16, 1536, kMae, 256, true, columnwise, layer);
        ASSERT_EQ(got.scale, columnwise ? want_turned : want) << "columnwise " << columnwise << ", seed " << seed;
        const Outcome of_turned = quantize_tile(turned, 16, 1536, kMae, 256, true, !columnwise, layer);
        ASSERT_EQ(of_turned.scale, got.scale) << "columnwise " << columnwise << ", seed " << seed;
        ASSERT_EQ(of_turned.codes, got.codes) << "columnwise " << columnwise << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(unlike_in_order, 5);
  EXPECT_GT(unlike_neighbours, 5);
  EXPECT_GT(apart, 5);
}

}  // namespace
}  // namespace assay
