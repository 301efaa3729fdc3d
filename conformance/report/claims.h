#pragma once
// The claims of a run: levels that passed, required cases that did not, cases that an earlier run passed and this one did not.

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/levels/levels.h"

namespace assay::conformance {

struct CaseReport;
struct EarlierResults;

// The standing of a case after the run: that of its worst verdict, if it was judged under several settings.
enum class Standing { passed, absent, unselected, failed };

struct LevelStanding {
  std::string title, claims;
  std::int64_t required = 0, passed = 0, absent = 0, unselected = 0, failed = 0;
  bool whole() const { return required > 0 && passed == required; }
  // "312 of 320 absent", "2 failed": why it is not claimed.
  std::string shortfall() const;
};

// A case that counts as a failure although its own verdict may not be one.
struct Loss {
  std::string of;    // "core 1", or the baseline's path
  std::string name;  // case line, or file and case of a fixture
  std::string why;   // "not run: absent", "not selected"
};

struct Claims {
  std::string profile;
  std::vector<LevelStanding> levels;        // all named ones, sorted by name
  std::vector<LevelStanding> requirements;  // of --require
  std::vector<Loss> unmet;                  // of requirements
  std::string baseline;                     // "earlier.json (run --profile standard, backend vendor, 2026-11-22)"; empty: none
  std::vector<Loss> lost;                   // against the baseline
  std::int64_t kept = 0, gained = 0;        // cases that passed in both runs; in this run alone
  std::int64_t dropped = 0;                 // passed then, and not in this suite any more
  bool whole_run = false;                   // no WORDS, no shard: every case was selected

  // If WORDS selected the cases, a level that did not pass is not reported.
  bool tells_levels() const { return !levels.empty() && (whole_run || passed_levels(true) != "none"); }
  bool has_loss() const { return !unmet.empty() || !lost.empty(); }
  // "core 1, mx 1", or "none"; "all 1" where that is among them and says it all (`brief`).
  std::string passed_levels(bool brief) const;
};
nlohmann::json to_json(const Claims& claims);

// What claims are made of.
struct Claimed {
  std::string profile;
  std::vector<std::string> texts, names;  // of every case of the profile's catalogue
  std::vector<std::string> shard;         // texts of the cases of other shards, which are not judged here
  std::vector<std::string> fixtures;      // files of the golden folder that belong to the whole run
  bool whole_run = false;
  bool sharded = false;
  std::vector<Level> requirements;
};
Claims claims_of(const Claimed& claimed, const std::vector<CaseReport>& cases);

// Adds the comparison with an earlier run of the same kind.
void compare_with(Claims& claims, const Claimed& claimed, const std::string& path, const EarlierResults& earlier,
                  const std::vector<CaseReport>& cases);

// Lines for the summary: losses by name (at most `most` of each kind), levels passed and not claimed.
std::string claims_text(const Claims& claims, int most);

}  // namespace assay::conformance
