#pragma once
// The fused step of a matrix instruction in integers, for any unit and any operand (spec tensor-core-1.1). Terms are
// added one at a time to a Sum, in two passes: the first finds the exponent at which all are cut, the second adds the
// cut terms.

#include <cstdint>

#include "device/emulated_gemm/problem.h"

namespace assay::device::emulated {

// An element in 32 bits: signed significand in the low half, exponent in the high half, value significand *
// 2^(exponent - fraction). A zero has significand 0. Infinity (significand +-1) and NaN have exponents of their own.
struct Term {
  static constexpr int kInfinity = 0x2000, kNan = 0x4000;
  std::int32_t word;

  static __device__ Term of(int significand, int exponent) {
    return {static_cast<std::int32_t>(static_cast<std::uint32_t>(exponent) << 16 |
                                      (static_cast<std::uint32_t>(significand) & 0xFFFF))};
  }
  __device__ int significand() const { return static_cast<std::int16_t>(word & 0xFFFF); }
  __device__ int exponent() const { return word >> 16; }
  __device__ bool special() const { return exponent() >= kInfinity; }
};

__host__ __device__ inline int fraction_of(Format type) {
  switch (type) {
    case Format::bf16: return 7;
    case Format::f16: return 10;
    case Format::e4m3: return 3;
    case Format::e5m2: return 2;
    default: return 1;  // e2m1
  }
}

// Fields of a code of `exponent_bits` and `fraction_bits`; subnormals keep the exponent of the smallest normal.
__device__ inline Term split_fields(std::uint32_t code, int exponent_bits, int fraction_bits, int bias, bool ieee,
                                    bool last_is_nan) {
  const int fraction = static_cast<int>(code & ((1u << fraction_bits) - 1));
  const int field = static_cast<int>(code >> fraction_bits & ((1u << exponent_bits) - 1));
  const bool negative = (code >> (exponent_bits + fraction_bits) & 1) != 0;
  if (field == (1 << exponent_bits) - 1) {
    if (ieee) return fraction != 0 ? Term::of(1, Term::kNan) : Term::of(negative ? -1 : 1, Term::kInfinity);
    if (last_is_nan && fraction == (1 << fraction_bits) - 1) return Term::of(1, Term::kNan);
  }
  const int magnitude = field == 0 ? fraction : fraction + (1 << fraction_bits);
  return Term::of(negative ? -magnitude : magnitude, (field == 0 ? 1 : field) - bias);
}

__device__ inline Term term_of(Format type, std::uint32_t code) {
  switch (type) {
    case Format::bf16: return split_fields(code, 8, 7, 127, true, false);
    case Format::f16: return split_fields(code, 5, 10, 15, true, false);
    case Format::e5m2: return split_fields(code, 5, 2, 15, true, false);
    case Format::e4m3: return split_fields(code, 4, 3, 7, false, true);
    default: return split_fields(code, 2, 1, 1, false, false);
  }
}

// The same of an FP8 code after widening to f16 or bf16, where small numbers are normal ones; but those of e5m2 are subnormal in
// f16 as well.
__device__ inline Term widened_term_of(Format type, std::uint32_t code, Format to) {
  Term term = term_of(type, code);
  if ((type == Format::e5m2 && to == Format::f16) || term.special() || term.significand() == 0) return term;
  const int normal = type == Format::e4m3 ? 8 : 4;
  int significand = term.significand(), exponent = term.exponent();
  while (significand > -normal && significand < normal) {
    significand *= 2;
    --exponent;
  }
  return Term::of(significand, exponent);
}

// Shifts toward zero.
__device__ inline std::int64_t cut(std::int64_t value, int left) {
  if (left >= 0) return value << left;
  if (left <= -63) return 0;
  const std::int64_t magnitude = (value < 0 ? -value : value) >> -left;
  return value < 0 ? -magnitude : magnitude;
}

// sum * 2^unit rounded once. The code is the significand, hidden bit and all, added to the exponent's field less one: so a
// subnormal has field 0, and a carry out of the significand moves to the next exponent, or to infinity, by itself.
__device__ inline std::uint32_t rounded_sum(std::int64_t sum, int unit, Accumulator accumulator) {
  if (sum == 0) return 0;
  const bool half = accumulator == Accumulator::f16_nearest;
  const int fraction = half ? 10 : accumulator == Accumulator::e8m13_truncated ? 13 : 23;
  const int smallest = half ? -14 : -126;
  const std::uint64_t magnitude = sum < 0 ? 0ull - static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  const int top = 63 - __clzll(static_cast<long long>(magnitude)) + unit;
  const int exponent = top > smallest ? top : smallest;
  const int right = exponent - fraction - unit;  // below 64: the sum has 64 bits and keeps the first, or lies above 2^-180
  std::uint64_t kept;
  if (right <= 0) {
    kept = magnitude << -right;
  } else {
    kept = magnitude >> right;
    if (half) {
      const std::uint64_t rest = magnitude << (64 - right), middle = 1ull << 63;
      if (rest > middle || (rest == middle && (kept & 1) != 0)) ++kept;
    }
  }
  std::uint64_t code = (static_cast<std::uint64_t>(exponent - smallest) << fraction) + kept;
  const std::uint64_t infinity = static_cast<std::uint64_t>(half ? 31 : 255) << fraction;
  if (code > infinity) code = infinity;
  if (accumulator == Accumulator::e8m13_truncated) code <<= 10;
  const std::uint32_t sign = sum < 0 && code != 0 ? (half ? 0x8000u : 0x80000000u) : 0u;
  return sign | static_cast<std::uint32_t>(code);
}

struct Sum {
  int top;   // largest exponent
  int unit;  // of `value`: top - F
  std::int64_t value;
  bool nan, plus, minus;

  __device__ void begin(int zero_floor) {
    top = zero_floor;  // C always offers it: a C other than zero lies above every floor
    value = 0;
    nan = plus = minus = false;
  }
  __device__ void see(int exponent) { top = exponent > top ? exponent : top; }
  __device__ void infinity(bool negative) {
    plus |= !negative;
    minus |= negative;
  }
  __device__ void set_unit(int fraction_bits) { unit = top - fraction_bits; }
  // A term significand * 2^scale.
  __device__ void add(std::int64_t significand, int scale) { value += cut(significand, scale - unit); }

  __device__ std::uint32_t result(Accumulator accumulator) const {
    const bool half = accumulator == Accumulator::f16_nearest;
    if (nan || (plus && minus)) return half ? 0x7FFFu : 0x7FFFFFFFu;
    if (plus) return half ? 0x7C00u : 0x7F800000u;
    if (minus) return half ? 0xFC00u : 0xFF800000u;
    return rounded_sum(value, unit, accumulator);
  }
};

// The accumulator C as a term: significand * 2^(exponent - fraction).
struct AccumulatorTerm {
  std::int64_t significand;
  int exponent, fraction;
  bool nan, infinite;

  static __device__ AccumulatorTerm of(std::uint32_t bits, Accumulator accumulator) {
    const bool half = accumulator == Accumulator::f16_nearest;
    const int fraction = half ? 10 : 23, top_field = half ? 31 : 255;
    const int field = static_cast<int>(bits >> fraction & static_cast<std::uint32_t>(top_field));
    const auto low = static_cast<std::int64_t>(bits & ((1u << fraction) - 1));
    AccumulatorTerm term;
    term.fraction = fraction;
    term.nan = field == top_field && low != 0;
    term.infinite = field == top_field && low == 0;
    term.exponent = (field == 0 ? 1 : field) - (half ? 15 : 127);
    const std::int64_t magnitude = field == 0 ? low : low + (std::int64_t{1} << fraction);
    term.significand = (bits >> (half ? 15 : 31)) != 0 ? -magnitude : magnitude;
    return term;
  }
};

// Both passes over C.
__device__ inline void see_accumulator(Sum& sum, const AccumulatorTerm& c) {
  if (c.nan)
    sum.nan = true;
  else if (c.infinite)
    sum.infinity(c.significand < 0);
  else if (c.significand != 0)
    sum.see(c.exponent);
}
__device__ inline void add_accumulator(Sum& sum, const AccumulatorTerm& c) {
  if (!c.nan && !c.infinite) sum.add(c.significand, c.exponent - c.fraction);
}

// A product with NaN or infinity among its factors.
__device__ inline void see_special(Sum& sum, Term a, Term b) {
  if (a.exponent() >= Term::kNan || b.exponent() >= Term::kNan || a.significand() == 0 || b.significand() == 0) {
    sum.nan = true;
  } else {
    sum.infinity((a.significand() < 0) != (b.significand() < 0));
  }
}

// One step over products (a(p), b(p)), p < count, for units that scale nothing, or each product by 2^scale. `fractions` is
// the sum of both operands' fraction bits. Slots for which present(p) is false are skipped.
template <class A, class B, class Present>
__device__ std::uint32_t fused_products(const Arithmetic& unit, A&& a, B&& b, Present&& present, int count, int fractions,
                                        int scale, bool scale_is_nan, std::uint32_t c_bits) {
  Sum sum;
  sum.begin(unit.zero_floor);
  const AccumulatorTerm c = AccumulatorTerm::of(c_bits, unit.accumulator);
  see_accumulator(sum, c);
  if (scale_is_nan) sum.nan = true;
  for (int p = 0; p < count; ++p) {
    if (!present(p)) continue;
    const Term left = a(p), right = b(p);
    if (left.special() || right.special()) {
      see_special(sum, left, right);
    } else if (left.significand() != 0 && right.significand() != 0) {
      sum.see(left.exponent() + right.exponent() + scale);
    }
  }
  sum.set_unit(unit.fraction_bits);
  add_accumulator(sum, c);
  for (int p = 0; p < count; ++p) {
    if (!present(p)) continue;
    const Term left = a(p), right = b(p);
    if (left.special() || right.special()) continue;
    sum.add(left.significand() * right.significand(), left.exponent() + right.exponent() + scale - fractions);
  }
  return sum.result(unit.accumulator);
}

// kind::mxf4nvf4: 16 products at a time are summed exactly and multiplied by both scales' significands; the exponent of
// that term is the scales' own, also where the products cancel. scale_a(g), scale_b(g): e4m3 codes, signs ignored.
template <class A, class B, class ScaleA, class ScaleB>
__device__ std::uint32_t fused_groups_of_16(const Arithmetic& unit, A&& a, B&& b, ScaleA&& scale_a, ScaleB&& scale_b, int count,
                                            std::uint32_t c_bits) {
  constexpr int kGroup = 16, kMaxGroupsOfStep = 4;
  std::int64_t significand[kMaxGroupsOfStep];
  int exponent[kMaxGroupsOfStep];
  Sum sum;
  sum.begin(unit.zero_floor);
  const AccumulatorTerm c = AccumulatorTerm::of(c_bits, unit.accumulator);
  see_accumulator(sum, c);
#pragma unroll
  for (int g = 0; g < kMaxGroupsOfStep; ++g) {
    significand[g] = 0;
    exponent[g] = 0;
    if (g * kGroup >= count) continue;
    const int end = count < (g + 1) * kGroup ? count : (g + 1) * kGroup;
    int quarters = 0;
    bool all_zero = true;
    for (int p = g * kGroup; p < end; ++p) {
      const Term left = a(p), right = b(p);
      // Values of e2m1 are multiples of 1/2: in halves, significand << exponent.
      const int product = (left.significand() << left.exponent()) * (right.significand() << right.exponent());
      quarters += product;
      all_zero = all_zero && product == 0;
    }
    const Term left = term_of(Format::e4m3, scale_a(g) & 0x7Fu), right = term_of(Format::e4m3, scale_b(g) & 0x7Fu);
    if (left.special() || right.special()) {
      sum.nan = true;
      continue;
    }
    const int scales = left.significand() * right.significand();
    significand[g] = static_cast<std::int64_t>(quarters) * scales;
    exponent[g] = left.exponent() + right.exponent();
    if (!all_zero && scales != 0) sum.see(exponent[g]);
  }
  sum.set_unit(unit.fraction_bits);
  add_accumulator(sum, c);
#pragma unroll
  for (int g = 0; g < kMaxGroupsOfStep; ++g) {
    sum.add(significand[g], exponent[g] - 8);  // quarters, and 3 fraction bits of each scale
  }
  return sum.result(unit.accumulator);
}

}  // namespace assay::device::emulated
