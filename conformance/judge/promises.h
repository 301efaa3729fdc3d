#pragma once
// What a backend promises of a call beyond its bits: the same bits again, and the same for a group among other neighbours.

#include <map>
#include <string>
#include <vector>

#include "conformance/judge/expectation.h"
#include "conformance/judge/trial.h"

namespace assay::conformance {

// A call that was made over two poisons, and judged right.
struct MadeCall {
  Backend& backend;
  const golden::Case& problem;
  const std::vector<OutputSpec>& specs;
  Trial& trial;
  const std::map<std::string, std::vector<std::byte>>&first, &second;  // its outputs
};

// Makes the call some more times. Only where a product is bounded: bits that equal a prediction keep every promise. Under
//   deterministic    1: every run must give the same bits. -1: runs may differ, but not only because memory held something
//                       else before. 0: runs may differ
//   batch_invariant  1: the largest group must have the same bits when it is alone
// Returns what was broken, in lines of a failure's text; empty when nothing was. Errors: as judge().
std::string broken_promises(const MadeCall& call, const assay_numerics& stated, const Expectation& expectation, const JudgeOptions& options);

}  // namespace assay::conformance
