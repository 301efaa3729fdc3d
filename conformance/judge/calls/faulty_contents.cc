#include "conformance/judge/calls/faulty_contents.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/backends/built_in.h"
#include "conformance/judge/judge_parts.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

bool is_report(assay_status status) {
  return status == ASSAY_INVALID_ARGUMENT || status == ASSAY_NOT_SUPPORTED || status == ASSAY_FAILED;
}

// The contents that the reference refuses; it has memory of its own.
std::vector<const ContentFault*> refused(const Case& problem, const std::vector<OutputSpec>& specs,
                                         const std::vector<ContentFault>& faults) {
  Backend reference(*reference_backend());
  CallRunner runner(reference, problem, specs, -1, 60'000);
  std::vector<const ContentFault*> all;
  for (const ContentFault& each : faults) {
    if (is_report(runner.attempt(each.problem, kPoisons[0], {}).status)) all.push_back(&each);
  }
  if (all.empty())
    throw InvalidArgument("fault", faults.empty() ? "of no contents" : faults.front().what,
                          "contents that op " + problem.op + " refuses");
  return all;
}

// What is wrong with the way in which a fault was reported, or empty.
std::string report_fault(const Attempt& tried) {
  if (!tried.damage.empty())
    return fmt::format("returned '{}', and changed memory: {}", name_of(tried.status), tried.damage.front());
  if (tried.status == ASSAY_OK) return "returned 'ok', and so did the wait behind it: expected the fault to be reported";
  if (!is_report(tried.status))
    return fmt::format("returned '{}': expected 'invalid argument', 'not supported' or 'failed'", name_of(tried.status));
  if (tried.error.empty()) return fmt::format("returned '{}', and last_error() says nothing", name_of(tried.status));
  if (tried.error.find_first_of("\n\r") != std::string::npos) {
    return fmt::format("returned '{}', and last_error() has several lines: expected one", name_of(tried.status));
  }
  return "";
}

class FaultJudge {
 public:
  FaultJudge(CallRunner& runner, const Case& problem, const Expectation& expectation, const JudgeOptions& options,
             Judgement& judgement)
      : runner_(runner), problem_(problem), expectation_(expectation), options_(options), judgement_(judgement) {}

  bool right_call(const std::string& when, const CallRunner::Mode& mode) {
    Attempt tried = runner_.attempt(problem_, kPoisons[0], mode, std::move(memory_));
    if (!accept(tried, expectation_, kPoisons[0], when, options_, judgement_)) return false;
    expectation_.count_elements(judgement_);
    memory_ = std::move(tried.outputs);
    return true;
  }

  // Every fault, each followed by the right call. False: the judgement is final.
  bool all(const std::vector<const ContentFault*>& faults, const CallRunner::Mode& mode) {
    const std::string launched = mode.graph ? ", launched" : "";
    for (const ContentFault* each : faults) {
      const std::string with = "with " + each->what + launched;
      const Attempt tried = runner_.attempt(each->problem, kPoisons[1], mode, std::move(memory_));
      memory_ = {};
      if (tried.status == ASSAY_TIMEOUT || tried.status == ASSAY_DEVICE_LOST) {
        judgement_.verdict = tried.status == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::failed;
        const std::string text = fmt::format("{}: returned '{}': {}", with, name_of(tried.status), tried.error);
        judgement_.findings.push_back(finding_of("call", text));
        judgement_.text = headed(options_, "  call    " + text);
        return false;
      }
      if (const std::string fault = report_fault(tried); !fault.empty()) wrong_.push_back(with + ": " + fault);
      if (!right_call("the right call, after one " + with, mode)) return false;
    }
    return true;
  }

  void finish() { settle_calls(wrong_, "other calls", options_, judgement_); }

 private:
  CallRunner& runner_;
  const Case& problem_;
  const Expectation& expectation_;
  const JudgeOptions& options_;
  Judgement& judgement_;
  CallRunner::Outputs memory_;
  std::vector<std::string> wrong_;
};

}  // namespace

Judgement judge_faulty_contents(Backend& backend, const Case& problem, const std::vector<ContentFault>& faults,
                                const JudgeOptions& options) {
  const Stopwatch watch;
  const std::vector<OutputSpec> specs = wanted_specs(problem, nullptr, options.wanted);
  const std::vector<const ContentFault*> planted = refused(problem, specs, faults);
  CallRunner runner(backend, problem, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(runner, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);
  const Expectation expectation(problem, nullptr, specs, opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);

  FaultJudge judge(runner, problem, expectation, options, judgement);
  if (!judge.right_call("", {}) || !judge.all(planted, {})) return watch.stop(judgement);
  if (backend.can_capture()) {
    try {
      const std::vector<std::string> damage = runner.capture();
      if (!damage.empty()) {
        judgement.verdict = Verdict::failed;
        judgement.findings.push_back(finding_of("memory", damage.front()));
        judgement.text = headed(options, "  memory  under capture: " + damage.front());
        return watch.stop(judgement);
      }
    } catch (const BackendFault&) {
      throw;
    } catch (const BackendError& error) {
      judgement.verdict = Verdict::failed;
      judgement.findings.push_back(finding_of("call", error.what()));
      judgement.text = headed(options, std::string("  call    the right call, captured after wrong contents: ") + error.what());
      return watch.stop(judgement);
    }
    if (!judge.all(planted, {.graph = true})) return watch.stop(judgement);
  }
  judge.finish();
  return watch.stop(judgement);
}

}  // namespace assay::conformance
