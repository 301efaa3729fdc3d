#pragma once
// The backends that are part of the program.

#include "conformance/backend.h"

namespace assay::conformance {

// The CPU reference behind the interface. Options: "layer=fast" (default) or "layer=scalar".
const assay_backend* reference_backend();

// Claims success for everything and writes nothing. Every case with a byte to write must fail on it.
const assay_backend* null_backend();

// The CUDA implementation, in builds that have it (ASSAY_HAS_DEVICE). Options: "device=N", "pool=off".
const assay_backend* device_backend();

}  // namespace assay::conformance
