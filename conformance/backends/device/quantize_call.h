#pragma once
// The op quantize as a call of the device library.

#include <cstdint>

#include "conformance/backends/device/device_call.h"

namespace assay::conformance {

// Every group's rows are a multiple of `rows_multiple`. With a `column_alignment` of 16 columnwise_data has room for columns of codes that
// lie so (device/layout/column_layout.h). Errors: InvalidArgument, NotSupported.
DeviceCall quantize_call(const Request& request, std::int64_t rows_multiple, std::int64_t column_alignment = 1);

}  // namespace assay::conformance
