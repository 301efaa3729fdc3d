#pragma once
// Cases that together kill every mutant that any case kills.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

struct CoverDemand {
  int times = 1;                  // cases that have to kill each mutant, or all of its killers where there are fewer
  std::uint64_t seed = 1;         // decides between equal cases
  std::vector<bool> counts = {};  // if not empty: whether a row is a reason to take a case
  std::vector<bool> given = {};   // if not empty: whether a case is there anyway; it is not among those that are returned
  std::vector<bool> offered = {};  // if not empty: whether a case may be taken; the others need not be
};

// Indices of matrix.cases, ascending: with those that are given they kill each mutant as often as is demanded, and without any one of
// them they do not. Cases that kill many mutants for their cost come first.
std::vector<std::int32_t> cover_of(const KillMatrix& matrix, const CoverDemand& demand);

// The same rows with one killer each, the first that is one of `cases`, or none. What the files of --record hold.
KillMatrix with_one_killer(const KillMatrix& matrix, const std::vector<std::int32_t>& cases);

}  // namespace assay::conformance
