#pragma once
// The files that `assay selftest` computes from a kill matrix.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

struct CoverFiles {
  std::string cover, record;  // --cover, --record; empty: not written
  std::string profiles;       // --cover-profiles: a folder
  int times = 1;
  std::uint64_t seed = 1;
  bool any() const { return !cover.empty() || !record.empty() || !profiles.empty(); }
};

// `counts`: whether a row is a reason to take a case. Says what was written. Errors: as write_output().
void write_covers(const CoverFiles& files, const KillMatrix& matrix, const std::vector<bool>& counts);

}  // namespace assay::conformance
