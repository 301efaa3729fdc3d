#pragma once
// Cases side by side: one backend context a thread for host backends, one after another for the rest, whose device is
// shared anyway.

#include <cstdint>
#include <functional>

#include "conformance/backends/backend.h"
#include "conformance/program/judge_options.h"

namespace assay::conformance {

// The backend that is judged, and the one whose answers are expected, or null: BackendChoice::expect_by.
struct Judged {
  Backend& backend;
  Backend* expecting = nullptr;
};

// Calls judge_one(index, judged) for every index below `count`, unless the run is interrupted. `one_at_a_time`: cases so
// large that each fills memory and keeps every processor busy by itself.
void judge_in_parallel(const BackendChoice& choice, std::int64_t count, const std::function<void(std::int64_t, Judged)>& judge_one,
                       bool one_at_a_time = false);

}  // namespace assay::conformance
