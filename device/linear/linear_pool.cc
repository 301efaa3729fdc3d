#include "device/linear/linear_pool.h"

#include <string>
#include <utility>

#include "device/layout/check_rows.h"

namespace assay::device {

LinearPool::LinearPool(Stream stream, const MemorySource& source, std::int64_t library_bytes, const Allocator& allocator)
    : stream_(stream),
      source_(source),
      library_bytes_(library_bytes),
      allocator_(allocator),
      device_(source.current_device()),
      workspaces_(source, library_bytes, allocator) {
  const int of_stream = source.device_of(stream);
  require(of_stream == device_, "stream", "of device " + std::to_string(of_stream),
          "one of the current device, " + std::to_string(device_));
  require((allocator.allocate == nullptr) == (allocator.release == nullptr), "allocator", "one function",
          "both functions, allocate and release, or none");
}

std::int64_t LinearPool::memory_bytes() const {
  std::int64_t bytes = scratch_.bytes() + workspaces_.allocated_bytes();
  for (const DeviceMemory& each : retired_) bytes += each.bytes();
  return bytes;
}

void LinearPool::reserve_scratch(std::int64_t bytes) {
  if (bytes <= scratch_.bytes()) return;
  const DeviceScope on(source_, device_);
  DeviceMemory larger(source_, allocator_, stream_, bytes);
  if (captured_) retired_.push_back(std::move(scratch_));
  scratch_ = std::move(larger);
  captured_ = false;
}

void* LinearPool::scratch() {
  captured_ = captured_ || source_.capture_of(stream_) != 0;
  return scratch_.data();
}

}  // namespace assay::device
