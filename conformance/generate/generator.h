#pragma once
// From a case line to inputs: op, attributes and `in` tensors in the vocabulary of the fixtures. The tensors and
// attributes of ops beyond schema 1 are named in golden/schema.md.
//
// Poisoned on purpose:
//   padding of compact scales   NaN of the scale's type (f32 0x7FC0DEAD, e8m0 0xFF, e4m3 0x7F); of swizzled scales 0
//   rows beyond the splits      NaN (e2m1, which has none: code 7); beyond=large: the largest finite value

#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// The case without `out`; its name is name_of(line). Errors (InvalidArgument): sizes past 2^36 elements, a value that
// does not fit its type.
Case generate(const CaseLine& line);

// Names of the outputs that the line requests, in the order of the schema.
std::vector<std::string> wanted_outputs(const CaseLine& line);

// Whether the line leaves out outputs that it would have by default (`outputs=NAME`).
bool leaves_outputs_out(const CaseLine& line);

// Multiply-adds of the product (or products) of this case, and elements that it reads: the cost of judging it.
struct CaseCost {
  std::int64_t macs = 0;
  std::int64_t elements = 0;
};
CaseCost cost_of(const CaseLine& line);

}  // namespace assay::conformance
