#pragma once
// Cases side by side: one backend context a thread for host backends, one after another for the rest, whose device is
// shared anyway.

#include <cstdint>
#include <functional>

#include "conformance/backends/backend.h"
#include "conformance/program/judge_options.h"

namespace assay::conformance {

// Calls judge_one(index, backend) for every index below `count`, unless the run is interrupted.
void judge_in_parallel(const BackendChoice& choice, std::int64_t count,
                       const std::function<void(std::int64_t, Backend&)>& judge_one);

}  // namespace assay::conformance
