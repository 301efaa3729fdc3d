#pragma once
// What is computed for a case before the backend is called: its inputs, and the expected outputs in case the backend states the
// same as for the last case of this kind.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/expectation.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

// The parts of a statement that an expectation depends on, as text.
std::string key_of(const assay_numerics& stated);

class PreparedCase {
 public:
  // `steps`: the inputs of a call, or of each step where it is replayed. The expected outputs under `stated`, if given, are computed
  // here. Errors: as judge().
  PreparedCase(std::vector<Case> steps, const JudgeOptions& options, const std::optional<assay_numerics>& stated);
  // Expectations point into the steps.
  PreparedCase(const PreparedCase&) = delete;
  PreparedCase& operator=(const PreparedCase&) = delete;

  const std::vector<Case>& steps() const { return steps_; }
  const std::vector<OutputSpec>& specs() const { return specs_; }
  // The expectation of a step; null under another statement than `stated`.
  Expectation* of(std::size_t step, const assay_numerics& stated) const;
  // The backend's statement, noted as the case is judged.
  std::optional<assay_numerics> stated;

 private:
  const std::vector<Case> steps_;
  const std::vector<OutputSpec> specs_;
  std::string key_;
  std::vector<std::unique_ptr<Expectation>> expectations_;
};

// As judge() and judge_replay() of judge.h.
Judgement judge(Backend& backend, PreparedCase& prepared, const JudgeOptions& options);
Judgement judge_replay(Backend& backend, PreparedCase& prepared, const JudgeOptions& options);

}  // namespace assay::conformance
