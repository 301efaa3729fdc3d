#pragma once
// data=unit_probes: sums that distinguish tensor-core units. Each line of the first operand (a row of x or dy, in NT
// a column of dy) is one sum of a few terms in its first 64 products; column j of D has it times 1, -1, 1.5 and -1.5, repeated.
// With B = 2^16, the largest product:
//
//   B, s, -B              s = 2^-b B, within four products: s if b <= F, else 0
//   B, 1.75 s; B, B, 1.75 s  what the accumulator keeps below the largest term and below the sum; whether it rounds or truncates
//   B, B, s | -B, -B      the last two from product 4, 8, 16 or 32 on: s if they belong to the same step, else what the
//                         accumulator kept of it
//   B | -B, s             s beside an accumulator of B: that is aligned as a term is
//   s alone               bf16 only, down to 2^-141: the exponent of a zero term
//
// Scales are 1. Lines past the last sum begin again.

#include <cstdint>
#include <span>
#include <string>

namespace assay::conformance {

// A term of the first operand: 2^exponent * quarters / 4 at this k; below 0: from the end.
struct ProbeTerm {
  int k = 0, quarters = 4, exponent = 0;
  bool negative = false;
};

struct UnitProbe {
  std::string name;  // "B, 2^-13 B, -B"
  ProbeTerm terms[5];
  int count = 0;
  bool wide = false;  // of bf16 only: other operands have zeros instead
};
std::span<const UnitProbe> unit_probes();

// Exponent of the second operand at k: 8, -8, 8, 0 and so on.
int probe_weight_exponent(std::int64_t k);

}  // namespace assay::conformance
