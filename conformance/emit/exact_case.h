#pragma once
// A case with the bits that it must give, as one self-contained thing: for files that are compared without this program.

#include <cstdint>
#include <optional>
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
  Tensor want;                 // 0 where nothing is compared
  std::optional<Tensor> most;  // every word from `want` to this one is right, in the order of values; both NaN: a NaN
  bool zero_sign_free = false;
  std::vector<OpenRange> open;  // in order, none adjacent to one of the same kind
  std::int64_t elements = 0;    // e2m1: codes
};

struct ExactCase {
  Case problem;  // inputs and attributes, without outputs
  std::vector<ExactOutput> outputs;
  std::string unit, plan;   // of a product: the row of the tensor-core table, and the line of the accumulation plan; else empty
  bool order_free = false;  // the inputs are such that every order of additions gives these bits
  bool bounded =
      false;  // the product is compared with intervals: those of `unit`, or if that is empty of every unit that may serve
};

struct ExactOptions {
  std::string plan;  // name or line of the accumulation plan that a product follows, in place of its own
  bool bounds =
      false;  // compare a product with intervals, as a backend that states no plan is judged; so is check=bound without a plan
  std::string unit;  // of the intervals: a row of the tensor-core table
  std::int64_t max_bytes = 0;
};

// The reference's answer to a case line. Errors (InvalidArgument): a line that has no one call (a scenario, `contract`, `fault`,
// `replay`), plan, bounds or unit for an op without a product, both plan and bounds, tensors of more than `max_bytes` in all.
// NotSupported: no accumulation plan is known for the product.
ExactCase exact_case(const CaseLine& line, const ExactOptions& options);

}  // namespace assay::conformance
