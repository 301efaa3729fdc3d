#pragma once
// The number of multiprocessors that work can use: all of the device's, or the part of a green context.

#include "device/support/stream.h"

namespace assay::device {

// Of the current context; 0 where there is none.
int multiprocessors();

// Of a stream of a green context; for any other stream multiprocessors().
int multiprocessors_of(Stream stream);

}  // namespace assay::device
