// From the bound of a sum of products to the bound of an element of D: factors, C, rounding, bias.

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/error_bound_parts.h"

namespace assay::bounds {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double element_value(Format type, const void* base, std::int64_t at) {
  if (type == Format::f32) return static_cast<const float*>(base)[at];
  const std::uint16_t code = static_cast<const std::uint16_t*>(base)[at];
  return type == Format::bf16 ? scalar::decode_bf16(code) : scalar::decode_f16(code);
}

// To nearest even; past the largest finite value, infinity.
double rounded(const OutputType& type, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(x), type.exponent_min) - type.fraction);
  const double result = std::nearbyint(x / quantum) * quantum;
  return std::fabs(result) > type.largest ? std::copysign(kInfinite, x) : result;
}

// Rounds [low, high] to the type of D, at once or first to f32.
void round_ends(Format type, CertifiedBound& bound, double low, double high) {
  const OutputType f32 = output_of(Format::f32), output = output_of(type);
  bound.lowest = std::min(rounded(output, low), rounded(output, rounded(f32, low)));
  bound.highest = std::max(rounded(output, high), rounded(output, rounded(f32, high)));
}

// a + b, moved outward by a unit in the last place where the sum is not exact.
double sum_below(double a, double b) { return a + b - b == a && a + b - a == b ? a + b : std::nextafter(a + b, -kInfinite); }
double sum_above(double a, double b) { return a + b - b == a && a + b - a == b ? a + b : std::nextafter(a + b, kInfinite); }

CertifiedBound only(double value) { return {value, std::isfinite(value) ? 0 : kInfinite, value, value}; }

struct Factors {
  double value[4] = {1, 1, 1, 1};
  double product = 1;
  double largest = 1;    // no product of some of them is larger
  double unit = 1;       // every product of some of them is a multiple of it, or the smallest of them
  bool lossless = true;  // each is an f32 value

  bool are_finite() const {
    return std::all_of(std::begin(value), std::end(value), [](double each) { return std::isfinite(each); });
  }
};

Factors factors_of(const GroupedGemmView& view, const GroupView& group, std::int64_t at) {
  Factors factors;
  factors.value[0] = group.alpha;
  if (view.kind == GemmKind::fp8_per_tensor) {
    if (group.rows.scale.data != nullptr) factors.value[1] = group.rows.scale.value(at / group.n, 0);
    if (group.columns.scale.data != nullptr) factors.value[2] = group.columns.scale.value(at % group.n, 0);
  } else if (view.kind == GemmKind::nvfp4) {
    factors.value[1] = group.columns.amax;
    factors.value[2] = group.rows.amax;
    factors.value[3] = 1.0 / 7225344.0;
    factors.lossless = false;  // implementations differ in how they round this constant, or divide
  }
  for (const double each : factors.value) {
    factors.product *= each;
    factors.largest *= std::max(1.0, std::fabs(each));
    if (each != 0 && std::isfinite(each)) factors.unit *= std::min(1.0, lowest_bit(each));
  }
  return factors;
}

// Whether f32 holds everything that factors, sum and C can become on the way, in any association.
bool is_lossless(const Sum& sum, const Factors& factors, double beta, double c) {
  if (!sum.lossless || !factors.lossless || factors.largest * std::max(1.0, sum.largest) >= 0x1p120) return false;
  double unit = sum.unit, largest = sum.largest;
  if (factors.unit < kUnderflow || (unit < kInfinite && unit * factors.unit < kUnderflow)) return false;
  for (const double each : factors.value) {
    if (each == 0) return beta == 0;  // 0 times anything: nothing to lose but for the sum with C, which the general rule covers
    unit *= lowest_bit(each);
    largest *= std::fabs(each);
  }
  // The factors among themselves, and with the sum.
  double bits = 1;
  for (const double each : factors.value) bits *= std::fabs(each) / lowest_bit(each);
  if (bits >= 0x1p24) return false;
  if (unit < kInfinite && largest >= unit * 0x1p24) return false;
  if (beta != 0 && c != 0) {
    const double c_unit = lowest_bit(beta) * lowest_bit(c), c_value = std::fabs(beta * c);
    if (c_value >= c_unit * 0x1p24 || c_unit < kUnderflow || c_value >= 0x1p120) return false;
    const double common = std::min(unit, c_unit);
    if (largest + c_value >= common * 0x1p24) return false;
  }
  return true;
}

// The bias is added to D and the result rounded once more.
void add_bias(Format type, double bias, CertifiedBound& bound) {
  if (std::isnan(bound.lowest) || std::isnan(bias)) {
    bound = only(kNan);
  } else if (!bound.is_bounded()) {
    return;
  } else if (std::isinf(bias)) {
    const bool may_cancel = bound.lowest == -bias || bound.highest == -bias;
    bound = !may_cancel ? only(bias) : bound.is_exact() ? only(kNan) : CertifiedBound{};
  } else {
    bound.exact += bias;
    round_ends(type, bound, sum_below(bound.lowest, bias), sum_above(bound.highest, bias));
  }
}

// The sum is infinite or NaN in every order. Finite factors, none of them 0, and a finite C leave it so.
CertifiedBound special_bound(const Sum& sum, const Factors& factors, double c) {
  if (std::isnan(sum.exact) || std::isnan(factors.product) || std::isnan(c)) return only(kNan);
  bool plain = std::isfinite(c) && factors.largest < 0x1p120;
  for (const double each : factors.value) plain = plain && each != 0 && std::fabs(each) > 0x1p-120;
  if (!plain) return {};
  return only(factors.product < 0 ? -sum.exact : sum.exact);
}

}  // namespace

OutputType output_of(Format type) {
  switch (type) {
    case Format::bf16: return {7, -126, 0x1p-8, 0x1p-133, 0x1.FEp127};
    case Format::f16: return {10, -14, 0x1p-11, 0x1p-24, 65504};
    default: return {23, -126, kU, 0x1p-149, 0x1.FFFFFEp127};
  }
}

double lowest_bit(double x) {
  if (x == 0) return kInfinite;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto field = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t significand = (bits & 0xF'FFFF'FFFF'FFFF) | (field == 0 ? 0 : std::uint64_t{1} << 52);
  return std::ldexp(1.0, std::countr_zero(significand) + std::max(field, 1) - 1075);
}

CertifiedBound element_bound(const GroupedGemmView& view, const GroupView& group, const Sum& sum, std::int64_t at) {
  const Factors factors = factors_of(view, group, at);
  const double beta = group.beta;
  const double c_element = beta != 0 ? element_value(view.d_type, view.c, group.d_offset + at) : 0;
  const double c = beta * c_element;
  CertifiedBound bound;
  if (group.depth == 0 && std::isnan(c)) {
    bound = only(kNan);
  } else if (group.depth == 0 && !factors.are_finite()) {
    // 0 times such a factor is NaN; hardware that leaves factors out where there are no products gives beta * C.
  } else if (group.depth > 0 && (!std::isfinite(sum.exact) || std::isnan(factors.product) || std::isnan(c))) {
    bound = special_bound(sum, factors, c);
  } else if (is_lossless(sum, factors, beta, c_element)) {
    bound.exact = (group.depth == 0 ? 0 : sum.exact * factors.product) + c;
    bound.radius = 0;
    round_ends(view.d_type, bound, bound.exact, bound.exact);
  } else {
    // Four factors and the sum: at most five roundings, one of them the constant's, in any association.
    const double magnitude = std::fabs(factors.product);
    const double computed = std::min(sum.largest, std::fabs(sum.exact) + sum.error);
    double exact = sum.exact * factors.product;
    double radius = sum.error * magnitude + computed * magnitude * 8 * kU + 8 * kUnderflow * factors.largest * (1 + computed);
    if (group.depth == 0) exact = radius = 0;  // a finite factor leaves 0
    if (!(factors.largest * std::max(1.0, sum.largest) < 0x1p120)) radius = kInfinite;
    if (beta != 0) {
      exact += c;
      radius += 2 * kU * std::fabs(c) + 2 * kUnderflow;
      if (!(std::fabs(c) < 0x1p126)) radius = kInfinite;
    }
    radius += kU * (std::fabs(exact) + radius) + kUnderflow;  // the addition of C, or of +0
    radius = (radius + 0x1p-48 * std::fabs(exact)) * (1 + 0x1p-20);
    if (!(radius < kInfinite) || !(std::fabs(exact) < kInfinite)) return {exact, kInfinite};
    bound.exact = exact;
    bound.radius = radius;
    round_ends(view.d_type, bound, exact - radius, exact + radius);
  }
  if (group.bias != nullptr) add_bias(view.d_type, element_value(view.d_type, group.bias, at % group.n), bound);
  return bound;
}

}  // namespace assay::bounds
