// spec tensor-core-1.1 to tensor-core-1.6, read downward: product, fused sum, encode; then the ways to use them.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "reference/arithmetic/tensor_core.h"
#include "reference/support/error.h"

namespace assay {
namespace {

// One addend of the fused sum: (-1)^negative * significand * 2^(exponent - fraction). `has_exponent` is false where the term
// takes the floor instead of its exponent. That is the same as significand == 0, but for a cancelled group of 16 FP4
// products. `Addend{}` is a term of zero; the members have no other defaults, so that an array of them costs nothing.
struct Addend {
  Term::Kind kind;
  bool negative;
  bool has_exponent;
  std::int64_t significand;
  int exponent;
  int fraction;
};
static_assert(Term::Kind{} == Term::Kind::finite);

// The addends of one step in their order. A step allocates nothing: a product of 2048^3 takes 268 million of them.
class Addends {
 public:
  static constexpr std::size_t kMostProducts = 64;  // of any unit

  void add(const Addend& each) { kept_[count_++] = each; }
  std::span<Addend> all() { return {kept_.data(), count_}; }

 private:
  std::array<Addend, kMostProducts + 2> kept_;  // with C, and the zero of a short step
  std::size_t count_ = 0;
};

Addend addend(const Term& term) {
  return {term.kind, term.negative, term.significand != 0, term.significand, term.exponent, term.fraction};
}

// Exact: neither rounded nor normalised, so 1.5 * 1.5 keeps the exponent 0.
Addend product(const Term& a, const Term& b) {
  Addend result{};
  result.negative = a.negative != b.negative;
  const bool nan = a.kind == Term::Kind::nan || b.kind == Term::Kind::nan;
  const bool infinite = a.kind == Term::Kind::infinity || b.kind == Term::Kind::infinity;
  const bool zero = (a.kind == Term::Kind::finite && a.significand == 0) || (b.kind == Term::Kind::finite && b.significand == 0);
  if (nan || (infinite && zero)) {
    result.kind = Term::Kind::nan;
  } else if (infinite) {
    result.kind = Term::Kind::infinity;
  } else {
    result.significand = static_cast<std::int64_t>(a.significand) * b.significand;
    result.has_exponent = result.significand != 0;
    result.exponent = a.exponent + b.exponent;
    result.fraction = a.fraction + b.fraction;
  }
  return result;
}

struct OutputForm {
  int fraction_bits;
  int exponent_min;
  int exponent_max;
  bool nearest;        // ties to even; otherwise toward zero
  int padding_bits;    // e8m13 sits at the top of an f32
  int sign_bit;
  std::uint32_t infinity;
  std::uint32_t nan;
};

OutputForm form_of(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::f32_truncated: return {23, -126, 127, false, 0, 31, 0x7F800000, 0x7FFFFFFF};
    case Accumulator::e8m13_truncated: return {13, -126, 127, false, 10, 31, 0x7F800000, 0x7FFFFFFF};
    case Accumulator::f16_nearest: return {10, -14, 15, true, 0, 15, 0x7C00, 0x7FFF};
  }
  require(false, "unit.accumulator", static_cast<std::uint32_t>(accumulator), "an Accumulator");
  return {};
}

// Rounds sum * 2^lsb once.
std::uint32_t encode(std::int64_t sum, int lsb, const OutputForm& form) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 1u << form.sign_bit : 0;
  const std::uint64_t magnitude = sum < 0 ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);

  int exponent = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + lsb, form.exponent_min);
  const int shift = lsb - (exponent - form.fraction_bits);  // left if positive: then the value is exact
  std::uint64_t quotient = 0;
  if (shift >= 0) {
    quotient = magnitude << shift;
  } else if (-shift < 64) {
    quotient = magnitude >> -shift;
    const std::uint64_t dropped = magnitude - (quotient << -shift);
    const std::uint64_t half = std::uint64_t{1} << (-shift - 1);
    if (form.nearest && (dropped > half || (dropped == half && quotient % 2 == 1))) ++quotient;
  }
  if (quotient == 0) return 0;
  const std::uint64_t leading = std::uint64_t{1} << form.fraction_bits;
  if (quotient == 2 * leading) {
    quotient = leading;
    ++exponent;
  }
  if (exponent > form.exponent_max) return sign | form.infinity;
  const std::uint64_t biased = quotient >= leading ? static_cast<std::uint64_t>(exponent - form.exponent_min + 1) : 0;
  const std::uint64_t code = (biased << form.fraction_bits | (quotient & (leading - 1))) << form.padding_bits;
  return sign | static_cast<std::uint32_t>(code);
}

// The fused step: every addend, C among them, is cut toward zero on one grid and the sum is rounded once.
std::uint32_t fused_sum(std::span<const Addend> addends, int fraction_bits, int zero_floor, const OutputForm& form) {
  bool nan = false, plus = false, minus = false;
  for (const Addend& each : addends) {
    nan |= each.kind == Term::Kind::nan;
    plus |= each.kind == Term::Kind::infinity && !each.negative;
    minus |= each.kind == Term::Kind::infinity && each.negative;
  }
  if (nan || (plus && minus)) return form.nan;
  if (plus) return form.infinity;
  if (minus) return 1u << form.sign_bit | form.infinity;

  int largest = INT32_MIN;
  for (const Addend& each : addends) largest = std::max(largest, each.has_exponent ? each.exponent : zero_floor);
  const int lsb = largest - fraction_bits;

  std::int64_t sum = 0;
  for (const Addend& each : addends) {
    if (each.significand == 0) continue;
    const int shift = each.exponent - each.fraction - lsb;
    std::int64_t cut = 0;
    if (shift >= 0) cut = each.significand << shift;  // at most fraction_bits + 5 bits above 2^lsb
    else if (-shift < 63) cut = each.significand >> -shift;
    sum += each.negative ? -cut : cut;
  }
  return encode(sum, lsb, form);
}

// The value of an FP8 code as an f16 code. Exact; a subnormal e4m3 becomes a normal f16.
std::uint32_t f16_of(Format format, std::uint32_t bits) {
  if (format == Format::e5m2) return bits << 8;
  const Term term = decode_term(format, bits);
  if (term.kind == Term::Kind::nan) return 0x7FFF;
  const std::uint32_t sign = term.negative ? 0x8000 : 0;
  if (term.significand == 0) return sign;
  const int leading = std::bit_width(term.significand) - 1;
  const int exponent = term.exponent - term.fraction + leading;
  const std::uint32_t fraction = (term.significand << (10 - leading)) & 0x3FF;
  return sign | static_cast<std::uint32_t>(exponent + 15) << 10 | fraction;
}

// Plain addition rounded to nearest even, of two f32 or two f16 codes.
std::uint32_t add_nearest(Format type, std::uint32_t a, std::uint32_t b, const OutputForm& form) {
  if (type == Format::f16) {
    // 40 fraction bits below the larger of two f16 values lose nothing, so the fused sum rounds the exact one.
    const Addend addends[] = {addend(decode_term(type, a)), addend(decode_term(type, b))};
    return fused_sum(addends, 40, -14, form);
  }
  const float sum = std::bit_cast<float>(a) + std::bit_cast<float>(b);
  return std::isnan(sum) ? form.nan : std::bit_cast<std::uint32_t>(sum);
}

// mma.sync FP8 where the hardware has none (spec tensor-core-3.3): operands widened to f16; k mod 4 in {0,1} first,
// then {2,3}, each through one f16 step; C is added last.
std::uint32_t emulated_fp8_step(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                                std::span<const std::uint32_t> b, std::uint32_t c, Format c_type, const OutputForm& form) {
  std::uint32_t total = 0;
  for (const std::size_t half : {0u, 2u}) {
    Addends addends;
    addends.add(addend(decode_term(c_type, total)));
    for (std::size_t k = 0; k < a.size(); ++k) {
      if ((k & 2) != half) continue;
      const Term a_term = decode_term(Format::f16, f16_of(a_type, a[k]));
      const Term b_term = decode_term(Format::f16, f16_of(b_type, b[k]));
      addends.add(product(a_term, b_term));
    }
    total = fused_sum(addends.all(), unit.fraction_bits, unit.zero_floor, form);
  }
  return add_nearest(c_type, total, c, form);
}

// kind::mxf8f6f4 (spec tensor-core-3.1): the exponents of one pair of e8m0 scales move every product.
void scale_by_e8m0(std::span<Addend> products, std::uint8_t scale_a, std::uint8_t scale_b) {
  for (Addend& each : products) {
    if (scale_a == 0xFF || scale_b == 0xFF) each.kind = Term::Kind::nan;
    each.exponent += (scale_a - 127) + (scale_b - 127);
  }
}

// kind::mxf4nvf4: up to 16 products become one addend (spec tensor-core-3.2), their exact sum times both scale significands. Its
// exponent is that of the scales alone, and it counts even when the products cancel; only sixteen zeros, or a zero scale, take
// the floor. The sign of a scale is ignored, and 0x7F is NaN.
Addend group_of_16(std::span<const Addend> products, std::uint8_t scale_a, std::uint8_t scale_b) {
  constexpr int kQuarters = 2;  // e2m1 products are multiples of 1/4
  std::int64_t sum = 0;
  bool all_zero = true;
  for (const Addend& each : products) {
    const std::int64_t quarters = each.significand << (each.exponent - each.fraction + kQuarters);
    sum += each.negative ? -quarters : quarters;
    all_zero = all_zero && each.significand == 0;
  }
  const Addend scale = product(decode_term(Format::e4m3, scale_a & 0x7Fu), decode_term(Format::e4m3, scale_b & 0x7Fu));

  Addend result{};
  result.kind = scale.kind;
  result.negative = sum < 0;
  result.has_exponent = !all_zero && scale.has_exponent;
  result.significand = std::abs(sum) * scale.significand;
  result.exponent = scale.exponent;
  result.fraction = scale.fraction + kQuarters;
  return result;
}

void require_operands(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                      std::span<const std::uint32_t> b) {
  const auto takes = [&](Format type) {
    return std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
  };
  require(takes(a_type), "a_type", name_of(a_type), "an operand type of the unit");
  require(takes(b_type), "b_type", name_of(b_type), "an operand type of the unit");
  require(bits_of(a_type) < 16 || a_type == b_type, "b_type", name_of(b_type), "the type of a: wide operands do not mix");
  require(a.size() <= static_cast<std::size_t>(unit.products_per_step), "a", a.size(), "at most products_per_step elements");
  require(a.size() <= Addends::kMostProducts, "a", a.size(), "at most 64 elements");
  require(a.size() == b.size(), "b", b.size(), "as many elements as a");
}

// TF32 operands arrive as f32; the instruction drops the low 13 bits.
std::uint32_t as_read(Format type, std::uint32_t bits) { return type == Format::f32 ? bits & ~0x1FFFu : bits; }

}  // namespace

std::uint32_t tensor_core_step(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                               std::span<const std::uint32_t> b, std::uint32_t c, std::span<const std::uint8_t> scale_a,
                               std::span<const std::uint8_t> scale_b) {
  require_operands(unit, a_type, a, b_type, b);
  const OutputForm form = form_of(unit.accumulator);
  const Format c_type = unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32;
  const std::size_t scales = unit.scaling == StepScaling::none           ? 0
                             : unit.scaling == StepScaling::e8m0_per_32 ? 1
                                                                        : (a.size() + 15) / 16;
  require(scale_a.size() == scales, "scale_a", scale_a.size(), "one scale a block that holds an element");
  require(scale_b.size() == scales, "scale_b", scale_b.size(), "one scale a block that holds an element");
  if (unit.execution == Execution::emulated_fp8) return emulated_fp8_step(unit, a_type, a, b_type, b, c, c_type, form);

  Addends products, addends;
  for (std::size_t k = 0; k < a.size(); ++k) {
    products.add(product(decode_term(a_type, as_read(a_type, a[k])), decode_term(b_type, as_read(b_type, b[k]))));
  }
  addends.add(addend(decode_term(c_type, c)));
  if (unit.scaling == StepScaling::e4m3_per_16) {
    for (std::size_t group = 0; group < scales; ++group) {
      const auto part = products.all().subspan(16 * group, std::min<std::size_t>(16, a.size() - 16 * group));
      addends.add(group_of_16(part, scale_a[group], scale_b[group]));
    }
  } else {
    if (unit.scaling == StepScaling::e8m0_per_32) scale_by_e8m0(products.all(), scale_a[0], scale_b[0]);
    for (const Addend& each : products.all()) addends.add(each);
  }
  // The zeros that fill a short step count as zero terms (spec tensor-core-1.6).
  if (a.size() < static_cast<std::size_t>(unit.products_per_step)) addends.add(Addend{});
  return fused_sum(addends.all(), unit.fraction_bits, unit.zero_floor, form);
}

}  // namespace assay
