#pragma once
// NVFP4 by a second route, only for tests: each operation is done in double and rounded once to f32 (exact: products of two f32
// fit a double, and a quotient in double is never so near to the middle between two f32 that rounding twice would matter); codes
// are found in tables of their values.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay::block_scaled {

inline float fl(double v) { return static_cast<float>(v); }

constexpr double kE2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

inline double e4m3_value(int code) {  // code 0 to 0x7f
  if (code == 0x7f) return std::nan("");
  const int e = code >> 3, m = code & 7;
  return e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
}

inline int nearest_e4m3(double v) {  // 0 <= v
  int best = 0;
  for (int code = 1; code <= 0x7e; ++code) {
    const double closer = std::fabs(v - e4m3_value(best)) - std::fabs(v - e4m3_value(code));
    if (closer > 0 || (closer == 0 && code % 2 == 0)) best = code;
  }
  return v > 448 ? 0x7e : best;
}

// The thresholds of spec formats-1.3.
inline int nearest_e2m1(float v) {
  if (std::isnan(v)) return 7;
  const double a = std::fabs(v);
  const int code = a <= .25 ? 0 : a < .75 ? 1 : a <= 1.25 ? 2 : a < 1.75 ? 3 : a <= 2.5 ? 4 : a < 3.5 ? 5 : a <= 5 ? 6 : 7;
  return code | (std::signbit(v) ? 8 : 0);
}

// The largest code whose value is at most t = fl(a + u * spacing).
inline int stochastic_code(float v, int byte) {
  if (std::isnan(v)) return 7;
  const double a = std::fabs(v), spacing = a >= 4 ? 2 : a >= 2 ? 1 : 0.5;
  // Rounding to double first changes nothing: the bits it drops lie 2^-53 below a sum of at least 2^-9, and u * spacing has
  // 8 bits, so that the sum is then not near the middle between two floats.
  const float t = byte == 0 ? fl(a) : fl(a + byte * spacing / 256);
  int code = 7;
  while (code > 0 && kE2m1[code] > double{t}) --code;
  return code | (std::signbit(v) ? 8 : 0);
}

inline float tensor_scale(float g, float e4m3_max) {
  if (std::isnan(g)) return FLT_MAX;
  if (g == 0 || std::isinf(g)) return 1;
  const float s = fl(6.0 * e4m3_max / g);
  return std::isinf(s) ? FLT_MAX : s;
}

inline int block_scale(float a, float s) {
  const float t = fl(double{s} * double{0x1.555556p-3f});
  return nearest_e4m3(std::fmin(double{fl(double{a} * t)}, 448));
}

inline float multiplier(int d8, float s) {
  const float w = fl(1.0 / s);
  const float denominator = fl(e4m3_value(d8) * w);
  if (denominator == 0) return FLT_MAX;
  const float c = fl(1.0 / denominator);
  return std::isinf(c) ? FLT_MAX : c;
}

struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> v;
  double at(std::int64_t r, std::int64_t q) const { return v[static_cast<std::size_t>(r * columns + q)]; }
};

inline float amax_of(const std::vector<double>& values) {
  double amax = 0;
  for (const double v : values) {
    if (std::fabs(v) > amax) amax = std::fabs(v);
  }
  return fl(amax);
}

struct Span {
  std::int64_t r0, r1, q0, q1;
};

struct Scaling {
  int d8;
  float multiplier;
};

// Error of the elements of one line, in order.
inline float line_error(const std::vector<double>& line, int d, float g, FourOverSix kind, float e4m3_max) {
  const float c = multiplier(d, tensor_scale(g, e4m3_max));
  float sum = 0;
  for (const double x : line) {
    const int code = nearest_e2m1(fl(x * c));
    const double scaled = fl((code & 8 ? -1 : 1) * kE2m1[code & 7] * e4m3_value(d));
    const float dequantized = fl(double{fl(scaled * g)} / (6.0 * e4m3_max));
    const float difference = fl(dequantized - x);
    sum = fl(double{sum} + (kind == FourOverSix::mean_squared_error ? double{fl(double{difference} * difference)}
                                                                    : double{std::fabs(difference)}));
  }
  return sum;
}

inline float tree_sum(const std::vector<float>& e) {  // 16 values; halves are added element by element, then their halves
  if (e.size() == 1) return e[0];
  std::vector<float> half;
  for (std::size_t r = 0; r < e.size() / 2; ++r) half.push_back(fl(double{e[r]} + e[r + e.size() / 2]));
  return tree_sum(half);
}

// The scales that the values of x in `span` share. The errors of 4over6 are summed along lines, which lie across the rows
// (rowwise) or down the columns: one of 16, or a tile of 16 x 16.
inline Scaling scaling_of(const Matrix& x, const Span& span, float g, FourOverSix kind, float e4m3_max, bool rowwise) {
  std::vector<double> all;
  std::vector<std::vector<double>> lines(static_cast<std::size_t>(rowwise ? span.r1 - span.r0 : span.q1 - span.q0));
  for (std::int64_t r = span.r0; r < span.r1; ++r) {
    for (std::int64_t q = span.q0; q < span.q1; ++q) {
      lines[static_cast<std::size_t>(rowwise ? r - span.r0 : q - span.q0)].push_back(x.at(r, q));
      all.push_back(x.at(r, q));
    }
  }
  const float a = amax_of(all), s = tensor_scale(g, e4m3_max);
  if (kind == FourOverSix::off) {
    const int d8 = block_scale(a, s);
    return {d8, multiplier(d8, s)};
  }
  const float base = fl(double{fl(a / 6.0)} * s);
  const int d6 = nearest_e4m3(std::fmin(base, 448)), d4 = nearest_e4m3(std::fmin(fl(base * 1.5), 448));
  const auto error = [&](int d) {
    std::vector<float> sums(lines.size() == 1 ? 1 : 16, 0.0f);  // of one line, or of 16 with zeros for those missing
    for (std::size_t l = 0; l < lines.size(); ++l) sums[l] = line_error(lines[l], d, g, kind, e4m3_max);
    return tree_sum(sums);
  };
  const int d8 = error(d4) < error(d6) ? d4 : d6;
  return {d8, multiplier(d8, s)};
}

// Nearest bf16 or f16 by search between the neighbours in exact steps; NaN is 0x7fff.
inline std::uint16_t nearest_half(Format format, double v) {
  if (std::isnan(v)) return 0x7fff;
  const int mantissa = format == Format::bf16 ? 7 : 10, bias = format == Format::bf16 ? 127 : 15;
  const int infinity = format == Format::bf16 ? 0x7f80 : 0x7c00;
  const double a = std::fabs(v);
  int code = infinity;
  if (!std::isinf(a)) {
    const int e = a == 0 ? 1 - bias : std::max(std::ilogb(a), 1 - bias);
    const double steps = std::ldexp(a, mantissa - e);  // exact
    const auto n = static_cast<int>(std::nearbyint(steps));
    code = std::min(((e + bias - 1) << mantissa) + n, infinity);
  }
  return static_cast<std::uint16_t>(code | (std::signbit(v) ? 0x8000 : 0));
}

// One sum of 16 terms of 0.25 * x, each with its sign, as a fused step: cut to multiples of 2^(e_max - 25), added, cut to
// f32, rounded to bf16. e_max from each x as bf16 has it: at least -126, less 2 for the quarter.
inline double hadamard_sum(const std::vector<double>& x, unsigned sign_mask, unsigned j) {
  int e_max = -1000;
  bool nan = false, plus = false, minus = false;
  for (unsigned i = 0; i < x.size(); ++i) {
    const bool flip = ((sign_mask >> i & 1) ^ static_cast<unsigned>(__builtin_parity(i & j))) != 0;
    nan |= std::isnan(x[i]);
    if (std::isinf(x[i])) (std::signbit(x[i]) != flip ? minus : plus) = true;
    if (x[i] != 0 && std::isfinite(x[i])) e_max = std::max(e_max, std::max(std::ilogb(x[i]), -126) - 2);
  }
  if (nan || (plus && minus)) return std::nan("");
  if (plus || minus) return plus ? INFINITY : -INFINITY;
  double steps = 0;  // integers below 2^30
  for (unsigned i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    const bool flip = ((sign_mask >> i & 1) ^ static_cast<unsigned>(__builtin_parity(i & j))) != 0;
    const double cut = std::trunc(std::ldexp(x[i], -2 - e_max + 25));
    steps += flip ? -cut : cut;
  }
  if (steps == 0) return 0;
  const double exact = std::ldexp(steps, e_max - 25);
  const double unit = std::ldexp(1, std::max(std::ilogb(exact), -126) - 23);
  const double f32 = std::trunc(exact / unit) * unit;
  if (f32 == 0) return 0;
  if (std::fabs(f32) >= 0x1p128) return std::copysign(INFINITY, f32);
  const std::uint16_t code = nearest_half(Format::bf16, f32);
  const double magnitude = (code & 0x7fff) == 0x7f80 ? INFINITY
                           : (code & 0x7f80) == 0    ? std::ldexp(code & 0x7f, -133)
                                                     : std::ldexp(128 + (code & 0x7f), (code >> 7 & 255) - 134);
  return std::copysign(magnitude, f32);
}

// Down the rows, 16 at a time; rows that are missing are zeros and have no sum.
inline Matrix hadamard_of(const Matrix& x, unsigned sign_mask) {
  Matrix y = x;
  for (std::int64_t r0 = 0; r0 < x.rows; r0 += 16) {
    for (std::int64_t q = 0; q < x.columns; ++q) {
      std::vector<double> block;
      for (std::int64_t r = r0; r < std::min(r0 + 16, x.rows); ++r) block.push_back(x.at(r, q));
      for (std::size_t j = 0; j < block.size(); ++j) {
        y.v[static_cast<std::size_t>((r0 + static_cast<std::int64_t>(j)) * x.columns + q)] =
            hadamard_sum(block, sign_mask, static_cast<unsigned>(j));
      }
    }
  }
  return y;
}

}  // namespace assay::block_scaled
