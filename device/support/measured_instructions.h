#pragma once
// Approximate instructions (spec approximations-1.1): the tables that the reference predicts from are those of SM90.

#include <string>

#include "device/support/compute_capability.h"
#include "device/support/error.h"

namespace assay::device {

// Checks that the current device is the one they were measured on. Errors: NotSupported, which names what has such instructions.
inline void require_measured_instructions(const char* what) {
  const int found = compute_capability();
  if (found == 90) return;
  throw NotSupported("the approximate instructions of " + std::string(what) +
                     " were measured on SM90 alone; this device has compute capability " + std::to_string(found / 10) + "." +
                     std::to_string(found % 10));
}

}  // namespace assay::device
