#pragma once
// The op quantize_by_rule as a call of the device library.

#include "conformance/backends/device/device_call.h"

namespace assay::conformance {

// Errors: InvalidArgument, NotSupported.
DeviceCall rule_call(const Request& request);

}  // namespace assay::conformance
