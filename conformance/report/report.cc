#include "conformance/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/fingerprint.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/waivers.h"
#include "conformance/support/standard_output.h"
#include "golden/io/replace_file.h"

namespace assay::conformance {

void count(Counts& counts, const CaseReport& report) {
  const Judgement& judgement = report.judgement;
  counts.elements += judgement.elements;
  if (is_waived(report)) {
    ++counts.waived, ++counts.other;
    return;
  }
  switch (judgement.verdict) {
    case Verdict::passed: ++counts.passed; break;
    case Verdict::failed: ++counts.failed; break;
    case Verdict::not_run: ++counts.not_run; break;
    case Verdict::flaky: ++counts.flaky; [[fallthrough]];
    default: ++counts.other;
  }
}

void Report::append_to(std::unique_ptr<ResultsFile> results, bool headed) {
  const std::lock_guard lock(mutex_);
  results_ = std::move(results);
  if (results_ != nullptr && !headed) append_header();
}

namespace {

// The text of a failure, with the basis of its verdict and its fingerprint before the command that repeats it.
std::string shown_text(const CaseReport& report) {
  const Judgement& judgement = report.judgement;
  std::string more;
  if (const std::string standing = standing_text(judgement); !standing.empty()) more += "\n  judged  " + standing;
  if (!report.fingerprint.empty() && judgement.text.starts_with("FAILED  "))
    more += "\n  waive   fingerprint " + report.fingerprint;
  if (report.waiver && !is_waived(report)) more += fmt::format("\n  waive   {} waives another failure", report.waiver->at);
  const std::size_t at = std::min(judgement.text.rfind("\n  repro "), judgement.text.size());
  return judgement.text.substr(0, at) + more + judgement.text.substr(at);
}

bool is_shown(const CaseReport& report) {
  const Verdict verdict = report.judgement.verdict;
  return verdict != Verdict::passed && verdict != Verdict::not_run && verdict != Verdict::not_tried && !is_waived(report);
}

}  // namespace

void Report::use_waivers(Waivers waivers) { waivers_ = std::make_unique<Waivers>(std::move(waivers)); }

// Fingerprint and waiver of a verdict.
void Report::note_waiver(CaseReport& report) {
  if (report.fingerprint.empty()) report.fingerprint = fingerprint_of(report.judgement);
  report.waiver = waivers_ == nullptr ? std::nullopt : waivers_->standing(report);
}

namespace {

void add_verdict(Outcome& outcome, Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
    case Verdict::not_run: break;
    case Verdict::flaky:
    case Verdict::failed: outcome.add(ExitCode::failed); break;
    case Verdict::unproven_skip: outcome.add(ExitCode::unproven_skip); break;
    case Verdict::unfinished:
    case Verdict::not_tried: outcome.add(ExitCode::incomplete); break;
    case Verdict::machine_failed: outcome.add(ExitCode::machine_failed); break;
  }
}

}  // namespace

void add_to(Outcome& outcome, const CaseReport& report) {
  using State = WaiverStanding::State;
  if (report.waiver && (report.waiver->state == State::expired || report.waiver->state == State::passes))
    outcome.add(ExitCode::stale_waiver);
  if (!is_waived(report)) add_verdict(outcome, report.judgement.verdict);
}

// Counts and prints a verdict. The caller holds the mutex.
void Report::take(CaseReport report) {
  add_to(outcome_, report);
  if (is_shown(report) && failures_++ < most_shown_) {
    say("{}\n\n", shown_text(report));
    flush_standard_output();
  }
  cases_.push_back(std::move(report));
}

void Report::add(std::vector<CaseReport> reports) {
  for (CaseReport& each : reports) note_waiver(each);
  const std::lock_guard lock(mutex_);
  if (results_ != nullptr && results_fault_.empty()) {
    try {
      append_cases(reports);
    } catch (const golden::OutputError& error) {  // verdicts are still collected, and the fault is reported at the end
      results_fault_ = error.what();
      outcome_.add(ExitCode::machine_failed);
      troubles_.push_back(results_fault_);
    }
  }
  for (CaseReport& each : reports) take(std::move(each));
}

void Report::add_earlier(CaseReport report) {
  const std::lock_guard lock(mutex_);
  earlier_.emplace(report.suite, report.line.empty() ? report.name : report.line);
  ++resumed_;
  note_waiver(report);
  take(std::move(report));
}

void Report::not_tried(std::string what, std::string why) { not_tried_.emplace_back(std::move(what), std::move(why)); }

void Report::bad_fixture(std::string file, std::string why) {
  outcome_.add(ExitCode::bad_fixture);
  say("{}\n", why);
  bad_fixtures_.emplace_back(std::move(file), std::move(why));
}

void Report::note(std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

void Report::note_unfinished(std::string why) {
  outcome_.add(ExitCode::incomplete);
  troubles_.push_back(std::move(why));
}
void Report::note_interrupted() {
  outcome_.add(ExitCode::incomplete);
  troubles_.push_back("interrupted before the end");
}
void Report::note_machine_failed(std::string why) {
  outcome_.add(ExitCode::machine_failed);
  troubles_.push_back(std::move(why));
}
void Report::note_nothing_selected(std::string why) {
  outcome_.add(ExitCode::nothing_selected);
  troubles_.push_back(std::move(why));
}
void Report::set_claims(Claims claims) {
  if (claims.has_loss()) outcome_.add(ExitCode::failed);
  claims_ = std::move(claims);
}

void Report::settle() {
  seconds_ = took_.value_or(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  std::int64_t passed = 0;
  for (const CaseReport& each : cases_) passed += each.suite != kSelfCheck && each.judgement.verdict == Verdict::passed;
  if (outcome_.exit_code() == ExitCode::passed && passed == 0 && empty_shard_.empty()) outcome_.add(ExitCode::nothing_selected);
}

void Report::conclude(const std::string& json_path) {
  settle();
  std::exception_ptr fault;
  const auto tried = [&](auto body) {
    try {
      body();
    } catch (const std::runtime_error&) {
      if (fault == nullptr) fault = std::current_exception();
    }
  };
  if (results_ != nullptr && results_fault_.empty()) tried([&] { append_summary(); });
  print_summary();
  if (!json_path.empty()) tried([&] { write_report(json_path); });  // last: it may be standard output
  if (fault != nullptr) std::rethrow_exception(fault);
}

}  // namespace assay::conformance
