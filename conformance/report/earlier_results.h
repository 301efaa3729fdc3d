#pragma once
// What an earlier run left: a file of results or a report.

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace assay::conformance {

// What a file of results or a report says.
struct EarlierResults {
  nlohmann::json header;              // without cases
  std::vector<nlohmann::json> cases;  // of several verdicts on one case and setting the last
  bool has_summary = false;           // the run came to its end
};

// Reads what --results or --json wrote. A last line that was cut off is passed over.
// Errors: golden::FixtureError naming file, line and reason: "no such file", no JSON, no header.
EarlierResults read_results(const std::string& path);

}  // namespace assay::conformance
