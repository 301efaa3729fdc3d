#pragma once
// A copy within the device that obeys the skip flag, for callers that need an output twice.

#include <cstdint>

#include "device/support/stream.h"

namespace assay::device {

// Copies `count` floats unless noop, in device memory, is exactly 1.0; null: always.
void copy_unless_skipped(const float* noop, const float* from, float* to, std::int64_t count, Stream stream);

}  // namespace assay::device
