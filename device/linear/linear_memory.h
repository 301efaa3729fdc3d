#pragma once
// Device memory that lives as long as a module does.

#include <cstdint>

namespace assay::device {

// Where it comes from. None of the three may be called while a stream of the thread is captured.
struct LinearMemory {
  void* (*allocate)(std::int64_t bytes);  // of the current device, 256-byte aligned, all 0. Errors: CudaError
  void (*release)(void* memory);          // after everything that uses it has ended; null: nothing
  void (*upload)(void* to, const void* from_host, std::int64_t bytes);  // done when it returns
};

// cudaMalloc.
const LinearMemory& device_memory();

}  // namespace assay::device
