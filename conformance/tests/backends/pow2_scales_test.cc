// Which scales keep the promise that they are powers of two, in a layout written out by hand.

#include "conformance/backends/device/pow2_scales.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace assay::conformance {
namespace {

// Groups of 130, 0 and 3 rows, 5 columns: blocks of 128 rows, 2, 0 and 1, each with a row of 8 scales, of which 3 are padding.
const std::vector<std::int64_t> kSplits = {130, 0, 3};
std::vector<float> scales_of_ones() {
  std::vector<float> scales(24, 1);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (i % 8 >= 5) scales[i] = 3;
  }
  return scales;
}

TEST(Pow2Scales, OfEachPlace) {
  EXPECT_TRUE(are_pow2_scales(scales_of_ones(), kSplits, 5)) << "padding does not count";
  for (std::size_t i = 0; i < 24; ++i) {
    if (i % 8 >= 5) continue;
    std::vector<float> scales = scales_of_ones();
    scales[i] = 1.5f;
    EXPECT_FALSE(are_pow2_scales(scales, kSplits, 5)) << "scale " << i;
  }
}

TEST(Pow2Scales, OfEachValue) {
  const auto keeps = [](float scale) {
    return are_pow2_scales(std::vector<float>{scale, 1, 1, 1}, std::vector<std::int64_t>{1}, 1);
  };
  for (const float scale : {0x1p-127f, 0x1p-126f, 0.5f, 1.0f, 4.0f, 0x1p127f}) EXPECT_TRUE(keeps(scale)) << scale;
  for (const float scale : {0x1p-128f, 0x1p-149f, 0.0f, -1.0f, 3.0f, 1 + 0x1p-23f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(keeps(scale)) << scale;
}

TEST(Pow2Scales, OfWrongSizes) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{130, -1, 3}, {most, most, 3}, {130, 0, most}})
    EXPECT_FALSE(are_pow2_scales(scales_of_ones(), splits, 5));
  EXPECT_FALSE(are_pow2_scales(scales_of_ones(), kSplits, -5));
}

TEST(Pow2Scales, OfAnotherSize) {
  EXPECT_FALSE(are_pow2_scales(std::vector<float>(23, 1), kSplits, 5));
  EXPECT_FALSE(are_pow2_scales(std::vector<float>(25, 1), kSplits, 5));
  EXPECT_TRUE(are_pow2_scales({}, std::vector<std::int64_t>{0, 0}, 5));
}

}  // namespace
}  // namespace assay::conformance
