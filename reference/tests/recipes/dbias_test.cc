// dbias: the order of the sums, distinguished from other orders, and both layers against a second route.

#include "reference/recipes/dbias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "reference/tests/recipes/fp8_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace fp8_suite;

struct DbiasLayer {
  const char* name;
  void (*sum)(const DbiasProblem&, void*);
};
constexpr DbiasLayer kLayers[] = {{"scalar", scalar::grouped_dbias}, {"fast", grouped_dbias}};

// a + b in f32: a double holds the sum to more than twice f32's precision, so that rounding it again is harmless.
double add(double a, double b) { return static_cast<float>(a + b); }

// ---- Orders of a sum
// --------------------------------------------------------------------------------------------------

using Order = double (*)(const std::vector<double>&);

double in_sequence(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0, add); }

double part(const std::vector<double>& x, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < std::min(to, x.size()); ++i) sum = add(sum, x[i]);
  return sum;
}

double contract(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t tile = 0; tile < x.size(); tile += 128)
    sum = add(sum, add(part(x, tile, tile + 64), part(x, tile + 64, tile + 128)));
  return sum;
}

double whole_tiles(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t tile = 0; tile < x.size(); tile += 128) sum = add(sum, part(x, tile, tile + 128));
  return sum;
}

double tiles_from_the_end(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t tile = (x.size() + 127) / 128; tile-- > 0;) {
    sum = add(sum, add(part(x, 128 * tile, 128 * tile + 64), part(x, 128 * tile + 64, 128 * tile + 128)));
  }
  return sum;
}

double halves_in_sequence(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t half = 0; half < x.size(); half += 64) sum = add(sum, part(x, half, half + 64));
  return sum;
}

double even_and_odd_rows(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t tile = 0; tile < x.size(); tile += 128) {
    double even = 0, odd = 0;
    for (std::size_t i = tile; i < std::min(tile + 128, x.size()); ++i) (i % 2 ? odd : even) = add(i % 2 ? odd : even, x[i]);
    sum = add(sum, add(even, odd));
  }
  return sum;
}

double lanes_of_32(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t tile = 0; tile < x.size(); tile += 128) {
    double lanes = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      double own = 0;
      for (std::size_t i = tile + lane; i < std::min(tile + 128, x.size()); i += 32) own = add(own, x[i]);
      lanes = add(lanes, own);
    }
    sum = add(sum, lanes);
  }
  return sum;
}

double tree(const std::vector<double>& x) {
  std::vector<double> level = x;
  while (level.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i < level.size(); i += 2)
      next.push_back(i + 1 < level.size() ? add(level[i], level[i + 1]) : level[i]);
    level = next;
  }
  return level.empty() ? 0 : level[0];
}

double rounded_once(const std::vector<double>& x) { return static_cast<float>(std::accumulate(x.begin(), x.end(), 0.0)); }

// A column for which every other order gives other bits; both layers must follow the specified one.
TEST(DbiasOrder, IsToldFromEveryOther) {
  constexpr std::int64_t kRows = 400;  // three tiles and one of 16 rows
  constexpr std::int64_t kColumns = 300;
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t random = block_scaled::draw(3, i);
    x[i] = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random)), -static_cast<int>(random >> 60));
  }
  const std::pair<const char*, Order> others[] = {{"in sequence", in_sequence},
                                                  {"tiles of 128 in sequence", whole_tiles},
                                                  {"tiles from the end", tiles_from_the_end},
                                                  {"halves in sequence", halves_in_sequence},
                                                  {"even and odd rows", even_and_odd_rows},
                                                  {"32 lanes", lanes_of_32},
                                                  {"a tree", tree},
                                                  {"rounded once", rounded_once}};
  std::vector<int> reported(std::size(others), 0);
  for (const DbiasLayer& layer : kLayers) {
    std::vector<float> sums(kColumns);
    layer.sum({Format::f32, x.data(), kRows, kColumns, false, {}, Format::f32}, sums.data());
    for (std::int64_t c = 0; c < kColumns; ++c) {
      std::vector<double> column;
      for (std::int64_t r = 0; r < kRows; ++r) column.push_back(x[static_cast<std::size_t>(r * kColumns + c)]);
      ASSERT_EQ(sums[static_cast<std::size_t>(c)], static_cast<float>(contract(column))) << layer.name << " column " << c;
      for (std::size_t o = 0; o < std::size(others); ++o) reported[o] += others[o].second(column) != contract(column);
    }
  }
  for (std::size_t o = 0; o < std::size(others); ++o)
    EXPECT_GT(reported[o], 100) << "these data do not tell the order from " << others[o].first;
}

// ---- Shapes and types
// -------------------------------------------------------------------------------------------------

std::uint16_t nearest_16_bits(Format type, double x) {
  if (std::isnan(x)) return 0x7fff;
  const int mantissa = type == Format::bf16 ? 7 : 10, bias = type == Format::bf16 ? 127 : 15;
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0, infinity = type == Format::bf16 ? 0x7f80 : 0x7c00;
  const double a = std::fabs(x);
  if (std::isinf(a)) return sign | infinity;
  const int exponent = a < std::ldexp(1, 1 - bias) ? 1 - bias : std::ilogb(a);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(a, mantissa - exponent)));
  return sign | static_cast<std::uint16_t>(std::min(((exponent + bias - 1) << mantissa) + units, static_cast<int>(infinity)));
}

// Of every group, onto poison.
std::vector<std::uint8_t> expected_dbias(const block_scaled::Case& c, Format output) {
  const std::size_t width = output == Format::f32 ? 4 : 2;
  std::vector<std::uint8_t> bytes;
  std::int64_t first_row = 0;
  for (const std::int64_t rows : c.splits) {
    for (std::int64_t k = 0; k < c.columns; ++k) {
      std::vector<double> column;
      for (std::int64_t r = 0; r < rows; ++r)
        column.push_back(block_scaled::exact_value(c.x_type, block_scaled::element_bits(c, first_row + r, k)));
      const double sum = contract(column);
      const std::uint32_t f32 = std::isnan(sum) ? 0x7fff'ffffu : std::bit_cast<std::uint32_t>(static_cast<float>(sum));
      const std::uint32_t bits = output == Format::f32 ? f32 : nearest_16_bits(output, sum);
      const auto* const from = reinterpret_cast<const std::uint8_t*>(&bits);
      bytes.insert(bytes.end(), from, from + width);
    }
    first_row += rows;
  }
  return bytes;
}

class Dbias : public ::testing::TestWithParam<block_scaled::Case> {};

TEST_P(Dbias, BothLayersEqualTheSecondRoute) {
  const block_scaled::Case& c = GetParam();
  const block_scaled::Input input = block_scaled::make_input(c);
  for (const Format output : {Format::f32, Format::bf16, Format::f16}) {
    const std::vector<std::uint8_t> want = expected_dbias(c, output);
    for (const DbiasLayer& layer : kLayers) {
      for (const std::uint8_t poison : {0xa5, 0xff}) {
        Guarded dbias(static_cast<std::int64_t>(want.size()), poison);
        layer.sum({c.x_type, input.x.data(), c.rows(), c.columns, c.grouped, c.splits, output}, dbias.data());
        EXPECT_TRUE(same_bytes(dbias.take("dbias"), want)) << layer.name << " " << name_of(output);
      }
    }
  }
}

// Fused with each recipe: the same sums, in the type of x.
TEST_P(Dbias, FusedWithEveryRecipe) {
  Case c;
  c.x = GetParam();
  c.dbias = true;
  c.scale.assign(c.x.splits.size(), 1.0f);
  for (const std::string_view name : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    c.recipe = *recipe_named(name);
    if (c.recipe == Recipe::nvfp4) c.x.columnwise = false;  // odd numbers of rows cannot be packed
    if (c.recipe == Recipe::nvfp4 && c.x.columns % 2 != 0) continue;
    const std::vector<std::uint8_t> want = expected_dbias(c.x, c.x.x_type);
    for (const Layer layer : {Layer::scalar, Layer::fast}) {
      EXPECT_TRUE(same_bytes(run(c, layer, 0xa5).dbias, want)) << name << (layer == Layer::fast ? " fast" : " scalar");
    }
  }
}

// clang-format off
const block_scaled::Case kCases[] = {
    {.x_type = Format::f32, .splits = {64}, .columns = 16, .grouped = false},
    {.x_type = Format::f32,
     .splits = {0, 1, 63, 64, 65, 127, 128, 129, 0},
     .columns = 20},                                                                     // short halves, empty groups
    {.x_type = Format::bf16, .splits = {300, 0, 17}, .columns = 257, .rows_beyond = 5},  // strips of columns
    {.x_type = Format::f16, .splits = {200, 100}, .columns = 48, .pattern = Pattern::tiny},
    {.x_type = Format::f32, .splits = {200, 100}, .columns = 48, .pattern = Pattern::wide},      // sums that overflow
    {.x_type = Format::bf16, .splits = {90, 100}, .columns = 48, .pattern = Pattern::specials},  // NaN, infinities
    {.x_type = Format::f16, .splits = {90, 100}, .columns = 48, .pattern = Pattern::specials},
    {.x_type = Format::bf16, .splits = {5}, .columns = 8, .pattern = Pattern::zeros},  // -0 summed from 0 is +0
    {.x_type = Format::f32, .splits = {}, .columns = 8},
    {.x_type = Format::f32, .splits = {3, 4}, .columns = 0},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Cases, Dbias, ::testing::ValuesIn(kCases));

// ---- Errors ---------------------------------------------------------------------------------------------------------

TEST(DbiasErrors, NameTheArgumentAndWriteNothing) {
  struct Bad {
    const char* argument;
    void (*spoil)(DbiasProblem&);
  };
  static const std::int64_t negative[] = {2, -1}, too_many[] = {2, 3};
  const Bad bad[] = {
      {"x_type", [](DbiasProblem& p) { p.x_type = Format::e4m3; }},
      {"output_type", [](DbiasProblem& p) { p.output_type = Format::i32; }},
      {"rows", [](DbiasProblem& p) { p.rows = -1; }},
      {"columns", [](DbiasProblem& p) { p.columns = -4; }},
      {"rows", [](DbiasProblem& p) { p.rows = std::int64_t{1} << 60; }},
      {"splits[1]", [](DbiasProblem& p) { p.splits = negative; }},
      {"splits[1]", [](DbiasProblem& p) { p.splits = too_many; }},
      {"x", [](DbiasProblem& p) { p.x = nullptr; }},
      {"x", [](DbiasProblem& p) { p.x = static_cast<const char*>(p.x) + 1; }},
  };
  static const std::int64_t splits[] = {2, 2};
  for (const DbiasLayer& layer : kLayers) {
    for (const Bad& each : bad) {
      const std::vector<float> x(4 * 8, 1.0f);
      std::vector<float> dbias(2 * 8, -3.0f);
      DbiasProblem problem = {Format::f32, x.data(), 4, 8, true, splits, Format::f32};
      each.spoil(problem);
      try {
        layer.sum(problem, dbias.data());
        FAIL() << layer.name << ": no error for " << each.argument;
      } catch (const InvalidArgument& error) {
        EXPECT_EQ(error.argument(), each.argument) << layer.name;
      }
      EXPECT_EQ(dbias, std::vector<float>(2 * 8, -3.0f)) << layer.name;
    }
    const std::vector<float> x(4 * 8, 1.0f);
    EXPECT_THROW(layer.sum({Format::f32, x.data(), 4, 8, true, splits, Format::f32}, nullptr), InvalidArgument);
  }
}

}  // namespace
}  // namespace assay
