#pragma once
// Runs the program with hostile_backend.cc, and picks the verdicts of its case, of the other cases and of the backend itself.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {

using Words = std::vector<std::string>;

// The case of the smoke profile that hostile_backend.cc picks out of the six.
inline constexpr const char* kTarget = "splits_to_offsets_2d first=3,0,5 last=16,7,4";

struct Seen {
  Ran ran = {};
  int others_passed = 0;
  nlohmann::json json = {}, target = {}, beside = {};  // `beside`: findings about the backend itself
};

inline Seen run_hostile(const std::string& deed, const Words& more = {}, const ProcessOptions& options = {}) {
  const golden::TemporaryFolder folder;
  const std::string json = (folder / "run.json").string();
  Words words{"run", "splits_to_offsets", "--profile",          "smoke", "--quiet", "--timeout", "1", "--json",
              json,  "--backend",         ASSAY_HOSTILE_BACKEND};
  if (!deed.empty()) words.insert(words.end(), {"--backend-options", deed});
  words.insert(words.end(), more.begin(), more.end());
  ProcessOptions alone = options;
  alone.environment.emplace_back("ASSAY_GOLDEN", folder.path().string());  // no fixtures
  Seen seen{assay(words, alone)};
  std::ifstream file(json);
  if (!file.good()) return seen;
  seen.json = nlohmann::json::parse(file);
  for (const nlohmann::json& each : seen.json.at("cases")) {
    if (each.at("suite") == "backend") {
      seen.beside = each;
    } else if (each.value("case", "") == kTarget) {
      seen.target = each;
    } else {
      seen.others_passed += each.at("verdict") == "passed";
    }
  }
  return seen;
}

inline std::string text_of(const nlohmann::json& each) { return each.is_null() ? "no such case" : each.value("text", ""); }

// The number of other cases that a right backend passes.
inline int others() {
  static const int count = [] {
    const Seen seen = run_hostile("");
    EXPECT_GE(seen.others_passed, 5) << seen.ran.out;
    return static_cast<int>(seen.others_passed);
  }();
  return count;
}

}  // namespace assay::conformance
