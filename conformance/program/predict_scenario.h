#pragma once
// The expected outputs of every call of a scenario, in every replay, from the inputs that the calls before it give.

#include <map>
#include <string>
#include <vector>

#include "conformance/backend.h"
#include "conformance/cases/scenario.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/predictions.h"

namespace assay::conformance {

class ScenarioPredictor {
 public:
  // Errors: as scenario_of() and generate().
  ScenarioPredictor(const CaseLine& line, Layer layer);

  std::size_t calls() const { return scenario_.calls.size(); }
  const CaseLine& line(std::size_t call) const { return scenario_.calls[call].line; }
  const Case& problem(std::size_t call) const { return first_[call]; }  // in the first replay
  const std::vector<OutputSpec>& specs(std::size_t call) const { return specs_[call]; }

  // Adds what is expected where a backend states this about each call, as far as that has digests; `why_not` says why not.
  // Errors: as Expectation.
  void add(const std::vector<assay_numerics>& stated, std::map<PredictedCall, PredictedOutputs>& predictions,
           std::string& why_not);

 private:
  // All calls of one replay, over memory that was filled with `poison`. Outputs that have no digests stay empty.
  std::vector<Outputs> replay(std::size_t round, std::uint8_t poison, const std::vector<Outputs>& before,
                              const std::vector<assay_numerics>& stated, std::map<PredictedCall, PredictedOutputs>& predictions,
                              std::string& why_not);
  bool is_read(std::size_t call) const;

  const CaseLine line_;
  const Layer layer_;
  const Scenario scenario_;
  const std::vector<Case> first_;
  std::vector<std::vector<OutputSpec>> specs_;
};

}  // namespace assay::conformance
