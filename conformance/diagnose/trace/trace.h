#pragma once
// One element of an output, step by step: how the scalar layer gets it, beside what a call gave.

#include <cstdint>
#include <string>
#include <vector>

#include "golden/io/fixture.h"

namespace assay::conformance {

// One line. `expected` and `got` are bits in hex with their value, as failures print them; empty where a line has none.
struct TraceLine {
  std::string what;  // "K 128-255, step of 32 from 160"
  std::string expected, got;
};

// Where the element lies: as the `first` of a failure counts, rows and columns of the output's own matrix of that group.
struct TracedElement {
  std::string output;  // empty: the product, or the first output
  std::int64_t group = 0, row = 0, column = 0;
};

struct Trace {
  std::string output;  // its name and place: "d of group 1, row 5, column 60"
  std::vector<TraceLine> lines;
};

// `call`: op, attributes and inputs; its `out`, where it has the output, is what was given. Products state each step, promotion
// and epilogue under the plan of the call or else its architecture's; quantization states amax, scale, product, code.
// Errors (InvalidArgument): an output or a place that the call does not have; those of answer().
Trace trace_element(const Case& call, const TracedElement& at);

// "0x3F800000 (1)", as failures show a value.
std::string shown_f32(float value);

}  // namespace assay::conformance
