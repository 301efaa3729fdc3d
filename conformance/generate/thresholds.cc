// data=adversarial_thresholds: values and sums that one bit in the last place takes across a threshold.
//
// A product of 16-bit operands: each sum lies at the smallest normal value T of D (of f16, if the operands are f16), or up to three
// quarters of T's last place below it. A quarter below is the tie of a value that is rounded to as many bits as D has, which
// takes it to T: flushed, if it was compared before. A line of the first operand is 2 T, less some parts, each of 8 bits or fewer:
// sums of fewer parts than all are exact and above T. The parts stand at every second k, so that two chains do not divide them. A
// line of the second operand is a power of two.
//
// 4over6: with u the unit of a block that its scale for 6 decodes to, and 1.5 u for 4, each value is a tie of E2M1 under one of
// them, and as far from its code under either: the two errors are equal but for rounding. Each row and column of a tile has
// 6 u. Units of f32 have 23 bits, and values lie up to a unit in the last place beside the tie, so that products are ties and
// errors are rounded; those of other types are powers of two. Tiles in every fourth place across have the tensor's largest.

#include <algorithm>

#include "conformance/generate/pattern_source.h"

namespace assay::conformance {
namespace {

struct Threshold {
  int exponent;  // the smallest normal value is 2^exponent
  int bits;      // of a significand
  int weight;    // log2 of the second operand
};

Threshold threshold_of(const Source& s) {
  if (s.request.type == Format::f16 || s.request.output == Format::f16) return {-14, 11, -6};
  return {-126, s.request.output == Format::bf16 ? 8 : 24, -75};
}

constexpr int kPartBits = 8;  // of bf16

// Part `number` of a line, or 0, times 2^weight, in units of a quarter of T's last place: T is 2^(bits + 1). After the first part,
// 2 T, all bits of T - 8 in runs from the top leave T + 8, and the last part takes 8 and `below` away.
std::uint32_t part_of(const Source& s, const Threshold& at, std::int64_t number, std::int64_t parts, std::uint32_t word) {
  constexpr int kBelow[] = {1, 1, 1, 1, 0, 2, 3, -1};
  const bool negative = word & 1;
  const int unit = at.exponent - at.bits - 1 - at.weight;
  if (number == 0) return compose(s.fields, negative, 1, unit + at.bits + 2);
  if (number == parts - 1) return compose(s.fields, !negative, static_cast<std::uint32_t>(8 + kBelow[word / 2 % 8]), unit);
  const int top = at.bits - kPartBits * static_cast<int>(number - 1), low = std::max(top - kPartBits + 1, 3);
  return compose(s.fields, !negative, (2u << (top - low)) - 1, unit + low);
}

std::uint32_t sum_at_threshold(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t k = s.k(row, column), line = s.free(row, column);
  const Threshold at = threshold_of(s);
  if (s.request.role == Role::second) return compose(s.fields, s.grid(line, -12) & 1, 1, at.weight);
  const std::int64_t parts = 2 + (at.bits - 2 + kPartBits - 1) / kPartBits;
  const std::int64_t stride = s.request.contraction >= 2 * parts - 1 ? 2 : 1;
  if (k % stride == 0 && k / stride < parts) return part_of(s, at, k / stride, parts, s.grid(line, -11));
  return s.draw(row, column)[0] & 1 ? sign_bit(s.fields) : 0;
}

std::uint32_t tie_of_two_scales(const Source& s, std::int64_t row, std::int64_t column) {
  constexpr std::uint32_t kEighths[] = {2, 10, 14, 28, 21, 42};  // of u: four ties of the scale for 6, two of that for 4
  const Words w = s.draw(row, column);
  const bool largest = column / 16 % 4 == 1, wide = s.fields.mantissa == 23;
  const std::uint32_t factor = !largest ? 1 : s.request.e4m3_max == 448 ? 7 : 1;
  const int power = largest ? (s.request.e4m3_max == 448 ? 6 : 8) : static_cast<int>(pick(s.grid(row / 16, column / 16), 7)) - 3;
  const std::uint32_t unit = factor * (wide ? 1u << 22 | s.grid(-1, -1) >> 10 : 1);
  const int exponent = power - 3 - (wide ? 22 : 0);
  if ((row + column) % 16 == 15) return compose(s.fields, w[3] & 1, 48 * unit, exponent);
  const std::uint32_t code = compose(s.fields, w[3] & 1, kEighths[pick(w[0], 6)] * unit, exponent);
  return wide ? neighbour(s.fields, code, static_cast<int>(pick(w[2], 3)) - 1) : code;
}

}  // namespace

std::uint32_t adversarial_thresholds(const Source& s, std::int64_t row, std::int64_t column) {
  return s.request.role == Role::value ? tie_of_two_scales(s, row, column) : sum_at_threshold(s, row, column);
}

}  // namespace assay::conformance
