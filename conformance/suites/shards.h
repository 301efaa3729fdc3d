#pragma once
// Divides cases into shards of equal work, for several machines.

#include <cstdint>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// The relative cost of judging a case, from cost_of: products, elements, and the cost of each call.
double work_of(const CaseLine& line);

// All shards: for each, the indices of its cases, ascending.
// Errors (InvalidArgument): total below 1.
std::vector<std::vector<std::size_t>> shards_of(const std::vector<CaseLine>& cases, std::int64_t total);

// The cases of one shard, in the given order. Which they are depends on the list and on `total` alone: the costliest cases
// are assigned first, each to the shard with the least work.
// Errors (InvalidArgument): total below 1, index outside [0, total).
std::vector<CaseLine> shard(const std::vector<CaseLine>& cases, std::int64_t index, std::int64_t total);

}  // namespace assay::conformance
