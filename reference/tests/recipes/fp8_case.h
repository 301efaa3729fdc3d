#pragma once
// A quantization to FP8, per tensor or per block, as a value: its inputs, the outputs of both layers, and those of a second
// route. That route works on values in double: codes by search in a list of all values of the format, quotients and products by
// one rounding of an exact or wider result, and it shares no code with either layer.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <ostream>
#include <tuple>
#include <vector>

#include "reference/recipes/quantize.h"
#include "reference/tests/recipes/block_scaled_case.h"

namespace assay::fp8_suite {

using block_scaled::Guarded;
using block_scaled::Layer;
using block_scaled::Pattern;
using block_scaled::same_bytes;

struct Case {
  Recipe recipe = Recipe::block_1x128;
  block_scaled::Case x = {};  // types, splits, columns, pattern, directions, sign of zero
  bool pow2 = false;
  float epsilon = 0;
  bool dbias = false;
  std::vector<float> scale = {};  // tensor_delayed
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << name_of(c.recipe) << " ";
  PrintTo(c.x, out);
  if (c.pow2) *out << " pow2";
  if (c.epsilon != 0) *out << " epsilon=" << c.epsilon;
  if (c.dbias) *out << " dbias";
  for (const float s : c.scale) *out << " scale=" << s;
}

inline QuantizeProblem problem_of(const Case& c, const block_scaled::Input& input) {
  QuantizeProblem problem = block_scaled::problem_of(c.x, c.recipe, input);
  problem.config.force_pow_2_scales = c.pow2;
  problem.config.amax_epsilon = c.epsilon;
  problem.config.dbias = c.dbias;
  problem.scale = c.scale.empty() ? nullptr : c.scale.data();
  return problem;
}

// Every output, in the order of QuantizeShapes; outputs that the problem does not have are empty.
struct Outputs {
  std::vector<std::uint8_t> rowwise_data, columnwise_data, rowwise_scale_inv, columnwise_scale_inv, amax, scale, dbias;
  bool operator==(const Outputs&) const = default;
};

// Quantizes into guarded memory that holds the poison. Outputs of a direction that is off have memory too, so that a write to
// them is detected.
inline Outputs run(const Case& c, Layer layer, std::uint8_t poison) {
  const block_scaled::Input input = block_scaled::make_input(c.x);
  const block_scaled::Input before = input;
  const QuantizeProblem problem = problem_of(c, input);
  const QuantizeShapes shapes = quantize_outputs(problem);
  const std::int64_t unasked = 64;
  Guarded rowwise_data(c.x.rowwise ? shapes.rowwise_data.bytes() : unasked, poison);
  Guarded columnwise_data(c.x.columnwise ? shapes.columnwise_data.bytes() : unasked, poison);
  Guarded rowwise_scale_inv(shapes.rowwise_scale_inv.bytes(), poison);
  Guarded columnwise_scale_inv(shapes.columnwise_scale_inv.bytes(), poison);
  Guarded amax(shapes.amax.bytes(), poison), scale(shapes.scale.bytes(), poison), dbias(shapes.dbias.bytes(), poison);
  QuantizeOutput output;
  output.rowwise_data = rowwise_data.data();
  output.columnwise_data = columnwise_data.data();
  output.rowwise_scale_inv = rowwise_scale_inv.data();
  output.columnwise_scale_inv = columnwise_scale_inv.data();
  output.amax = amax.floats();
  output.scale = scale.floats();
  output.dbias = dbias.data();
  layer == Layer::fast ? quantize(problem, output) : scalar::quantize(problem, output);
  EXPECT_EQ(input.x, before.x) << "x was changed";
  return {rowwise_data.take("rowwise_data"),
          columnwise_data.take("columnwise_data"),
          rowwise_scale_inv.take("rowwise_scale_inv"),
          columnwise_scale_inv.take("columnwise_scale_inv"),
          amax.take("amax"),
          scale.take("scale"),
          dbias.take("dbias")};
}

inline void expect_same(const Outputs& got, const Outputs& want) {
  EXPECT_TRUE(same_bytes(got.rowwise_data, want.rowwise_data)) << "rowwise_data";
  EXPECT_TRUE(same_bytes(got.columnwise_data, want.columnwise_data)) << "columnwise_data";
  EXPECT_TRUE(same_bytes(got.rowwise_scale_inv, want.rowwise_scale_inv)) << "rowwise_scale_inv";
  EXPECT_TRUE(same_bytes(got.columnwise_scale_inv, want.columnwise_scale_inv)) << "columnwise_scale_inv";
  EXPECT_TRUE(same_bytes(got.amax, want.amax)) << "amax";
  EXPECT_TRUE(same_bytes(got.scale, want.scale)) << "scale";
  EXPECT_TRUE(same_bytes(got.dbias, want.dbias)) << "dbias";
}

// ---- The second route -----------------------------------------------------------------------------------------------

// Values of the codes 0, 1, 2, ... up to the largest finite one.
inline const std::vector<double>& code_values(Format format) {
  const auto list = [](int mantissa_bits, int bias, int top) {
    std::vector<double> values;
    for (int code = 0; code <= top; ++code) {
      const int field = code >> mantissa_bits, rest = code & ((1 << mantissa_bits) - 1);
      const double fraction = static_cast<double>(rest) / (1 << mantissa_bits);
      values.push_back(field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, field - bias));
    }
    return values;
  };
  static const std::vector<double> e4m3 = list(3, 7, 0x7e), e5m2 = list(2, 15, 0x7b);
  return format == Format::e4m3 ? e4m3 : e5m2;
}

inline std::uint8_t nearest_code(Format format, double x) {
  if (std::isnan(x)) return 0x7f;
  const std::vector<double>& values = code_values(format);
  const double a = std::min(std::fabs(x), values.back());
  const auto above = static_cast<std::size_t>(std::lower_bound(values.begin(), values.end(), a) - values.begin());
  std::size_t code = above;
  if (above > 0 && values[above] != a) {
    const double up = values[above] - a, down = a - values[above - 1];
    code = down < up || (down == up && (above - 1) % 2 == 0) ? above - 1 : above;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(x) ? 0x80 : 0));
}

// spec per-tensor-1.1. A quotient of floats is never so near the middle between two floats that double cannot tell its side.
inline float expected_scale(double amax, double max, bool pow2, float epsilon, double overflow) {
  if (amax < epsilon) amax = epsilon;
  if (!(amax > 0) || std::isinf(amax)) return 1;
  double scale = static_cast<float>(max / amax);
  if (std::isinf(scale)) scale = overflow;
  if (pow2) scale = std::exp2(std::floor(std::log2(scale)));  // exact where it matters: see pow2's own test
  return static_cast<float>(scale);
}

inline double largest_of(Format type) {
  return type == Format::f32 ? 0x1.fffffep127 : type == Format::bf16 ? 0x1.fep127 : 65504.0;
}

inline std::uint8_t expected_code(const Case& c, double x, float scale) {
  double product = static_cast<float>(x * scale);  // exact in double, so rounded once
  if (c.x.positive_zero && x * scale == 0) product = 0.0;
  return nearest_code(c.x.output, product);
}

// Which block of its group an element belongs to: (direction, block row, block column).
using Block = std::tuple<int, std::int64_t, std::int64_t>;
inline Block block_of(Recipe recipe, int direction, std::int64_t r, std::int64_t k) {
  if (is_per_tensor(recipe)) return {0, 0, 0};
  if (recipe == Recipe::block_128x128) return {0, r / 128, k / 128};
  return direction == 0 ? Block{0, r, k / 128} : Block{1, r / 128, k};
}

// The largest magnitude of each block of a group with `rows` rows; NaN elements are passed over.
template <class Value>
std::map<Block, double> block_amax(const Case& c, std::int64_t rows, const Value& value) {
  std::map<Block, double> amax;
  if (is_per_tensor(c.recipe)) amax[{0, 0, 0}] = 0;
  for (int direction = 0; direction < 2; ++direction) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < c.x.columns; ++k) {
        double& largest = amax[block_of(c.recipe, direction, r, k)];
        const double magnitude = std::fabs(value(r, k));
        if (!std::isnan(magnitude)) largest = std::max(largest, magnitude);
      }
    }
  }
  return amax;
}

// Everything but dbias, onto outputs full of poison.
inline Outputs expected(const Case& c, std::uint8_t poison) {
  const block_scaled::Input input = block_scaled::make_input(c.x);
  const QuantizeShapes shapes = quantize_outputs(problem_of(c, input));
  const auto poisoned = [&](const OutputShape& shape) {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(shape.bytes()), poison);
  };
  Outputs want = {poisoned(shapes.rowwise_data),
                  poisoned(shapes.columnwise_data),
                  poisoned(shapes.rowwise_scale_inv),
                  poisoned(shapes.columnwise_scale_inv),
                  poisoned(shapes.amax),
                  poisoned(shapes.scale),
                  poisoned(shapes.dbias)};
  if (!c.x.rowwise) want.rowwise_data.assign(64, poison);
  if (!c.x.columnwise) want.columnwise_data.assign(64, poison);
  const auto put = [](std::vector<std::uint8_t>& bytes, std::int64_t index, float value) {
    std::memcpy(bytes.data() + 4 * index, &value, 4);
  };

  const std::int64_t columns = c.x.columns;
  const double max = code_values(c.x.output).back();
  std::int64_t first_row = 0, rowwise_scales = 0, columnwise_scales = 0;
  for (std::size_t t = 0; t < c.x.splits.size(); ++t) {
    const std::int64_t rows = c.x.splits[t];
    const auto value = [&](std::int64_t r, std::int64_t k) {
      return block_scaled::exact_value(c.x.x_type, block_scaled::element_bits(c.x, first_row + r, k));
    };
    const auto key = [&](int direction, std::int64_t r, std::int64_t k) { return block_of(c.recipe, direction, r, k); };
    std::map<Block, double> amax = block_amax(c, rows, value);
    std::map<Block, float> scale;
    for (const auto& [block, largest] : amax) {
      const double overflow = is_per_tensor(c.recipe) ? 0x1.fffffep127 : largest_of(c.x.x_type);
      scale[block] = c.recipe == Recipe::tensor_delayed ? c.scale[t] : expected_scale(largest, max, c.pow2, c.epsilon, overflow);
    }
    const auto inverse = [](float s) { return std::isnan(s) ? std::bit_cast<float>(0x7fff'ffffu) : static_cast<float>(1.0 / s); };
    if (is_per_tensor(c.recipe)) {
      put(want.amax, static_cast<std::int64_t>(t), static_cast<float>(amax[{0, 0, 0}]));
      if (c.recipe == Recipe::tensor_current) put(want.scale, static_cast<std::int64_t>(t), scale[{0, 0, 0}]);
      put(want.rowwise_scale_inv, static_cast<std::int64_t>(t), inverse(scale[{0, 0, 0}]));
    }
    const auto up4 = [](std::int64_t n) { return (n + 3) / 4 * 4; };
    const auto blocks = [](std::int64_t n) { return (n + 127) / 128; };
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < columns; ++k) {
        if (c.x.rowwise) {
          const float s = scale[key(0, r, k)];
          want.rowwise_data[static_cast<std::size_t>((first_row + r) * columns + k)] = expected_code(c, value(r, k), s);
          if (c.recipe == Recipe::block_1x128) put(want.rowwise_scale_inv, rowwise_scales + k / 128 * up4(rows) + r, inverse(s));
          if (c.recipe == Recipe::block_128x128) {
            put(want.rowwise_scale_inv, rowwise_scales + r / 128 * up4(blocks(columns)) + k / 128, inverse(s));
          }
        }
        if (c.x.columnwise) {
          const float s = scale[key(1, r, k)];
          want.columnwise_data[static_cast<std::size_t>(first_row * columns + k * rows + r)] = expected_code(c, value(r, k), s);
          if (c.recipe == Recipe::block_1x128)
            put(want.columnwise_scale_inv, columnwise_scales + r / 128 * up4(columns) + k, inverse(s));
          if (c.recipe == Recipe::block_128x128) {
            put(want.columnwise_scale_inv, columnwise_scales + k / 128 * up4(blocks(rows)) + r / 128, inverse(s));
          }
        }
      }
    }
    first_row += rows;
    const bool square = c.recipe == Recipe::block_128x128;
    rowwise_scales += square ? blocks(rows) * up4(blocks(columns)) : blocks(columns) * up4(rows);
    columnwise_scales += square ? blocks(columns) * up4(blocks(rows)) : blocks(rows) * up4(columns);
  }
  return want;
}

}  // namespace assay::fp8_suite
