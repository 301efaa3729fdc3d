// spec tensor-core-5.1 to 5.5, a section each.

#include "reference/arithmetic/other_steps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/arithmetic/exact_sum.h"
#include "reference/types/error.h"

namespace assay {
namespace {

constexpr std::uint32_t kNan = 0x7FFFFFFF;
constexpr float kSmallestNormal = 0x1p-126f;

std::uint32_t code_of(float value) { return std::isnan(value) ? kNan : std::bit_cast<std::uint32_t>(value); }

// The element as f32, which holds every operand exactly.
float value_of(const DecodedElements& elements, std::size_t k) {
  const std::int32_t significand = elements.significand[k];
  if (elements.kind[k] == Term::Kind::nan) return std::numeric_limits<float>::quiet_NaN();
  if (elements.kind[k] == Term::Kind::infinity) return significand < 0 ? -HUGE_VALF : HUGE_VALF;
  if (elements.exponent[k] == kNegativeZero) return -0.0f;
  return std::ldexp(static_cast<float>(significand), elements.exponent[k] - elements.fraction);
}

// ---- Joined (spec tensor-core-5.1) ------------------------------------------------------------------------------------------

// value * 2^-shift, toward minus infinity.
std::int64_t floor_shift(std::int64_t value, int shift) {
  return shift <= 0 ? value * (std::int64_t{1} << -shift) : value >> std::min(shift, 63);
}

// significand * 2^(exponent - F); without a product that is not zero, `exponent` is kNoProduct.
constexpr int kNoProduct = -999;
struct ChainSum {
  std::int64_t significand = 0;
  int exponent = kNoProduct;
};

// The products `first`, first + stride, ... on one grid, each cut toward zero.
ChainSum chain_sum(const DecodedElements& a, const DecodedElements& b, std::size_t first, std::size_t stride, int fraction_bits) {
  ChainSum sum;
  const auto product = [&](std::size_t k) { return static_cast<std::int64_t>(a.significand[k]) * b.significand[k]; };
  for (std::size_t k = first; k < a.count; k += stride) {
    if (product(k) != 0) sum.exponent = std::max(sum.exponent, a.exponent[k] + b.exponent[k]);
  }
  for (std::size_t k = first; k < a.count; k += stride) {
    const std::int64_t magnitude = std::abs(product(k));
    if (magnitude == 0) continue;
    const int shift = sum.exponent - a.exponent[k] - b.exponent[k] + a.fraction + b.fraction - fraction_bits;
    const std::int64_t kept = floor_shift(magnitude, shift);
    sum.significand += product(k) < 0 ? -kept : kept;
  }
  return sum;
}

// What infinities and NaN make of a step: nothing, or the result.
std::uint32_t special_of(const DecodedElements& a, const DecodedElements& b, const Term& c) {
  float sum = c.kind == Term::Kind::nan        ? std::numeric_limits<float>::quiet_NaN()
              : c.kind == Term::Kind::infinity ? (c.negative ? -HUGE_VALF : HUGE_VALF)
                                               : 0.0f;
  for (std::size_t k = 0; k < a.count; ++k) {
    const float product = value_of(a, k) * value_of(b, k);  // 2^128 and more is an infinity
    if (!std::isfinite(product)) sum += product;
  }
  return std::isfinite(sum) ? 0 : code_of(sum);
}

std::uint32_t joined_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c) {
  const Term c_term = decode_term(Format::f32, c);
  if (const std::uint32_t special = special_of(a, b, c_term); special != 0) return special;

  const int bits = unit.fraction_bits, joined = unit.joined_bits;
  ChainSum dot;
  if (unit.chains == 1) {
    dot = chain_sum(a, b, 0, 1, bits);
  } else {
    const ChainSum even = chain_sum(a, b, 0, 2, bits), odd = chain_sum(a, b, 1, 2, bits);
    dot.exponent = std::max(even.exponent, odd.exponent);
    dot.significand =
        floor_shift(even.significand, dot.exponent - even.exponent) + floor_shift(odd.significand, dot.exponent - odd.exponent);
  }

  // C and the products meet on the grid 2^(largest - joined - 1); C itself only on 2^(largest - F).
  const int c_exponent = c_term.significand == 0 ? unit.zero_floor : c_term.exponent;
  const int largest = std::max(dot.exponent, c_exponent);
  const std::int64_t c_value = c_term.negative ? -static_cast<std::int64_t>(c_term.significand) : c_term.significand;
  std::int64_t c_kept = floor_shift(c_value, largest - c_exponent + c_term.fraction - bits);
  if (unit.drops_far_c && c_exponent < largest - bits - 1) c_kept = 0;
  const std::int64_t dot_kept = floor_shift(dot.significand, largest - dot.exponent + bits - joined - 1);
  const std::int64_t sum = dot_kept + floor_shift(c_kept, bits - joined - 1);
  const int lsb = largest - joined - 1;

  // `joined` bits below the leading one, toward minus infinity; then to nearest, ties to even.
  const int leading = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::abs(sum)))) - 1 + lsb;
  const int dropped = std::max(leading, -126) - joined - lsb;
  ExactSum exact;
  exact.add(floor_shift(sum, dropped), lsb + dropped);
  return exact.nearest_f32();
}

// ---- Exact (spec tensor-core-5.2) -------------------------------------------------------------------------------------------

std::uint32_t exact_step(const DecodedElements& a, const DecodedElements& b, std::uint32_t c) {
  const Term c_term = decode_term(Format::f32, c);
  double special = c_term.kind == Term::Kind::finite ? 0 : static_cast<double>(std::bit_cast<float>(c));
  ExactSum sum;
  if (c_term.kind == Term::Kind::finite) {
    const auto significand = static_cast<std::int64_t>(c_term.significand);
    sum.add(c_term.negative ? -significand : significand, c_term.exponent - c_term.fraction);
  }
  for (std::size_t k = 0; k < a.count; ++k) {
    const bool finite = a.kind[k] == Term::Kind::finite && b.kind[k] == Term::Kind::finite;
    if (!finite) {
      special += static_cast<double>(value_of(a, k)) * value_of(b, k);
    } else {
      sum.add(static_cast<std::int64_t>(a.significand[k]) * b.significand[k],
              a.exponent[k] + b.exponent[k] - a.fraction - b.fraction);
    }
  }
  return special == 0 ? sum.nearest_f32() : code_of(static_cast<float>(special));
}

// ---- Flushing additions (spec tensor-core-5.3) ------------------------------------------------------------------------------

// A subnormal result is a zero of its sign.
float flushed(float value) { return std::fabs(value) < kSmallestNormal ? std::copysign(0.0f, value) : value; }

// A subnormal of its own format is +0, and so is -0.
float flushed_operand(const DecodedElements& elements, std::size_t k) {
  const bool subnormal = elements.kind[k] == Term::Kind::finite && std::abs(elements.significand[k]) >> elements.fraction == 0;
  return subnormal ? 0.0f : value_of(elements, k);
}

std::uint32_t tree_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c) {
  const bool flushes = unit.flush == Flush::operands_and_results;
  const auto result = [&](float value) { return flushes ? flushed(value) : value; };
  std::array<float, 64> values{};
  const auto length = static_cast<std::size_t>(unit.products_per_step);
  for (std::size_t k = 0; k < a.count; ++k) {
    values[k] = result(flushes ? flushed_operand(a, k) * flushed_operand(b, k) : value_of(a, k) * value_of(b, k));
  }
  for (std::size_t width = length; width > 1; width /= 2) {
    for (std::size_t i = 0; i < width / 2; ++i) values[i] = result(values[2 * i] + values[2 * i + 1]);
  }
  const float before = std::bit_cast<float>(c);
  // A zero of C is +0, whatever its sign was.
  return code_of(result((flushes ? flushed(before) + 0.0f : before) + values[0]));
}

// ---- Chains of multiply-adds (spec tensor-core-5.4) -------------------------------------------------------------------------

// The rounded a * b + c. Flushed, it is a zero if the value rounded to 24 bits lies below 2^-126, as with FTZ on x86.
float multiply_add(float a, float b, float c, bool flushes) {
  const float sum = std::fma(a, b, c);
  if (!flushes) return sum;
  if (std::fabs(sum) == kSmallestNormal) {
    // The f32 may have been rounded up to it. A double holds the sum exactly where it comes this close to 2^-126.
    const double exact = std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c));
    return std::fabs(exact) < 0x1p-126 - 0x1p-151 ? std::copysign(0.0f, sum) : sum;
  }
  return flushed(sum);
}

std::uint32_t chains_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c) {
  const bool flushes = unit.flush == Flush::f32_values;
  const auto read = [&](float value) { return flushes ? flushed(value) : value; };
  const float before = read(std::bit_cast<float>(c));
  std::array<float, 64> chain{};
  const auto chains = static_cast<std::size_t>(unit.chains);
  if (chains == 1) chain[0] = before;
  for (std::size_t k = 0; k < a.count; ++k) {
    float& to = chain[k % chains];
    to = multiply_add(read(value_of(a, k)), read(value_of(b, k)), to, flushes);
  }
  if (chains == 1) return code_of(chain[0]);
  float sum = chain[0];
  for (std::size_t i = 1; i < chains; ++i) sum = read(sum + chain[i]);
  return code_of(read(before + sum));
}

}  // namespace

std::uint32_t other_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c) {
  switch (unit.sum) {
    case StepSum::joined: return joined_step(unit, a, b, c);
    case StepSum::exact: return exact_step(a, b, c);
    case StepSum::tree: return tree_step(unit, a, b, c);
    case StepSum::chains: return chains_step(unit, a, b, c);
    case StepSum::fused: break;
  }
  require(false, "unit.sum", static_cast<std::uint32_t>(unit.sum), "joined, exact, tree or chains");
  return 0;
}

}  // namespace assay
