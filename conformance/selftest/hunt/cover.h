#pragma once
// Cases that together kill every mutant that any case kills.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

// Indices of matrix.cases, ascending: each mutant is killed by at least `times` of them, or by all of its killers where there are
// fewer, and without any one of them that would not hold. Cases that kill many mutants for their cost come first; `seed` decides
// between equal ones. `counts`, if not empty: whether a row is a reason to take a case.
std::vector<std::int32_t> cover_of(const KillMatrix& matrix, int times, std::uint64_t seed, const std::vector<bool>& counts = {});

// The same rows with one killer each, the first that is one of `cases`, or none. What the files of --record hold.
KillMatrix with_one_killer(const KillMatrix& matrix, const std::vector<std::int32_t>& cases);

}  // namespace assay::conformance
