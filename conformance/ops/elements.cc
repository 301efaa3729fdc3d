#include "conformance/ops/elements.h"

#include <bit>
#include <cmath>
#include <limits>

namespace assay::conformance {
namespace {

// The bit fields of a format, as far as the comparison needs them.
struct Shape {
  int mantissa, bias;
  enum { infinity_and_nan, nan_all_ones, nan_negative_zero, none } specials;
};

Shape shape_of(Format type) {
  switch (type) {
    case Format::f32: return {23, 127, Shape::infinity_and_nan};
    case Format::bf16: return {7, 127, Shape::infinity_and_nan};
    case Format::f16: return {10, 15, Shape::infinity_and_nan};
    case Format::e4m3: return {3, 7, Shape::nan_all_ones};
    case Format::e5m2: return {2, 15, Shape::infinity_and_nan};
    case Format::e4m3_fnuz: return {3, 8, Shape::nan_negative_zero};
    case Format::e5m2_fnuz: return {2, 16, Shape::nan_negative_zero};
    default: return {1, 1, Shape::none};  // e2m1
  }
}

std::uint64_t sign_of(Format type) { return std::uint64_t{1} << (bits_of(type) - 1); }

}  // namespace

bool is_floating(Format type) { return type != Format::i32 && type != Format::i64 && type != Format::e8m0; }

bool is_nan(Format type, std::uint64_t bits) {
  if (type == Format::e8m0) return bits == 0xFF;
  if (!is_floating(type)) return false;
  const Shape shape = shape_of(type);
  const std::uint64_t magnitude = bits & (sign_of(type) - 1);
  switch (shape.specials) {
    case Shape::infinity_and_nan: return magnitude > (sign_of(type) - (std::uint64_t{1} << shape.mantissa));
    case Shape::nan_all_ones: return magnitude == sign_of(type) - 1;
    case Shape::nan_negative_zero: return bits == sign_of(type);
    default: return false;
  }
}

bool is_finite(Format type, std::uint64_t bits) {
  if (is_nan(type, bits)) return false;
  if (!is_floating(type)) return true;
  const Shape shape = shape_of(type);
  return shape.specials != Shape::infinity_and_nan ||
         (bits & (sign_of(type) - 1)) != sign_of(type) - (std::uint64_t{1} << shape.mantissa);
}

bool is_zero(Format type, std::uint64_t bits) {
  if (type == Format::e8m0) return false;
  if (!is_floating(type)) return bits == 0;
  return (bits & (sign_of(type) - 1)) == 0 && !is_nan(type, bits);
}

double value_of(Format type, std::uint64_t bits) {
  if (is_nan(type, bits)) return std::numeric_limits<double>::quiet_NaN();
  if (type == Format::i32) return static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)));
  if (type == Format::i64) return static_cast<double>(static_cast<std::int64_t>(bits));
  if (type == Format::e8m0) return std::ldexp(1.0, static_cast<int>(bits) - 127);
  const Shape shape = shape_of(type);
  const double sign = bits & sign_of(type) ? -1 : 1;
  if (!is_finite(type, bits)) return sign * std::numeric_limits<double>::infinity();
  const std::uint64_t magnitude = bits & (sign_of(type) - 1), field = magnitude >> shape.mantissa;
  const std::uint64_t fraction = magnitude - (field << shape.mantissa);
  const std::uint64_t significand = field == 0 ? fraction : fraction + (std::uint64_t{1} << shape.mantissa);
  return sign *
         std::ldexp(static_cast<double>(significand), static_cast<int>(field == 0 ? 1 : field) - shape.bias - shape.mantissa);
}

std::uint64_t ulp_distance(Format type, std::uint64_t a, std::uint64_t b) {
  const auto position = [&](std::uint64_t bits) {
    const auto magnitude = static_cast<std::int64_t>(bits & (sign_of(type) - 1));
    return bits & sign_of(type) ? -magnitude : magnitude;
  };
  const std::int64_t distance = position(a) - position(b);
  return static_cast<std::uint64_t>(distance < 0 ? -distance : distance);
}

}  // namespace assay::conformance
