#pragma once
// Reproducibility that a backend states: the same bits in every run, and for a group the same with any other groups.

#include <map>
#include <string>
#include <vector>

#include "conformance/judge/call_runner.h"
#include "conformance/judge/expectation.h"

namespace assay::conformance {

// A call that gave right results over two poisons.
struct CheckedCall {
  Backend& backend;
  const Case& problem;
  const std::vector<OutputSpec>& specs;
  CallRunner& runner;
  const std::map<std::string, std::vector<std::byte>>&first, &second;  // its outputs
};

// Repeats the call, only where a product is bounded: bits that equal a prediction are reproducible. Under
//   deterministic    1: every run must give the same bits. -1: runs may differ, but not only because memory held something
//                       else before. 0: runs may differ
//   batch_invariant  1: the largest group must have the same bits when it is alone
// Returns what is not reproducible, in lines of a failure's text; empty if what is stated holds. Errors: as judge().
std::string reproducibility_fault(const CheckedCall& call, const assay_numerics& stated, const Expectation& expectation,
                                  const JudgeOptions& options);

}  // namespace assay::conformance
