// Dequantization of MXFP8: every code under every scale against code times 2^(scale - 127), both directions and layouts, in
// both layers.

#include "reference/recipes/dequantize.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reference/tests/recipes/block_scaled_case.h"

namespace assay {
namespace {

using namespace block_scaled;

class Mxfp8Dequantize : public ::testing::TestWithParam<Case> {};

// The value of an FP8 code, from its fields.
double code_value(Format format, std::uint8_t code) {
  const int mantissa = format == Format::e4m3 ? 3 : 2, bias = format == Format::e4m3 ? 7 : 15;
  const int e = (code & 0x7f) >> mantissa, m_bits = code & ((1 << mantissa) - 1);
  double value = e == 0 ? std::ldexp(m_bits, 1 - bias - mantissa) : std::ldexp((1 << mantissa) + m_bits, e - bias - mantissa);
  if (format == Format::e4m3 ? (code & 0x7f) == 0x7f : (code & 0x7f) > 0x7c) value = std::nan("");
  if (format == Format::e5m2 && (code & 0x7f) == 0x7c) value = INFINITY;
  return code & 0x80 ? -value : value;
}

// Whether the element at `bytes` is `y` in its type. y has the 4 significant bits of an FP8 code: in 16 bits it is exact unless
// it leaves the range of f16 below or above.
bool holds(Format type, const std::uint8_t* bytes, float y) {
  if (type == Format::f32) {
    std::uint32_t bits;
    std::memcpy(&bits, bytes, 4);
    return bits == (std::isnan(y) ? 0x7fff'ffff : std::bit_cast<std::uint32_t>(y));
  }
  std::uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  if (std::isnan(y)) return bits == 0x7fff;
  const double back = exact_value(type, bits);
  const double limit = type == Format::f16 ? 65520 : 0x1.ffp127;
  const double step = type == Format::f16 ? 0x1p-24 : 0x1p-133;
  const double steps = std::fabs(static_cast<double>(y)) / step;
  const double nearest = std::fabs(y) >= limit ? INFINITY : steps < 1024 ? std::nearbyint(steps) * step : std::fabs(y);
  return back == std::copysign(nearest, y) && std::signbit(back) == std::signbit(y);
}

// Every code under every scale, which quantize would not produce together; both directions and layouts.
TEST_P(Mxfp8Dequantize, IsCodeTimesPowerOfTwo) {
  const Case& c = GetParam();
  const std::int64_t rows = c.rows(), k = c.columns;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(rows * k));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(draw(c.seed, i));
  for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(scale_bytes(c, Recipe::mxfp8, direction)));
    for (std::size_t i = 0; i < scales.size(); ++i) {
      scales[i] = static_cast<std::uint8_t>(c.pattern == Pattern::wide ? draw(c.seed + 1, i) : 120 + i % 17);
    }
    DequantizeProblem problem;
    problem.recipe = Recipe::mxfp8;
    problem.data_type = c.output;
    problem.output_type = c.x_type;
    problem.direction = direction;
    problem.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
    problem.rows = rows;
    problem.columns = k;
    problem.grouped = c.grouped;
    problem.splits = c.splits;
    problem.data = data.data();
    problem.scale_inv = scales.data();
    const std::int64_t width = c.x_type == Format::f32 ? 4 : 2;
    Guarded scalar_y(rows * k * width, 0xa5), fast_y(rows * k * width, 0xa5);
    scalar::dequantize_mxfp8(problem, scalar_y.data());
    dequantize_mxfp8(problem, fast_y.data());
    const auto got = scalar_y.take("scalar");
    EXPECT_TRUE(same_bytes(fast_y.take("fast"), got));

    std::int64_t first = 0, base = 0;
    for (const std::int64_t m : c.splits) {
      const bool rowwise = direction == Direction::rowwise;
      const std::int64_t i_extent = rowwise ? up(m, 128) : up(k, 128);
      const std::int64_t j_extent = up(((rowwise ? k : m) + 31) / 32, 4);
      const auto places = swizzle_places(i_extent / 128, j_extent / 4);
      std::vector<std::uint8_t> compact(static_cast<std::size_t>(i_extent * j_extent));
      for (std::size_t n = 0; n < compact.size(); ++n) {
        const Place place = c.swizzled ? places[n]
                            : rowwise  ? Place{static_cast<std::int64_t>(n) / j_extent, static_cast<std::int64_t>(n) % j_extent}
                                       : Place{static_cast<std::int64_t>(n) % i_extent, static_cast<std::int64_t>(n) / i_extent};
        compact[static_cast<std::size_t>(place.i * j_extent + place.j)] = scales[static_cast<std::size_t>(base) + n];
      }
      for (std::int64_t r = 0; r < m; ++r) {
        for (std::int64_t q = 0; q < k; ++q) {
          const auto at = static_cast<std::size_t>((first + r) * k + q);
          const std::uint8_t code = data[at];
          const int scale = compact[static_cast<std::size_t>((rowwise ? r : q) * j_extent + (rowwise ? q : r) / 32)];
          const double value = scale == 255 ? std::nan("") : code_value(c.output, code);
          const auto y = static_cast<float>(std::ldexp(value, scale - 127));
          ASSERT_TRUE(holds(c.x_type, got.data() + at * static_cast<std::size_t>(width), y))
              << "code " << int{code} << " scale " << scale << ": expected " << y;
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
    for (const Format output : {Format::e4m3, Format::e5m2}) {
      for (const bool swizzled : {false, true}) {
        for (const Pattern pattern : {Pattern::uniform, Pattern::wide}) {
          cases.push_back({.x_type = type,
                           .output = output,
                           .splits = {3, 0, 65, 128},
                           .columns = 140,
                           .pattern = pattern,
                           .rows_beyond = 2,
                           .swizzled = swizzled,
                           .seed = cases.size()});
        }
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Mxfp8Dequantize, ::testing::ValuesIn(dequantize_cases()));

}  // namespace
}  // namespace assay
