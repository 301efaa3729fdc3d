#include "conformance/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "conformance/judge/call_runner.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/judge_parts.h"
#include "conformance/judge/prepared_case.h"
#include "conformance/judge/reproducibility.h"

namespace assay::conformance {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed: return "passed";
    case Verdict::failed: return "failed";
    case Verdict::flaky: return "flaky";
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

std::string_view name_of(CheckBasis basis) {
  switch (basis) {
    case CheckBasis::bits: return "bits";
    case CheckBasis::order_free_bits: return "order-free bits";
    case CheckBasis::bound: return "bound";
  }
  return "unknown";
}

std::string basis_text(const Judgement& judgement) {
  return std::string(name_of(judgement.basis)) + (judgement.expected_by.empty() ? "" : ", expected by " + judgement.expected_by);
}

namespace {

// Expectations of one case, by statement.
class Expectations {
 public:
  Expectations(const Case& problem, const Case* fixture, const std::vector<OutputSpec>& specs)
      : problem_(problem), fixture_(fixture), specs_(specs) {}

  explicit Expectations(PreparedCase& prepared) : Expectations(prepared.steps()[0], nullptr, prepared.specs()) {
    prepared_ = &prepared;
  }

  const Expectation& of(const assay_numerics& stated, const JudgeOptions& options) {
    if (prepared_ != nullptr) {
      prepared_->stated = stated;
      if (const Expectation* known = prepared_->of(0, stated)) return *known;
    }
    std::unique_ptr<Expectation>& found = made_[key_of(stated)];
    if (found == nullptr) found = std::make_unique<Expectation>(problem_, fixture_, specs_, stated, options);
    return *found;
  }

 private:
  const Case& problem_;
  const Case* fixture_;
  const std::vector<OutputSpec>& specs_;
  PreparedCase* prepared_ = nullptr;
  std::map<std::string, std::unique_ptr<Expectation>> made_;
};

Judgement judge_once(Backend& backend, const Case& problem, const std::vector<OutputSpec>& specs, Expectations& expectations,
                     const JudgeOptions& options) {
  const Stopwatch watch;
  CallRunner runner(backend, problem, specs, options.algorithm, options.timeout_ms);
  Opening opening = open_case(runner, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);

  const Expectation& expectation = expectations.of(opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
  expectation.count_elements(judgement);
  const bool keep = expectation.basis() == CheckBasis::bound;  // bits that equal a prediction agree from run to run too
  // The comparison of both runs says more than either alone.
  bool wrong[2] = {false, false}, made = true;
  Attempt tried[2];
  for (const int run : {0, 1}) {
    const bool reuse = run == 1 && !keep && !wrong[0];
    tried[run] = runner.attempt(kPoisons[run], reuse ? std::move(tried[0].outputs) : CallRunner::Outputs{});
    const Attempt& now = tried[run];
    wrong[run] = now.status != ASSAY_OK || !now.damage.empty() || !holds(expectation, now, kPoisons[run], judgement);
    made = now.status != ASSAY_TIMEOUT && now.status != ASSAY_OUT_OF_MEMORY;  // otherwise no more calls are possible
    if (!made) break;
  }
  const int at = wrong[0] ? 0 : 1;
  if (wrong[at]) {
    const bool alone = !wrong[1 - at] && (at == 1 || made), compares = alone || (made && tried[1 - at].status == ASSAY_OK);
    const OtherPoison other{alone ? nullptr : &tried[1 - at].outputs, kPoisons[1 - at]};
    const std::string text = complaint(tried[at], expectation, kPoisons[at], judgement, compares ? &other : nullptr);
    const std::string when = alone && judgement.verdict == Verdict::failed
                                 ? fmt::format("over the {} poison (0x{:02x}) only", at == 0 ? "first" : "second", kPoisons[at])
                                 : "";
    for (Finding& each : judgement.findings) each.when = when;
    judgement.text = headed(options, (when.empty() ? "" : "  when    " + when + "\n") + text);
    keep_wrong(tried[at], expectation, kPoisons[at], when, options, judgement);
    return watch.stop(judgement);
  }
  CallRunner::Outputs outputs[2] = {std::move(tried[0].outputs), std::move(tried[1].outputs)};
  if (keep) {
    const std::string broken =
        reproducibility_fault({backend, problem, specs, runner, outputs[0], outputs[1]}, opening.stated, expectation, options);
    if (!broken.empty()) {
      judgement.verdict = Verdict::failed;
      judgement.text = headed(options, broken);
      judgement.findings.push_back(finding_of("run to run", broken));
      return watch.stop(judgement);
    }
  }
  if (is_made_late(runner.variety()) && expectation.elements() <= kLateElements) {
    for (const bool elsewhere : {false, true}) {
      const CallRunner::Mode mode{false, true, elsewhere};
      Attempt tried = runner.attempt(problem, kPoisons[0], mode, std::move(outputs[1]));
      if (!accept(tried, expectation, kPoisons[0], CallRunner::text_of(mode), options, judgement)) return watch.stop(judgement);
      outputs[1] = std::move(tried.outputs);
    }
  }
  judgement.verdict = Verdict::passed;
  return watch.stop(judgement);
}

}  // namespace

Judgement judge(Backend& backend, const Case& problem, const Case* expected, const JudgeOptions& options) {
  const std::vector<OutputSpec> specs = wanted_specs(problem, expected, options.wanted);
  Expectations expectations(problem, expected, specs);
  return judge_once(backend, problem, specs, expectations, options);
}

Judgement judge(Backend& backend, PreparedCase& prepared, const JudgeOptions& options) {
  Expectations expectations(prepared);
  return judge_once(backend, prepared.steps()[0], prepared.specs(), expectations, options);
}

std::string Setting::words() const {
  if (!axis.empty()) return fmt::format(" --axis {}={}", axis, value);
  return algorithm < 0 ? "" : fmt::format(" --algorithm {}", algorithm);
}

namespace {

constexpr int kMaxUnfinished = 3;  // settings of a case

// The settings of one case, one after another.
class SettingsOfCase {
 public:
  SettingsOfCase(Backend& backend, const Case& problem, const std::vector<OutputSpec>& specs, const JudgeOptions& options,
                 const Recovery* recovery)
      : backend_(&backend),
        problem_(problem),
        specs_(specs),
        options_(options),
        recovery_(recovery),
        expectations_(problem, nullptr, specs) {}

  std::vector<assay_algorithm> algorithms() {
    std::vector<assay_algorithm> all;
    const Setting setting{-1, "", "", "the list of algorithms"};
    list_ = judged(setting, [&](const JudgeOptions& under) {
      Judgement judgement;
      CallRunner runner(*backend_, problem_, specs_, -1, under.timeout_ms);
      if (runner.questions().supports.is_ok()) all = backend_->algorithms(runner.call());
      if (questions_left_memory(runner, under, judgement, true)) judgement.verdict = Verdict::passed;
      return judgement;
    });
    return all;
  }

  void judge(const Setting& setting) {
    made_.push_back(judged(setting, [&](const JudgeOptions& under) {
      if (!setting.axis.empty()) backend_->set_axis(setting.axis, setting.value);
      const Default restored{setting.axis, backend_};
      return judge_once(*backend_, problem_, specs_, expectations_, under);
    }));
  }

  std::vector<JudgedSetting> take() {
    if (list_ && list_->judgement.verdict != Verdict::passed) made_.push_back(std::move(*list_));
    return std::move(made_);
  }

 private:
  // Resets an axis to its default, also after an error.
  struct Default {
    const std::string& axis;
    Backend*& backend;
    ~Default() {
      try {
        if (!axis.empty() && !backend->is_given_up()) backend->set_axis(axis, "");
      } catch (const BackendError&) {  // the axis may have another value now: the next calls show it
      }
    }
  };

  template <class Body>
  JudgedSetting judged(const Setting& setting, Body body) {
    JudgeOptions under = options_;
    if (setting.algorithm >= 0) under.algorithm = setting.algorithm;
    under.setting = setting.text;
    under.reproduce += setting.words();
    if (!is_usable()) return {setting, not_tried()};
    JudgedSetting made{setting, {}};
    try {
      made.judgement = body(under);
    } catch (const BackendFault& fault) {
      if (recovery_ == nullptr) throw;
      made.judgement = recovery_->verdict(fault, under);
    }
    unfinished_ += made.judgement.verdict == Verdict::unfinished;
    return made;
  }

  bool is_usable() {
    if (!backend_->is_given_up()) return true;
    Backend* const other = recovery_ != nullptr && unfinished_ < kMaxUnfinished ? recovery_->restart() : nullptr;
    if (other != nullptr) backend_ = other;
    return other != nullptr;
  }

  Backend* backend_;
  const Case& problem_;
  const std::vector<OutputSpec>& specs_;
  const JudgeOptions& options_;
  const Recovery* recovery_;
  Expectations expectations_;
  int unfinished_ = 0;
  std::vector<JudgedSetting> made_;
  std::optional<JudgedSetting> list_;
};

}  // namespace

std::vector<JudgedSetting> judge_settings(Backend& backend, const Case& problem, bool all_algorithms,
                                          const std::vector<std::pair<std::string, std::string>>& axes,
                                          const JudgeOptions& options, const Recovery* recovery) {
  const std::vector<OutputSpec> specs = wanted_specs(problem, nullptr, options.wanted);
  SettingsOfCase settings(backend, problem, specs, options, recovery);
  const std::vector<assay_algorithm> algorithms = all_algorithms ? settings.algorithms() : std::vector<assay_algorithm>{};
  settings.judge({});
  for (const assay_algorithm& each : algorithms) settings.judge({each.id, "", "", std::string("algorithm: ") + each.description});
  for (const auto& [axis, value] : axes) settings.judge({-1, axis, value, "axis: " + axis + "=" + value});
  return settings.take();
}

}  // namespace assay::conformance
