#pragma once
// What is looked at before a step is laid out, on the host: each function throws what linear_steps.h says, and names the
// member of the call. `Call` is a call of linear_steps.h.

#include "device/linear/linear_steps.h"

namespace assay::device {

// Rows whose splits may still be missing: sizes do not depend on them.
Rows with_any_splits(const Rows& rows);

// What a size depends on: config, extents, types. No pointer is looked at but for whether it is null.
template <class Call>
void check_shape(const Call& call);

// All the rest of a call whose shape is good, but for its workspace: what must be there, alignment, what excludes what.
template <class Call>
void check_pointers(const Call& call);

}  // namespace assay::device
