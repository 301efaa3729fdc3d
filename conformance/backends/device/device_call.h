#pragma once
// From requests to calls of the device library. Reads only shapes, types and attributes: tensors are on the device.

#include <cstdint>
#include <functional>

#include "conformance/ops/request.h"
#include "device/support/stream.h"

namespace assay::conformance {

struct DeviceCall {
  std::int64_t workspace_bytes = 0;
  // Enqueues everything. `workspace` is 256-byte aligned; `status` is one uint32 in device memory.
  std::function<void(device::Stream stream, void* workspace, std::uint32_t* status)> enqueue;
};

// Every op except products and layers: gemm_path.h, linear_call.h.
// `rows_multiple`: the promise for the rows of every group, if the call has one.
// Errors: InvalidArgument and NotSupported, of the reference's kind; `enqueue` throws those of the device library as well, with
// nothing enqueued (conformance/backend.h, 2).
DeviceCall device_call(const Request& request, std::int64_t rows_multiple = 1);

}  // namespace assay::conformance
