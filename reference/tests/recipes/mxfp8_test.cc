// MXFP8 against a second route (integer exponents, exact values in double) and the two layers against each other.

#include "reference/recipes/mxfp8.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <sstream>

#include "reference/support/parallel.h"
#include "reference/tests/recipes/block_scaled_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace block_scaled;

// ---- The scale ------------------------------------------------------------------------------------------------------

// The integer form of spec mxfp8-1.3, and its one exception for each format.
int expected_scale(std::uint32_t amax, Format output) {
  const int emax = output == Format::e4m3 ? 8 : 15;
  const int e = static_cast<int>(amax >> 23);
  if (amax == 0x7f80'0000) return 0xfe;
  if (e == 0) return 0;
  if (amax == (output == Format::e4m3 ? 0x0460'0001u : 0x07e0'0001u)) return 0;  // the product is rounded down to 2^-127
  return std::max(0, e - emax + ((amax & 0x7f'ffff) > 0x60'0000));
}

class Mxfp8Scale : public ::testing::TestWithParam<Format> {};

TEST_P(Mxfp8Scale, EveryMagnitude) {
  const Format output = GetParam();
  std::atomic<std::uint64_t> wrong{0}, first{~0ull};
  parallel_for(0x7f80'0001, 1 << 24, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t bits = begin; bits < end; ++bits) {
      const auto amax = static_cast<std::uint32_t>(bits);
      if (mxfp8_scale(std::bit_cast<float>(amax), output) == expected_scale(amax, output)) continue;
      ++wrong;
      first = std::min(first.load(), static_cast<std::uint64_t>(amax));
    }
  });
  EXPECT_EQ(wrong, 0u) << "first at 0x" << std::hex << first;
}

// E is monotone in the amax, so the layer is right everywhere if it is right on both sides of every step.
TEST_P(Mxfp8Scale, ScalarLayerAroundEveryStep) {
  const Format output = GetParam();
  const auto check = [&](std::uint32_t amax) {
    ASSERT_EQ(scalar::mxfp8_scale(std::bit_cast<float>(amax), output), expected_scale(amax, output))
        << "amax 0x" << std::hex << amax;
  };
  for (std::uint32_t e = 0; e < 255; ++e) {
    for (const std::uint32_t step : {0u, 0x40'0000u, 0x60'0000u}) {
      for (int d = -3; d <= 3; ++d) {
        const std::int64_t bits = static_cast<std::int64_t>(e << 23 | step) + d;
        if (bits >= 0) check(static_cast<std::uint32_t>(bits));
      }
    }
  }
  for (std::uint32_t bits = 0; bits <= 0x7f80'0000; bits += 4099) check(bits);
  check(0x7f80'0000);
}

INSTANTIATE_TEST_SUITE_P(Formats, Mxfp8Scale, ::testing::Values(Format::e4m3, Format::e5m2),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// Worked out by hand from spec mxfp8-1.2 and formats-1.7.
struct BlockCase {
  const char* what;
  std::uint32_t x;  // first element, f32 bits; the others are `other`
  std::uint32_t other;
  Format output;
  std::uint8_t scale, code, other_code;
};
void PrintTo(const BlockCase& c, std::ostream* out) { *out << c.what; }

class Mxfp8Block : public ::testing::TestWithParam<BlockCase> {};

TEST_P(Mxfp8Block, ScaleAndCodes) {
  const BlockCase& c = GetParam();
  std::vector<std::uint32_t> x(32, c.other);
  x[0] = c.x;
  for (const Layer layer : {Layer::scalar, Layer::fast}) {
    QuantizeProblem problem;
    problem.config.recipe = Recipe::mxfp8;
    problem.config.output = c.output;
    problem.x_type = Format::f32;
    problem.x = x.data();
    problem.rows = 1;
    problem.columns = 32;
    std::vector<std::uint8_t> data(32), scales(512, 0xa5);
    QuantizeOutput output;
    output.rowwise_data = data.data();
    output.rowwise_scale_inv = scales.data();
    layer == Layer::fast ? quantize_mxfp8(problem, output) : scalar::quantize_mxfp8(problem, output);
    EXPECT_EQ(scales[0], c.scale);
    EXPECT_EQ(scales[1], 0xa5);
    EXPECT_EQ(data[0], c.code);
    EXPECT_EQ(data[31], c.other_code);
  }
}

const BlockCase kBlockCases[] = {
    {"448 is the largest code at scale 1", 0x43e0'0000, 0x3f80'0000, Format::e4m3, 127, 0x7e, 0x38},
    {"the next float above 448 doubles the scale", 0x43e0'0001, 0x3f80'0000, Format::e4m3, 128, 0x76, 0x30},
    {"57344 is the largest code of e5m2", 0x4760'0000, 0x3f80'0000, Format::e5m2, 127, 0x7b, 0x3c},
    {"the next float above it", 0x4760'0001, 0x3f80'0000, Format::e5m2, 128, 0x77, 0x38},
    {"zeros keep their sign", 0x8000'0000, 0, Format::e4m3, 0, 0x80, 0x00},
    {"infinity: largest code, and 3e38 * 2^-127 = 1.75", 0x7f80'0000, 0x7f60'0000, Format::e4m3, 0xfe, 0x7e, 0x3e},
    {"minus infinity in e5m2", 0xff80'0000, 0xff60'0000, Format::e5m2, 0xfe, 0xfb, 0xbf},
    {"NaN is passed over and becomes 0x7f", 0xffc0'0000, 0x3f80'0000, Format::e4m3, 119, 0x7f, 0x78},
    {"a block of NaN alone", 0x7fc0'0000, 0xff80'0001, Format::e4m3, 0, 0x7f, 0x7f},
    {"f32 subnormals at scale 2^-127", 0x0000'0001, 0x8000'0001, Format::e4m3, 0, 0x00, 0x80},
    {"the largest subnormal", 0x007f'ffff, 0x0040'0000, Format::e4m3, 0, 0x40, 0x38},
    {"the one amax at which the product loses", 0x0460'0001, 0, Format::e4m3, 0, 0x7e, 0x00},
    {"largest float", 0x7f7f'ffff, 0x3f80'0000, Format::e4m3, 247, 0x78, 0x00},
};
INSTANTIATE_TEST_SUITE_P(ByHand, Mxfp8Block, ::testing::ValuesIn(kBlockCases));

// ---- Whole matrices ---------------------------------------------------------------------------------------------------

// Nearest code by search over the values of all codes; a tie goes to the even one.
std::uint8_t nearest_code(double v, Format format) {
  if (std::isnan(v)) return 0x7f;
  const int mantissa = format == Format::e4m3 ? 3 : 2, bias = format == Format::e4m3 ? 7 : 15;
  const int top = format == Format::e4m3 ? 0x7e : 0x7b;
  const auto value = [&](int code) {
    const int e = code >> mantissa, m = code & ((1 << mantissa) - 1);
    return e == 0 ? std::ldexp(m, 1 - bias - mantissa) : std::ldexp((1 << mantissa) + m, e - bias - mantissa);
  };
  const double a = std::fabs(v);
  int low = 0, high = top;  // value(low) <= a
  if (a >= value(top)) low = top;
  while (low != top && high - low > 1) {
    const int middle = (low + high) / 2;
    (value(middle) <= a ? low : high) = middle;
  }
  int code = low;
  if (low != top) {
    const double below = a - value(low), above = value(low + 1) - a;
    if (above < below || (above == below && low % 2 == 1)) code = low + 1;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(v) ? 0x80 : 0));
}

// Every byte that a quantization writes, from the formulas and shapes of spec mxfp8-1.2 and mxfp8-2.1.
Result expected(const Case& c, std::uint8_t poison) {
  Result want;
  const std::int64_t k = c.columns;
  const auto bytes = [&](bool there, std::int64_t n) {
    return std::vector<std::uint8_t>(there ? static_cast<std::size_t>(n) : 0, poison);
  };
  want.row_amax = want.column_amax = bytes(true, 4 * static_cast<std::int64_t>(c.splits.size()));
  want.row_data = bytes(c.rowwise, c.rows() * k);
  want.column_data = bytes(c.columnwise, c.rows() * k);
  std::int64_t first = 0;
  for (const std::int64_t m : c.splits) {
    const std::int64_t row_i = up(m, 128), row_j = up((k + 31) / 32, 4);
    const std::int64_t column_i = up(k, 128), column_j = up((m + 31) / 32, 4);
    std::vector<int> row_scales(static_cast<std::size_t>(row_i * row_j), -1);           // [i][j]
    std::vector<int> column_scales(static_cast<std::size_t>(column_i * column_j), -1);  // [i][j] too: i is the column
    const auto bits_at = [&](std::int64_t r, std::int64_t q) { return element_bits(c, first + r, q); };
    const auto scale_of = [&](std::int64_t r0, std::int64_t r1, std::int64_t q0, std::int64_t q1) {
      double amax = 0;
      for (std::int64_t r = r0; r < std::min(r1, m); ++r) {
        for (std::int64_t q = q0; q < std::min(q1, k); ++q) {
          const double a = std::fabs(exact_value(c.x_type, bits_at(r, q)));
          if (a > amax) amax = a;
        }
      }
      return expected_scale(std::bit_cast<std::uint32_t>(static_cast<float>(amax)), c.output);
    };
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t q = 0; q < k; ++q) {
        const std::int64_t r0 = r / 32 * 32, q0 = q / 32 * 32;
        const int row_scale = c.two_dimensional ? scale_of(r0, r0 + 32, q0, q0 + 32) : scale_of(r, r + 1, q0, q0 + 32);
        const int column_scale = c.two_dimensional ? row_scale : scale_of(r0, r0 + 32, q, q + 1);
        row_scales[static_cast<std::size_t>(r * row_j + q / 32)] = row_scale;
        column_scales[static_cast<std::size_t>(q * column_j + r / 32)] = column_scale;
        const double value = exact_value(c.x_type, bits_at(r, q));
        const auto code = [&](int scale) {
          if (value == 0 && c.positive_zero) return std::uint8_t{0};
          return nearest_code(std::ldexp(value, 127 - scale), c.output);
        };
        const auto at = static_cast<std::size_t>((first + r) * k + q);
        if (c.rowwise) want.row_data[at] = code(row_scale);
        if (c.columnwise) want.column_data[at] = code(column_scale);
      }
    }
    first += m;
    const auto store = [&](std::vector<std::uint8_t>& to, const std::vector<int>& scales, std::int64_t i_extent,
                           std::int64_t j_extent, bool j_major) {
      if (c.swizzled) {
        for (const Place& place : swizzle_places(i_extent / 128, j_extent / 4)) {
          const int scale = scales[static_cast<std::size_t>(place.i * j_extent + place.j)];
          to.push_back(static_cast<std::uint8_t>(scale < 0 ? 0 : scale));
        }
      } else if (j_major) {
        for (std::int64_t j = 0; j < j_extent; ++j) {
          for (std::int64_t i = 0; i < i_extent; ++i) {
            const int scale = scales[static_cast<std::size_t>(i * j_extent + j)];
            to.push_back(scale < 0 ? poison : static_cast<std::uint8_t>(scale));
          }
        }
      } else {
        for (const int scale : scales) to.push_back(scale < 0 ? poison : static_cast<std::uint8_t>(scale));
      }
    };
    if (c.rowwise) store(want.row_scales, row_scales, row_i, row_j, false);
    if (c.columnwise) store(want.column_scales, column_scales, column_i, column_j, true);
  }
  return want;
}

class Mxfp8 : public ::testing::TestWithParam<Case> {};

TEST_P(Mxfp8, ScalarLayerIsTheSpecification) {
  expect_same(run(GetParam(), Recipe::mxfp8, Layer::scalar, 0xa5), expected(GetParam(), 0xa5));
}

TEST_P(Mxfp8, FastLayerEqualsScalarLayer) {
  for (const std::uint8_t poison : {0xa5, 0x7f}) {
    expect_same(run(GetParam(), Recipe::mxfp8, Layer::fast, poison), run(GetParam(), Recipe::mxfp8, Layer::scalar, poison));
  }
}

std::vector<Case> small_cases() {
  std::vector<Case> cases = {
      {.splits = {0}, .columns = 32, .grouped = false},
      {.splits = {}, .columns = 32},
      {.splits = {5}, .columns = 0},
      {.splits = {1}, .columns = 1, .grouped = false},
      {.splits = {1}, .columns = 16, .grouped = false},
      {.splits = {16}, .columns = 48, .grouped = false},
      {.splits = {65}, .columns = 80, .grouped = false},
      {.splits = {127}, .columns = 130, .grouped = false},
      {.splits = {33}, .columns = 257, .rows_beyond = 3},
      {.splits = {0, 1, 31, 0, 0, 32, 33, 0}, .columns = 65, .rows_beyond = 7},
      {.splits = {128, 0, 129}, .columns = 96},
  };
  // Every option, over a shape with partial blocks and empty groups.
  const Case ragged = {.splits = {0, 3, 64, 0, 37}, .columns = 150, .rows_beyond = 5};
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    for (const Format output : {Format::e4m3, Format::e5m2}) {
      for (const Pattern pattern :
           {Pattern::uniform, Pattern::wide, Pattern::specials, Pattern::tiny, Pattern::zeros, Pattern::ties}) {
        Case c = ragged;
        c.x_type = type;
        c.output = output;
        c.pattern = pattern;
        c.seed = cases.size();
        c.swizzled = cases.size() % 2 == 0;
        c.positive_zero = cases.size() % 3 == 0;
        c.two_dimensional = cases.size() % 5 == 0;
        cases.push_back(c);
      }
    }
  }
  for (int options = 0; options < 16; ++options) {
    Case c = ragged;
    c.pattern = Pattern::specials;
    c.swizzled = options & 1;
    c.two_dimensional = options & 2;
    c.rowwise = !(options & 4);
    c.columnwise = !c.rowwise || options & 8;
    c.seed = 100 + static_cast<std::uint64_t>(options);
    cases.push_back(c);
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Mxfp8, ::testing::ValuesIn(small_cases()));

// The scales that the swizzled call writes are those of the compact call, in another place.
TEST(Mxfp8Layouts, SwizzledIsAPermutationOfCompact) {
  Case c = {.splits = {200, 0, 128}, .columns = 300};
  const Result compact = run(c, Recipe::mxfp8, Layer::fast, 0xa5);
  c.swizzled = true;
  const Result swizzled = run(c, Recipe::mxfp8, Layer::fast, 0xa5);
  std::size_t row_base = 0, column_base = 0;
  for (const std::int64_t m : c.splits) {
    const std::int64_t row_j = 12, column_i = 384, column_j = up((m + 31) / 32, 4);
    std::size_t n = 0;
    for (const Place& place : swizzle_places(up(m, 128) / 128, row_j / 4)) {
      const bool used = place.i < m && place.j < 10;
      const auto from = row_base + static_cast<std::size_t>(place.i * row_j + place.j);
      ASSERT_EQ(swizzled.row_scales[row_base + n++], used ? compact.row_scales[from] : 0);
    }
    row_base += n;
    n = 0;
    for (const Place& place : swizzle_places(column_i / 128, column_j / 4)) {
      const bool used = place.i < 300 && place.j < (m + 31) / 32;
      const auto from = column_base + static_cast<std::size_t>(place.j * column_i + place.i);
      ASSERT_EQ(swizzled.column_scales[column_base + n++], used ? compact.column_scales[from] : 0);
    }
    column_base += n;
  }
  EXPECT_EQ(row_base, swizzled.row_scales.size());
  EXPECT_EQ(column_base, swizzled.column_scales.size());
}

// ---- Through the common call --------------------------------------------------------------------------------------------

struct ErrorCase {
  const char* argument;
  void (*spoil)(QuantizeProblem&, QuantizeOutput&);
};
void PrintTo(const ErrorCase& c, std::ostream* out) { *out << c.argument; }
class Mxfp8Errors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(Mxfp8Errors, NothingIsWritten) {
  std::vector<std::uint16_t> x(64 * 64, 0x3f80);
  const std::int64_t splits[] = {32, 32};
  std::vector<std::uint8_t> memory[4];
  for (auto& each : memory) each.assign(8192, 0xa5);
  QuantizeProblem problem;
  problem.config.recipe = Recipe::mxfp8;
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
  GetParam().spoil(problem, output);
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

const std::int64_t kTooMany[] = {33, 32}, kNegative[] = {-1, 32};
const ErrorCase kErrors[] = {
    {"x", [](QuantizeProblem& p, QuantizeOutput&) { p.x = nullptr; }},
    {"output", [](QuantizeProblem& p, QuantizeOutput&) { p.config.output = Format::e2m1; }},
    {"splits[1]", [](QuantizeProblem& p, QuantizeOutput&) { p.splits = kTooMany; }},
    {"splits[0]", [](QuantizeProblem& p, QuantizeOutput&) { p.splits = kNegative; }},
    {"columns", [](QuantizeProblem& p, QuantizeOutput&) { p.columns = -64; }},
    {"hadamard", [](QuantizeProblem& p, QuantizeOutput&) { p.config.hadamard = true; }},
    {"amax_epsilon", [](QuantizeProblem& p, QuantizeOutput&) { p.config.amax_epsilon = 1; }},
};
INSTANTIATE_TEST_SUITE_P(Errors, Mxfp8Errors, ::testing::ValuesIn(kErrors));

}  // namespace
}  // namespace assay
