// The 128x4 layout against its other description (spec layouts-3.1): a view in five axes whose order is changed.

#include "reference/layout/swizzle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "reference/types/error.h"

namespace assay {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr Direction kRow = Direction::rowwise, kColumn = Direction::columnwise;

struct Layer {
  const char* name;
  void (*swizzle)(Recipe, Direction, std::int64_t, std::int64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>);
  void (*unswizzle)(Recipe, Direction, std::int64_t, std::int64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>);
};
void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.name; }

const Layer kLayers[] = {{"fast", swizzle_scales, unswizzle_scales},
                         {"scalar", scalar::swizzle_scales, scalar::unswizzle_scales}};

class Swizzle : public testing::TestWithParam<Layer> {};
INSTANTIATE_TEST_SUITE_P(Layers, Swizzle, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() | 1);  // never 0, so that padding shows
  return bytes;
}

// `source` seen with extents `view`, its axes put in `order`, and flattened.
Bytes permuted(const Bytes& source, const std::int64_t (&view)[5], const int (&order)[5]) {
  std::int64_t strides[5] = {0, 0, 0, 0, 1};
  for (int axis = 3; axis >= 0; --axis) strides[axis] = strides[axis + 1] * view[axis + 1];
  Bytes result;
  result.reserve(source.size());
  std::int64_t at[5];
  for (at[0] = 0; at[0] < view[order[0]]; ++at[0])
    for (at[1] = 0; at[1] < view[order[1]]; ++at[1])
      for (at[2] = 0; at[2] < view[order[2]]; ++at[2])
        for (at[3] = 0; at[3] < view[order[3]]; ++at[3])
          for (at[4] = 0; at[4] < view[order[4]]; ++at[4]) {
            std::int64_t index = 0;
            for (int axis = 0; axis < 5; ++axis) index += at[axis] * strides[order[axis]];
            result.push_back(source[index]);
          }
  return result;
}

// Second route: padding zeroed, then views and permutations.
Bytes expected(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns, Bytes compact) {
  const ScaleShape shape = scale_shape(recipe, direction, rows, columns);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      if (r >= shape.used_rows || c >= shape.used_columns) compact[r * shape.columns + c] = 0;
    }
  }
  if (recipe == Recipe::mxfp8 && direction == kColumn) {
    return permuted(compact, {shape.rows / 4, 4, shape.columns / 128, 4, 32}, {2, 0, 4, 3, 1});
  }
  return permuted(compact, {shape.rows / 128, 4, 32, shape.columns / 4, 4}, {0, 3, 2, 1, 4});
}

struct Matrix {
  std::int64_t rows, columns;
};
// clang-format off
const Matrix kMatrices[] = {
    {0, 0},     {0, 64},    {64, 0},                 // nothing
    {128, 128}, {256, 512}, {1024, 1152},            // whole tiles
    {1, 1},     {1, 16},    {16, 48},                // one corner of a tile
    {65, 80},   {127, 400}, {129, 129},              // short last tiles
    {31, 33},   {32, 32},   {33, 31},    {257, 17},  // one either side of a block
    {2048, 4096},                                    // several ranges of tiles
};
// clang-format on

TEST_P(Swizzle, EqualsViewAndPermute) {
  for (const Recipe recipe : {Recipe::mxfp8, Recipe::nvfp4}) {
    for (const Direction direction : {kRow, kColumn}) {
      for (const auto& [rows, columns] : kMatrices) {
        const Bytes compact = random_bytes(scale_shape(recipe, direction, rows, columns).elements(), rows * 7 + columns);
        Bytes swizzled(compact.size(), 0xA5);
        GetParam().swizzle(recipe, direction, rows, columns, compact, swizzled);
        ASSERT_TRUE(swizzled == expected(recipe, direction, rows, columns, compact))
            << "recipe " << static_cast<int>(recipe) << " direction " << static_cast<int>(direction) << " of " << rows << " x "
            << columns;
      }
    }
  }
}

TEST_P(Swizzle, UnswizzleRestoresThePartInUseOnly) {
  for (const Recipe recipe : {Recipe::mxfp8, Recipe::nvfp4}) {
    for (const Direction direction : {kRow, kColumn}) {
      for (const auto& [rows, columns] : kMatrices) {
        const ScaleShape shape = scale_shape(recipe, direction, rows, columns);
        const Bytes compact = random_bytes(shape.elements(), rows * 5 + columns);
        const Bytes swizzled = expected(recipe, direction, rows, columns, compact);
        Bytes restored(compact.size(), 0xA4);
        GetParam().unswizzle(recipe, direction, rows, columns, swizzled, restored);
        for (std::int64_t r = 0; r < shape.rows; ++r) {
          for (std::int64_t c = 0; c < shape.columns; ++c) {
            const bool used = r < shape.used_rows && c < shape.used_columns;
            const std::int64_t at = r * shape.columns + c;
            ASSERT_EQ(restored[at], used ? compact[at] : 0xA4)
                << "recipe " << static_cast<int>(recipe) << " direction " << static_cast<int>(direction) << " of " << rows
                << " x " << columns << " at " << r << ", " << c;
          }
        }
      }
    }
  }
}

TEST(SwizzledIndex, KnownPlaces) {
  EXPECT_EQ(swizzled_index(0, 0, 1), 0);
  EXPECT_EQ(swizzled_index(0, 3, 1), 3);
  EXPECT_EQ(swizzled_index(32, 0, 1), 4);
  EXPECT_EQ(swizzled_index(1, 0, 1), 16);
  EXPECT_EQ(swizzled_index(127, 3, 1), 511);
  EXPECT_EQ(swizzled_index(0, 4, 3), 512);
  EXPECT_EQ(swizzled_index(128, 0, 3), 1536);
  EXPECT_EQ(swizzled_index(std::int64_t{1} << 33, 0, 224), (std::int64_t{1} << 26) * 224 * 512);
}

TEST(SwizzledIndex, IsAPermutation) {
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 384; ++i) {
    for (std::int64_t j = 0; j < 12; ++j) seen.insert(swizzled_index(i, j, 3));
  }
  EXPECT_EQ(seen.size(), 384u * 12u);
  EXPECT_EQ(*seen.rbegin(), 384 * 12 - 1);
}

TEST_P(Swizzle, ErrorsLeaveTheOutput) {
  Bytes compact(1024, 1), output(1024, 0xA5);
  const auto error = [&](Recipe recipe, std::int64_t rows, std::int64_t columns, std::span<const std::uint8_t> from,
                         std::span<std::uint8_t> to, bool inverse) {
    try {
      (inverse ? GetParam().unswizzle : GetParam().swizzle)(recipe, kRow, rows, columns, from, to);
    } catch (const InvalidArgument& thrown) {
      return std::string(thrown.what());
    }
    return std::string();
  };
  using Span = std::span<std::uint8_t>;
  const Span whole(compact), half = whole.first(512), out(output), out_half = out.first(512);
  const std::string recipes = "expected mxfp8 (4) or nvfp4 (5), whose scales can be swizzled";
  EXPECT_EQ(error(Recipe::block_1x128, 128, 128, half, out_half, false), "recipe is 2: " + recipes);
  EXPECT_EQ(error(Recipe::tensor_current, 128, 128, half, out_half, true), "recipe is 0: " + recipes);
  EXPECT_EQ(error(static_cast<Recipe>(9), 1, 1, half, out_half, false), "recipe is 9: expected a recipe (0 to 5)");
  EXPECT_EQ(error(Recipe::mxfp8, -1, 128, half, out_half, false), "rows is -1: expected a value of at least 0");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, whole, out_half, false), "compact.size() is 1024: expected 512, the padded scales");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, half, out, false), "swizzled.size() is 1024: expected 512, the padded scales");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, whole, out_half, true), "swizzled.size() is 1024: expected 512, the padded scales");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, Span(), out_half, false), "compact.size() is 0: expected 512, the padded scales");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, Span(static_cast<std::uint8_t*>(nullptr), 512), out_half, false),
            "compact is null: expected a buffer");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, half, Span(static_cast<std::uint8_t*>(nullptr), 512), false),
            "swizzled is null: expected a buffer");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, out.subspan(511, 512), out_half, false),
            "swizzled is a pointer: expected a buffer apart from compact");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, out.subspan(1, 512), out_half, true),
            "swizzled is a pointer: expected a buffer apart from compact");
  EXPECT_EQ(error(Recipe::mxfp8, 128, 128, out_half, out.subspan(511, 512), false),
            "swizzled is a pointer: expected a buffer apart from compact");
  EXPECT_EQ(output, Bytes(1024, 0xA5));
  EXPECT_EQ(compact, Bytes(1024, 1));
}

TEST_P(Swizzle, BuffersMayTouch) {
  Bytes both(1024, 1);
  GetParam().swizzle(Recipe::mxfp8, kRow, 128, 128, std::span(both).first(512), std::span(both).last(512));
  GetParam().unswizzle(Recipe::mxfp8, kRow, 128, 128, std::span(both).last(512), std::span(both).first(512));
  EXPECT_EQ(both, Bytes(1024, 1));
}

}  // namespace
}  // namespace assay
