#pragma once
// Checks of a step on the host, before it is laid out. The errors are those of linear_steps.h, and name the member of the call.
// `Call` is a call of linear_steps.h.

#include "device/linear/linear_steps.h"

namespace assay::device {

// Rows whose splits may still be missing: sizes do not depend on them.
Rows with_any_splits(const Rows& rows);

// Everything that a size depends on: config, extents, types. Of pointers only whether they are null.
template <class Call>
void check_shape(const Call& call);

// The rest of a call whose shape is valid, without its workspace: required members, alignment, members that exclude each other.
template <class Call>
void check_pointers(const Call& call);

}  // namespace assay::device
