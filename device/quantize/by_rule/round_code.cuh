#pragma once
// A value to a code of a small format by any rule of rounding (spec scale-rules-3.1), in integers, on the device and on the host.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "reference/rules/scale_rule.h"

namespace assay::device::by_rule {

struct RuleRounding {
  int mantissa_bits = 0;
  int lowest_exponent = 0;    // of a normal value; subnormals have its distance
  std::uint32_t highest = 0;  // magnitudes end here: the largest finite code, or the one past it
  std::uint32_t sign = 0;
  std::uint32_t nan_code = 0;
  CodeRounding::Round round = CodeRounding::Round::even;
  CodeRounding::NegativeZero negative_zero = CodeRounding::NegativeZero::kept;
};

inline RuleRounding rule_rounding(Format format, const CodeRounding& rounding) {
  RuleRounding r;
  r.round = rounding.round;
  r.negative_zero = rounding.negative_zero;
  switch (format) {
    case Format::e4m3: r.mantissa_bits = 3, r.lowest_exponent = -6, r.highest = 0x7E; break;
    case Format::e5m2: r.mantissa_bits = 2, r.lowest_exponent = -14, r.highest = 0x7B; break;
    case Format::e3m2: r.mantissa_bits = 2, r.lowest_exponent = -2, r.highest = 0x1F; break;
    case Format::e2m3: r.mantissa_bits = 3, r.lowest_exponent = 0, r.highest = 0x1F; break;
    default: r.mantissa_bits = 1, r.lowest_exponent = 0, r.highest = 0x7; break;  // e2m1
  }
  const bool has_nan = format == Format::e4m3 || format == Format::e5m2;
  r.sign = 1u << (bits_of(format) - 1);
  r.nan_code = has_nan ? 0x7F : rounding.nan == CodeRounding::NanCode::zero ? 0 : r.highest;
  if (has_nan && rounding.overflow == CodeRounding::Overflow::special) ++r.highest;
  return r;
}

// With e the exponent of |value|, at least the lowest, and q = |value| / 2^(e - mantissa bits) made whole, the code of the
// magnitude is (e - lowest) 2^(mantissa bits) + q: codes follow one another as values do, and a q that is rounded up past its
// binade carries.
ASSAY_BOTH std::uint32_t round_to_code(const RuleRounding& r, float value) {
  const std::uint32_t bits = bits_of_float(value), magnitude = bits & kF32Magnitude;
  if (magnitude > kF32Infinity) return r.nan_code;
  const int field = static_cast<int>(magnitude >> 23);
  const std::uint32_t digits = (magnitude & 0x007F'FFFFu) | (field == 0 ? 0u : 0x0080'0000u);
  const int exponent = field == 0 ? -126 : field - 127;
  const int binade = exponent > r.lowest_exponent ? exponent : r.lowest_exponent;
  const int wanted = 23 - r.mantissa_bits + binade - exponent,
            dropped = wanted < 25 ? wanted : 25;  // 25: all, and less than half
  const std::uint32_t quotient = digits >> dropped, rest = digits - (quotient << dropped), half = 1u << (dropped - 1);
  bool up = rest > half;
  if (rest == half) up = r.round == CodeRounding::Round::even ? quotient % 2 == 1 : r.round == CodeRounding::Round::away;
  if (r.round == CodeRounding::Round::truncate) up = false;
  std::uint32_t code = (static_cast<std::uint32_t>(binade - r.lowest_exponent) << r.mantissa_bits) + quotient + (up ? 1u : 0u);
  if (code > r.highest) code = r.highest;
  const bool dropped_sign = (r.negative_zero == CodeRounding::NegativeZero::never && code == 0) ||
                            (r.negative_zero == CodeRounding::NegativeZero::underflow && magnitude == 0);
  return bits != magnitude && !dropped_sign ? code | r.sign : code;
}

// Four codes behind one another as they are packed, the first lowest: 4, 3 or 2 bytes.
ASSAY_BOTH std::uint32_t pack_four(const std::uint32_t (&code)[4], int width) {
  return code[0] | code[1] << width | code[2] << (2 * width) | code[3] << (3 * width);
}

}  // namespace assay::device::by_rule
