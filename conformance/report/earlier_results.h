#pragma once
// The evidence of an earlier run: a file of results or a report.

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace assay::conformance {

// The contents of a file of results or a report.
struct EarlierResults {
  nlohmann::json header;              // without cases
  std::vector<nlohmann::json> cases;  // the last verdict on each case and setting
  nlohmann::json summary;             // of a report: the header; null: none
  bool has_summary = false;           // the run was completed
  int exit = -1;                      // its exit code; -1: not recorded
};

// Reads what --results or --json wrote. A last line that was cut off is skipped.
// Errors: golden::FixtureError naming file, line and reason: "no such file", no JSON, no header.
EarlierResults read_results(const std::string& path);

}  // namespace assay::conformance
