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
  bool is_given_up() const { return backend.is_given_up() || (expecting != nullptr && expecting->is_given_up()); }
};

// Calls judge_one(index, judged) for every index below `count`, unless the run is interrupted. `one_at_a_time`: cases so
// large that each fills memory and keeps every processor busy by itself.
//
// Once a call has not finished in time, no further case is begun: `left` is called for each, with what is to be said of it.
// Cases that have begun may take another --timeout; the same after an interrupt. What does not come to an end by then waits
// for the device: it is left too, as unfinished, and the program leaves from here (Departure).
void judge_in_parallel(const BackendChoice& choice, std::int64_t count, const std::function<void(std::int64_t, Judged)>& judge_one,
                       const std::function<void(std::int64_t, Judgement)>& left, bool one_at_a_time = false);

}  // namespace assay::conformance
