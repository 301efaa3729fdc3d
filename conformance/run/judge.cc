#include "conformance/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "conformance/run/expectation.h"
#include "conformance/run/judge_parts.h"
#include "conformance/run/promises.h"
#include "conformance/run/trial.h"

namespace assay::conformance {

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

// Cases of more words are not made once more on a busy stream.
constexpr std::int64_t kLateWords = std::int64_t{1} << 18;

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
  Opening opening = open_case(trial, options);
  Judgement& judgement = opening.judgement;
  if (opening.settled) return watch.stop(judgement);

  const Expectation& expectation = expectations.of(opening.stated, options);
  if (!statement_holds(expectation, options, judgement)) return watch.stop(judgement);
  expectation.count_elements(judgement);
  const bool keep = expectation.ground() == Ground::bound;  // bits that equal a prediction agree from run to run too
  // What is wrong in one run and right in the other says more than either.
  bool wrong[2] = {false, false}, made = true;
  Attempt tried[2];
  for (const int run : {0, 1}) {
    const bool reuse = run == 1 && !keep && !wrong[0];
    tried[run] = trial.attempt(kPoisons[run], reuse ? std::move(tried[0].outputs) : Trial::Outputs{});
    const Attempt& now = tried[run];
    wrong[run] = now.status != ASSAY_OK || !now.damage.empty() || !expectation.holds(now.outputs, kPoisons[run]);
    made = now.status != ASSAY_TIMEOUT && now.status != ASSAY_OUT_OF_MEMORY;  // otherwise nothing more can be asked
    if (!made) break;
  }
  const int at = wrong[0] ? 0 : 1;
  if (wrong[at]) {
    const bool alone = !wrong[1 - at] && (at == 1 || made), compares = alone || (made && tried[1 - at].status == ASSAY_OK);
    const OtherPoison other{alone ? nullptr : &tried[1 - at].outputs, kPoisons[1 - at]};
    const std::string text = complaint(tried[at], expectation, kPoisons[at], judgement, compares ? &other : nullptr);
    const std::string when = alone && judgement.verdict == Verdict::failed
                                 ? fmt::format("over the {} poison (0x{:02x}) only", at == 0 ? "first" : "second", kPoisons[at]) : "";
    for (Finding& each : judgement.findings) each.when = when;
    judgement.text = headed(options, (when.empty() ? "" : "  when    " + when + "\n") + text);
    return watch.stop(judgement);
  }
  Trial::Outputs outputs[2] = {std::move(tried[0].outputs), std::move(tried[1].outputs)};
  if (keep) {
    const std::string broken = broken_promises({backend, problem, specs, trial, outputs[0], outputs[1]}, opening.stated, expectation, options);
    if (!broken.empty()) {
      judgement.verdict = Verdict::failed;
      judgement.text = headed(options, broken);
      judgement.findings.push_back(finding_of("run to run", broken));
      return watch.stop(judgement);
    }
  }
  if (is_made_late(trial.variety()) && expectation.words() <= kLateWords) {
    for (const bool elsewhere : {false, true}) {
      const Trial::Way way{false, true, elsewhere};
      Attempt tried = trial.attempt(problem, kPoisons[0], way, std::move(outputs[1]));
      if (!accept(tried, expectation, kPoisons[0], Trial::text_of(way), options, judgement)) return watch.stop(judgement);
      outputs[1] = std::move(tried.outputs);
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
  std::vector<JudgedSetting> judged;
  if (all_algorithms) {
    Trial trial(backend, problem, specs, -1, options.timeout_ms);
    if (trial.questions().supports.is_ok()) {
      for (const assay_algorithm& each : backend.algorithms(trial.call())) {
        settings.push_back({each.id, "", "", std::string("algorithm: ") + each.description});
      }
      JudgedSetting list{{-1, "", "", "the list of algorithms"}, {}};
      if (!questions_left_memory(trial, options, list.judgement, true)) judged.push_back(std::move(list));
    }
  }
  for (const auto& [axis, value] : axes) settings.push_back({-1, axis, value, "axis: " + axis + "=" + value});

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

}  // namespace assay::conformance
