#pragma once

#include "conformance/backends/device/device_call.h"

namespace assay::conformance {

// Ops `permute` and `unpermute`, as device_call().
DeviceCall permute_call(const Request& request);
DeviceCall unpermute_call(const Request& request);

}  // namespace assay::conformance
