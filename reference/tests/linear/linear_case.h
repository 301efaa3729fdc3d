#pragma once
// A grouped linear layer as a value for tests: numbers that both 16-bit types hold, buffers with room before and after, and the
// steps of either layer. Encoding and rounding are written out here and share nothing with the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"

namespace assay::linear_suite {

using Bytes = std::vector<std::uint8_t>;

// The nearest value of a type with `bits` significant bits, exponents from `least` and a largest value, ties to even.
inline double nearest(double value, int bits, int least, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least) - (bits - 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  return std::fabs(rounded) > largest ? std::copysign(INFINITY, rounded) : rounded;
}

// Bits of a finite value, rounded to f32, bf16 or f16.
inline std::uint32_t code_of(Format type, double value) {
  if (type == Format::f16) {
    const double v = nearest(value, 11, -14, 65504);
    const std::uint32_t sign = std::signbit(v) ? 0x8000 : 0;
    if (v == 0) return sign;
    if (std::isinf(v)) return sign | 0x7c00;
    const int exponent = std::max(std::ilogb(v), -14);
    const auto significand = static_cast<std::uint32_t>(std::ldexp(std::fabs(v), 10 - exponent));
    return sign | (significand < 0x400 ? significand : static_cast<std::uint32_t>(exponent + 15) << 10 | (significand - 0x400));
  }
  const float v = static_cast<float>(type == Format::bf16 ? nearest(value, 8, -126, 0x1.fep127) : value);
  std::uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return type == Format::bf16 ? bits >> 16 : bits;
}

inline double value_of(Format type, std::uint32_t code) {
  if (type == Format::f16) {
    const int field = code >> 10 & 0x1f, rest = code & 0x3ff;
    const double magnitude = field == 0 ? std::ldexp(rest, -24) : field == 31 ? INFINITY : std::ldexp(rest + 1024, field - 25);
    return code & 0x8000 ? -magnitude : magnitude;
  }
  const std::uint32_t bits = type == Format::bf16 ? code << 16 : code;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline std::size_t width(Format type) { return type == Format::f32 ? 4 : 2; }

// Elements of one type.
struct Matrix {
  Format type = Format::bf16;
  Bytes bytes;

  Matrix() = default;
  Matrix(Format of, std::int64_t elements, std::uint8_t fill = 0)
      : type(of), bytes(static_cast<std::size_t>(elements) * width(of), fill) {}
  std::uint32_t code(std::int64_t i) const {
    std::uint32_t code = 0;
    std::memcpy(&code, &bytes.at(static_cast<std::size_t>(i) * width(type)), width(type));
    return code;
  }
  double value(std::int64_t i) const { return value_of(type, code(i)); }
  void set_code(std::int64_t i, std::uint32_t code) {
    std::memcpy(&bytes.at(static_cast<std::size_t>(i) * width(type)), &code, width(type));
  }
  void set(std::int64_t i, double value) { set_code(i, code_of(type, value)); }
  const void* data() const { return bytes.data(); }
  void* data() { return bytes.data(); }
  const void* at(std::int64_t i) const { return bytes.data() + static_cast<std::size_t>(i) * width(type); }
  void* at(std::int64_t i) { return bytes.data() + static_cast<std::size_t>(i) * width(type); }
};

inline std::uint64_t draw(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Layout {
  std::vector<std::int64_t> splits;
  std::int64_t N = 0, K = 0, beyond = 0;

  std::int64_t groups() const { return static_cast<std::int64_t>(splits.size()); }
  std::int64_t used() const { return std::accumulate(splits.begin(), splits.end(), std::int64_t{0}); }
  std::int64_t rows() const { return used() + beyond; }
  std::int64_t first(std::size_t t) const {
    return std::accumulate(splits.begin(), splits.begin() + static_cast<std::ptrdiff_t>(t), std::int64_t{0});
  }
  LinearShape shape() const { return {splits, rows(), N, K}; }
};

struct Case {
  LinearConfig config;
  Layout layout;
  bool bias = false, cached = false, accumulate = false;
  Format dw_type = Format::f32;
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << name_of(c.config.recipe) << " " << name_of(c.config.type) << " " << name_of(c.config.forward_code) << "/"
       << name_of(c.config.backward_code) << " splits=";
  for (const std::int64_t split : c.layout.splits) *out << split << ",";
  *out << " N=" << c.layout.N << " K=" << c.layout.K << " beyond=" << c.layout.beyond << (c.bias ? " bias" : "")
       << (c.cached ? " cached" : "") << (c.accumulate ? " accumulate" : "") << " dw=" << name_of(c.dw_type)
       << (!c.config.force_pow_2_scales   ? ""
           : *c.config.force_pow_2_scales ? " pow2"
                                          : " any scales")
       << " eps=" << c.config.amax_epsilon << " arch=" << c.config.architecture
       << (c.config.activation == Activation::off ? "" : " swiglu");
}

// A layer of one recipe, on an architecture that has it.
inline Case make_case(LinearRecipe recipe, Format type, Layout layout) {
  Case c;
  c.config.recipe = recipe;
  c.config.type = type;
  c.config.hadamard_sign_mask = 0xB208;
  if (recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4) c.config.architecture = "sm100";
  c.layout = std::move(layout);
  return c;
}

// Operands of one layer. Amplitudes differ from group to group by 2^4, so that a scale taken from another group shows;
// rows beyond the groups are NaN.
struct Operands {
  Matrix x, dy, w, bias, main_grad;
  std::vector<float> x_scale, dy_scale, w_scale;
};

inline double drawn(std::uint64_t seed, std::uint64_t index, int amplitude) {
  const std::uint64_t r = draw(seed, index);
  const double magnitude = std::ldexp(static_cast<double>(128 + r % 128), -7 - static_cast<int>(r >> 8 & 7) + amplitude);
  return (r >> 16 & 1) != 0 ? -magnitude : magnitude;
}

inline Operands make_operands(const Case& c, std::uint64_t seed = 1) {
  const Layout& l = c.layout;
  const Format type = c.config.type;
  const std::int64_t x_columns = matrices_in_x(c.config.activation) * l.K;
  Operands made{Matrix(type, l.rows() * x_columns, 0xff),
                Matrix(type, l.rows() * l.N, 0xff),
                Matrix(type, l.groups() * l.N * l.K),
                Matrix(type, l.groups() * l.N),
                Matrix(c.dw_type, l.groups() * l.N * l.K),
                {},
                {},
                {}};
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    const int amplitude = static_cast<int>(t % 3) * 4 - 4;
    for (std::int64_t i = 0; i < l.splits[t] * x_columns; ++i)
      made.x.set(l.first(t) * x_columns + i,
                 drawn(seed * 8 + 1, static_cast<std::uint64_t>(l.first(t) * x_columns + i), amplitude));
    for (std::int64_t i = 0; i < l.splits[t] * l.N; ++i)
      made.dy.set(l.first(t) * l.N + i, drawn(seed * 8 + 2, static_cast<std::uint64_t>(l.first(t) * l.N + i), amplitude));
    for (std::int64_t i = 0; i < l.N * l.K; ++i) {
      const std::int64_t at = static_cast<std::int64_t>(t) * l.N * l.K + i;
      made.w.set(at, drawn(seed * 8 + 3, static_cast<std::uint64_t>(at), -amplitude / 2));
      made.main_grad.set(at, drawn(seed * 8 + 4, static_cast<std::uint64_t>(at), 2));
    }
    for (std::int64_t i = 0; i < l.N; ++i)
      made.bias.set(static_cast<std::int64_t>(t) * l.N + i, drawn(seed * 8 + 5, t * 1000 + static_cast<std::uint64_t>(i), 1));
    made.x_scale.push_back(3.7f + static_cast<float>(t));
    made.dy_scale.push_back(11.3f / static_cast<float>(t + 1));
    made.w_scale.push_back(0.9f + 2 * static_cast<float>(t) + static_cast<float>(seed));
  }
  return made;
}

// The steps of one layer.
struct Steps {
  const char* name;
  decltype(&linear_forward) forward;
  decltype(&linear_dgrad) dgrad;
  decltype(&linear_wgrad) wgrad;
  decltype(&linear_dbias) dbias;
  decltype(&linear_quantize_weights) quantize_weights;
};
inline constexpr Steps kFast{"fast", linear_forward, linear_dgrad, linear_wgrad, linear_dbias, linear_quantize_weights};
inline constexpr Steps kScalar{"scalar",
                               scalar::linear_forward,
                               scalar::linear_dgrad,
                               scalar::linear_wgrad,
                               scalar::linear_dbias,
                               scalar::linear_quantize_weights};

inline constexpr std::uint8_t kPoison = 0xA5;

// With a cache there is no w to read.
inline Matrix forward(const Steps& steps, const Case& c, const Operands& o) {
  Matrix y(c.config.type, c.layout.rows() * c.layout.N, kPoison);
  LinearWeightCache cache;
  LinearForward operands{o.x.data(), o.w.data(), nullptr, c.bias ? o.bias.data() : nullptr, o.x_scale.data(), o.w_scale.data()};
  if (c.cached) {
    steps.quantize_weights(c.config, c.layout.shape(), o.w.data(), o.w_scale.data(), nullptr, cache);
    operands.cache = &cache;
    if (c.config.recipe != LinearRecipe::none) operands.w = operands.w_scale = nullptr;
  }
  steps.forward(c.config, c.layout.shape(), operands, y.data());
  return y;
}

inline Matrix dgrad(const Steps& steps, const Case& c, const Operands& o) {
  Matrix dx(c.config.type, c.layout.rows() * c.layout.K, kPoison);
  LinearWeightCache cache;
  LinearDgrad operands{o.dy.data(), o.w.data(), nullptr, o.dy_scale.data(), o.w_scale.data()};
  if (c.cached) {
    steps.quantize_weights(c.config, c.layout.shape(), o.w.data(), o.w_scale.data(), nullptr, cache);
    operands.cache = &cache;
    if (c.config.recipe != LinearRecipe::none) operands.w = operands.w_scale = nullptr;
  }
  steps.dgrad(c.config, c.layout.shape(), operands, dx.data());
  return dx;
}

inline LinearWgrad wgrad_operands(const Case& c, const Operands& o) {
  return {o.dy.data(), o.x.data(), o.dy_scale.data(), o.x_scale.data(), c.dw_type, c.accumulate};
}

// dw starts as the main gradient, or as NaN where it must not be read.
inline Matrix wgrad_start(const Case& c, const Operands& o) {
  return c.accumulate ? o.main_grad : Matrix(c.dw_type, c.layout.groups() * c.layout.N * c.layout.K, 0xff);
}
inline Matrix wgrad(const Steps& steps, const Case& c, const Operands& o) {
  Matrix dw = wgrad_start(c, o);
  steps.wgrad(c.config, c.layout.shape(), wgrad_operands(c, o), dw.data());
  return dw;
}

inline Matrix dbias(const Steps& steps, const Case& c, const Operands& o) {
  Matrix sums(c.config.type, c.layout.groups() * c.layout.N, kPoison);
  steps.dbias(c.config, c.layout.shape(), o.dy.data(), sums.data());
  return sums;
}

inline void expect_same(const Matrix& got, const Matrix& want, const std::string& what) {
  ASSERT_EQ(got.bytes.size(), want.bytes.size()) << what;
  const auto at = std::mismatch(got.bytes.begin(), got.bytes.end(), want.bytes.begin()).first - got.bytes.begin();
  if (at == static_cast<std::ptrdiff_t>(got.bytes.size())) return;
  const std::int64_t i = at / static_cast<std::int64_t>(width(got.type));
  ADD_FAILURE() << what << ": element " << i << " is " << got.value(i) << ", expected " << want.value(i);
}

}  // namespace assay::linear_suite
