// data=step_edges: sums that one field of a tensor-core unit more or less changes. Each line of the first operand is one sum of a
// few terms, of eight kinds in turn; `fraction_bits` F and `step` L are those of the unit. B is the largest product.
//
//   0, 1  B, s, -B in a step      s at the last bit of the grid, and a bit below and above it
//   2     B, B, s | -B, -B        what the accumulator keeps, and where a step ends
//   3     s | B, t, -B            an accumulator far below the products of its step
//   4     B | s, t                s half a unit of the accumulator, t many bits below s
//   5     terms below the floor   a sum that is one unit or half a unit of the result only where its last term counts
//   6     subnormal values        operands, products and sums
//   7     terms of any size
//
// Every fourth line of the second operand is tiny: 5 and 6 are about its products. In FP8 these reach the floor under scales of
// 2^-127 alone, and need two e5m2. A line of the others is a power of two or 1.5 times one for each k mod 4, with one sign.
//
// E2M1 has other lines: of every second one each group of 16 products cancels but for one group, whose scale may lie far below
// those of the others, which count for the grid.

#include <array>

#include "conformance/generate/pattern_source.h"

namespace assay::conformance {
namespace {

constexpr int kLargestEdge = 8;                           // log2 of the largest first operand
constexpr std::array<int, 4> kEdgeWeights{4, -6, 4, -1};  // log2 of the second operand at k mod 4
constexpr std::array<int, 4> kTinyF16{-12, -24, -12, -20};
constexpr int kTinyBf16 = -75, kTinyFp8 = -16;

// significand * 2^exponent at k.
struct EdgeTerm {
  std::int64_t k = 0;
  std::uint32_t significand = 1;
  int exponent = 0;
  bool negative = false;
};

struct EdgeSum {
  std::array<EdgeTerm, 6> terms = {};
  std::size_t count = 0;

  void add(std::int64_t k, bool negative, int exponent, std::uint32_t significand = 1) {
    terms[count++] = {k, significand, exponent, negative};
  }
  void largest(std::int64_t k, bool negative) { add(k, negative, kLargestEdge); }
  // The product 2^-below B, at a k of the smallest weight.
  void below(std::int64_t k, int bits, bool negative) {
    add(k, negative, kLargestEdge + kEdgeWeights[0] - bits - kEdgeWeights[1]);
  }
};

// Sums of which the last unit of an f32 or half the last unit of an f16 depends on what the grid below the floor keeps.
void add_below_floor(EdgeSum& sum, Format type, std::int64_t first, int turn, std::uint32_t word) {
  if (bits_of(type) == 8) {  // as for bf16, times 2^127: under scales of 2^-127 or near it
    const int unit = 18 + static_cast<int>(word % 5), bits = 8 + turn % 3;
    for (int done = 0; done < bits; done += 3) {
      const int more = std::min(3, bits - done);
      sum.add(first + done / 3, false, -unit - done - more - kTinyFp8, (1u << more) - 1);
    }
    sum.add(first + 5, false, -unit - bits - kTinyFp8);
    return;
  }
  if (type == Format::f16) {  // 2^-25 + 2^-bits
    const int bits = 41 + turn % 7;
    sum.add(first, false, -25 - kTinyF16[0]);
    sum.add(first + 1, false, -bits - kTinyF16[1]);
    return;
  }
  const int bits = 6 + turn % 5, upper = std::min(bits, 8);  // 2^-149 less 2^-(149 + bits), and that
  sum.add(first, false, -149 - upper - kTinyBf16, (1u << upper) - 1);
  if (bits > 8) sum.add(first + 1, false, -149 - bits - kTinyBf16, (1u << (bits - 8)) - 1);
  sum.add(first + 2, false, -149 - bits - kTinyBf16);
}

// Sums around the smallest normal f32 and the smallest subnormal one, from line 64 on.
void add_near_underflow(EdgeSum& sum, const Source& s, std::int64_t first, int turn) {
  if (s.request.type == Format::f16) {  // the smallest product, alone
    sum.add(first + 1, true, -24);
    return;
  }
  const int normal = -126 - kTinyBf16, further = turn / 6;
  switch (turn % 6) {
    case 0: {  // 2^-126 less half a unit of 24 bits below it, or beside that
      constexpr std::array<std::uint32_t, 5> kParts{129, 512, 128, 64, 256};
      sum.add(first, false, normal);
      sum.add(first + 2, true, -158 - kTinyBf16, kParts[static_cast<std::size_t>(further % 5)]);
      break;
    }
    case 1:  // an odd number of units, less half a one
      sum.add(first, false, normal);
      sum.add(first + 2, false, -149 - kTinyBf16);
      sum.add(first + 4, true, -150 - kTinyBf16);
      break;
    case 2: {  // an accumulator that was flushed to -0, and -0 in the last step
      const std::int64_t step = s.request.step;
      sum.add(0, false, normal - 1, 3);
      sum.add(step, true, normal - 2, 7);
      sum.add(2 * step, true, normal - 4);
      sum.add(2 * step + 1, true, normal - 4);
      if (further % 2 == 1) break;  // +0 there
      sum.add(2 * step + 2, true, 0, 0);
      sum.add(2 * step + 3, true, 0, 0);
      break;
    }
    case 3:  // sums past f32 on the way to 0, with lines that are not tiny
      for (const int at : {0, 2}) sum.add(first + at, false, 122, 3);
      for (const int at : {4, 6}) sum.add(first + at, true, 122, 3);
      break;
    default:  // half a unit and a little
      sum.add(first, turn % 6 == 5, -150 - kTinyBf16);
      sum.add(first + 1, turn % 6 == 5, -155 - (further + 3) % 5 - kTinyBf16);
      break;
  }
}

EdgeSum sum_of(const Source& s, std::int64_t line) {
  const int kind = static_cast<int>(line % 8), turn = static_cast<int>(line / 8);
  const std::uint32_t word = s.grid(line, -9);
  const int bits = s.request.fraction_bits + turn % 4 - 1;
  const bool negative = word & 1, beside = word & 2;
  const std::int64_t start = (word >> 2) % 2 * s.request.step / 8 * 8, step = std::max<std::int64_t>(s.request.step / 4 * 4, 4);
  const std::int64_t next = start + ((word >> 3) % 4 == 0 ? 4 * static_cast<std::int64_t>(1 + word / 32 % 16) : step);
  EdgeSum sum;
  switch (kind) {
    case 0:
    case 1:  // mma.sync that is emulated takes k mod 4 of 0 and 1 first
      sum.largest(start, false);
      sum.below(start + 1, bits, negative);
      sum.largest(start + (kind == 0 ? 2 : 4), true);
      break;
    case 2:
      sum.largest(start, false);
      sum.largest(start + 2, false);
      sum.below(start + 1, bits, negative);
      sum.largest(next, true);
      sum.largest(next + 2, true);
      break;
    case 3:
      sum.below(start + 1, bits + static_cast<int>(word / 512 % 4), negative);
      sum.largest(next, beside);
      sum.below(next + 1, bits + 2, beside);
      sum.largest(next + 2, !beside);
      break;
    case 4: {
      constexpr int kHalves[] = {11, 14, 24, 24};  // of f16, of 13 bits, of f32
      constexpr int kFurther[] = {7, 8, 9};        // around the 31 bits that a joined sum keeps
      const int half = kHalves[turn % 4], which = turn % 4 + turn / 4 % 2 * 2 - 2;
      const bool joined = half == 24 && which < 3;
      sum.largest(start, false);
      sum.below(start + step + 1, half, false);
      sum.below(start + step + 5, half + (joined ? kFurther[which] : 1 + static_cast<int>(word / 512 % 10)), !joined && beside);
      break;
    }
    case 5:
      if (turn >= 8 && !s.is_code)
        add_near_underflow(sum, s, start, turn - 8);
      else
        add_below_floor(sum, s.request.type, start, turn, word >> 9);
      break;
    default: break;
  }
  return sum;
}

// Sizes around the smallest normal value of the type, or around those whose products with a tiny line are subnormal in f32.
std::uint32_t subnormal_value(const Source& s, const Words& w) {
  const std::uint32_t significand = 1 + pick(w[0], (2u << s.fields.mantissa) - 1);
  const int smallest = 1 - s.fields.bias, deep = static_cast<int>(pick(w[3], 20));
  if (s.request.type == Format::bf16 && w[1] % 4 != 0) return compose(s.fields, w[1] >> 31, significand, -126 - kTinyBf16 - deep);
  return compose(s.fields, w[1] >> 31, significand, smallest - s.fields.mantissa + deep % 4);
}

std::uint32_t second_operand(const Source& s, std::int64_t line, std::int64_t k) {
  const std::uint32_t word = s.grid(line, -10);
  const bool negative = word & 1;
  const auto at = static_cast<std::size_t>(k % 4);
  if (line % 4 == 3 && s.request.type == Format::bf16) return compose(s.fields, negative, 1, kTinyBf16);
  if (line % 4 == 3 && s.request.type == Format::f16) return compose(s.fields, negative, 1, kTinyF16[at]);
  if (line % 4 == 3) return compose(s.fields, negative, 1, kTinyFp8);
  return compose(s.fields, negative, word & 2 ? 3 : 2, kEdgeWeights[at] - 1);
}

std::uint32_t any_e2m1(const Source& s, const Words& w) { return compose(s.fields, w[1] >> 31, 1 + pick(w[0], 12), -1); }

// Pairs that cancel in a group of 16; in one group of the line a half is left. The second operand is one value for a group.
std::uint32_t cancelling_group(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t k = s.k(row, column), line = s.free(row, column), group = k / 16;
  const std::uint32_t word = s.grid(line, group);
  if (s.request.role == Role::second) return compose(s.fields, word & 1, word & 2 ? 3 : 1, -1);
  const auto groups = static_cast<std::uint32_t>(std::max<std::int64_t>(s.request.contraction / 16, 1));
  if (group == static_cast<std::int64_t>(pick(s.grid(line, -9), groups)) && k % 16 < 2)
    return k % 2 == 0 ? compose(s.fields, word & 1, 1, -1) : 0;
  if (line >= 192) return 0;  // a group of zeros counts for the floor alone, whatever its scales are
  const std::uint32_t size = 1 + (word >> (k % 16 / 2 * 3) & 7) % 4;
  return compose(s.fields, k % 2 != 0, size, -1);
}

}  // namespace

std::uint32_t step_edges(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t k = s.k(row, column), line = s.free(row, column);
  if (s.fields.bits == 4) return line % 2 == 0 ? cancelling_group(s, row, column) : any_e2m1(s, s.draw(row, column));
  if (s.request.role == Role::second) return second_operand(s, line, k);
  const Words w = s.draw(row, column);
  if (line % 8 == 6) return w[2] % 2 == 0 ? 0 : subnormal_value(s, w);
  if (line % 8 == 7) return compose(s.fields, w[1] >> 31, w[0] >> 8, static_cast<int>(pick(w[2], 12)) - 6 - 23);
  const EdgeSum sum = sum_of(s, line);
  for (std::size_t i = 0; i < sum.count; ++i) {
    const EdgeTerm& term = sum.terms[i];
    if (term.k == k) return compose(s.fields, term.negative, term.significand, term.exponent);
  }
  return 0;
}

}  // namespace assay::conformance
