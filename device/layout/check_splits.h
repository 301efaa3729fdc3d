#pragma once
// The check of splits by itself: for a call that has nothing to compute, whose splits may be wrong all the same.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/stream.h"

namespace assay::device {

// Reports a negative split, and splits that sum to more than the rows, in the status word; writes nothing else. Without splits or
// groups nothing is launched. Errors: InvalidArgument, NotSupported (check_rows()).
void check_splits(const Rows& rows, std::uint32_t* status, Stream stream);

}  // namespace assay::device
