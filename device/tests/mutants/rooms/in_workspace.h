#pragma once
// A call of the backend in a workspace that shows what the call may not count on.

#include <cstdint>

#include "conformance/backends/device/device_call.h"

namespace assay::mutants {

// The status word of the call. What its workspace holds at first: nothing of sense, and in the second call of a trial 1.0
// everywhere, as an earlier call that was skipped leaves its flag. It ends at a page that nothing may touch, and in the second call
// begins behind one; a store beside it ends the process too.
std::uint32_t run_in_workspace(const conformance::DeviceCall& call);

}  // namespace assay::mutants
