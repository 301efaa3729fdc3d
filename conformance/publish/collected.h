#pragma once
// Result files of one run, of its shards or of several runs, joined for a report: the newest verdict on each case, in a fixed order.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/report.h"
#include "conformance/report/waivers.h"

namespace assay::conformance {

// What was judged, where, and by what: the same for all shards of a run.
struct PublishedImplementation {
  std::string name;  // "libvendor.so", "reference"
  std::string software, device, architecture, options, algorithm, axes;
  std::string library, sha256;  // path and digest of the judged code
  bool built_in = true;
};

struct PublishedRun {
  std::string file, sha256;  // of the result file
  std::string date;          // "2026-11-23T22:42:44Z", or empty
  std::string verb, arguments, program, commit;
  std::string host, system;
  std::int64_t threads = 0;
  double seconds = 0;
  std::string exit;      // "1 (failed)", "not recorded"
  bool complete = true;  // its summary is there
  std::size_t implementation = 0;
  std::vector<std::string> notes;
};

struct PublishedCase {
  CaseReport report;
  std::size_t run = 0, implementation = 0;
  std::string title;  // case line, or FILE.h5/CASE, with the setting if there is one
  std::string shape;  // class of its shape: shape_class
  std::string body;   // of a case without a pass: the text without the command
  std::string repro;  // the command
};

struct Collected {
  std::vector<PublishedImplementation> implementations;
  std::vector<PublishedRun> runs;    // older before newer
  std::vector<PublishedCase> cases;  // by implementation, suite, op, recipe, name and setting
  std::int64_t same_files = 0;       // given again with the same bytes
  std::int64_t replaced = 0;         // older verdicts that a newer file replaces
  // What is no verdict on a case: required cases without a pass, losses, damaged fixtures, troubles, incomplete files. (what, why)
  std::vector<std::pair<std::string, std::string>> faults;
  std::vector<std::pair<std::string, std::string>> not_tried;  // parts of the suite that were not run, and why
  std::vector<std::string> unused_waivers;
  Outcome outcome;
  Counts counts;  // self-check apart

  std::string date() const { return runs.empty() ? "" : runs.back().date; }
  double seconds() const;
  std::string implementation_text(std::size_t index) const;  // "libvendor.so (cuBLASLt 13.4) on NVIDIA H200 (sm90)"
  std::string verdict() const;                               // "PASS", "PASS (partial: ...)", "FAIL: 1 (failed), ..."
};

// `waivers`, if given, replace those that the runs had; they are judged for the day of each run. Errors: golden::FixtureError naming
// file and reason.
Collected collect_results(const std::vector<std::string>& paths, const std::vector<Waiver>* waivers);

// "one matrix", "one group", "equal groups", "unequal groups", "groups with tails", "empty groups", "over 64 groups", "no rows",
// "recorded" (a fixture's), "other".
std::string shape_class(const CaseReport& report);
// Their order in tables.
std::vector<std::string> shape_classes();

bool is_failure(const CaseReport& report);  // neither a pass, an absence, nor waived

}  // namespace assay::conformance
