// Judging a call that is captured once and replayed, or made again and again.

#include <memory>
#include <utility>

#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/judge_parts.h"
#include "conformance/judge/prepared_case.h"

namespace assay::conformance {
namespace {

// How round `i` is carried out. Where there is a graph, every second round is made eagerly too: then what a backend keeps on the
// host from one call to the next is as old as what it keeps in the graph. Two rounds of small calls run on a busy stream.
std::vector<CallRunner::Mode> modes_of(std::size_t i, bool captures, std::int64_t elements) {
  const bool late = (i == 1 || i == 2) && elements <= kLateElements, odd = i % 2 == 1;
  if (!captures) return {{false, late, odd}};
  std::vector<CallRunner::Mode> modes{{true, late, odd}};
  if (odd) modes.push_back({false, late, false});
  return modes;
}

std::string text_of(std::size_t i, std::size_t count, const CallRunner::Mode& mode) {
  const std::string how = CallRunner::text_of(mode), tail = how.empty() || how == "launched" ? "" : ", " + how;
  if (i == count) return "the first inputs again, after " + std::to_string(i) + (mode.graph ? " replays" : " rounds") + tail;
  return (mode.graph ? "replay " : "made eagerly, round ") + std::to_string(i + 1) + " of " + std::to_string(count) + tail;
}

bool capture(CallRunner& runner, const JudgeOptions& options, Judgement& judgement) {
  std::string fault;
  judgement.verdict = Verdict::failed;
  try {
    for (const std::string& line : runner.capture())
      fault += "  memory  nothing may be carried out before the graph is launched: " + line + "\n";
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    fault = std::string("  call    ") + error.what();
  }
  if (fault.empty()) return true;
  judgement.text = headed(options, "  when    capture\n" + fault);
  return false;
}

}  // namespace

Judgement judge_replay(Backend& backend, std::vector<Case> steps, const JudgeOptions& options) {
  PreparedCase nothing(std::move(steps), options, std::nullopt);
  return judge_replay(backend, nothing, options);
}

Judgement judge_replay(Backend& backend, PreparedCase& prepared, const JudgeOptions& options) {
  const Stopwatch watch;
  const std::vector<Case>& steps = prepared.steps();
  const std::vector<OutputSpec>& specs = prepared.specs();
  CallRunner runner(backend, steps[0], specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(runner, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);
  prepared.stated = opening.stated;
  const bool captures = backend.can_capture();
  if (!captures) {
    judgement.way = "made eagerly instead of replayed, with inputs changed in place: the backend has no capture";
  } else if (!capture(runner, options, judgement)) {
    return watch.stop(judgement);
  }
  CallRunner::Outputs memory;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const Case& step = steps[i % steps.size()];
    std::unique_ptr<Expectation> made;
    Expectation* const known = prepared.of(i % steps.size(), opening.stated);
    const auto number = static_cast<std::int64_t>(i % steps.size());
    if (known == nullptr) made = std::make_unique<Expectation>(step, nullptr, specs, opening.stated, options, number);
    Expectation& expectation = known != nullptr ? *known : *made;
    std::vector<const Case*> earlier;
    for (std::size_t before = 0; before < i; ++before) earlier.push_back(&steps[before]);
    expectation.after(std::move(earlier));
    if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
    for (const CallRunner::Mode& mode : modes_of(i, captures, expectation.elements())) {
      expectation.count_elements(judgement);
      const std::uint8_t poison = kPoisons[(i + (mode.graph ? 0 : 1)) % 2];
      Attempt tried = runner.attempt(step, poison, mode, std::move(memory));
      const auto again = [&](std::uint8_t other) { return runner.attempt(step, other, {mode.graph, false, false}); };
      if (!accept(tried, expectation, poison, text_of(i, steps.size(), mode), options, judgement, again))
        return watch.stop(judgement);
      memory = std::move(tried.outputs);
    }
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

}  // namespace assay::conformance
