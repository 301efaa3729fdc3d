// NVFP4 against a second route (every operation in double and rounded once, codes by table search) and the two layers
// against each other, with all options.

#include "reference/recipes/nvfp4.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <sstream>

#include "reference/recipes/dequantize.h"
#include "reference/tests/recipes/block_scaled_case.h"
#include "reference/tests/recipes/nvfp4_second_route.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace block_scaled;

// Every byte that a quantization writes.
Result expected(const Case& c, std::uint8_t poison) {
  const Input input = make_input(c);
  Result want;
  const std::int64_t k = c.columns;
  const auto bytes = [&](bool there, std::int64_t n) {
    return std::vector<std::uint8_t>(there ? static_cast<std::size_t>(n) : 0, poison);
  };
  want.row_amax = want.column_amax = bytes(true, 4 * static_cast<std::int64_t>(c.splits.size()));
  want.row_data = bytes(c.rowwise, c.rows() * k / 2);
  want.column_data = bytes(c.columnwise, c.rows() * k / 2);
  std::int64_t first = 0;
  for (std::size_t t = 0; t < c.splits.size(); ++t) {
    const std::int64_t m = c.splits[t];
    Matrix x{m, k, {}};
    for (std::int64_t i = 0; i < m * k; ++i) x.v.push_back(exact_value(c.x_type, element_bits(c, first + i / k, i % k)));
    const float g = c.amax.empty() ? amax_of(x.v) : c.amax[t];
    const auto put = [&](bool rowwise) {
      Matrix of = x;
      float tensor_amax = g;
      if (!rowwise && c.hadamard) {
        of = hadamard_of(x, c.sign_mask);
        tensor_amax = amax_of(of.v);
      }
      if (!rowwise && !c.columnwise_amax.empty()) tensor_amax = c.columnwise_amax[t];
      auto& amax = rowwise ? want.row_amax : want.column_amax;
      std::memcpy(amax.data() + 4 * t, &tensor_amax, 4);
      const std::vector<std::uint8_t>& random = rowwise ? input.row_random : input.column_random;
      const std::int64_t i_extent = rowwise ? m : k, j_extent = rowwise ? k : m;
      const std::int64_t i_padded = up(i_extent, 128), j_padded = up((j_extent + 15) / 16, 4);
      std::vector<int> scales(static_cast<std::size_t>(i_padded * j_padded), -1);
      for (std::int64_t i = 0; i < i_extent; ++i) {
        for (std::int64_t j0 = 0; j0 < j_extent; j0 += 16) {
          // The block and the elements that share its scale, in coordinates of x.
          const std::int64_t j1 = std::min(j0 + 16, j_extent);
          Span block = rowwise ? Span{i, i + 1, j0, j1} : Span{j0, j1, i, i + 1};
          if (c.two_dimensional) {
            const std::int64_t r0 = block.r0 / 16 * 16, q0 = block.q0 / 16 * 16;
            block = {r0, std::min(r0 + 16, m), q0, std::min(q0 + 16, k)};
          }
          const Scaling scaling = scaling_of(of, block, tensor_amax, c.four_over_six, c.e4m3_max, rowwise);
          scales[static_cast<std::size_t>(i * j_padded + j0 / 16)] = scaling.d8;
          for (std::int64_t j = j0; j < j1; ++j) {
            double value = rowwise ? of.at(i, j) : of.at(j, i);
            if (c.positive_zero && value == 0) value = 0;
            const float product = fl(value * scaling.multiplier);
            const auto at = static_cast<std::size_t>(first * k + i * j_extent + j);
            const int code = c.stochastic ? stochastic_code(product, random[at]) : nearest_e2m1(product);
            auto& byte = (rowwise ? want.row_data : want.column_data)[at / 2];
            byte = static_cast<std::uint8_t>(j % 2 == 0 ? code : byte | code << 4);
          }
        }
      }
      auto& to = rowwise ? want.row_scales : want.column_scales;
      if (c.swizzled) {
        for (const Place& place : swizzle_places(i_padded / 128, j_padded / 4)) {
          const int scale = scales[static_cast<std::size_t>(place.i * j_padded + place.j)];
          to.push_back(static_cast<std::uint8_t>(scale < 0 ? 0 : scale));
        }
      } else {
        for (const int scale : scales) to.push_back(scale < 0 ? poison : static_cast<std::uint8_t>(scale));
      }
    };
    if (c.rowwise) put(true);
    if (c.columnwise) put(false);
    first += m;
  }
  return want;
}

class Nvfp4 : public ::testing::TestWithParam<Case> {};

TEST_P(Nvfp4, ScalarLayerIsTheSpecification) {
  expect_same(run(GetParam(), Recipe::nvfp4, Layer::scalar, 0xa5), expected(GetParam(), 0xa5));
}

TEST_P(Nvfp4, FastLayerEqualsScalarLayer) {
  for (const std::uint8_t poison : {0xa5, 0x7f}) {
    expect_same(run(GetParam(), Recipe::nvfp4, Layer::fast, poison), run(GetParam(), Recipe::nvfp4, Layer::scalar, poison));
  }
}

std::vector<Case> small_cases() {
  std::vector<Case> cases = {
      {.splits = {0}, .columns = 32, .grouped = false},
      {.splits = {}, .columns = 32},
      {.splits = {6}, .columns = 0},
      {.splits = {2}, .columns = 2, .grouped = false},
      {.splits = {2}, .columns = 16, .grouped = false},
      {.splits = {16}, .columns = 48, .grouped = false},
      {.splits = {66}, .columns = 82, .grouped = false},
      {.splits = {130}, .columns = 130, .grouped = false},
      {.splits = {1}, .columns = 18, .grouped = false, .columnwise = false},
      {.splits = {2}, .columns = 17, .grouped = false, .rowwise = false},
      {.splits = {0, 2, 14, 0, 0, 16, 18, 0}, .columns = 66, .rows_beyond = 6},
      {.splits = {128, 0, 258}, .columns = 32},
  };
  const Case ragged = {.splits = {0, 4, 34, 0, 22}, .columns = 150, .rows_beyond = 4};
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    for (const Pattern pattern :
         {Pattern::uniform, Pattern::wide, Pattern::specials, Pattern::tiny, Pattern::zeros, Pattern::ties}) {
      for (const bool two_dimensional : {false, true}) {
        Case c = ragged;
        c.x_type = type;
        c.pattern = pattern;
        c.two_dimensional = two_dimensional;
        c.seed = cases.size();
        c.swizzled = cases.size() % 2 == 0;
        c.positive_zero = cases.size() % 3 == 0;
        cases.push_back(c);
        c.stochastic = true;
        c.seed += 1000;
        cases.push_back(c);
      }
      for (const FourOverSix error : {FourOverSix::mean_absolute_error, FourOverSix::mean_squared_error}) {
        Case c = ragged;
        c.x_type = type;
        c.pattern = pattern;
        c.four_over_six = error;
        c.seed = cases.size();
        c.e4m3_max = cases.size() % 2 == 0 ? 256 : 448;
        c.two_dimensional = cases.size() % 4 < 2;
        cases.push_back(c);
      }
    }
  }
  for (const Pattern pattern :
       {Pattern::uniform, Pattern::wide, Pattern::specials, Pattern::tiny, Pattern::zeros, Pattern::ties}) {
    for (const std::uint16_t mask : {0x0000, 0xd7e8, 0xffff, 0x0001}) {
      Case c = ragged;
      c.pattern = pattern;
      c.hadamard = true;
      c.sign_mask = mask;
      c.seed = cases.size();
      c.stochastic = mask == 0x0001;
      c.swizzled = mask == 0xffff;
      c.positive_zero = mask == 0x0001;
      c.rowwise = mask != 0xffff;
      cases.push_back(c);
    }
  }
  // Each direction alone, and every way to give an amax.
  for (int options = 0; options < 8; ++options) {
    Case c = ragged;
    c.pattern = Pattern::specials;
    c.rowwise = options != 1;
    c.columnwise = options != 2;
    c.two_dimensional = options & 4;
    c.seed = 500 + static_cast<std::uint64_t>(options);
    c.amax = {1, 2.5f, 0, 3, 1e-3f};
    if (options & 1) c.columnwise_amax = {2, 0.3f, INFINITY, NAN, 7};
    cases.push_back(c);
    c.amax = {0x1p-149f, 0x1p-126f, FLT_MAX, NAN, INFINITY};
    cases.push_back(c);
    c.hadamard = !c.two_dimensional;
    c.amax.clear();
    cases.push_back(c);
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Nvfp4, ::testing::ValuesIn(small_cases()));

TEST(Nvfp4Layouts, TwoDimensionalDirectionsAreTransposes) {
  const Case c = {.splits = {48, 32}, .columns = 64, .two_dimensional = true, .amax = {3, 3}};
  const Result result = run(c, Recipe::nvfp4, Layer::fast, 0xa5);
  const auto code = [](const std::vector<std::uint8_t>& data, std::int64_t i) {
    return data[static_cast<std::size_t>(i / 2)] >> (i % 2 * 4) & 15;
  };
  std::int64_t first = 0;
  for (const std::int64_t m : c.splits) {
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t q = 0; q < 64; ++q) {
        ASSERT_EQ(code(result.row_data, first + r * 64 + q), code(result.column_data, first + q * m + r)) << r << "," << q;
      }
    }
    first += m * 64;
  }
}

// ---- Back -------------------------------------------------------------------------------------------------------------

class Nvfp4Dequantize : public ::testing::TestWithParam<Case> {};

TEST_P(Nvfp4Dequantize, IsCodeTimesScales) {
  const Case& c = GetParam();
  const std::int64_t k = c.columns;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(c.rows() * k / 2));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(draw(c.seed, i));
  for (const bool rowwise : {true, false}) {
    const Direction direction = rowwise ? Direction::rowwise : Direction::columnwise;
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(scale_bytes(c, Recipe::nvfp4, direction)));
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(draw(c.seed + 1, i));
    DequantizeProblem problem;
    problem.recipe = Recipe::nvfp4;
    problem.data_type = Format::e2m1;
    problem.output_type = c.x_type;
    problem.direction = direction;
    problem.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
    problem.rows = c.rows();
    problem.columns = k;
    problem.grouped = c.grouped;
    problem.splits = c.splits;
    problem.data = data.data();
    problem.scale_inv = scales.data();
    problem.amax = c.amax.data();
    problem.nvfp4_e4m3_max = c.e4m3_max;
    const std::int64_t width = c.x_type == Format::f32 ? 4 : 2;
    Guarded scalar_y(c.rows() * k * width, 0xa5), fast_y(c.rows() * k * width, 0xa5);
    scalar::dequantize_nvfp4(problem, scalar_y.data());
    dequantize_nvfp4(problem, fast_y.data());
    const auto got = scalar_y.take("scalar");
    EXPECT_TRUE(same_bytes(fast_y.take("fast"), got));

    std::int64_t first = 0, base = 0;
    for (std::size_t t = 0; t < c.splits.size(); ++t) {
      const std::int64_t m = c.splits[t];
      const std::int64_t i_extent = up(rowwise ? m : k, 128), j_extent = up(((rowwise ? k : m) + 15) / 16, 4);
      const auto places = swizzle_places(i_extent / 128, j_extent / 4);
      std::vector<std::uint8_t> compact(scales.begin() + base, scales.begin() + base + i_extent * j_extent);
      for (std::size_t n = 0; c.swizzled && n < places.size(); ++n) {
        compact[static_cast<std::size_t>(places[n].i * j_extent + places[n].j)] = scales[static_cast<std::size_t>(base) + n];
      }
      for (std::int64_t r = 0; r < m; ++r) {
        for (std::int64_t q = 0; q < k; ++q) {
          const std::int64_t i = rowwise ? r : q, j = rowwise ? q : r;
          const std::int64_t code_at = first * k + i * (rowwise ? k : m) + j;
          const int code = data[static_cast<std::size_t>(code_at / 2)] >> (code_at % 2 * 4) & 15;
          const int d8 = compact[static_cast<std::size_t>(i * j_extent + j / 16)];
          const double d = (d8 & 0x80 ? -1 : 1) * e4m3_value(d8 & 0x7f);
          const float f = fl(double{fl(d * c.amax[t])} * fl(1.0 / (6 * c.e4m3_max)));
          const float y = fl((code & 8 ? -1 : 1) * kE2m1[code & 7] * f);
          const auto at = static_cast<std::size_t>((first + r) * k + q);
          if (c.x_type == Format::f32) {
            std::uint32_t bits;
            std::memcpy(&bits, got.data() + at * 4, 4);
            ASSERT_EQ(bits, std::isnan(y) ? 0x7fff'ffff : std::bit_cast<std::uint32_t>(y));
          } else {
            std::uint16_t bits;
            std::memcpy(&bits, got.data() + at * 2, 2);
            ASSERT_EQ(bits, nearest_half(c.x_type, y)) << y;
          }
        }
      }
      first += m;
      base += i_extent * j_extent;
    }
    for (std::size_t i = static_cast<std::size_t>(first * k * width); i < got.size(); ++i) ASSERT_EQ(got[i], 0xa5);
  }
}

std::vector<Case> dequantize_cases() {
  std::vector<Case> cases;
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    for (const bool swizzled : {false, true}) {
      for (const float e4m3_max : {448.0f, 256.0f}) {
        cases.push_back({.x_type = type,
                         .splits = {4, 0, 66, 128},
                         .columns = 140,
                         .rows_beyond = 2,
                         .swizzled = swizzled,
                         .e4m3_max = e4m3_max,
                         .amax = {1, 2, 1e-4f, 3e5f},
                         .seed = cases.size()});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Nvfp4Dequantize, ::testing::ValuesIn(dequantize_cases()));

// ---- Through the common call --------------------------------------------------------------------------------------------

struct ErrorCase {
  const char* argument;
  void (*spoil)(QuantizeProblem&);
};
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.argument; }
class Nvfp4Errors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(Nvfp4Errors, NothingIsWritten) {
  std::vector<std::uint16_t> x(64 * 64, 0x3f80);
  const std::int64_t splits[] = {32, 32};
  std::vector<std::uint8_t> memory[4];
  for (auto& each : memory) each.assign(8192, 0xa5);
  QuantizeProblem problem;
  problem.config.recipe = Recipe::nvfp4;
  problem.config.output = Format::e2m1;
  problem.config.columnwise = true;
  problem.x = x.data();
  problem.rows = problem.columns = 64;
  problem.grouped = true;
  problem.splits = splits;
  QuantizeOutput output;
  output.rowwise_data = memory[0].data();
  output.columnwise_data = memory[1].data();
  output.rowwise_scale_inv = memory[2].data();
  output.columnwise_scale_inv = memory[3].data();
  GetParam().spoil(problem);
  for (const auto call : {&assay::quantize, &assay::scalar::quantize}) {
    try {
      call(problem, output);
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), GetParam().argument) << error.what();
    }
  }
  for (const auto& each : memory) EXPECT_EQ(each, std::vector<std::uint8_t>(8192, 0xa5));
}

const float kNegative[] = {1, -1};
const ErrorCase kErrors[] = {
    {"x", [](QuantizeProblem& p) { p.x = nullptr; }},
    {"output", [](QuantizeProblem& p) { p.config.output = Format::e4m3; }},
    {"rowwise_random", [](QuantizeProblem& p) { p.config.stochastic_rounding = true; }},
    {"hadamard", [](QuantizeProblem& p) { p.config.hadamard = true, p.x_type = Format::f16; }},
    {"nvfp4_e4m3_max", [](QuantizeProblem& p) { p.config.nvfp4_e4m3_max = 256; }},
    {"amax[1]", [](QuantizeProblem& p) { p.amax = kNegative; }},
    {"columnwise_amax[1]", [](QuantizeProblem& p) { p.columnwise_amax = kNegative; }},
};
INSTANTIATE_TEST_SUITE_P(Errors, Nvfp4Errors, ::testing::ValuesIn(kErrors));

}  // namespace
}  // namespace assay
