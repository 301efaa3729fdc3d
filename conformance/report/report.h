#pragma once
// The results of a run, and their output: failures as they occur, a summary and a verdict line at the end, JSON.
// conformance/report/report.schema.json describes the JSON. This header does not include the JSON library, which is slow to compile.

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/report/claims.h"
#include "conformance/report/exit_code.h"
#include "conformance/report/output_file.h"
#include "conformance/report/results_file.h"
#include "conformance/suites/tested_backend.h"

namespace assay::conformance {

class Waivers;

inline constexpr int kReportFormat = 2;

// What a waiver says of a case that it selects.
struct WaiverStanding {
  enum class State {
    covers,         // this failure is the one that is waived
    expired,        // the same, after the waiver's last day
    other_failure,  // the case fails in another way: not covered
    passes,         // the case passes: the waiver is out of date
  };
  State state = State::covers;
  std::string at, reason, link, owner, expires;  // at: "waivers.toml:12"
};
std::string_view name_of(WaiverStanding::State state);

// One of several tries at a case.
struct TriedVerdict {
  Verdict verdict = Verdict::failed;
  std::string fingerprint;  // of a failure
};

struct CaseReport {
  std::string suite;  // "generated", or the fixture's file name
  std::string name;   // the case's name or path
  std::string line;   // case line, empty for a fixture's case
  std::string op;
  std::string recipe;  // recipe or kind, "-" where the op has none
  Judgement judgement;
  std::string setting = "";              // algorithm or axis under which the case was judged: Setting::text
  std::string fingerprint = "";          // of a failure: fingerprint_of; the same in every run that fails alike
  std::vector<TriedVerdict> tries = {};  // of a case that was judged again: all of them, the first first
  std::optional<WaiverStanding> waiver = {};
  std::int64_t device = -1;  // that judged the case, of those among which the run divided its cases; -1: they were not named
  std::string variety = "";  // of a product: "block TN f32", what decides which kernel and plan it meets
};
nlohmann::json to_json(const CaseReport& report);
// Errors: as judgement_from.
CaseReport report_from(const nlohmann::json& entry);

inline constexpr const char *kGenerated = "generated", *kSelfCheck = "self-check";  // suites that are not fixture files

struct Counts {
  std::int64_t passed = 0, failed = 0, not_run = 0, other = 0, elements = 0;
  std::int64_t flaky = 0, waived = 0;  // of `other`
  std::int64_t cases() const { return passed + failed + not_run + other; }
};
void count(Counts& counts, const CaseReport& report);
// What a verdict means for the exit code.
void add_to(Outcome& outcome, const CaseReport& report);
// A failure that a waiver covers, also one that is out of date: it is no failure, and no pass.
inline bool is_waived(const CaseReport& report) {
  return report.waiver &&
         (report.waiver->state == WaiverStanding::State::covers || report.waiver->state == WaiverStanding::State::expired);
}

class Report {
 public:
  // `verb` and the tested backend head the summary and the JSON. Failures past `most_shown` are counted, not printed.
  Report(std::string verb, TestedBackend tested, int most_shown);
  ~Report();

  // Sets the header of the JSON (run_header); without one it is the verb and the backend's name.
  void set_header(const nlohmann::json& header);
  // Verdicts are appended to this file as they are given, in place of the one before it. `headed`: it has a header already.
  void append_to(std::unique_ptr<ResultsFile> results, bool headed = false);
  // A case that another part of the run has judged: it is not judged here. `key`: as of has_earlier.
  void judged_elsewhere(const std::string& suite, const std::string& key) { earlier_.emplace(suite, key); }
  // A verdict that an earlier run of the same selection found: counted, printed if it is a failure, not appended again.
  void add_earlier(CaseReport report);
  // True for a case that add_earlier brought, or that was judged elsewhere.
  // `key`: the case line, or the name of a fixture's case.
  bool has_earlier(const std::string& suite, const std::string& key) const { return earlier_.count({suite, key}) != 0; }

  // All verdicts on one case: one, or one for each setting. Prints failures at once. Safe from any thread.
  void add(std::vector<CaseReport> reports);
  void add(CaseReport report) { add(std::vector<CaseReport>{std::move(report)}); }
  // Something that was not tried, and the reason: "device cases: this build has no CUDA".
  void not_tried(std::string what, std::string why);
  // A fixture that could not be used.
  void bad_fixture(std::string file, std::string why);
  // Cases with one line differ by the settings under which they were judged.
  void tell_settings() { tell_settings_ = true; }
  void note_interrupted();
  void note_unfinished(std::string why);
  // A note for the reader that changes no verdict.
  void note(std::string text);
  void note_machine_failed(std::string why);
  void note_nothing_selected(std::string why);
  // None of the selected cases is in this shard, "7/8": not a failure.
  void note_empty_shard(std::string shard) { empty_shard_ = std::move(shard); }
  // Which failures are known; set before the first verdict.
  void use_waivers(Waivers waivers);
  // What the run claims, from all verdicts; losses are failures. Set once, before conclude().
  void set_claims(Claims claims);

  const std::vector<CaseReport>& cases() const { return cases_; }
  const TestedBackend& tested() const { return tested_; }

  // After the last verdict: determines the exit code, appends the summary to the file of results, writes the JSON (no path:
  // none), and prints counts per op and recipe, what was not run and why, and the verdict line on standard output.
  // Errors, after all of this was tried: golden::OutputError for a file that cannot be written.
  void conclude(const std::string& json_path);
  nlohmann::json json();
  // Of the verdicts so far: verdict_digest.h.
  std::string digest() const;
  // The verdicts are of runs that took so long together; else the time since this object was made counts.
  void took(double seconds) { took_ = seconds; }
  ExitCode exit_code() const { return outcome_.exit_code(); }
  std::int64_t failures() const { return failures_; }

 private:
  void note_waiver(CaseReport& report);
  void take(CaseReport report);
  void settle();
  void print_summary();
  void print_settings() const;
  void print_waivers() const;
  std::string verdict_line() const;
  nlohmann::json header() const;
  nlohmann::json outcome_json() const;
  void write_report(const std::string& path);
  // Lines of the file of results.
  void append_header();
  void append_cases(const std::vector<CaseReport>& reports);
  void append_summary();

  std::string verb_;
  TestedBackend tested_;
  int most_shown_;
  bool tell_settings_ = false;
  std::string empty_shard_;                 // empty: the shard has cases, or there are no shards
  std::unique_ptr<nlohmann::json> header_;  // null until set_header
  std::unique_ptr<ResultsFile> results_;
  std::string results_fault_;  // why appending verdicts failed
  std::set<std::pair<std::string, std::string>> earlier_;
  std::vector<CaseReport> cases_;
  std::vector<std::pair<std::string, std::string>> not_tried_, bad_fixtures_;
  std::vector<std::string> troubles_, notes_;
  std::int64_t failures_ = 0, resumed_ = 0;
  std::optional<Claims> claims_;
  std::unique_ptr<Waivers> waivers_;  // null: none
  Outcome outcome_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
  std::optional<double> took_;
  std::mutex mutex_;
};

}  // namespace assay::conformance
