#pragma once
// Reports and files of results that the program writes, read and checked against their schema.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/tests/program/json_schema.h"
#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {

using nlohmann::json;
using Words = std::vector<std::string>;

inline const JsonSchema& report_schema() {
  static const JsonSchema schema = [] {
    std::ifstream file(ASSAY_REPORT_SCHEMA);
    return JsonSchema(json::parse(file));
  }();
  return schema;
}

inline void expect_valid(const json& value, const std::string& definition) {
  const std::vector<std::string> faults = report_schema().faults(value, "/$defs/" + definition);
  EXPECT_TRUE(faults.empty()) << faults.size() << " faults, the first: " << (faults.empty() ? "" : faults[0]);
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lines of a file of results, each valid, without a truncated last one.
inline std::vector<json> results_of(const std::filesystem::path& path) {
  std::vector<json> entries;
  const std::string text = text_of(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    entries.push_back(json::parse(text.substr(at, end - at)));
    expect_valid(entries.back(), entries.back().at("record"));
    at = end + 1;
  }
  return entries;
}

// An empty folder in place of the fixtures, for runs that test something else.
struct EmptyGolden {
  golden::TemporaryFolder folder;
  ProcessOptions options;
  EmptyGolden() { options.environment = {{"ASSAY_GOLDEN", folder.path().string()}}; }
};

inline Words faulty_run(const char* fault, Words more) {
  Words words{"run", "--profile", "smoke", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", fault, "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace assay::conformance
