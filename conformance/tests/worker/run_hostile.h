#pragma once
// Runs the program with hostile_backend.cc, and picks the verdicts of its case, of the other cases and of the backend itself.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {

using Words = std::vector<std::string>;

// The case that hostile_backend.cc picks out of the six.
inline constexpr const char* kTarget = "splits_to_offsets_2d first=3,0,5 last=16,7,4";
inline constexpr const char* kOthers =
    "splits_to_offsets splits=1,0,127,128,129\n"
    "splits_to_offsets splits=4x5000000000 stride=7168\n"
    "splits_to_offsets splits=0x0\n"
    "splits_to_offsets_multi splits=3,0,5 outputs=1:i64,7:i32,0:i64:inclusive,128:i32:inclusive\n"
    "splits_to_offsets_2d x_type=i32 first=1,2,3 last=4,5,6\n";

// The words that judge the six cases with hostile_backend.cc, given by a file in `folder`.
inline Words hostile_run(const std::filesystem::path& folder) {
  const std::string cases = (folder / "cases.txt").string();
  std::ofstream(cases) << kOthers << kTarget << "\n";
  return {"run", "--cases", cases, "--quiet", "--backend", ASSAY_HOSTILE_BACKEND};
}

struct Seen {
  Ran ran = {};
  int others_passed = 0;
  nlohmann::json json = {}, target = {}, beside = {};  // `beside`: findings about the backend itself
};

inline Seen run_hostile(const std::string& deed, const Words& more = {}, const ProcessOptions& options = {}) {
  const golden::TemporaryFolder folder;
  const std::string json = (folder / "run.json").string();
  Words words = hostile_run(folder.path());
  words.insert(words.end(), {"--timeout", "1", "--json", json});
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
    EXPECT_EQ(seen.others_passed, 5) << seen.ran.out;
    return static_cast<int>(seen.others_passed);
  }();
  return count;
}

}  // namespace assay::conformance
