#pragma once
// A second route to one matrix instruction that shares no code with tensor_core_step: operands are doubles, exponents come
// from std::ilogb, and every sum is held in 1024 bits of fixed point. Each of its rules can be changed alone, so that a test can
// check whether its vectors detect the change.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference/arithmetic/tensor_core.h"

namespace assay::second_route {

// A sum in fixed point, two's complement: bit 0 weighs 2^kLowest.
class Fixed {
 public:
  static constexpr int kLowest = -512;

  // significand * 2^exponent.
  static Fixed of(std::int64_t significand, int exponent) {
    Fixed result;
    const auto magnitude = static_cast<std::uint64_t>(std::abs(significand));
    const std::size_t word = index(exponent);
    result.words_[word] = magnitude << shift(exponent);
    if (shift(exponent) != 0) result.words_[word + 1] = magnitude >> (64 - shift(exponent));
    return significand < 0 ? result.negated() : result;
  }
  // A finite double.
  static Fixed of(double value) {
    if (value == 0) return {};
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    return of(static_cast<std::int64_t>(std::ldexp(fraction, 53)), exponent - 53);
  }

  bool negative() const { return words_.back() >> 63 != 0; }
  bool zero() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  bool bit(int weight) const { return words_[index(weight)] >> shift(weight) & 1; }

  Fixed negated() const {
    Fixed result;
    for (std::size_t i = 0; i < words_.size(); ++i) result.words_[i] = ~words_[i];
    Fixed one;
    one.words_[0] = 1;
    return result + one;
  }
  Fixed magnitude() const { return negative() ? negated() : *this; }
  Fixed operator+(const Fixed& other) const {
    Fixed result;
    unsigned __int128 carry = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      carry += static_cast<unsigned __int128>(words_[i]) + other.words_[i];
      result.words_[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return result;
  }
  // Weight of the leading one of a positive value.
  int leading() const {
    for (std::size_t i = words_.size(); i-- > 0;) {
      if (words_[i] != 0) return static_cast<int>(64 * i) + 63 - std::countl_zero(words_[i]) + kLowest;
    }
    return kLowest;
  }
  // The multiple of 2^weight at or below the value.
  Fixed floor_to(int weight) const {
    Fixed result = *this;
    for (std::size_t i = 0; i < index(weight); ++i) result.words_[i] = 0;
    result.words_[index(weight)] &= ~std::uint64_t{0} << shift(weight);
    return result;
  }

 private:
  static std::size_t index(int weight) { return static_cast<std::size_t>(weight - kLowest) / 64; }
  static int shift(int weight) { return (weight - kLowest) % 64; }

  std::array<std::uint64_t, 16> words_{};
};

// Rounds to a multiple of 2^weight.
enum class Direction { toward_zero, nearest_even, down };
inline Fixed rounded(const Fixed& value, int weight, Direction direction) {
  if (value.zero()) return value;
  if (direction == Direction::down) return value.floor_to(weight);
  const Fixed magnitude = value.magnitude();
  Fixed result = magnitude.floor_to(weight);
  if (direction == Direction::nearest_even && magnitude.bit(weight - 1)) {
    const Fixed half = Fixed::of(1, weight - 1);
    const bool tie = (magnitude + (result + half).negated()).zero();
    if (!tie || result.bit(weight)) result = result + Fixed::of(1, weight);
  }
  return value.negative() ? result.negated() : result;
}

// One changed rule.
struct Mutation {
  std::string name = "none";
  int fraction_bits = 0;  // added to F
  int floor = 0;          // added to the floor
  Direction align = Direction::toward_zero;
  bool normalise_products = false;
  bool renormalise_subnormals = false;
  bool split_k = false;
  bool other_output = false;       // f32 where FP22 is due, FP22 where f32 is due
  bool contiguous_halves = false;  // of the emulated FP8 instruction
};

struct Layout {
  int exponent_bits, fraction_bits, bias;
};
inline Layout layout_of(Format format) {
  switch (format) {
    case Format::f32: return {8, 23, 127};
    case Format::bf16: return {8, 7, 127};
    case Format::f16: return {5, 10, 15};
    case Format::e5m2: return {5, 2, 15};
    case Format::e4m3: return {4, 3, 7};
    case Format::e3m2: return {3, 2, 3};
    case Format::e2m3: return {2, 3, 1};
    default: return {2, 1, 1};  // e2m1
  }
}

// The value of a code, which double holds exactly.
inline double value_of(Format format, std::uint32_t code) {
  const Layout f = layout_of(format);
  const double sign = code >> (f.exponent_bits + f.fraction_bits) & 1 ? -1 : 1;
  const int exponent = static_cast<int>(code >> f.fraction_bits) & ((1 << f.exponent_bits) - 1);
  const double fraction = std::ldexp(static_cast<double>(code & ((1u << f.fraction_bits) - 1)), -f.fraction_bits);
  const bool top = exponent == (1 << f.exponent_bits) - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (format == Format::e4m3 && top && fraction == 0.875) return nan;
  const bool finite = format == Format::e3m2 || format == Format::e2m3 || format == Format::e2m1;
  if (top && format != Format::e4m3 && !finite) {
    return fraction != 0 ? nan : sign * std::numeric_limits<double>::infinity();
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - f.bias) : std::ldexp(1 + fraction, exponent - f.bias));
}

// The exponent that a non-zero finite value carries in its encoding.
inline int encoded_exponent(Format format, double value, const Mutation& mutation) {
  const int exponent = std::ilogb(value);
  return mutation.renormalise_subnormals ? exponent : std::max(exponent, 1 - layout_of(format).bias);
}

struct Addend {
  double special = 0;  // infinite or NaN, else 0
  Fixed value;
  int exponent = 0;
  bool zero = true;  // takes the floor
};

inline Addend addend_of(Format format, double value, const Mutation& mutation) {
  if (!std::isfinite(value)) return {value, {}, 0, true};
  if (value == 0) return {};
  return {0, Fixed::of(value), encoded_exponent(format, value, mutation), false};
}

inline Addend product_of(Format a_type, double a, Format b_type, double b, int extra_exponent, const Mutation& mutation) {
  const double product = a * b;  // finite products are exact: at most 48 bits, far from the ends of double
  if (!std::isfinite(product)) return {product, {}, 0, true};
  if (product == 0) return {};
  int exponent = encoded_exponent(a_type, a, mutation) + encoded_exponent(b_type, b, mutation);
  if (mutation.normalise_products) {
    const double significand = std::fabs(product) / std::ldexp(1.0, exponent);
    if (significand >= 2) ++exponent;
  }
  return {0, Fixed::of(std::ldexp(product, extra_exponent)), exponent + extra_exponent, false};
}

// The bits of an exact sum, rounded once.
inline std::uint32_t output(const Fixed& sum, Accumulator accumulator, bool nearest_f32 = false) {
  if (sum.zero()) return 0;
  const bool f16 = accumulator == Accumulator::f16_nearest;
  const int fraction_bits = f16 ? 10 : accumulator == Accumulator::e8m13_truncated ? 13 : 23;
  const int smallest = f16 ? -14 : -126;
  const int weight = std::max(sum.magnitude().leading(), smallest) - fraction_bits;
  const Direction direction = f16 || nearest_f32 ? Direction::nearest_even : Direction::toward_zero;
  const Fixed result = rounded(sum, weight, direction).magnitude();
  const std::uint32_t sign = sum.negative() ? (f16 ? 0x8000u : 0x80000000u) : 0;
  if (result.zero()) return nearest_f32 ? sign : 0;
  const int leading = result.leading();
  if (leading > (f16 ? 15 : 127)) return sign | (f16 ? 0x7C00u : 0x7F800000u);
  double value = 0;
  for (int at = std::max(leading - 30, Fixed::kLowest); at <= leading; ++at) {
    if (result.bit(at)) value += std::ldexp(1.0, at);
  }
  if (!f16) return sign | std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const double units = std::ldexp(value, 24);  // of 2^-24
  if (units < 1024) return sign | static_cast<std::uint32_t>(units);
  const int exponent = std::ilogb(value);
  return sign | static_cast<std::uint32_t>((exponent + 15) * 1024 + static_cast<int>(std::ldexp(value, 10 - exponent)) - 1024);
}

inline std::uint32_t canonical_nan(Accumulator accumulator) {
  return accumulator == Accumulator::f16_nearest ? 0x7FFF : 0x7FFFFFFF;
}

inline std::uint32_t fused(const std::vector<Addend>& addends, const TensorCoreUnit& unit, const Mutation& mutation) {
  Accumulator accumulator = unit.accumulator;
  if (mutation.other_output && accumulator != Accumulator::f16_nearest) {
    accumulator = accumulator == Accumulator::f32_truncated ? Accumulator::e8m13_truncated : Accumulator::f32_truncated;
  }
  double special = 0;
  for (const Addend& each : addends) special += each.special;  // IEEE: inf - inf is NaN
  if (std::isnan(special)) return canonical_nan(accumulator);
  if (std::isinf(special)) {
    const bool f16 = accumulator == Accumulator::f16_nearest;
    return (special < 0 ? (f16 ? 0x8000u : 0x80000000u) : 0u) | (f16 ? 0x7C00u : 0x7F800000u);
  }
  int largest = -100000;
  for (const Addend& each : addends) largest = std::max(largest, each.zero ? unit.zero_floor + mutation.floor : each.exponent);
  const int weight = std::max(largest - unit.fraction_bits - mutation.fraction_bits, Fixed::kLowest + 1);
  Fixed sum;
  for (const Addend& each : addends) sum = sum + rounded(each.value, weight, mutation.align);
  return output(sum, accumulator);
}

inline double accumulator_value(Accumulator accumulator, std::uint32_t bits) {
  return value_of(accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32, bits);
}

struct Vector {
  Format a_type, b_type;
  std::vector<std::uint32_t> a, b;
  std::uint32_t c = 0;
  std::vector<std::uint8_t> scale_a, scale_b;
};

// Emulated FP8: two steps of f16 products, each of half of the products, and then the addition of C.
inline std::uint32_t emulated_step(const TensorCoreUnit& unit, const std::vector<double>& a, const std::vector<double>& b,
                                   std::uint32_t c_bits, Format c_type, const Mutation& mutation) {
  const auto count = static_cast<int>(a.size());
  std::uint32_t total = 0;
  for (int half = 0; half < 2; ++half) {
    std::vector<std::vector<Addend>> parts(mutation.split_k ? 2 : 1);
    int taken = 0;
    for (int k = 0; k < unit.products_per_step; ++k) {
      const bool here = mutation.contiguous_halves ? k / 16 == half : k % 4 / 2 == half;
      if (!here) continue;
      const Addend product = k < count ? product_of(Format::f16, a[k], Format::f16, b[k], 0, mutation) : Addend{};
      parts[mutation.split_k ? taken / 8 : 0].push_back(product);
      ++taken;
    }
    for (auto& part : parts) {
      part.push_back(addend_of(c_type, accumulator_value(unit.accumulator, total), mutation));
      total = fused(part, unit, mutation);
    }
  }
  const double t = accumulator_value(unit.accumulator, total), c = accumulator_value(unit.accumulator, c_bits);
  const double special = (std::isfinite(t) ? 0 : t) + (std::isfinite(c) ? 0 : c);
  if (std::isnan(special)) return canonical_nan(unit.accumulator);
  if (std::isinf(special)) return fused({{special, {}, 0, true}}, unit, {});
  return output(Fixed::of(t) + Fixed::of(c), unit.accumulator, true);
}

inline double scale_value(Format format, std::uint8_t code) {
  if (format == Format::e4m3) return value_of(Format::e4m3, code & 0x7Fu);
  return code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}

// Sums of 16 products, each with the scales of its block: addends of unit.group = 16.
inline std::vector<Addend> scaled_sums(const TensorCoreUnit& unit, const Vector& v, const std::vector<double>& a,
                                       const std::vector<double>& b, const Mutation& mutation) {
  const auto count = static_cast<int>(a.size());
  std::vector<Addend> products;
  const int per_scale = unit.scaling == StepScaling::e8m0_per_32 ? 32 : 16;
  for (int group = 0; group < 4; ++group) {
    Addend term;
    double sum = 0;
    bool any = false;
    for (int k = 16 * group; k < std::min(count, 16 * group + 16); ++k) {
      sum += a[k] * b[k];
      any = any || a[k] * b[k] != 0;
    }
    if (16 * group < count) {
      const bool e4m3 = unit.scaling == StepScaling::e4m3_per_16;
      const int at = 16 * group / per_scale;
      const double sa = scale_value(e4m3 ? Format::e4m3 : Format::e8m0, v.scale_a[at]),
                   sb = scale_value(e4m3 ? Format::e4m3 : Format::e8m0, v.scale_b[at]);
      if (e4m3)
        term = product_of(Format::e4m3, sa, Format::e4m3, sb, 0, mutation);
      else
        term = {std::isnan(sa * sb) ? sa * sb : 0, {}, std::isnan(sa * sb) ? 0 : std::ilogb(sa * sb), false};
      if (!any) term.zero = true;
      if (term.special == 0) term.value = Fixed::of(sum * sa * sb);  // 12 + 4 + 4 bits: exact
    }
    products.push_back(term);
  }
  return products;
}

inline std::uint32_t step(const TensorCoreUnit& unit, const Vector& v, const Mutation& mutation = {}) {
  const Format c_type = unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32;
  std::vector<double> a, b;
  for (std::size_t k = 0; k < v.a.size(); ++k) {
    const std::uint32_t mask = v.a_type == Format::f32 ? 0xFFFFE000u : 0xFFFFFFFFu;  // TF32
    a.push_back(value_of(v.a_type, v.a[k] & mask));
    b.push_back(value_of(v.b_type, v.b[k] & mask));
  }
  const auto count = static_cast<int>(v.a.size());
  const int length = unit.products_per_step;

  if (unit.execution == Execution::emulated_fp8) return emulated_step(unit, a, b, v.c, c_type, mutation);

  std::vector<Addend> products;
  if (unit.group == 16) {
    products = scaled_sums(unit, v, a, b, mutation);
  } else {
    const bool scaled = unit.scaling == StepScaling::e8m0_per_32;
    const double s = scaled ? scale_value(Format::e8m0, v.scale_a[0]) * scale_value(Format::e8m0, v.scale_b[0]) : 1;
    for (int k = 0; k < length; ++k) {
      Addend product =
          k < count ? product_of(v.a_type, a[k], v.b_type, b[k], std::isnan(s) ? 0 : std::ilogb(s), mutation) : Addend{};
      if (std::isnan(s)) product.special = s;
      products.push_back(product);
    }
  }
  std::uint32_t total = v.c;
  const std::size_t parts = mutation.split_k ? 2 : 1;
  const std::size_t part_length = products.size() / parts;
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<Addend> addends(products.begin() + static_cast<std::ptrdiff_t>(part * part_length),
                                products.begin() + static_cast<std::ptrdiff_t>((part + 1) * part_length));
    addends.push_back(addend_of(c_type, accumulator_value(unit.accumulator, total), mutation));
    total = fused(addends, unit, mutation);
  }
  return total;
}

}  // namespace assay::second_route
