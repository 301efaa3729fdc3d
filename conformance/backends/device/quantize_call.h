#pragma once
// The op quantize as a call of the device library.

#include <cstdint>

#include "conformance/backends/device/device_call.h"

namespace assay::conformance {

// Every group's rows are a multiple of `rows_multiple`. Errors: InvalidArgument, NotSupported.
DeviceCall quantize_call(const Request& request, std::int64_t rows_multiple);

}  // namespace assay::conformance
