// spec tensor-core-1.1 to tensor-core-1.6, read downward: product, fused sum, encode; then the ways to use them.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "reference/arithmetic/decoded.h"
#include "reference/arithmetic/other_steps.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// The largest products_per_step of any unit. Steps use arrays of this size and allocate nothing: 2048^3 takes 268 million steps.
constexpr std::size_t kMaxProducts = 64;

// One addend of the fused sum: significand * 2^(exponent - fraction). `has_exponent` is false where the term takes the floor
// instead of its exponent. That is the same as significand == 0, except for a group of 16 FP4 products that cancel. `Addend{}`
// is a zero term.
struct Addend {
  Term::Kind kind = Term::Kind::finite;
  bool has_exponent = false;
  std::int64_t significand = 0;
  int exponent = 0;
  int fraction = 0;
};

Addend addend(const Term& term) {
  const std::int64_t magnitude = term.kind == Term::Kind::finite ? term.significand : 1;
  return {term.kind, magnitude != 0, term.negative ? -magnitude : magnitude, term.exponent, term.fraction};
}

// The products of a step, one array per part. Exact: neither rounded nor normalised, so 1.5 * 1.5 keeps the exponent 0. A
// product that is zero has the floor for its exponent.
struct Products {
  std::array<std::int64_t, kMaxProducts> significand;
  std::array<std::int32_t, kMaxProducts> exponent;
  std::size_t count = 0;
  int fraction = 0;
};

// The result of a sum with infinities or NaN among its terms, if there are any.
struct Specials {
  bool nan = false, plus = false, minus = false;

  void add(Term::Kind kind, bool negative) {
    nan |= kind == Term::Kind::nan;
    plus |= kind == Term::Kind::infinity && !negative;
    minus |= kind == Term::Kind::infinity && negative;
  }
  void add_product(Term::Kind a_kind, std::int64_t a, Term::Kind b_kind, std::int64_t b) {
    const bool infinite = a_kind == Term::Kind::infinity || b_kind == Term::Kind::infinity;
    const bool zero = (a_kind == Term::Kind::finite && a == 0) || (b_kind == Term::Kind::finite && b == 0);
    nan |= a_kind == Term::Kind::nan || b_kind == Term::Kind::nan || (infinite && zero);
    if (infinite) add(Term::Kind::infinity, (a < 0) != (b < 0));
  }
  bool any() const { return nan || plus || minus; }
};

struct OutputForm {
  int fraction_bits;
  int exponent_min;
  bool nearest;      // ties to even; otherwise toward zero
  int padding_bits;  // e8m13 sits at the top of an f32
  int sign_bit;
  std::uint32_t infinity;
  std::uint32_t nan;
};

OutputForm form_of(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::f32_truncated: return {23, -126, false, 0, 31, 0x7F800000, 0x7FFFFFFF};
    case Accumulator::e8m13_truncated: return {13, -126, false, 10, 31, 0x7F800000, 0x7FFFFFFF};
    case Accumulator::f16_nearest: return {10, -14, true, 0, 15, 0x7C00, 0x7FFF};
    case Accumulator::f32_nearest: return {23, -126, true, 0, 31, 0x7F800000, 0x7FFFFFFF};
  }
  require(false, "unit.accumulator", static_cast<std::uint32_t>(accumulator), "an Accumulator");
  return {};
}

// Rounds sum * 2^lsb once.
std::uint32_t encode(std::int64_t sum, int lsb, const OutputForm& form) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 1u << form.sign_bit : 0;
  const std::uint64_t magnitude = sum < 0 ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);

  const int exponent = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + lsb, form.exponent_min);
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
  // The leading bit of a normal number counts as 1 of the exponent; rounded up to a power of two, it carries by itself.
  const std::uint64_t code = (static_cast<std::uint64_t>(exponent - form.exponent_min) << form.fraction_bits) + quotient;
  return sign | static_cast<std::uint32_t>(std::min<std::uint64_t>(code << form.padding_bits, form.infinity));
}

std::uint32_t special_code(const Specials& found, const OutputForm& form) {
  if (found.nan || (found.plus && found.minus)) return form.nan;
  return (found.minus ? 1u << form.sign_bit : 0) | form.infinity;
}

// The addend in units of 2^lsb, cut toward zero.
std::int64_t cut(const Addend& each, int lsb) {
  if (each.significand == 0) return 0;  // its exponent may lie above the largest
  const int shift = each.exponent - each.fraction - lsb;
  const std::int64_t magnitude = std::abs(each.significand);
  std::int64_t kept = 0;
  if (shift >= 0)
    kept = magnitude << shift;  // at most fraction_bits + 5 bits above 2^lsb
  else if (-shift < 63)
    kept = magnitude >> -shift;
  return each.significand < 0 ? -kept : kept;
}

// Multiplies the elements. Returns the largest exponent, or `largest` where that is more.
ASSAY_CLONES int multiply(const DecodedElements& a, const DecodedElements& b, int scale_exponent, int zero_floor, int largest,
                          Products& products) {
  for (std::size_t k = 0; k < a.count; ++k) {
    const std::int64_t significand = static_cast<std::int64_t>(a.significand[k]) * b.significand[k];
    products.significand[k] = significand;
    products.exponent[k] = significand == 0 ? zero_floor : a.exponent[k] + b.exponent[k] + scale_exponent;
  }
  for (std::size_t k = 0; k < a.count; ++k) largest = std::max(largest, products.exponent[k]);
  products.count = a.count;
  products.fraction = a.fraction + b.fraction;
  return largest;
}

// The sum of the products in units of 2^(largest - fraction_bits), each cut toward zero on its own.
ASSAY_CLONES std::int64_t cut_sum(const Products& products, int largest, int fraction_bits) {
  // To shift left by `up` first and then right by at least 0 is one shift by the difference: no bit leaves at the top.
  const int up = std::max(fraction_bits - products.fraction, 0), down = std::max(products.fraction - fraction_bits, 0);
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < products.count; ++k) {
    const std::int64_t significand = products.significand[k], magnitude = significand < 0 ? -significand : significand;
    const std::int64_t kept = (magnitude << up) >> std::min(largest - products.exponent[k] + down, 63);
    sum += significand < 0 ? -kept : kept;
  }
  return sum;
}

// The fused step of a few addends: each is cut toward zero on one grid and the sum is rounded once.
std::uint32_t fused_sum(std::span<const Addend> addends, int fraction_bits, int zero_floor, const OutputForm& form) {
  Specials found;
  for (const Addend& each : addends) found.add(each.kind, each.significand < 0);
  if (found.any()) return special_code(found, form);
  int largest = INT32_MIN;
  for (const Addend& each : addends) largest = std::max(largest, each.has_exponent ? each.exponent : zero_floor);
  std::int64_t sum = 0;
  for (const Addend& each : addends) sum += cut(each, largest - fraction_bits);
  return encode(sum, largest - fraction_bits, form);
}

Specials specials_of(const DecodedElements& a, const DecodedElements& b) {
  Specials found;
  static_assert(Term::Kind{} == Term::Kind::finite && sizeof(Term::Kind) == 1);
  std::uint8_t any = 0;
  for (std::size_t k = 0; k < a.count; ++k) any |= static_cast<std::uint8_t>(a.kind[k]) | static_cast<std::uint8_t>(b.kind[k]);
  if (any == 0) return found;
  for (std::size_t k = 0; k < a.count; ++k) found.add_product(a.kind[k], a.significand[k], b.kind[k], b.significand[k]);
  return found;
}

// The fused step of products and C. `scale_exponent` moves every product; `is_short`: zeros fill the step, and count as zero
// terms (spec tensor-core-1.6).
std::uint32_t fused_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, const Addend& c,
                         int scale_exponent, bool is_short, const OutputForm& form) {
  Specials found = specials_of(a, b);
  found.add(c.kind, c.significand < 0);
  if (found.any()) return special_code(found, form);
  int largest = c.has_exponent ? c.exponent : unit.zero_floor;
  if (is_short) largest = std::max(largest, unit.zero_floor);
  Products products;
  largest = multiply(a, b, scale_exponent, unit.zero_floor, largest, products);
  const int lsb = largest - unit.fraction_bits;
  return encode(cut(c, lsb) + cut_sum(products, largest, unit.fraction_bits), lsb, form);
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
std::uint32_t emulated_fp8_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c,
                                Format c_type, const OutputForm& form) {
  struct Half {
    std::array<std::int32_t, kMaxProducts> significand, exponent;
    std::array<Term::Kind, kMaxProducts> kind;
    DecodedElements of(const DecodedElements& all, std::size_t half) {
      std::size_t count = 0;
      for (std::size_t k = 0; k < all.count; ++k) {
        if ((k & 2) != half) continue;
        significand[count] = all.significand[k];
        exponent[count] = all.exponent[k];
        kind[count++] = all.kind[k];
      }
      return {significand.data(), exponent.data(), kind.data(), count, all.fraction};
    }
  };
  std::uint32_t total = 0;
  for (const std::size_t half : {0u, 2u}) {
    Half a_half, b_half;
    total = fused_step(unit, a_half.of(a, half), b_half.of(b, half), addend(decode_term(c_type, total)), 0, false, form);
  }
  return add_nearest(c_type, total, c, form);
}

// 2^(code - 127) as a term; 0xFF is NaN.
Term e8m0_term(std::uint8_t code) {
  Term term;
  if (code == 0xFF) term.kind = Term::Kind::nan;
  term.significand = 1;
  term.exponent = code - 127;
  return term;
}

// FP4: up to 16 products become one addend (spec tensor-core-3.2), their exact sum times both scale significands. Its exponent is
// that of the scales alone, and it counts even when the products cancel; only sixteen zeros, or a zero scale, take the floor.
// e2m1 has neither infinities nor NaN.
Addend group_of_16(const DecodedElements& a, const DecodedElements& b, StepScaling scaling, std::uint8_t scale_a,
                   std::uint8_t scale_b) {
  constexpr int kQuarters = 2;  // e2m1 products are multiples of 1/4
  std::int64_t sum = 0;
  bool all_zero = true;
  for (std::size_t k = 0; k < a.count; ++k) {
    const std::int64_t product = static_cast<std::int64_t>(a.significand[k]) * b.significand[k];
    sum += product * (std::int64_t{1} << (a.exponent[k] + b.exponent[k] - a.fraction - b.fraction + kQuarters));
    all_zero = all_zero && product == 0;
  }
  // The sign of an e4m3 scale is ignored.
  const bool e4m3 = scaling == StepScaling::e4m3_per_16;
  const Term first = e4m3 ? decode_term(Format::e4m3, scale_a) : e8m0_term(scale_a);
  const Term second = e4m3 ? decode_term(Format::e4m3, scale_b) : e8m0_term(scale_b);
  const std::int64_t scale = static_cast<std::int64_t>(first.significand) * second.significand;

  Addend result;
  if (first.kind == Term::Kind::nan || second.kind == Term::Kind::nan) result.kind = Term::Kind::nan;
  result.has_exponent = !all_zero && scale != 0;
  result.significand = sum * scale;
  result.exponent = first.exponent + second.exponent;
  result.fraction = first.fraction + second.fraction + kQuarters;
  return result;
}

std::uint32_t grouped_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c,
                           Format c_type, std::span<const std::uint8_t> scale_a, std::span<const std::uint8_t> scale_b,
                           bool is_short, const OutputForm& form) {
  std::array<Addend, kMaxProducts / 16 + 2> addends;
  std::size_t count = 0;
  addends[count++] = addend(decode_term(c_type, c));
  const bool two_groups = unit.scaling == StepScaling::e8m0_per_32;  // under one pair of scales
  for (std::size_t first = 0; first < a.count; first += 16) {
    const std::size_t length = std::min<std::size_t>(16, a.count - first), at = two_groups ? first / 32 : first / 16;
    addends[count++] = group_of_16(a.part(first, length), b.part(first, length), unit.scaling, scale_a[at], scale_b[at]);
  }
  if (is_short) addends[count++] = Addend{};
  return fused_sum({addends.data(), count}, unit.fraction_bits, unit.zero_floor, form);
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
  require(a.size() <= kMaxProducts, "a", a.size(), "at most 64 elements");
  require(a.size() == b.size(), "b", b.size(), "as many elements as a");
}

// TF32 operands arrive as f32; the instruction drops the low 13 bits.
std::uint32_t as_read(const TensorCoreUnit& unit, std::uint32_t bits) { return unit.tf32 ? bits & ~0x1FFFu : bits; }

}  // namespace

int products_per_scale(StepScaling scaling) {
  switch (scaling) {
    case StepScaling::none: return 0;
    case StepScaling::e8m0_per_32: return 32;
    case StepScaling::e4m3_per_16:
    case StepScaling::e8m0_per_16: return 16;
  }
  return 0;
}

std::size_t scales_of_step(const TensorCoreUnit& unit, std::size_t count) {
  const auto each = static_cast<std::size_t>(products_per_scale(unit.scaling));
  return each == 0 ? 0 : (count + each - 1) / each;
}

int decode_element(const TensorCoreUnit& unit, Format type, std::uint32_t bits, std::int32_t& significand, std::int32_t& exponent,
                   Term::Kind& kind) {
  const bool widened = unit.execution == Execution::emulated_fp8;
  const Term term = widened ? decode_term(Format::f16, f16_of(type, bits)) : decode_term(type, as_read(unit, bits));
  const std::int32_t magnitude = term.kind == Term::Kind::finite ? static_cast<std::int32_t>(term.significand) : 1;
  significand = term.negative ? -magnitude : magnitude;
  exponent = unit.sum == StepSum::chains && term.negative && magnitude == 0 ? kNegativeZero : term.exponent;
  kind = term.kind;
  return term.fraction;
}

std::uint32_t tensor_core_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c,
                               std::span<const std::uint8_t> scale_a, std::span<const std::uint8_t> scale_b) {
  const std::size_t length = std::min<std::size_t>(kMaxProducts, static_cast<std::size_t>(unit.products_per_step));
  require(a.count <= length, "a", a.count, "at most products_per_step elements, and 64");
  require(a.count == b.count, "b", b.count, "as many elements as a");
  const std::size_t scales = scales_of_step(unit, a.count);
  require(scale_a.size() == scales, "scale_a", scale_a.size(), "one scale per block that holds an element");
  require(scale_b.size() == scales, "scale_b", scale_b.size(), "one scale per block that holds an element");
  if (unit.sum != StepSum::fused) return other_step(unit, a, b, c);
  const OutputForm form = form_of(unit.accumulator);
  const Format c_type = unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32;
  const bool is_short = a.count < static_cast<std::size_t>(unit.products_per_step);
  if (unit.execution == Execution::emulated_fp8) return emulated_fp8_step(unit, a, b, c, c_type, form);
  if (unit.group == 16) return grouped_step(unit, a, b, c, c_type, scale_a, scale_b, is_short, form);
  int scale_exponent = 0;
  if (unit.scaling == StepScaling::e8m0_per_32 && a.count > 0) {  // spec tensor-core-3.1: one pair of scales moves every product
    if (scale_a[0] == 0xFF || scale_b[0] == 0xFF) return form.nan;
    scale_exponent = (scale_a[0] - 127) + (scale_b[0] - 127);
  }
  return fused_step(unit, a, b, addend(decode_term(c_type, c)), scale_exponent, is_short, form);
}

std::uint32_t tensor_core_step(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                               std::span<const std::uint32_t> b, std::uint32_t c, std::span<const std::uint8_t> scale_a,
                               std::span<const std::uint8_t> scale_b) {
  require_operands(unit, a_type, a, b_type, b);
  struct Operand {
    std::array<std::int32_t, kMaxProducts> significand{}, exponent{};
    std::array<Term::Kind, kMaxProducts> kind{};
    DecodedElements of(const TensorCoreUnit& unit, Format type, std::span<const std::uint32_t> codes) {
      int fraction = 0;
      for (std::size_t k = 0; k < codes.size(); ++k) {
        fraction = decode_element(unit, type, codes[k], significand[k], exponent[k], kind[k]);
      }
      return {significand.data(), exponent.data(), kind.data(), codes.size(), fraction};
    }
  } a_operand, b_operand;
  return tensor_core_step(unit, a_operand.of(unit, a_type, a), b_operand.of(unit, b_type, b), c, scale_a, scale_b);
}

}  // namespace assay
