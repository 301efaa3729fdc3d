#pragma once
// Device memory that outlives calls, and what has to be known before any is asked for.

#include <cstdint>

#include "device/support/stream.h"

namespace assay::device {

// Where it comes from; tests bring their own. The first three must not be called while a stream of the thread is capturing.
struct MemorySource {
  void* (*allocate)(std::int64_t bytes);  // of the current device, 256-byte aligned, all 0. Errors: CudaError
  void (*release)(void* memory);          // after everything that uses it has ended; null: nothing
  void (*upload)(void* to, const void* from_host, std::int64_t bytes);  // done when it returns
  int (*current_device)();
  std::uint64_t (*capture_of)(Stream stream);  // a number of its own for what the stream is capturing into; 0: it is not
};

// CUDA's.
const MemorySource& device_memory();

}  // namespace assay::device
