// Scale shapes against the tables of spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1, by hand, and against a count of blocks.

#include "reference/layout/scale_shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <string>

#include "reference/types/error.h"

namespace assay {
namespace {

using Values = std::vector<std::int64_t>;
constexpr Direction kRow = Direction::rowwise, kColumn = Direction::columnwise;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

const Recipe kRecipes[] = {Recipe::tensor_current, Recipe::tensor_delayed, Recipe::block_1x128,
                           Recipe::block_128x128,  Recipe::mxfp8,          Recipe::nvfp4};

struct Known {
  Recipe recipe;
  Direction direction;
  std::int64_t rows, columns;
  ScaleShape shape;
};

const Known kKnown[] = {
    {Recipe::tensor_current, kRow, 33, 272, {1, 1, 1, 1}},
    {Recipe::tensor_delayed, kColumn, 0, 0, {1, 1, 1, 1}},
    // Recorded by the vendor's library for 33 x 272 and 130 x 144.
    {Recipe::block_1x128, kRow, 33, 272, {3, 36, 3, 33}},
    {Recipe::block_1x128, kColumn, 33, 272, {1, 272, 1, 272}},
    {Recipe::block_1x128, kRow, 130, 144, {2, 132, 2, 130}},
    {Recipe::block_1x128, kColumn, 130, 144, {2, 144, 2, 144}},
    {Recipe::block_128x128, kRow, 33, 272, {1, 4, 1, 3}},
    {Recipe::block_128x128, kColumn, 33, 272, {3, 4, 3, 1}},
    {Recipe::block_128x128, kRow, 130, 144, {2, 4, 2, 2}},
    {Recipe::block_128x128, kColumn, 130, 144, {2, 4, 2, 2}},
    // One either side of a block; columns that are no multiple of 4.
    {Recipe::block_1x128, kColumn, 128, 30, {1, 32, 1, 30}},
    {Recipe::block_1x128, kColumn, 129, 30, {2, 32, 2, 30}},
    {Recipe::block_128x128, kRow, 127, 513, {1, 8, 1, 5}},
    {Recipe::block_128x128, kColumn, 1024, 127, {1, 8, 1, 8}},
    {Recipe::mxfp8, kRow, 1, 16, {128, 4, 1, 1}},
    {Recipe::mxfp8, kColumn, 1, 16, {4, 128, 1, 16}},
    {Recipe::mxfp8, kRow, 127, 400, {128, 16, 127, 13}},
    {Recipe::mxfp8, kColumn, 127, 400, {4, 512, 4, 400}},
    {Recipe::mxfp8, kRow, 129, 129, {256, 8, 129, 5}},
    {Recipe::mxfp8, kColumn, 129, 129, {8, 256, 5, 129}},
    {Recipe::nvfp4, kRow, 16, 64, {128, 4, 16, 4}},
    {Recipe::nvfp4, kColumn, 16, 64, {128, 4, 64, 1}},
    {Recipe::nvfp4, kRow, 129, 80, {256, 8, 129, 5}},
    {Recipe::nvfp4, kColumn, 129, 80, {128, 12, 80, 9}},
    // Without rows or columns there is no block.
    {Recipe::block_1x128, kRow, 0, 272, {3, 0, 3, 0}},
    {Recipe::block_1x128, kColumn, 0, 272, {0, 272, 0, 272}},
    {Recipe::block_128x128, kColumn, 0, 272, {3, 0, 3, 0}},
    {Recipe::mxfp8, kRow, 0, 64, {0, 4, 0, 2}},
    {Recipe::mxfp8, kColumn, 0, 64, {0, 128, 0, 64}},
    {Recipe::nvfp4, kColumn, 0, 64, {128, 0, 64, 0}},
    {Recipe::mxfp8, kRow, 5, 0, {128, 0, 5, 0}},
    {Recipe::nvfp4, kRow, 0, 0, {0, 0, 0, 0}},
};

std::string text_of(const ScaleShape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.columns) + " used " + std::to_string(s.used_rows) + "x" +
         std::to_string(s.used_columns);
}

TEST(ScaleShape, Known) {
  for (const Known& known : kKnown) {
    EXPECT_EQ(text_of(scale_shape(known.recipe, known.direction, known.rows, known.columns)), text_of(known.shape))
        << "recipe " << static_cast<int>(known.recipe) << " direction " << static_cast<int>(known.direction) << " of "
        << known.rows << " x " << known.columns;
  }
}

// Where the scale of element (m, k) lies in the stored matrix, by recipe.
struct Place {
  std::int64_t row, column;
  bool operator<(const Place& other) const { return std::pair(row, column) < std::pair(other.row, other.column); }
};
Place place_of(Recipe recipe, Direction direction, std::int64_t m, std::int64_t k) {
  const bool row = direction == kRow;
  switch (recipe) {
    case Recipe::block_1x128: return row ? Place{k / 128, m} : Place{m / 128, k};
    case Recipe::block_128x128: return row ? Place{m / 128, k / 128} : Place{k / 128, m / 128};
    case Recipe::mxfp8: return row ? Place{m, k / 32} : Place{m / 32, k};
    case Recipe::nvfp4: return row ? Place{m, k / 16} : Place{k, m / 16};
    default: return {0, 0};
  }
}

// Padding units of the stored rows and columns.
Place unit_of(Recipe recipe, Direction direction) {
  switch (recipe) {
    case Recipe::block_1x128:
    case Recipe::block_128x128: return {1, 4};
    case Recipe::mxfp8: return direction == kRow ? Place{128, 4} : Place{4, 128};
    case Recipe::nvfp4: return {128, 4};
    default: return {1, 1};
  }
}

std::int64_t padded(std::int64_t extent, std::int64_t unit) {
  while (extent % unit != 0) ++extent;
  return extent;
}

TEST(ScaleShape, HoldsExactlyTheScalesOfTheElements) {
  for (const Recipe recipe : kRecipes) {
    for (const Direction direction : {kRow, kColumn}) {
      for (const std::int64_t rows : {1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 257}) {
        for (const std::int64_t columns : {1, 3, 16, 31, 33, 64, 128, 130, 272}) {
          std::set<Place> places;
          Place last = {0, 0};
          for (std::int64_t m = 0; m < rows; ++m) {
            for (std::int64_t k = 0; k < columns; ++k) {
              const Place place = place_of(recipe, direction, m, k);
              places.insert(place);
              last = {std::max(last.row, place.row), std::max(last.column, place.column)};
            }
          }
          const Place unit = unit_of(recipe, direction);
          const ScaleShape want = {padded(last.row + 1, unit.row), padded(last.column + 1, unit.column), last.row + 1,
                                   last.column + 1};
          const ScaleShape got = scale_shape(recipe, direction, rows, columns);
          ASSERT_EQ(text_of(got), text_of(want)) << "recipe " << static_cast<int>(recipe) << " of " << rows << " x " << columns;
          ASSERT_EQ(got.used_rows * got.used_columns, static_cast<std::int64_t>(places.size()));
          ASSERT_EQ(got.elements(), want.rows * want.columns);
        }
      }
    }
  }
}

// Elements of one group's scales by the formulas of the grouped GEMM (spec layouts-2.1), f and l being its extents.
std::int64_t up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
std::int64_t blocks(std::int64_t value, std::int64_t block) { return (value + block - 1) / block; }
std::int64_t gemm_scale_elements(Recipe recipe, Direction direction, std::int64_t f, std::int64_t l) {
  const bool row = direction == kRow;
  switch (recipe) {
    case Recipe::block_1x128: return row ? blocks(l, 128) * up(f, 4) : blocks(f, 128) * up(l, 4);
    case Recipe::block_128x128: return row ? blocks(f, 128) * up(blocks(l, 128), 4) : blocks(l, 128) * up(blocks(f, 128), 4);
    case Recipe::mxfp8: return row ? up(f, 128) * up(blocks(l, 32), 4) : up(l, 128) * up(blocks(f, 32), 4);
    case Recipe::nvfp4: return row ? up(f, 128) * up(blocks(l, 16), 4) : up(l, 128) * up(blocks(f, 16), 4);
    default: return 1;
  }
}

// Base of group t by closed forms (spec fp8-block-2.1), from the groups before it.
std::int64_t block_scale_base(Recipe recipe, Direction direction, const Values& splits, std::size_t t, std::int64_t K) {
  const std::int64_t bx = blocks(K, 128);
  std::int64_t padded_rows = 0, row_blocks = 0, padded_row_blocks = 0;
  for (std::size_t i = 0; i < t; ++i) {
    padded_rows += up(splits[i], 4);
    row_blocks += blocks(splits[i], 128);
    padded_row_blocks += up(blocks(splits[i], 128), 4);
  }
  if (recipe == Recipe::block_1x128) return direction == kRow ? bx * padded_rows : up(K, 4) * row_blocks;
  return direction == kRow ? up(bx, 4) * row_blocks : bx * padded_row_blocks;
}

const Values kSplits[] = {
    {},                            // no group
    {0},                           // one without rows
    {0, 0, 0},                     // all without rows
    {128, 256, 128},               // whole blocks
    {0, 128, 0, 256},              // empty ends and middle
    {128, 384, 0, 512},            // 1, 3, 0 and 4 row blocks: padding does not telescope
    {1, 127, 128, 129, 0, 3, 65},  // any number of rows
    {1021, 1, 1, 1},               // one group has nearly all rows
};

TEST(ScaleOffsets, EveryRecipeAndSplit) {
  for (const Values& splits : kSplits) {
    for (const Recipe recipe : kRecipes) {
      for (const Direction direction : {kRow, kColumn}) {
        for (const std::int64_t K : {16, 127, 128, 272, 513}) {
          const Values offsets = scale_offsets(recipe, direction, splits, K);
          ASSERT_EQ(offsets.size(), splits.size() + 1);
          std::int64_t sum = 0;
          for (std::size_t t = 0; t <= splits.size(); ++t) {
            ASSERT_EQ(offsets[t], sum) << "recipe " << static_cast<int>(recipe) << " K " << K << " group " << t;
            if (recipe == Recipe::block_1x128 || recipe == Recipe::block_128x128) {
              ASSERT_EQ(offsets[t], block_scale_base(recipe, direction, splits, t, K));
            }
            if (t < splits.size()) sum += gemm_scale_elements(recipe, direction, splits[t], K);
          }
        }
      }
    }
  }
}

// Totals recorded from the vendor's library: [direction][case] of splits {128,256,128} and {0,128,0,256}.
TEST(ScaleOffsets, RecordedTotals) {
  const Values whole = {128, 256, 128}, holes = {0, 128, 0, 256};
  const auto total = [](Recipe recipe, Direction direction, const Values& splits, std::int64_t K) {
    return scale_offsets(recipe, direction, splits, K).back();
  };
  EXPECT_EQ(total(Recipe::block_1x128, kRow, whole, 128), 512);
  EXPECT_EQ(total(Recipe::block_1x128, kColumn, whole, 128), 512);
  EXPECT_EQ(total(Recipe::block_1x128, kRow, whole, 272), 1536);
  EXPECT_EQ(total(Recipe::block_1x128, kColumn, whole, 272), 1088);
  EXPECT_EQ(total(Recipe::block_1x128, kRow, holes, 128), 384);
  EXPECT_EQ(total(Recipe::block_128x128, kRow, whole, 128), 16);
  EXPECT_EQ(total(Recipe::block_128x128, kColumn, whole, 128), 12);
  EXPECT_EQ(total(Recipe::block_128x128, kRow, holes, 128), 12);
  EXPECT_EQ(total(Recipe::block_128x128, kColumn, holes, 128), 8);
  EXPECT_EQ(total(Recipe::block_128x128, kRow, Values{256}, 272), 8);
  EXPECT_EQ(total(Recipe::block_128x128, kColumn, Values{256}, 272), 12);
}

TEST(ScaleOffsets, PastTwoToThe31) {
  const Values splits(100, 1 << 20);
  const Values offsets = scale_offsets(Recipe::mxfp8, kRow, splits, 7168);
  EXPECT_EQ(offsets[10], std::int64_t{10} * (1 << 20) * 224);
  EXPECT_EQ(offsets[100], std::int64_t{100} * (1 << 20) * 224);
  EXPECT_GT(offsets[10], std::int64_t{1} << 31);
}

TEST(ScaleFormat, OfEachRecipe) {
  EXPECT_EQ(scale_format(Recipe::tensor_current), Format::f32);
  EXPECT_EQ(scale_format(Recipe::tensor_delayed), Format::f32);
  EXPECT_EQ(scale_format(Recipe::block_1x128), Format::f32);
  EXPECT_EQ(scale_format(Recipe::block_128x128), Format::f32);
  EXPECT_EQ(scale_format(Recipe::mxfp8), Format::e8m0);
  EXPECT_EQ(scale_format(Recipe::nvfp4), Format::e4m3);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(ScaleShape, Errors) {
  const auto shape = [](Recipe recipe, std::int64_t rows, std::int64_t columns, Direction direction = kRow) {
    return error_of([&] { scale_shape(recipe, direction, rows, columns); });
  };
  const std::string most = std::to_string(kMost);
  EXPECT_EQ(shape(Recipe::mxfp8, -1, 8), "rows is -1: expected a value of at least 0");
  EXPECT_EQ(shape(Recipe::mxfp8, 1, -8), "columns is -8: expected a value of at least 0");
  EXPECT_EQ(shape(Recipe::tensor_current, -1, 8), "rows is -1: expected a value of at least 0");
  EXPECT_EQ(shape(static_cast<Recipe>(6), 1, 1), "recipe is 6: expected a recipe (0 to 5)");
  EXPECT_EQ(shape(Recipe::mxfp8, 1, 1, static_cast<Direction>(2)), "direction is 2: expected rowwise (0) or columnwise (1)");
  EXPECT_EQ(shape(Recipe::mxfp8, kMost, 32), "rows is " + most + ": expected an extent that fits int64 with its padding");
  EXPECT_EQ(shape(Recipe::nvfp4, 16, kMost, kColumn),
            "columns is " + most + ": expected an extent that fits int64 with its padding");
  EXPECT_EQ(shape(Recipe::block_1x128, kMost - 3, 512),
            "rows is " + std::to_string(kMost - 3) + ": expected a number of elements that fits int64");
  EXPECT_EQ(error_of([&] { scale_format(static_cast<Recipe>(77)); }), "recipe is 77: expected a recipe (0 to 5)");
}

TEST(ScaleOffsets, Errors) {
  const auto offsets = [](Recipe recipe, const Values& splits, std::int64_t columns) {
    return error_of([&] { scale_offsets(recipe, kRow, splits, columns); });
  };
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(offsets(Recipe::block_1x128, {1, -2}, 128), "splits[1] is -2: expected a value of at least 0");
  EXPECT_EQ(offsets(Recipe::tensor_current, {-2}, 128), "splits[0] is -2: expected a value of at least 0");
  EXPECT_EQ(offsets(Recipe::block_1x128, {}, -1), "columns is -1: expected a value of at least 0");
  EXPECT_EQ(offsets(static_cast<Recipe>(6), {}, 1), "recipe is 6: expected a recipe (0 to 5)");
  EXPECT_EQ(offsets(Recipe::block_1x128, {large, 4, large}, 128),
            "splits[2] is " + std::to_string(large) + ": expected a total that fits int64");
  EXPECT_EQ(offsets(Recipe::mxfp8, {0, large}, 128),
            "splits[1] is " + std::to_string(large) + ": expected a number of elements that fits int64");
}

}  // namespace
}  // namespace assay
