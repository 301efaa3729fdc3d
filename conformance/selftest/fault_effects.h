#pragma once
// While effects are recorded: which faults of calls would change what a call does.

#include <cstdint>
#include <functional>

#include "conformance/ops/request.h"

namespace assay::conformance {

// Carries the call out by `right`, and notes in effects[i], one for each of call_faults(), whether fault i makes a difference: to an
// output, to a byte beside one, to an input, or by refusing the call. Memory is then as `right` left it. Of large calls, and of faults
// that state other numerics, only CallFault::applies is asked. Faults with meant[i] == 0 are passed over; null: none is.
void note_fault_effects(Request& request, std::uint8_t* effects, const std::uint8_t* meant, const std::function<void()>& right);

}  // namespace assay::conformance
