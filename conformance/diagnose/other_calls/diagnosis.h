#pragma once
// Why an output is wrong: hypotheses, each of which predicts every element, are compared with the output. A hypothesis
// is the same call with something changed (an option, an input, what an earlier replay held), or a rule of arithmetic
// changed. conformance/diagnose/hints.md lists them all.

#include <span>
#include <string>
#include <vector>

#include "conformance/ops/answer.h"
#include "conformance/ops/request.h"
#include "golden/io/fixture.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

// An output that differs from what is expected.
struct Suspect {
  const Request& request;  // the call: op, attributes (the plan in `plan`, if one was stated) and inputs
  std::string output;
  const Tensor& got;
  const Tensor& want;
  std::span<const std::uint8_t> written = {};  // one flag a byte of the output: 1 where the op writes; empty: everywhere
  std::span<const Case* const> earlier = {};   // calls made before on the same memory, the latest last
};

// At most two lines, the more specific first: "all 39 wrong elements are those of the same call with eps=0 in place of 0.5".
// Nothing if no hypothesis fits, or chance could explain the fit. Bounded in work, and the same on every machine.
std::vector<std::string> explanations(const Suspect& suspect);

// The same for a product whose plan is not known: an element outside its entry of `bounds` is wrong, and the result of another call
// is known only as far as the order of summation allows. `want` is ignored.
std::vector<std::string> explanations_within(const Suspect& suspect, std::span<const CertifiedBound> bounds);

}  // namespace assay::conformance
