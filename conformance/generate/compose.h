#pragma once
// Numbers composed from integers: the input is sign, significand and exponent, the output the bits of a format. Nothing is
// computed in floating point, so generated inputs cannot depend on a compiler, a rounding mode or a math library.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/types/error.h"
#include "reference/types/format.h"

namespace assay::conformance {

// How a format's bits are divided. The magnitude codes 0 .. `top` are its finite values in increasing order.
struct FormatFields {
  int bits;      // of one code, sign included
  int mantissa;  // bits
  int bias;
  std::uint32_t top;       // largest finite magnitude
  std::uint32_t infinity;  // magnitude code, 0 where there is none
  std::uint32_t nan;       // a magnitude code, 0 where there is none
};

inline FormatFields fields_of(Format format) {
  switch (format) {
    case Format::f32: return {32, 23, 127, 0x7f7f'ffff, 0x7f80'0000, 0x7fc0'0000};
    case Format::bf16: return {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
    case Format::f16: return {16, 10, 15, 0x7bff, 0x7c00, 0x7e00};
    case Format::e4m3: return {8, 3, 7, 0x7e, 0, 0x7f};
    case Format::e5m2: return {8, 2, 15, 0x7b, 0x7c, 0x7f};
    case Format::e2m1: return {4, 1, 1, 0x7, 0, 0};
    default: throw InvalidArgument("format", name_of(format), "f32, bf16, f16, e4m3, e5m2 or e2m1");
  }
}

constexpr std::uint32_t sign_bit(const FormatFields& fields) { return std::uint32_t{1} << (fields.bits - 1); }

// (-1)^negative * significand * 2^exponent, cut toward zero to the format; past the largest finite value: that value.
// Exact whenever the value is representable.
inline std::uint32_t compose(const FormatFields& fields, bool negative, std::uint32_t significand, int exponent) {
  const std::uint32_t sign = negative ? sign_bit(fields) : 0;
  if (significand == 0) return sign;
  const int smallest = 1 - fields.bias;  // exponent of the smallest normal, and of every subnormal
  const int leading = exponent + static_cast<int>(std::bit_width(significand)) - 1;
  const int binade = std::max(leading, smallest);
  if (binade + fields.bias > 2 * fields.bias + 1) return sign | fields.top;
  const int shift = binade - fields.mantissa - exponent;  // how many low bits the format cannot hold
  const std::uint32_t kept = shift >= 32 ? 0 : shift >= 0 ? significand >> shift : significand << -shift;
  const std::uint32_t code = (static_cast<std::uint32_t>(binade - smallest) << fields.mantissa) + kept;
  return sign | std::min(code, fields.top);
}

// The code `steps` away in magnitude, sign kept, held within [0, top]: neighbours in value are neighbours in code.
constexpr std::uint32_t neighbour(const FormatFields& fields, std::uint32_t code, int steps) {
  const std::uint32_t sign = code & sign_bit(fields);
  const std::int64_t magnitude = static_cast<std::int64_t>(code & (sign_bit(fields) - 1)) + steps;
  return sign | static_cast<std::uint32_t>(std::clamp<std::int64_t>(magnitude, 0, fields.top));
}

}  // namespace assay::conformance
