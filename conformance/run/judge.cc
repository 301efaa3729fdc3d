#include "conformance/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "conformance/compare/compare.h"
#include "conformance/run/expectation.h"
#include "conformance/run/trial.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

constexpr std::uint8_t kPoisons[] = {0xff, 0xa5};

std::string headed(const JudgeOptions& options, const std::string& body) {
  std::string text = failure_text(options.title, body + (body.ends_with('\n') ? "" : "\n"), options.reproduce);
  text.pop_back();  // the last newline
  return text;
}

// Which outputs to ask for: those of the fixture, those named, or all that the op has.
std::vector<OutputSpec> wanted_specs(const golden::Case& problem, const golden::Case* expected, const std::vector<std::string>* wanted) {
  golden::Case copy = problem;  // a view needs memory that may be written
  const std::vector<OutputSpec> all = outputs_of(Request::of(copy));
  std::vector<OutputSpec> specs;
  for (const OutputSpec& spec : all) {
    if (expected != nullptr && expected->out.count(spec.name) == 0) continue;
    if (expected == nullptr && wanted != nullptr && std::find(wanted->begin(), wanted->end(), spec.name) == wanted->end()) continue;
    specs.push_back(spec);
  }
  const auto known = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const OutputSpec& spec) { return spec.name == name; });
  };
  if (expected != nullptr) {
    for (const auto& [name, tensor] : expected->out) {
      require(known(name), "out/" + name, "given", "only outputs that op " + problem.op + " has for these inputs");
    }
  } else if (wanted != nullptr) {
    for (const std::string& name : *wanted) require(known(name), "output " + name, "wanted", "only outputs that op " + problem.op + " has");
  }
  return specs;
}

// The call was declared absent: it must say so when made, and leave memory alone.
Judgement judge_absence(Trial& trial, const std::string& why, const JudgeOptions& options) {
  Judgement judgement;
  judgement.verdict = Verdict::not_run;
  judgement.text = why.empty() ? "the backend declares this absent and gives no reason" : why;
  for (const std::uint8_t poison : kPoisons) {
    const Attempt tried = trial.attempt(poison);
    std::string fault;
    if (tried.status != ASSAY_NOT_SUPPORTED) {
      fault = fmt::format("declared absent, but the call returned '{}'", name_of(tried.status));
    } else if (!tried.damage.empty()) {
      fault = "declared absent, but the call changed memory: " + tried.damage.front();
    }
    for (const auto& [name, bytes] : tried.outputs) {
      const bool touched = std::any_of(bytes.begin(), bytes.end(), [&](std::byte each) { return each != static_cast<std::byte>(poison); });
      if (fault.empty() && touched) fault = fmt::format("declared absent, but the call wrote to {}", name);
    }
    if (!fault.empty()) {
      judgement.verdict = Verdict::unproven_skip;
      judgement.text = headed(options, fmt::format("  skip    without proof: {} (reason given: {})", fault, why));
      return judgement;
    }
  }
  return judgement;
}

// What went wrong with the call itself, or empty.
std::string trouble_of(const Attempt& tried, Judgement& judgement) {
  switch (tried.status) {
    case ASSAY_OK: return "";
    case ASSAY_TIMEOUT: judgement.verdict = Verdict::unfinished; break;
    case ASSAY_DEVICE_LOST:
    case ASSAY_OUT_OF_MEMORY: judgement.verdict = Verdict::machine_failed; break;
    default: judgement.verdict = Verdict::failed;
  }
  return fmt::format("  call    returned '{}': {}", name_of(tried.status), tried.error);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed: return "passed";
    case Verdict::failed: return "failed";
    case Verdict::not_run: return "not run";
    case Verdict::unproven_skip: return "skip without proof";
    case Verdict::unfinished: return "unfinished";
    case Verdict::machine_failed: return "machine failed";
  }
  return "unknown";
}

std::string_view name_of(Ground ground) {
  switch (ground) {
    case Ground::bits: return "bits";
    case Ground::order_free_bits: return "order-free bits";
    case Ground::bound: return "bound";
  }
  return "unknown";
}

namespace {

// What can be said before the call itself is made: a declared absence, a failing question, the stated numerics.
struct Opening {
  bool settled = false;  // the judgement is final
  Judgement judgement;
  assay_numerics stated{};
};

Opening open_case(Backend& backend, Trial& trial, const JudgeOptions& options) {
  Opening opening;
  const assay_status supported = backend.table().supports(backend.context(), &trial.call());
  if (supported == ASSAY_NOT_SUPPORTED) {
    opening.judgement = judge_absence(trial, backend.last_error(), options);
    opening.settled = true;
    return opening;
  }
  if (supported != ASSAY_OK) {
    opening.judgement.verdict = supported == ASSAY_DEVICE_LOST ? Verdict::machine_failed : Verdict::failed;
    opening.judgement.text = headed(options, fmt::format("  call    supports() returned '{}': {}", name_of(supported), backend.last_error()));
    opening.settled = true;
    return opening;
  }
  opening.stated.struct_size = sizeof opening.stated;
  opening.stated.keeps_zero_sign = opening.stated.deterministic = opening.stated.batch_invariant = -1;
  std::string fault = trial.workspace_fault();
  const assay_status asked = backend.table().numerics(backend.context(), &trial.call(), &opening.stated);
  if (asked != ASSAY_OK) fault = fmt::format("numerics() returned '{}': {}", name_of(asked), backend.last_error());
  if (!fault.empty()) {
    opening.judgement.verdict = asked == ASSAY_DEVICE_LOST ? Verdict::machine_failed : Verdict::failed;
    opening.judgement.text = headed(options, "  call    " + fault);
    opening.settled = true;
  }
  return opening;
}

// True when all is right; otherwise the judgement holds verdict and text. `when` is said of the attempt: "replay 3".
bool accept(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, const std::string& when,
            const JudgeOptions& options, Judgement& judgement) {
  std::string text = trouble_of(tried, judgement);
  if (text.empty()) {
    for (const std::string& line : tried.damage) text += "  memory  " + line + "\n";
    text += expectation.differences(tried.outputs, poison);
    if (!text.empty()) judgement.verdict = Verdict::failed;
  }
  if (text.empty()) return true;
  judgement.text = headed(options, (when.empty() ? "" : "  when    " + when + "\n") + text);
  return false;
}

bool statement_holds(const Expectation& expectation, const JudgeOptions& options, Judgement& judgement) {
  judgement.ground = expectation.ground();
  if (expectation.statement_fault().empty()) return true;
  judgement.verdict = Verdict::failed;
  judgement.text = headed(options, "  stated  " + expectation.statement_fault());
  return false;
}

class Stopwatch {
 public:
  Judgement stop(Judgement judgement) const {
    judgement.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return judgement;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Judgement judge(Backend& backend, const golden::Case& problem, const golden::Case* expected, const JudgeOptions& options) {
  const Stopwatch watch;
  const std::vector<OutputSpec> specs = wanted_specs(problem, expected, options.wanted);
  Trial trial(backend, problem, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(backend, trial, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);

  const Expectation expectation(problem, expected, specs, opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
  judgement.words = expectation.words();
  std::vector<Attempt> attempts;
  for (const std::uint8_t poison : kPoisons) {
    attempts.push_back(trial.attempt(poison));
    if (!accept(attempts.back(), expectation, poison, "", options, judgement)) return watch.stop(judgement);
  }
  // Where bits are expected the two runs agree already. Within a bound they may not, unless the backend says so.
  const std::string apart = opening.stated.deterministic == 0 ? "" : expectation.disagreement(attempts[0].outputs, attempts[1].outputs);
  if (!apart.empty()) {
    judgement.verdict = Verdict::failed;
    judgement.text = headed(options, "  when    the same call over two poisons\n" + apart);
    return watch.stop(judgement);
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

Judgement judge_replay(Backend& backend, const std::vector<golden::Case>& steps, const JudgeOptions& options) {
  const Stopwatch watch;
  const golden::Case& first = steps.at(0);
  const std::vector<OutputSpec> specs = wanted_specs(first, nullptr, options.wanted);
  Trial trial(backend, first, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(backend, trial, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);
  if (!backend.can_capture()) {
    judgement.verdict = Verdict::not_run;
    judgement.text = "the backend has no capture and replay";
    return watch.stop(judgement);
  }
  try {
    trial.capture();
  } catch (const BackendError& error) {
    judgement.verdict = error.status() == ASSAY_DEVICE_LOST ? Verdict::machine_failed : Verdict::failed;
    judgement.text = headed(options, std::string("  when    capture\n  call    ") + error.what());
    return watch.stop(judgement);
  }
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const golden::Case& step = steps[i % steps.size()];
    const Expectation expectation(step, nullptr, specs, opening.stated, options);
    if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
    judgement.words += expectation.words();
    const std::uint8_t poison = kPoisons[i % 2];
    const std::string when = i == steps.size() ? "the first inputs again, after " + std::to_string(i) + " replays"
                                               : "replay " + std::to_string(i + 1) + " of " + std::to_string(steps.size());
    if (!accept(trial.replay(step, poison), expectation, poison, when, options, judgement)) return watch.stop(judgement);
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

}  // namespace assay::conformance
