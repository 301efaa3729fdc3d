#pragma once
// A quantization by MXFP8 or NVFP4 as a value: its inputs, the outputs of both layers, and how a case is printed. Outputs lie
// between canaries and start as a poison, so that written and unwritten bytes can be distinguished.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "reference/layout/scale_shape.h"
#include "reference/recipes/mxfp8.h"
#include "reference/recipes/nvfp4.h"

namespace assay::block_scaled {

enum class Pattern {
  uniform,   // about (-2, 2)
  wide,      // all bit patterns equally likely, NaN and infinities made finite
  specials,  // uniform with NaN, infinities, signed zeros and subnormals strewn in
  tiny,      // blocks far below the others, down to subnormals
  zeros,     // +0 and -0
  ties,      // multiples of a quarter, which are halfway between codes under many scales
};
constexpr const char* kPatternNames[] = {"uniform", "wide", "specials", "tiny", "zeros", "ties"};

struct Case {
  Format x_type = Format::bf16;
  Format output = Format::e4m3;  // ignored by nvfp4
  std::vector<std::int64_t> splits = {};
  std::int64_t columns = 0;
  Pattern pattern = Pattern::uniform;
  bool grouped = true;  // false: splits has one number
  std::int64_t rows_beyond = 0;
  bool rowwise = true, columnwise = true;
  bool two_dimensional = false, swizzled = false, positive_zero = false;
  bool hadamard = false, stochastic = false;
  std::uint16_t sign_mask = 0;
  FourOverSix four_over_six = FourOverSix::off;
  float e4m3_max = 448;
  std::vector<float> amax = {}, columnwise_amax = {};
  std::uint64_t seed = 1;

  std::int64_t used_rows() const { return std::accumulate(splits.begin(), splits.end(), std::int64_t{0}); }
  std::int64_t rows() const { return used_rows() + rows_beyond; }
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << name_of(c.x_type) << " to " << name_of(c.output) << " rows=";
  for (std::size_t t = 0; t < c.splits.size(); ++t) *out << (t ? "+" : "") << c.splits[t];
  *out << " columns=" << c.columns << " " << kPatternNames[static_cast<int>(c.pattern)] << " seed=" << c.seed;
  if (!c.grouped) *out << " single";
  if (c.rows_beyond) *out << " beyond=" << c.rows_beyond;
  if (!c.rowwise) *out << " columnwise-only";
  if (!c.columnwise) *out << " rowwise-only";
  if (c.two_dimensional) *out << " 2d";
  if (c.swizzled) *out << " swizzled";
  if (c.positive_zero) *out << " zero+";
  if (c.hadamard) *out << " hadamard=" << c.sign_mask;
  if (c.stochastic) *out << " stochastic";
  if (c.four_over_six != FourOverSix::off) *out << (c.four_over_six == FourOverSix::mean_squared_error ? " 4/6mse" : " 4/6mae");
  if (c.e4m3_max != 448) *out << " max=" << c.e4m3_max;
  for (const float g : c.amax) *out << " amax=" << g;
  for (const float g : c.columnwise_amax) *out << " columnwise_amax=" << g;
}

// A function of its arguments alone.
inline std::uint64_t draw(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline std::uint32_t element_bits(const Case& c, std::int64_t row, std::int64_t column) {
  const auto index = static_cast<std::uint64_t>(row * c.columns + column);
  const std::uint64_t random = draw(c.seed, index);
  const auto r = static_cast<std::uint32_t>(random);
  const std::uint32_t kind = random >> 32 & 0xff;
  const bool f32 = c.x_type == Format::f32, f16 = c.x_type == Format::f16;
  const std::uint32_t sign = f32 ? r & 0x8000'0000 : r & 0x8000;
  const auto uniform = [&](int exponent_down) {  // 1.m * 2^(0..-3) * 2^-down
    if (f16)
      return sign | static_cast<std::uint32_t>(std::max(0, 15 - static_cast<int>(kind & 3) - exponent_down)) << 10 | (r & 0x3ff);
    const auto exponent = static_cast<std::uint32_t>(std::max(0, 127 - static_cast<int>(kind & 3) - exponent_down));
    return f32 ? sign | exponent << 23 | (r & 0x7f'ffff) : sign | exponent << 7 | (r & 0x7f);
  };
  switch (c.pattern) {
    case Pattern::uniform: return uniform(0);
    case Pattern::wide: {
      if (f32) return (r & 0x7f80'0000) == 0x7f80'0000 ? r ^ 0x4000'0000 : r;
      const std::uint32_t top = f16 ? 0x7c00 : 0x7f80;
      return (r & top) == top ? (r & 0xffff) ^ 0x4000 : r & 0xffff;
    }
    case Pattern::specials: {
      const std::uint32_t infinity = f32 ? 0x7f80'0000 : f16 ? 0x7c00 : 0x7f80;
      if (draw(c.seed + 7, index / 97) % 3 != 0) return uniform(0);
      if (kind < 8) return sign | infinity;
      if (kind < 40) return sign | infinity | 1;  // signalling NaN
      if (kind < 60) return sign | infinity | (infinity >> 1);
      if (kind < 120) return sign;
      if (kind < 140) return sign | (r >> 16 & 0x3f);  // subnormal
      return uniform(0);
    }
    case Pattern::tiny:
      return uniform(static_cast<int>(draw(c.seed + 3, index / 16) % 3 == 0 ? draw(c.seed + 5, index / 16) % 140 : 0));
    case Pattern::zeros: return sign;
    case Pattern::ties: {
      const float value = static_cast<float>(static_cast<int>(r % 49) - 24) * 0.25f;
      if (f32) return std::bit_cast<std::uint32_t>(value);
      if (!f16) return std::bit_cast<std::uint32_t>(value) >> 16;
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
      return value == 0 ? 0 : (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff);
    }
  }
  return 0;
}

struct Input {
  std::vector<std::uint8_t> x, row_random, column_random;
};

inline Input make_input(const Case& c) {
  Input input;
  const std::int64_t elements = c.rows() * c.columns;
  const std::size_t width = c.x_type == Format::f32 ? 4 : 2;
  input.x.resize(static_cast<std::size_t>(elements) * width);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint32_t bits = element_bits(c, i / c.columns, i % c.columns);
    std::memcpy(input.x.data() + static_cast<std::size_t>(i) * width, &bits, width);
  }
  if (c.stochastic) {
    for (std::int64_t i = 0; i < elements; ++i) {
      input.row_random.push_back(static_cast<std::uint8_t>(draw(c.seed + 11, static_cast<std::uint64_t>(i))));
      input.column_random.push_back(static_cast<std::uint8_t>(draw(c.seed + 13, static_cast<std::uint64_t>(i))));
    }
  }
  return input;
}

// Bytes between canaries.
class Guarded {
 public:
  Guarded(std::int64_t bytes, std::uint8_t poison)
      : bytes_(static_cast<std::size_t>(bytes)), memory_(bytes_ + 2 * kGuard, kCanary) {
    std::memset(data(), poison, bytes_);
  }
  std::uint8_t* data() { return memory_.data() + kGuard; }
  float* floats() { return reinterpret_cast<float*>(data()); }
  std::vector<std::uint8_t> take(const char* name) {
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(memory_[i], kCanary) << "before " << name << ", byte " << i;
      EXPECT_EQ(memory_[kGuard + bytes_ + i], kCanary) << "after " << name << ", byte " << i;
    }
    return {data(), data() + bytes_};
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::uint8_t kCanary = 0xc3;
  std::size_t bytes_;
  std::vector<std::uint8_t> memory_;
};

struct Result {
  std::vector<std::uint8_t> row_data, column_data, row_scales, column_scales, row_amax, column_amax;
  bool operator==(const Result&) const = default;
};

inline QuantizeProblem problem_of(const Case& c, Recipe recipe, const Input& input) {
  QuantizeProblem problem;
  QuantizeConfig& config = problem.config;
  config.recipe = recipe;
  config.output = recipe == Recipe::nvfp4 ? Format::e2m1 : c.output;
  config.rowwise = c.rowwise;
  config.columnwise = c.columnwise;
  config.scale_layout = c.swizzled ? ScaleLayout::swizzled : ScaleLayout::compact;
  config.two_dimensional = c.two_dimensional;
  config.zero_sign = c.positive_zero ? ZeroSign::positive : ZeroSign::kept;
  config.hadamard = c.hadamard;
  config.hadamard_sign_mask = c.sign_mask;
  config.stochastic_rounding = c.stochastic;
  config.four_over_six = c.four_over_six;
  config.nvfp4_e4m3_max = c.e4m3_max;
  problem.x_type = c.x_type;
  problem.x = input.x.data();
  problem.rows = c.rows();
  problem.columns = c.columns;
  problem.grouped = c.grouped;
  problem.splits = c.splits;
  problem.amax = c.amax.empty() ? nullptr : c.amax.data();
  problem.columnwise_amax = c.columnwise_amax.empty() ? nullptr : c.columnwise_amax.data();
  problem.rowwise_random = input.row_random.data();
  problem.columnwise_random = input.column_random.data();
  return problem;
}

inline std::int64_t scale_bytes(const Case& c, Recipe recipe, Direction direction) {
  return scale_offsets(recipe, direction, c.splits, c.columns).back();
}

enum class Layer { scalar, fast };

inline Result run(const Case& c, Recipe recipe, Layer layer, std::uint8_t poison) {
  const Input input = make_input(c);
  const Input before = input;
  const QuantizeProblem problem = problem_of(c, recipe, input);
  const std::int64_t data_bytes = c.rows() * c.columns / (recipe == Recipe::nvfp4 ? 2 : 1);
  const auto groups = static_cast<std::int64_t>(c.splits.size());
  Guarded row_data(c.rowwise ? data_bytes : 0, poison), column_data(c.columnwise ? data_bytes : 0, poison);
  Guarded row_scales(c.rowwise ? scale_bytes(c, recipe, Direction::rowwise) : 0, poison);
  Guarded column_scales(c.columnwise ? scale_bytes(c, recipe, Direction::columnwise) : 0, poison);
  Guarded row_amax(4 * groups, poison), column_amax(4 * groups, poison);
  QuantizeOutput output;
  output.rowwise_data = row_data.data();
  output.columnwise_data = column_data.data();
  output.rowwise_scale_inv = row_scales.data();
  output.columnwise_scale_inv = column_scales.data();
  output.amax = row_amax.floats();
  output.columnwise_amax = column_amax.floats();
  if (recipe == Recipe::mxfp8) {
    layer == Layer::fast ? quantize_mxfp8(problem, output) : scalar::quantize_mxfp8(problem, output);
  } else {
    layer == Layer::fast ? quantize_nvfp4(problem, output) : scalar::quantize_nvfp4(problem, output);
  }
  EXPECT_EQ(input.x, before.x) << "x was changed";
  EXPECT_EQ(input.row_random, before.row_random);
  EXPECT_EQ(input.column_random, before.column_random);
  return {row_data.take("rowwise data"),
          column_data.take("columnwise data"),
          row_scales.take("rowwise scales"),
          column_scales.take("columnwise scales"),
          row_amax.take("amax"),
          column_amax.take("columnwise amax")};
}

inline ::testing::AssertionResult same_bytes(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " bytes, want " << want.size();
  std::size_t differ = 0, first = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    if (got[i] != want[i]) ++differ, first = i;
  }
  if (differ == 0) return ::testing::AssertionSuccess();
  std::ostringstream text;
  text << "byte " << first << ": want 0x" << std::hex << int{want[first]} << ", got 0x" << int{got[first]} << std::dec << "; "
       << differ << " of " << got.size() << " differ";
  return ::testing::AssertionFailure() << text.str();
}

inline void expect_same(const Result& got, const Result& want) {
  EXPECT_TRUE(same_bytes(got.row_data, want.row_data)) << "rowwise data";
  EXPECT_TRUE(same_bytes(got.column_data, want.column_data)) << "columnwise data";
  EXPECT_TRUE(same_bytes(got.row_scales, want.row_scales)) << "rowwise scales";
  EXPECT_TRUE(same_bytes(got.column_scales, want.column_scales)) << "columnwise scales";
  EXPECT_TRUE(same_bytes(got.row_amax, want.row_amax)) << "amax";
  EXPECT_TRUE(same_bytes(got.column_amax, want.column_amax)) << "columnwise amax";
}

// Exact value of the bits of an element; NaN payloads do not matter.
inline double exact_value(Format type, std::uint32_t bits) {
  if (type == Format::f32) return static_cast<double>(std::bit_cast<float>(bits));
  if (type == Format::bf16) return static_cast<double>(std::bit_cast<float>(bits << 16));
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 0x3ff;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

// a rounded up to a multiple of b.
inline std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b * b; }

// The permutation of the 128x4 layout as a view of axes: compact [i_tile][i_32][i_low][j_tile][j_4] becomes
// [i_tile][j_tile][i_low][i_32][j_4]. Returns for each stored byte the compact place (i, j).
struct Place {
  std::int64_t i, j;
};
inline std::vector<Place> swizzle_places(std::int64_t i_tiles, std::int64_t j_tiles) {
  std::vector<Place> places;
  for (std::int64_t i_tile = 0; i_tile < i_tiles; ++i_tile) {
    for (std::int64_t j_tile = 0; j_tile < j_tiles; ++j_tile) {
      for (std::int64_t i_low = 0; i_low < 32; ++i_low) {
        for (std::int64_t i_32 = 0; i_32 < 4; ++i_32) {
          for (std::int64_t j_4 = 0; j_4 < 4; ++j_4) places.push_back({i_tile * 128 + i_32 * 32 + i_low, j_tile * 4 + j_4});
        }
      }
    }
  }
  return places;
}

}  // namespace assay::block_scaled
