// From codes and scales back to values: per-tensor and block recipes against a second route; the calls that every recipe refuses.

#include "reference/recipes/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "reference/tests/recipes/fp8_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace fp8_suite;

struct DequantizeLayer {
  const char* name;
  void (*dequantize)(const DequantizeProblem&, void*);
};
constexpr DequantizeLayer kLayers[] = {{"scalar", scalar::dequantize}, {"fast", dequantize}};

struct DequantizeCase {
  Recipe recipe = Recipe::block_1x128;
  Format data_type = Format::e4m3;
  std::vector<std::int64_t> splits = {};
  std::int64_t columns = 0;
  std::int64_t rows_beyond = 0;
  bool grouped = true;

  std::int64_t rows() const { return std::accumulate(splits.begin(), splits.end(), rows_beyond); }
};
void PrintTo(const DequantizeCase& c, std::ostream* out) {
  *out << name_of(c.recipe) << " " << name_of(c.data_type) << " rows=";
  for (std::size_t t = 0; t < c.splits.size(); ++t) *out << (t ? "+" : "") << c.splits[t];
  *out << " columns=" << c.columns << " beyond=" << c.rows_beyond;
}

double value_of(Format type, std::uint8_t code) {
  const int magnitude = code & 0x7f;
  const double sign = code & 0x80 ? -1 : 1;
  if (type == Format::e4m3 && magnitude == 0x7f) return NAN;
  if (type == Format::e5m2 && magnitude > 0x7c) return NAN;
  if (type == Format::e5m2 && magnitude == 0x7c) return sign * INFINITY;
  return sign * code_values(type)[static_cast<std::size_t>(magnitude)];
}

// Bits of x, a value of f32, in an output type.
std::uint32_t rounded(Format type, double x) {
  if (std::isnan(x)) return type == Format::f32 ? 0x7fff'ffffu : 0x7fffu;
  if (type == Format::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  const int mantissa = type == Format::bf16 ? 7 : 10, bias = type == Format::bf16 ? 127 : 15;
  const std::uint32_t sign = std::signbit(x) ? 0x8000 : 0, infinity = type == Format::bf16 ? 0x7f80 : 0x7c00;
  const double a = std::fabs(x);
  if (std::isinf(a)) return sign | infinity;
  const int exponent = a < std::ldexp(1, 1 - bias) ? 1 - bias : std::ilogb(a);
  const auto units = static_cast<std::int64_t>(std::nearbyint(std::ldexp(a, mantissa - exponent)));
  return sign | static_cast<std::uint32_t>(std::min<std::int64_t>(((exponent + bias - 1) << mantissa) + units, infinity));
}

class Dequantize : public ::testing::TestWithParam<DequantizeCase> {};

// Every code, with scales of every size, including NaN and infinity.
TEST_P(Dequantize, BothLayersEqualTheSecondRoute) {
  const DequantizeCase& c = GetParam();
  std::vector<std::uint8_t> data(static_cast<std::size_t>(c.rows() * c.columns));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(block_scaled::draw(1, i));

  for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
    const bool rowwise = direction == Direction::rowwise;
    const auto offsets = scale_offsets(c.recipe, direction, c.splits, c.columns);
    std::vector<float> scales(static_cast<std::size_t>(offsets.back()));
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::uint64_t random = block_scaled::draw(2, i);
      const int exponent =
          (random >> 32 & 7) == 0 ? static_cast<int>(random >> 35 & 255) - 140 : static_cast<int>(random >> 35 & 15) - 8;
      scales[i] = std::ldexp(1 + static_cast<float>(random & 0x7fffff) / 0x800000, exponent);
      if ((random >> 50 & 31) == 0) scales[i] = NAN;
      if ((random >> 50 & 31) == 1) scales[i] = INFINITY;
    }
    for (const Format output : {Format::f32, Format::bf16, Format::f16}) {
      const std::size_t width = output == Format::f32 ? 4 : 2;
      for (const std::uint8_t poison : {0xa5, 0xff}) {
        std::vector<std::uint8_t> want(data.size() * width, poison);
        std::int64_t first_row = 0;
        for (std::size_t t = 0; t < c.splits.size(); ++t) {
          const std::int64_t rows = c.splits[t], base = first_row * c.columns;
          const auto up4 = [](std::int64_t n) { return (n + 3) / 4 * 4; };
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t k = 0; k < c.columns; ++k) {
              std::int64_t scale = 0;
              if (c.recipe == Recipe::block_1x128) scale = rowwise ? k / 128 * up4(rows) + r : r / 128 * up4(c.columns) + k;
              if (c.recipe == Recipe::block_128x128) {
                scale = rowwise ? r / 128 * up4((c.columns + 127) / 128) + k / 128 : k / 128 * up4((rows + 127) / 128) + r / 128;
              }
              const double code =
                  value_of(c.data_type, data[static_cast<std::size_t>(base + (rowwise ? r * c.columns + k : k * rows + r))]);
              const double product =
                  static_cast<float>(code * static_cast<double>(scales[static_cast<std::size_t>(offsets[t] + scale)]));
              const std::uint32_t bits = rounded(output, product);
              std::memcpy(want.data() + static_cast<std::size_t>(base + r * c.columns + k) * width, &bits, width);
            }
          }
          first_row += rows;
        }
        for (const DequantizeLayer& layer : kLayers) {
          Guarded y(static_cast<std::int64_t>(want.size()), poison);
          DequantizeProblem problem;
          problem.recipe = c.recipe;
          problem.data_type = c.data_type;
          problem.output_type = output;
          problem.direction = direction;
          problem.rows = c.rows();
          problem.columns = c.columns;
          problem.grouped = c.grouped;
          problem.splits = c.splits;
          problem.data = data.data();
          problem.scale_inv = scales.data();
          layer.dequantize(problem, y.data());
          EXPECT_TRUE(same_bytes(y.take("y"), want))
              << layer.name << " " << name_of(output) << (rowwise ? " rowwise" : " columnwise");
        }
      }
    }
  }
}

std::vector<DequantizeCase> dequantize_cases() {
  const std::pair<std::vector<std::int64_t>, std::int64_t> shapes[] = {
      {{1}, 1}, {{33}, 272}, {{129}, 127}, {{0, 1, 127, 128, 129, 0}, 144}, {{300, 5}, 130}, {{}, 16}, {{2, 3}, 0}, {{1000}, 1}};
  std::vector<DequantizeCase> cases;
  for (const Recipe recipe : {Recipe::tensor_current, Recipe::tensor_delayed, Recipe::block_1x128, Recipe::block_128x128}) {
    for (const Format type : {Format::e4m3, Format::e5m2}) {
      for (const auto& [splits, columns] : shapes) {
        const bool grouped = splits.size() != 1;
        cases.push_back({recipe, type, splits, columns, grouped ? 3 : 0, grouped});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Dequantize, ::testing::ValuesIn(dequantize_cases()));

// What quantize stores, dequantize reads: values that the format has, under power-of-two scales, come back exactly.
TEST(DequantizeRoundTrip, ValuesOfTheFormatComeBack) {
  const std::vector<std::int64_t> splits = {129, 0, 70};
  constexpr std::int64_t kRows = 199, kColumns = 272;
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t random = block_scaled::draw(9, i);
    x[i] = static_cast<float>((random & 1 ? -1 : 1) * (8 + static_cast<int>(random >> 1 & 7))) *
           std::ldexp(1.0f, static_cast<int>(random >> 4 & 7));
  }
  for (const Recipe recipe : {Recipe::tensor_current, Recipe::block_1x128, Recipe::block_128x128}) {
    QuantizeProblem problem;
    problem.config = {.recipe = recipe, .columnwise = true, .force_pow_2_scales = true};
    problem.x_type = Format::f32;
    problem.x = x.data();
    problem.rows = kRows;
    problem.columns = kColumns;
    problem.grouped = true;
    problem.splits = splits;
    const QuantizeShapes shapes = quantize_outputs(problem);
    std::vector<std::uint8_t> rowwise(x.size()), columnwise(x.size());
    std::vector<float> row_scales(static_cast<std::size_t>(shapes.rowwise_scale_inv.elements()));
    std::vector<float> column_scales(static_cast<std::size_t>(shapes.columnwise_scale_inv.elements()));
    QuantizeOutput output;
    output.rowwise_data = rowwise.data();
    output.columnwise_data = columnwise.data();
    output.rowwise_scale_inv = row_scales.data();
    output.columnwise_scale_inv = column_scales.data();
    quantize(problem, output);
    for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
      const bool is_rowwise = direction == Direction::rowwise;
      std::vector<float> y(x.size());
      DequantizeProblem back;
      back.recipe = recipe;
      back.direction = direction;
      back.rows = kRows;
      back.columns = kColumns;
      back.grouped = true;
      back.splits = splits;
      back.data = is_rowwise ? rowwise.data() : columnwise.data();
      back.scale_inv = is_rowwise || recipe == Recipe::tensor_current ? row_scales.data() : column_scales.data();
      for (const DequantizeLayer& layer : kLayers) {
        std::fill(y.begin(), y.end(), 0.0f);
        layer.dequantize(back, y.data());
        EXPECT_EQ(y, x) << name_of(recipe) << " " << layer.name << (is_rowwise ? " rowwise" : " columnwise");
      }
    }
  }
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

TEST(DequantizeErrors, NameTheArgumentAndWriteNothing) {
  struct Bad {
    const char* argument;
    void (*spoil)(DequantizeProblem&);
  };
  static const std::int64_t negative[] = {-1, 2}, too_many[] = {3, 2}, odd[] = {1, 3};
  const auto nvfp4 = [](DequantizeProblem& p) {
    p.recipe = Recipe::nvfp4;
    p.data_type = Format::e2m1;
    static const float amax[2] = {1, 1};
    p.amax = amax;
  };
  static const auto make_nvfp4 = nvfp4;
  const Bad bad[] = {
      {"recipe", [](auto& p) { p.recipe = static_cast<Recipe>(6); }},
      {"direction", [](auto& p) { p.direction = static_cast<Direction>(2); }},
      {"data_type", [](auto& p) { p.data_type = Format::e2m1; }},
      {"data_type", [](auto& p) { p.recipe = Recipe::nvfp4; }},
      {"output_type", [](auto& p) { p.output_type = Format::e4m3; }},
      {"scale_layout", [](auto& p) { p.scale_layout = ScaleLayout::swizzled; }},
      {"nvfp4_e4m3_max", [](auto& p) { p.nvfp4_e4m3_max = 256; }},
      {"rows", [](auto& p) { p.rows = -1; }},
      {"columns", [](auto& p) { p.columns = -1; }},
      {"rows", [](auto& p) { p.rows = std::int64_t{1} << 60; }},
      {"splits[0]", [](auto& p) { p.splits = negative; }},
      {"splits[1]", [](auto& p) { p.splits = too_many; }},
      {"data", [](auto& p) { p.data = nullptr; }},
      {"scale_inv", [](auto& p) { p.scale_inv = nullptr; }},
      {"scale_inv", [](auto& p) { p.scale_inv = static_cast<const char*>(p.scale_inv) + 2; }},
      {"amax", [](auto& p) { make_nvfp4(p), p.amax = nullptr; }},
      {"columns", [](auto& p) { make_nvfp4(p), p.columns = 3; }},
      {"splits[0]", [](auto& p) { make_nvfp4(p), p.direction = Direction::columnwise, p.splits = odd; }},
      {"nvfp4_e4m3_max", [](auto& p) { make_nvfp4(p), p.nvfp4_e4m3_max = 240; }},
  };
  static const std::int64_t splits[] = {2, 2};
  for (const DequantizeLayer& layer : kLayers) {
    for (const Bad& each : bad) {
      const std::vector<std::uint8_t> data(4 * 4, 0x38);
      const std::vector<float> scales(1024, 1.0f);
      std::vector<float> y(4 * 4, -3.0f);
      DequantizeProblem problem;
      problem.rows = 4;
      problem.columns = 4;
      problem.grouped = true;
      problem.splits = splits;
      problem.data = data.data();
      problem.scale_inv = scales.data();
      each.spoil(problem);
      try {
        layer.dequantize(problem, y.data());
        FAIL() << layer.name << ": no error for " << each.argument;
      } catch (const InvalidArgument& error) {
        EXPECT_EQ(error.argument(), each.argument) << layer.name << ": " << error.what();
      }
      EXPECT_EQ(y, std::vector<float>(4 * 4, -3.0f)) << layer.name << " " << each.argument;
    }
  }
}

}  // namespace
}  // namespace assay
