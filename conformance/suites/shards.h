#pragma once
// Parts of equal work, for several machines.

#include <cstdint>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// What a case costs to judge, relative to others, from cost_of: products, elements, and what every call costs.
double work_of(const CaseLine& line);

// The cases of one shard, in the given order. Which they are depends on the list and on `total` alone: the costliest cases
// are dealt first, each to the shard that has least to do.
// Errors (InvalidArgument): total below 1, index outside [0, total).
std::vector<CaseLine> shard(const std::vector<CaseLine>& cases, std::int64_t index, std::int64_t total);

}  // namespace assay::conformance
