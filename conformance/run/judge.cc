#include "conformance/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "conformance/compare/compare.h"
#include "conformance/run/expectation.h"
#include "conformance/run/trial.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

constexpr std::uint8_t kPoisons[] = {0xff, 0xa5};

std::string headed(const JudgeOptions& options, const std::string& body) {
  const std::string under = options.setting.empty() ? "" : "  under   " + options.setting + "\n";
  std::string text = failure_text(options.title, under + body + (body.ends_with('\n') ? "" : "\n"), options.reproduce);
  text.pop_back();  // the last newline
  return text;
}

// Which outputs to ask for: those of the fixture, those named, or all that the op has.
std::vector<OutputSpec> wanted_specs(const golden::Case& problem, const golden::Case* expected, const std::vector<std::string>* wanted) {
  // A request could be written to, but is only read here.
  const std::vector<OutputSpec> all = outputs_of(Request::of(const_cast<golden::Case&>(problem)));
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
      judgement.findings.push_back(finding_of("skip", fault));
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
    case ASSAY_OUT_OF_MEMORY: judgement.verdict = Verdict::machine_failed; break;
    default: judgement.verdict = Verdict::failed;
  }
  const std::string why = fmt::format("returned '{}': {}", name_of(tried.status), tried.error);
  judgement.findings.push_back(finding_of("call", why));
  return "  call    " + why;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed: return "passed";
    case Verdict::failed: return "failed";
    case Verdict::not_run: return "not run";
    case Verdict::unproven_skip: return "skip without proof";
    case Verdict::unfinished: return "unfinished";
    case Verdict::not_tried: return "not tried";
    case Verdict::machine_failed: return "machine failed";
  }
  return "unknown";
}

Judgement not_tried() {
  Judgement judgement;
  judgement.verdict = Verdict::not_tried;
  judgement.text = "one case after another did not finish";
  return judgement;
}

std::string_view name_of(Ground ground) {
  switch (ground) {
    case Ground::bits: return "bits";
    case Ground::order_free_bits: return "order-free bits";
    case Ground::bound: return "bound";
  }
  return "unknown";
}

std::string ground_text(const Judgement& judgement) {
  return std::string(name_of(judgement.ground)) + (judgement.expected_by.empty() ? "" : ", expected by " + judgement.expected_by);
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
    opening.judgement.verdict = Verdict::failed;
    opening.judgement.text = headed(options, fmt::format("  call    supports() returned '{}': {}", name_of(supported), backend.last_error()));
    opening.settled = true;
    return opening;
  }
  opening.stated.struct_size = sizeof opening.stated;
  opening.stated.keeps_zero_sign = opening.stated.deterministic = opening.stated.batch_invariant = -1;
  std::string fault = trial.workspace_fault();
  const assay_status asked = backend.table().numerics(backend.context(), &trial.call(), &opening.stated);
  if (asked != ASSAY_OK) fault = fmt::format("numerics() returned '{}': {}", name_of(asked), backend.last_error());
  opening.judgement.plan = opening.stated.plan;
  opening.judgement.unit = opening.stated.unit;
  if (!fault.empty()) {
    opening.judgement.verdict = Verdict::failed;
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
    for (const std::string& line : tried.damage) {
      text += "  memory  " + line + "\n";
      judgement.findings.push_back(finding_of("memory", line));
    }
    text += expectation.differences(tried.outputs, poison, &judgement.details, &judgement.findings);
    if (!text.empty()) judgement.verdict = Verdict::failed;
  }
  if (text.empty()) return true;
  for (Finding& each : judgement.findings) each.when = when;
  judgement.text = headed(options, (when.empty() ? "" : "  when    " + when + "\n") + text);
  return false;
}

bool statement_holds(const Expectation& expectation, const JudgeOptions& options, Judgement& judgement) {
  judgement.ground = expectation.ground();
  judgement.expected_by = expectation.expected_by();
  if (expectation.statement_fault().empty()) return true;
  judgement.verdict = Verdict::failed;
  judgement.text = headed(options, "  stated  " + expectation.statement_fault());
  judgement.findings.push_back(finding_of("statement", expectation.statement_fault()));
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

namespace {

// Expectations of one case, by what was stated.
class Expectations {
 public:
  Expectations(const golden::Case& problem, const golden::Case* fixture, const std::vector<OutputSpec>& specs)
      : problem_(problem), fixture_(fixture), specs_(specs) {}

  const Expectation& of(const assay_numerics& stated, const JudgeOptions& options) {
    const std::string key = fmt::format("{}|{}|{}", stated.plan, stated.unit, stated.keeps_zero_sign);
    std::unique_ptr<Expectation>& found = made_[key];
    if (found == nullptr) found = std::make_unique<Expectation>(problem_, fixture_, specs_, stated, options);
    return *found;
  }

 private:
  const golden::Case& problem_;
  const golden::Case* fixture_;
  const std::vector<OutputSpec>& specs_;
  std::map<std::string, std::unique_ptr<Expectation>> made_;
};

Judgement judge_once(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& specs, Expectations& expectations,
                     const JudgeOptions& options) {
  const Stopwatch watch;
  Trial trial(backend, problem, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(backend, trial, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);

  const Expectation& expectation = expectations.of(opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
  judgement.words = expectation.words();
  const bool may_vary = expectation.ground() == Ground::bound && opening.stated.deterministic != 0;
  std::map<std::string, std::vector<std::byte>> first, memory;
  for (const std::uint8_t poison : kPoisons) {
    Attempt tried = trial.attempt(poison, std::move(memory));
    if (!accept(tried, expectation, poison, "", options, judgement)) return watch.stop(judgement);
    if (!may_vary) {
      memory = std::move(tried.outputs);
    } else if (poison == kPoisons[0]) {
      first = std::move(tried.outputs);
    } else if (const std::string apart = expectation.disagreement(first, tried.outputs); !apart.empty()) {
      // Where bits are expected the two runs agree already. Within a bound they may not, unless the backend says so.
      judgement.verdict = Verdict::failed;
      judgement.text = headed(options, "  when    the same call over two poisons\n" + apart);
      return watch.stop(judgement);
    }
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

}  // namespace

Judgement judge(Backend& backend, const golden::Case& problem, const golden::Case* expected, const JudgeOptions& options) {
  const std::vector<OutputSpec> specs = wanted_specs(problem, expected, options.wanted);
  Expectations expectations(problem, expected, specs);
  return judge_once(backend, problem, specs, expectations, options);
}

std::string Setting::words() const {
  if (!axis.empty()) return fmt::format(" --axis {}={}", axis, value);
  return algorithm < 0 ? "" : fmt::format(" --algorithm {}", algorithm);
}

std::vector<JudgedSetting> judge_settings(Backend& backend, const golden::Case& problem, bool all_algorithms,
                                          const std::vector<std::pair<std::string, std::string>>& axes, const JudgeOptions& options) {
  const std::vector<OutputSpec> specs = wanted_specs(problem, nullptr, options.wanted);
  Expectations expectations(problem, nullptr, specs);
  std::vector<Setting> settings(1);
  if (all_algorithms) {
    Trial trial(backend, problem, specs, -1, options.timeout_ms);
    if (backend.table().supports(backend.context(), &trial.call()) == ASSAY_OK) {
      for (const assay_algorithm& each : backend.algorithms(trial.call())) {
        settings.push_back({each.id, "", "", std::string("algorithm: ") + each.description});
      }
    }
  }
  for (const auto& [axis, value] : axes) settings.push_back({-1, axis, value, "axis: " + axis + "=" + value});

  std::vector<JudgedSetting> judged;
  for (const Setting& setting : settings) {
    JudgeOptions under = options;
    if (setting.algorithm >= 0) under.algorithm = setting.algorithm;
    under.setting = setting.text;
    under.reproduce += setting.words();
    if (backend.is_given_up()) {
      judged.push_back({setting, not_tried()});
      continue;
    }
    if (!setting.axis.empty()) backend.set_axis(setting.axis, setting.value);
    try {
      judged.push_back({setting, judge_once(backend, problem, specs, expectations, under)});
    } catch (...) {
      if (!setting.axis.empty() && !backend.is_given_up()) backend.set_axis(setting.axis, "");
      throw;
    }
    if (!setting.axis.empty() && !backend.is_given_up()) backend.set_axis(setting.axis, "");
  }
  return judged;
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
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    judgement.verdict = Verdict::failed;
    judgement.text = headed(options, std::string("  when    capture\n  call    ") + error.what());
    return watch.stop(judgement);
  }
  std::map<std::string, std::vector<std::byte>> memory;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const golden::Case& step = steps[i % steps.size()];
    const Expectation expectation(step, nullptr, specs, opening.stated, options);
    if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
    judgement.words += expectation.words();
    const std::uint8_t poison = kPoisons[i % 2];
    const std::string when = i == steps.size() ? "the first inputs again, after " + std::to_string(i) + " replays"
                                               : "replay " + std::to_string(i + 1) + " of " + std::to_string(steps.size());
    Attempt tried = trial.replay(step, poison, std::move(memory));
    if (!accept(tried, expectation, poison, when, options, judgement)) return watch.stop(judgement);
    memory = std::move(tried.outputs);
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

}  // namespace assay::conformance
