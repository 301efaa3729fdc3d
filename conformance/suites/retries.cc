#include "conformance/suites/retries.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/fingerprint.h"
#include "conformance/support/interrupt.h"

namespace assay::conformance {
namespace {

bool may_pass_again(Verdict verdict) {
  return verdict == Verdict::failed || verdict == Verdict::unproven_skip || verdict == Verdict::unfinished;
}

TriedVerdict tried(const Judgement& judgement) { return {judgement.verdict, fingerprint_of(judgement)}; }

// Adds what another try found about a failure.
void add_try(CaseReport& report, const Judgement& again, std::size_t most) {
  if (report.tries.empty()) {
    report.tries.push_back(tried(report.judgement));
    report.fingerprint = report.tries.front().fingerprint;  // what is written below changes text and verdict
  }
  report.tries.push_back(tried(again));
  const bool passed = again.verdict == Verdict::passed;
  if (!passed && report.tries.size() <= most) return;  // not the last try
  std::string line;
  if (passed) {
    report.judgement.verdict = Verdict::flaky;
    line = fmt::format("flaky   passed at try {}", report.tries.size());
  } else {
    const bool alike = std::all_of(report.tries.begin(), report.tries.end(), [&](const TriedVerdict& each) {
      return each.fingerprint == report.tries.front().fingerprint;
    });
    line = fmt::format("again   failed in all {} tries, {}", report.tries.size(),
                       alike ? "in the same way" : "not always in the same way");
  }
  std::string& text = report.judgement.text;
  const std::size_t at = std::min(text.rfind("\n  repro "), text.size());
  text.insert(at, "\n  " + line);
}

// A backend for the next try: the one at hand, or another if that one has ended.
class Next {
 public:
  Next(Judged judged, const BackendChoice& choice) : judged_(judged), choice_(choice) {}
  ~Next() {
    if (other_ != nullptr && !other_->is_given_up()) other_->close();
  }

  // Null where there is none.
  Backend* backend() {
    if (judged_.expecting != nullptr && judged_.expecting->is_given_up()) return nullptr;
    Backend* const last = other_ == nullptr ? &judged_.backend : other_.get();
    if (!last->is_given_up()) return last;
    try {
      other_.reset();
      other_ = choice_.open(judged_.device);
      other_->begin_case();
    } catch (const BackendError&) {  // the next case finds the same, and reports it
      other_.reset();
    }
    return other_.get();
  }

 private:
  Judged judged_;
  const BackendChoice& choice_;
  std::unique_ptr<Backend> other_;
};

}  // namespace

std::vector<CaseReport> with_retries(Judged judged, const BackendChoice& choice,
                                     const std::function<std::vector<CaseReport>(Judged)>& judge_case) {
  std::vector<CaseReport> reports = judge_case(judged);
  Next next(judged, choice);
  for (int i = 0; i < choice.retries && !interrupted(); ++i) {
    const bool fails = std::any_of(reports.begin(), reports.end(),
                                   [](const CaseReport& each) { return may_pass_again(each.judgement.verdict); });
    Backend* const backend = fails ? next.backend() : nullptr;
    if (backend == nullptr) break;
    const std::vector<CaseReport> again = judge_case({*backend, judged.expecting, false, judged.device});
    for (CaseReport& each : reports) {
      if (!may_pass_again(each.judgement.verdict)) continue;
      const auto same =
          std::find_if(again.begin(), again.end(), [&](const CaseReport& other) { return other.setting == each.setting; });
      if (same != again.end()) add_try(each, same->judgement, static_cast<std::size_t>(choice.retries));
    }
  }
  return reports;
}

}  // namespace assay::conformance
