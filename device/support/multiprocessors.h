#pragma once
// How many multiprocessors work really has: all of the device's, or the part that a green context gives.

#include "device/support/stream.h"

namespace assay::device {

// Of the current context; 0 where there is none.
int multiprocessors();

// Of a stream of a green context; for any other stream multiprocessors().
int multiprocessors_of(Stream stream);

}  // namespace assay::device
