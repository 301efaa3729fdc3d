#pragma once
// The ops linear_forward, linear_dgrad and linear_wgrad as calls of the device library.

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/gemm_path.h"

namespace assay::conformance {

bool is_linear(const Request& request);

// Made with the promise of options.promises.rows_multiple. Errors: InvalidArgument, NotSupported.
DeviceCall linear_call(const Request& request, const GemmOptions& options);

// Puts plan and unit of the step's product into the statement, as far as they are known. Errors: as linear_call().
void state_linear(const Request& request, const GemmOptions& options, assay_numerics& numerics);

}  // namespace assay::conformance
