#pragma once
// The files that `assay selftest` computes from a kill matrix.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

struct CoverFiles {
  std::string cover, record;  // --cover, --record; empty: not written
  int times = 1;
  std::uint64_t seed = 1;
  bool any() const { return !cover.empty() || !record.empty(); }
};

// `counts`: whether a row is a reason to take a case. Says what was written. Errors: as write_output().
void write_covers(const CoverFiles& files, const KillMatrix& matrix, const std::vector<bool>& counts);

// --cover-profiles: cover_smoke.txt and cover_standard.txt. Every row counts, also of mutants that the library no longer has.
void write_profile_covers(const std::string& folder, const KillMatrix& matrix, std::uint64_t seed);

}  // namespace assay::conformance
