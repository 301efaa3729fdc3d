#pragma once
// What the calls of a scenario request, and what they hand to one another.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/scenario.h"
#include "conformance/judge/expectation.h"
#include "conformance/ops/request.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// The outputs that are compared: all of the call.
std::vector<OutputSpec> specs_of_call(const ScenarioCall& call, const Case& problem);

// Puts the outputs of other calls into the inputs that hold them.
void put_links(const std::vector<ScenarioLink>& links, const std::vector<Outputs>& outputs, Case& problem);

// A digest of the inputs that come from other calls, by the rules of output_digest.h; empty where none do.
std::string digest_of_links(const ScenarioCall& call, const Case& problem);

// The number of a call in a round, among all of the scenario.
inline std::int64_t step_of(const Scenario& scenario, std::size_t round, std::size_t call) {
  return static_cast<std::int64_t>(round * scenario.calls.size() + call);
}

}  // namespace assay::conformance
