#pragma once
// Which case kills which mutant, as data: the result of `assay selftest`, written to a file and read from it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::conformance {

struct KillRow {
  std::string id, family;
  std::int64_t differs = 0, tried = 0;  // cases in which it can make a difference, and those that were judged
  std::string how;                      // as the first killer failed; "passed" if there is none
  std::vector<std::int32_t> killers;    // indices of KillMatrix::cases, in the order in which they were judged
};

struct KillingCase {
  std::string line;
  double work = 0;  // relative cost
};

struct KillMatrix {
  // What it was made from.
  std::string version, commit, date;
  std::string profile;
  std::vector<std::string> words;  // that select cases
  std::string selected;            // which mutants: the options as text; empty: all
  std::string shard = "0/1";
  std::int64_t seed = 0, kills = 0, tries = 0;
  std::int64_t mutants = 0;       // of the library
  std::string mutants_digest;     // MutantLibrary::digest
  std::int64_t judged_cases = 0;  // that pass without a mutant
  std::string cases_digest;       // of their lines, in order

  std::vector<KillingCase> cases;  // that kill at least one, the cheapest first
  std::vector<KillRow> rows;       // in the order of the library
};

// The text of the file: JSON, a row a line.
std::string text_of(const KillMatrix& matrix);
// Errors: golden::FixtureError naming the file and what is wrong.
KillMatrix read_kill_matrix(const std::string& path);

// Rows of all, once each: killers of a mutant that several have are joined. `order`: ids of the library. Mutants keep their names from
// build to build, so that matrices of several builds can be joined: `commit` then names all.
// Errors: golden::FixtureError naming the two files where the version differs.
KillMatrix joined(const std::vector<KillMatrix>& matrices, const std::vector<std::string>& paths,
                  const std::vector<std::string>& order);

}  // namespace assay::conformance
