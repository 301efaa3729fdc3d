#pragma once
// Values of codes by the definition of a binary format, for the tests of patterns: independent of the reference's conversions.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "reference/types/format.h"

namespace assay::conformance {

struct Layout {
  int mantissa, bias;
  bool ieee;  // the top exponent is for infinity and NaN
};
inline const std::map<Format, Layout> kLayouts = {{Format::f32, {23, 127, true}}, {Format::bf16, {7, 127, true}},
                                                  {Format::f16, {10, 15, true}},  {Format::e4m3, {3, 7, false}},
                                                  {Format::e5m2, {2, 15, true}},  {Format::e2m1, {1, 1, false}}};
inline Layout layout_of(Format type) {
  static const std::array<Layout, 16> layouts = [] {
    std::array<Layout, 16> all{};
    for (const auto& [format, layout] : kLayouts) all.at(static_cast<std::size_t>(format)) = layout;
    return all;
  }();
  return layouts[static_cast<std::size_t>(type)];
}
inline int width(Format type) { return bits_of(type); }

// The value of a code, by the definition of a binary format.
inline double value_of(Format type, std::uint32_t code) {
  const Layout l = layout_of(type);
  const int bits = width(type), exponent_bits = bits - 1 - l.mantissa;
  const std::uint32_t magnitude = code & ((1u << (bits - 1)) - 1), field = magnitude >> l.mantissa;
  const std::uint32_t fraction = magnitude & ((1u << l.mantissa) - 1);
  const double sign = code >> (bits - 1) ? -1 : 1;
  if (l.ieee && field == (1u << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (type == Format::e4m3 && magnitude == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  if (field == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - l.bias - l.mantissa);
  return sign * std::ldexp(1.0 + std::ldexp(static_cast<double>(fraction), -l.mantissa), static_cast<int>(field) - l.bias);
}

}  // namespace assay::conformance
