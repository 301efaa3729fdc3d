// Judging what a backend does with calls that are wrong, and with the right call after each of them.

#include "conformance/judge/calls/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/backends/built_in.h"
#include "conformance/judge/calls/events.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/calls/wrong_calls.h"
#include "conformance/judge/judge_parts.h"

namespace assay::conformance {
namespace {

// Captures `wrong`, and the right call after them, in one graph; returns those that were not refused. Errors: BackendError.
std::vector<const WrongCall*> taken_under_capture(Backend& backend, CallRunner& runner,
                                                  const std::vector<const WrongCall*>& wrong, std::vector<std::string>& damage) {
  std::vector<const WrongCall*> taken;
  damage = runner.capture([&](assay_stream* stream) {
    for (const WrongCall* each : wrong) {
      CallParts parts(runner.call());
      each->change(parts);
      if (backend.table().execute(backend.context(), stream, &parts.call()) == ASSAY_OK) taken.push_back(each);
    }
  });
  return taken;
}

// Whether the reference refuses a call. It has memory of its own. The arithmetic is not checked here, so either layer can answer.
class Opinion {
 public:
  Opinion(const Case& problem, const std::vector<OutputSpec>& specs) : runner_(backend_, problem, specs, -1, 60'000) {}
  bool refuses(const WrongCall& wrong) {
    CallParts parts(runner_.call());
    wrong.change(parts);
    return runner_.refused(parts.call(), kPoisons[0]).status != ASSAY_OK;
  }

  // The calls of `wrong` that the reference refuses under capture too, before it reads any data.
  std::vector<const WrongCall*> refused_under_capture(std::vector<const WrongCall*> wrong) {
    std::vector<std::string> damage;
    for (const WrongCall* each : taken_under_capture(backend_, runner_, wrong, damage)) {
      if (each->decides == Decides::reference) std::erase(wrong, each);
    }
    return wrong;
  }

 private:
  Backend backend_{*reference_backend()};
  CallRunner runner_;
};

std::string in_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\n\r", at)) != std::string::npos;) text.replace(at, 1, "\\n");
  return text;
}

bool is_status(assay_status status) { return static_cast<unsigned>(status) <= ASSAY_FAILED; }

// What is wrong with the refusal of `wrong`, or empty.
std::string refusal_fault(const WrongCall& wrong, const Attempt& tried) {
  if (tried.status == ASSAY_OK)
    return "returned 'ok': expected a refusal" + (tried.damage.empty() ? "" : ", and it changed memory: " + tried.damage.front());
  if (!is_status(tried.status))
    return fmt::format("returned the status {}: expected one of assay_status", static_cast<int>(tried.status));
  if (!tried.damage.empty())
    return fmt::format("returned '{}', but changed memory: {}", name_of(tried.status), tried.damage.front());
  if (!is_documented(wrong.refusal, tried.status))
    return fmt::format("returned '{}': expected {} (last_error() says '{}')", name_of(tried.status), text_of(wrong.refusal),
                       in_one_line(tried.error));
  if (tried.error.empty()) return fmt::format("returned '{}', and last_error() says nothing", name_of(tried.status));
  if (tried.error.find_first_of("\n\r") != std::string::npos) {
    return fmt::format("returned '{}', and last_error() has several lines: expected one, found '{}'", name_of(tried.status),
                       in_one_line(tried.error));
  }
  return "";
}

// What is wrong with calls under capture, or empty. `refused`: each was refused alone.
std::string fault_under_capture(Backend& backend, CallRunner& runner, const std::vector<const WrongCall*>& refused) {
  try {
    std::vector<std::string> damage;
    const std::vector<const WrongCall*> taken = taken_under_capture(backend, runner, refused, damage);
    if (!taken.empty()) return fmt::format("with {}, under capture: returned 'ok': expected a refusal", taken.front()->what);
    return damage.empty() ? "" : "calls under capture changed memory: " + damage.front();
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    return fmt::format("the right call, captured after calls that were refused: {}", error.what());
  }
}

// Events before and after the right call: on its stream, and on one that is busy. Faults of their times are added to `faults`.
// False if the call itself failed: the judgement says so.
bool is_right_between_events(Backend& backend, CallRunner& runner, const Case& problem, const Expectation& expectation,
                             const JudgeOptions& options, Judgement& judgement, std::vector<std::string>& faults) {
  if (backend.table().event_create == nullptr) return true;
  const bool is_small = judgement.elements <= kLateElements;
  Events events(backend);
  for (const bool late : {false, true}) {
    if (late && !is_small) continue;
    const Attempt tried = runner.attempt(
        problem, kPoisons[0], {.late = late, .elsewhere = late, .between = [&](assay_stream* on) { events.record(on); }});
    const std::string when =
        std::string("the right call, with events before and after it") + (late ? ", behind other work on the stream" : "");
    if (!accept(tried, expectation, kPoisons[0], when, options, judgement)) return false;
    std::string fault = events.fault();
    if (fault.empty()) fault = events.fault_of_misuse();
    if (!fault.empty()) {
      faults.push_back(fault);
      return true;
    }
  }
  return true;
}

// The right call over tensors without gaps between them, in both orders: no op may take its neighbour for its own memory, or refuse it.
bool is_right_without_gaps(Backend& backend, const Case& problem, const std::vector<OutputSpec>& specs,
                           const Expectation& expectation, const JudgeOptions& options, Judgement& judgement) {
  for (const auto gaps : {CaseMemory::Gaps::none, CaseMemory::Gaps::none_reversed}) {
    CallRunner runner(backend, problem, specs, options.algorithm, options.timeout_ms, nullptr, gaps);
    const Attempt tried = runner.attempt(kPoisons[0]);
    const std::string when = std::string("the right call, over tensors without gaps between them") +
                             (gaps == CaseMemory::Gaps::none_reversed ? ", the last one first" : "");
    if (!accept(tried, expectation, kPoisons[0], when, options, judgement)) return false;
    expectation.count_elements(judgement);
  }
  return true;
}

}  // namespace

Judgement judge_contract(Backend& backend, const Case& problem, const JudgeOptions& options) {
  const Stopwatch watch;
  const std::vector<OutputSpec> specs = wanted_specs(problem, nullptr, options.wanted);
  CallRunner runner(backend, problem, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(runner, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);
  const Expectation expectation(problem, nullptr, specs, opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);

  CallRunner::Outputs memory;
  const auto right_call = [&](const std::string& when) {
    Attempt tried = runner.attempt(kPoisons[0], std::move(memory));
    if (!accept(tried, expectation, kPoisons[0], when, options, judgement)) return false;
    expectation.count_elements(judgement);
    memory = std::move(tried.outputs);
    return true;
  };
  if (!right_call("")) return watch.stop(judgement);
  std::vector<std::string> faults;
  if (!is_right_between_events(backend, runner, problem, expectation, options, judgement, faults)) return watch.stop(judgement);
  if (!is_right_without_gaps(backend, problem, specs, expectation, options, judgement)) return watch.stop(judgement);
  Opinion opinion(problem, specs);
  std::set<std::string> reasons, kinds;
  std::vector<std::int64_t> algorithms;
  for (const assay_algorithm& each : backend.algorithms(runner.call())) algorithms.push_back(each.id);
  const std::vector<WrongCall> all = wrong_calls(runner.call(), algorithms);
  std::vector<const WrongCall*> refused;
  for (const WrongCall& wrong : all) {
    if (wrong.decides == Decides::schema && !is_wrong_by_schema(runner.call(), wrong)) continue;
    if (wrong.decides == Decides::reference && !opinion.refuses(wrong)) continue;
    CallParts parts(runner.call());
    wrong.change(parts);
    const Attempt tried = runner.refused(parts.call(), kPoisons[1]);
    if (tried.status == ASSAY_TIMEOUT || tried.status == ASSAY_DEVICE_LOST) {
      judgement.verdict = tried.status == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::failed;
      judgement.text =
          headed(options, fmt::format("  call    with {}: returned '{}': {}", wrong.what, name_of(tried.status), tried.error));
      return watch.stop(judgement);
    }
    const std::string fault = refusal_fault(wrong, tried);
    if (!fault.empty()) faults.push_back(fmt::format("with {}: {}", wrong.what, fault));
    if (fault.empty()) refused.push_back(&wrong), reasons.insert(tried.error);
    // What one tensor leaves behind, others do too: after each kind of their faults, and after the last of all.
    const bool is_new = wrong.part.empty() || wrong.part.starts_with("parameter") || kinds.insert(wrong.fault).second;
    if ((is_new || &wrong == &all.back()) && !right_call("the right call, after one with " + wrong.what))
      return watch.stop(judgement);
  }
  if (refused.size() > 1 && reasons.size() == 1) {
    faults.push_back(
        fmt::format("last_error() says the same after each of {} wrong calls, '{}': expected why the last call failed",
                    refused.size(), *reasons.begin()));
  }
  if (backend.can_capture()) {
    const std::string fault = fault_under_capture(backend, runner, opinion.refused_under_capture(refused));
    if (!fault.empty()) {
      faults.push_back(fault);
    } else {
      const Attempt tried = runner.attempt(problem, kPoisons[0], {.graph = true}, std::move(memory));
      const std::string when = "the right call, captured after calls that were refused, and launched";
      if (!accept(tried, expectation, kPoisons[0], when, options, judgement)) return watch.stop(judgement);
    }
  }
  settle_calls(faults, "other calls", options, judgement);
  return watch.stop(judgement);
}

}  // namespace assay::conformance
