#pragma once
// A case with the bits that it must give, as one self-contained thing: for files that are compared without this program.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// Elements of an output that are not compared with an expected value. Elements are counted as codes for e2m1.
struct OpenRange {
  std::int64_t first = 0, count = 0;
  bool is_free = false;  // true: they may hold anything; false: they must hold what they held before the call
};

struct ExactOutput {
  std::string name;
  Tensor want;  // 0 where nothing is compared
  bool zero_sign_free = false;
  std::vector<OpenRange> open;  // in order, none adjacent to one of the same kind
  std::int64_t elements = 0;    // e2m1: codes
};

struct ExactCase {
  Case problem;  // inputs and attributes, without outputs
  std::vector<ExactOutput> outputs;
  std::string unit, plan;   // of a product: the row of the tensor-core table, and the line of the accumulation plan; else empty
  bool order_free = false;  // the inputs are such that every order of additions gives these bits
};

// The reference's answer to a case line. `plan`: name or line of the accumulation plan that a product follows, in place of its own.
// Errors (InvalidArgument): a line that has no one call with exact bits (a scenario, `contract`, `fault`, `replay`, `check=bound`
// without a plan), a plan for an op without a product, tensors of more than `max_bytes` in all.
// NotSupported: no accumulation plan is known for the product.
ExactCase exact_case(const CaseLine& line, const std::string& plan, std::int64_t max_bytes);

}  // namespace assay::conformance
