#pragma once
// What a run found, case by case, and its telling: failures as they come, a summary and a verdict line at the end, JSON.

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "conformance/program/exit_code.h"
#include "conformance/run/judge.h"

namespace assay::conformance {

struct CaseReport {
  std::string suite;  // "generated", or the fixture's file name
  std::string name;   // the case's name or path
  std::string line;   // case line, empty for a fixture's case
  std::string op;
  std::string recipe;  // recipe or kind, "-" where the op has none
  Judgement judgement;
  std::string setting = "";  // algorithm or axis under which the case was judged: Setting::text
  std::string variety = "";  // of a product: "block TN f32", what decides which kernel and plan it meets
};

// Writes a file whole or not at all; what is no regular file (a pipe, /dev/stdout) is written to.
// Errors: std::runtime_error naming the path and the reason.
void write_json(const std::string& path, const nlohmann::json& contents);

class Report {
 public:
  // `verb` and `backend` head the summary and the JSON. Failures past `most_shown` are counted, not printed.
  Report(std::string verb, Backend& backend, int most_shown);
  // The same for a backend that cannot be opened.
  Report(std::string verb, std::string backend, int most_shown);

  // Prints a failure at once. Safe from any thread.
  void add(CaseReport report);
  // Something that was not tried at all, and why: "device cases: this build has no CUDA".
  void not_tried(std::string what, std::string why);
  // A fixture that could not be used.
  void bad_fixture(std::string file, std::string why);
  // Cases are told apart by the settings under which they were judged.
  void tell_settings() { tell_settings_ = true; }
  void note_interrupted();
  void note_unfinished(std::string why);
  // What the reader should know and what changes no verdict.
  void note(std::string text);
  void note_machine_failed(std::string why);
  void note_nothing_selected(std::string why);
  // Of the cases that were selected none is in this shard, "7/8": no failure.
  void note_empty_shard(std::string shard) { empty_shard_ = std::move(shard); }

  // Counts per op and recipe, what was not run and why, the time and the verdict line, on standard output.
  void print_summary();
  nlohmann::json json();
  // As the function of this name.
  void write_json(const std::string& path);
  ExitCode exit_code() const { return outcome_.exit_code(); }
  std::int64_t failures() const { return failures_; }

 private:
  std::string verb_;
  std::string backend_name_, device_, software_;
  int most_shown_;
  bool tell_settings_ = false;
  std::string empty_shard_;  // empty: there is something in it, or there are no shards
  void print_settings() const;
  std::vector<CaseReport> cases_;
  std::vector<std::pair<std::string, std::string>> not_tried_, bad_fixtures_;
  std::vector<std::string> troubles_, notes_;
  std::int64_t failures_ = 0;
  Outcome outcome_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
};

}  // namespace assay::conformance
