#pragma once
// Internal to the judging of cases, one call or many.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "conformance/judge/call_runner.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/memory/poisons.h"

namespace assay::conformance {

// The text of a failure: title, setting, `body`, and the command that reproduces it.
std::string headed(const JudgeOptions& options, const std::string& body);

// The outputs to request: those of the fixture, those named, or all that the op has.
std::vector<OutputSpec> wanted_specs(const Case& problem, const Case* expected, const std::vector<std::string>* wanted);

// The checks before the call itself: a declared absence, a failing question, the stated numerics.
struct Opening {
  bool settled = false;  // the judgement is final
  Judgement judgement;
  assay_numerics stated = Questions().stated;
};

Opening open_case(CallRunner& runner, const JudgeOptions& options);

// Whether the questions before a call have written nothing; otherwise the judgement holds verdict and text. `asked_more`: other
// questions than those of CallRunner::questions() too.
bool questions_left_memory(CallRunner& runner, const JudgeOptions& options, Judgement& judgement, bool asked_more = false);

// With options.keeps_got: keeps the outputs of a call that gave wrong ones.
void keep_wrong(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, const std::string& when,
                const JudgeOptions& options, Judgement& judgement);

// Faults of an attempt: the call itself, memory, outputs. Empty when all is right; else the judgement has the verdict.
// `other`: what the call gave over the other poison, where it was made.
std::string complaint(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, Judgement& judgement,
                      const OtherPoison* other = nullptr);
// True when all is right; otherwise the judgement holds verdict and text. `when` describes the attempt: "replay 3". `again`, if
// given, makes it once more over the other poison; it is called only where elements are wrong.
bool accept(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, const std::string& when,
            const JudgeOptions& options, Judgement& judgement, const std::function<Attempt(std::uint8_t poison)>& again = {});

// The verdict on calls that were made one by one: their faults, of which the first few are shown; `others` names the rest.
void settle_calls(const std::vector<std::string>& faults, const std::string& others, const JudgeOptions& options,
                  Judgement& judgement);

// Whether the outputs are as expected; notes in the judgement how that was found. Of a call that succeeded.
bool holds(const Expectation& expectation, const Attempt& tried, std::uint8_t poison, Judgement& judgement);

// The verdict on a case that is to be predicted and is not.
void put_left_out(const Expectation& expectation, Judgement& judgement);

// Whether what the backend states can be followed and the case is to be judged; sets basis and source of the judgement, and its text
// where not.
bool statement_holds(const Expectation& expectation, const JudgeOptions& options, Judgement& judgement);

class Stopwatch {
 public:
  Judgement stop(Judgement judgement) const {
    judgement.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return judgement;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace assay::conformance
