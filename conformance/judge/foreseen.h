#pragma once
// What is computed of a case before the backend is asked: its inputs, and what is expected of it if the backend states what it
// stated of a case like it before.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/expectation.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

// What an expectation depends on of a statement, as text.
std::string key_of(const assay_numerics& stated);

class Foreseen {
 public:
  // `steps`: the inputs of a call, or of each step where it is replayed. What is expected under `stated`, if given, is computed
  // here. Errors: as judge().
  Foreseen(std::vector<golden::Case> steps, const JudgeOptions& options, const std::optional<assay_numerics>& stated);
  // Expectations look into the steps.
  Foreseen(const Foreseen&) = delete;
  Foreseen& operator=(const Foreseen&) = delete;

  const std::vector<golden::Case>& steps() const { return steps_; }
  const std::vector<OutputSpec>& specs() const { return specs_; }
  // What is expected of a step under another statement is not known here: null.
  Expectation* of(std::size_t step, const assay_numerics& stated) const;
  // The backend's statement, noted as the case is judged.
  std::optional<assay_numerics> stated;

 private:
  const std::vector<golden::Case> steps_;
  const std::vector<OutputSpec> specs_;
  std::string key_;
  std::vector<std::unique_ptr<Expectation>> expectations_;
};

// As judge() and judge_replay() of judge.h.
Judgement judge(Backend& backend, Foreseen& foreseen, const JudgeOptions& options);
Judgement judge_replay(Backend& backend, Foreseen& foreseen, const JudgeOptions& options);

}  // namespace assay::conformance
