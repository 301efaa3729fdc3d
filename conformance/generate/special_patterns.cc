// Patterns of special values and of the ends of the number range.

#include <algorithm>

#include "conformance/generate/pattern_source.h"

namespace assay::conformance {
namespace {

enum Kind { nan, negative_zero, subnormal, infinity, largest, zero, kinds };

std::uint32_t of_kind(const Source& s, const Words& w, int kind) {
  const FormatFields& f = s.fields;
  const std::uint32_t sign = w[2] & 1 ? sign_bit(f) : 0;
  switch (kind) {
    case nan:  // any payload, quiet or signalling, where the format has a choice
      if (f.nan == 0) return sign | f.top;
      return sign | (f.infinity == 0 ? f.nan : f.infinity + 1 + pick(w[3], (1u << f.mantissa) - 1));
    case negative_zero: return sign_bit(f);
    case subnormal: return sign | (1 + pick(w[3], (1u << f.mantissa) - 1));
    case largest: return sign | f.top;
    case zero: return 0;
    default: return sign | (f.infinity != 0 ? f.infinity : f.top);
  }
}

}  // namespace

std::uint32_t special(const Source& s, const Words& w, bool with_infinity) {
  constexpr int kInOrder[] = {nan, negative_zero, subnormal, largest, infinity};
  return of_kind(s, w, kInOrder[pick(w[1], with_infinity ? 5 : 4)]);
}

// Values: every other element special, the kinds alternating along rows and columns, so that a dozen elements of a line hold
// all of them. Operands: one line in three has one special, since it spoils a whole line of D; 18 lines hold all kinds.
std::uint32_t first_specials(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  if (s.request.role == Role::value) {
    if ((row + column) % 2 == 0) return uniform_bits(s, w);
    return of_kind(s, w, static_cast<int>((row / 2 + column / 2) % kinds));
  }
  const std::int64_t line = s.free(row, column);
  const std::int64_t length =
      std::max<std::int64_t>(s.request.contract_rows ? std::min(s.request.rows, s.request.contraction) : s.request.columns, 1);
  if (line % 3 == 1 &&
      s.k(row, column) == static_cast<std::int64_t>(pick(s.grid(line, -3), static_cast<std::uint32_t>(length)))) {
    return of_kind(s, w, static_cast<int>(line / 3 % kinds));
  }
  return uniform_bits(s, w);
}

std::uint32_t subnormals(const Source& s, std::int64_t row, std::int64_t column) {
  return of_kind(s, s.draw(row, column), subnormal);
}

// Columns alternate: +Inf and -Inf, which meet in every 16 rows; +Inf alone; the largest values, two of a sign after one
// another, which overflow in a sum; subnormals, whose sums are subnormal too.
std::uint32_t adversarial_infinities(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const FormatFields& f = s.fields;
  switch (column % 4) {
    case 0: return row % 8 != 3 ? uniform_bits(s, w) : (row % 16 < 8 ? 0 : sign_bit(f)) | (f.infinity != 0 ? f.infinity : f.top);
    case 1: return row % 8 != 3 ? uniform_bits(s, w) : f.infinity != 0 ? f.infinity : f.top;
    case 2: return (row % 4 < 2 ? 0 : sign_bit(f)) | f.top;
    default: return of_kind(s, w, subnormal);
  }
}

// Columns for the random Hadamard transform of 16 rows (spec nvfp4-3.1). Two equal values are the largest of each; half of the sums
// have both with one sign, and half lose them, so that a third and a fourth value are left. By column:
//   0   21 and 21: the largest sum is 10.5, which makes the scale of a tensor a power of two
//   1   8.75 and 8.75, 0.75 and 2^-9: sums of 0.1875 +- 2^-11, ties of bf16, beside 0.1875, a tie of E2M1 under the block's scale
//   2   12 and 12, 2^-22: the last place that is kept, one unit of the sum
//   3   12 and 12, 2^-23: cut off, so that the sum is 0
std::uint32_t adversarial_transform(const Source& s, std::int64_t row, std::int64_t column) {
  const bool negative = s.draw(row, column)[0] >> 31;
  const auto value = [&](std::uint32_t significand, int exponent) { return compose(s.fields, negative, significand, exponent); };
  const std::int64_t kind = column % 4, at = (row + column / 4) % 16;
  if (at < 2) return kind == 0 ? value(21, 0) : kind == 1 ? value(35, -2) : value(12, 0);
  if (kind == 1) return at == 2 ? value(3, -2) : at == 4 ? value(1, -9) : 0;
  return at == 2 && kind != 0 ? value(1, kind == 2 ? -22 : -23) : 0;
}

// Gate and up of x = silu(gate) * up, the halves of a row, by tiles of 128 x 128:
//   0   every special value of gate beside every one of up, in one of 4 places
//   1   gates whose e^-gate is near the largest of f32, and, of few exponents, where silu underflows; ups that make x a normal value
//   2   gates that are their own silu, and ups whose product with it is a tie
//   3   gates between -8 and 8, where silu bends
std::uint32_t adversarial_gates(const Source& s, std::int64_t row, std::int64_t column) {
  const FormatFields& f = s.fields;
  const Words w = s.draw(row, column);
  const std::int64_t half = s.request.columns / 2, at = column % std::max<std::int64_t>(half, 1);
  const bool is_up = column >= half, wide = f.bias == 127, negative = w[1] >> 31;
  switch ((row / 128 + at / 128) % 4) {
    case 0: {
      if ((row + at) % 4 != 0) return uniform_bits(s, w, 1);
      const std::int64_t pair = (row + at) / 4 + 7 * row;
      return of_kind(s, w, static_cast<int>((is_up ? pair / kinds : pair) % kinds));
    }
    case 1:
      if (is_up) return compose(f, negative, (1u << f.mantissa) + pick(w[0], 1u << f.mantissa), 14 - f.mantissa);
      return wide ? compose(f, true, 173 + pick(w[0], 7), -1) : compose(f, true, 64 + pick(w[0], 64), -3);
    case 2: {
      if (!is_up) return compose(f, false, 3, 4 + static_cast<int>(pick(w[0], 2)));
      const std::uint32_t one = 1u << f.mantissa;  // odd, below 4/3
      return compose(f, negative, one + 1 + 2 * pick(w[0], std::max(one / 6, 2u) - 1), -f.mantissa);
    }
    default: return uniform_bits(s, w, is_up ? 1 : 3);
  }
}

// In every step one product and its negation; what is left is one small product at k = 0. A kernel that multiplies by a scale
// before summing gets infinities, or loses the small one.
std::uint32_t adversarial_cancelling(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t step = s.request.step, at = s.k(row, column), within = at % step;
  const bool four_bits = s.fields.bits == 4;
  if (at == 0) return compose(s.fields, s.draw(row, column)[1] >> 31, 1, four_bits ? -1 : -4);
  const Words pair = s.shared.words(static_cast<std::uint64_t>(at / step));
  const std::int64_t first = 1 + pick(pair[0], static_cast<std::uint32_t>(step / 2 - 1)),
                     second = step / 2 + pick(pair[1], static_cast<std::uint32_t>(step / 2));
  if (within != first && within != second) return 0;
  // Both of a pair are drawn at the place of the first. A pair that the end of the sum cuts is left out.
  if (at - within + second >= s.request.contraction) return 0;
  std::int64_t source_row = row, source_column = column;
  if (within == second) (s.request.contract_rows ? source_row : source_column) -= second - first;
  const Words w = s.draw(source_row, source_column);
  const bool negative = (w[1] >> 31) != (within == second && s.request.role != Role::second);
  return four_bits ? compose(s.fields, negative, 4 + 2 * pick(w[0], 2), 0) : compose(s.fields, negative, 8 + pick(w[0], 8), 1);
}

}  // namespace assay::conformance
