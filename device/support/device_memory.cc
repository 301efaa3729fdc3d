#include <algorithm>
#include <utility>

#include "device/support/memory_source.h"

namespace assay::device {

DeviceMemory::DeviceMemory(const MemorySource& source, const Allocator& allocator, Stream stream, std::int64_t bytes)
    : source_(&source),
      allocator_(allocator),
      stream_(stream),
      device_(source.current_device()),
      bytes_(std::max<std::int64_t>(bytes, 1)) {
  data_ =
      allocator.allocate != nullptr ? allocator.allocate(allocator.context, bytes_, device_, stream) : source.allocate(bytes_);
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  if (allocator_.release == nullptr) {
    source_->release(data_);
    return;
  }
  const int before = source_->current_device();
  if (before != device_) source_->set_current_device(device_);
  allocator_.release(allocator_.context, data_, bytes_, device_, stream_);
  if (before != device_) source_->set_current_device(before);
}

void DeviceMemory::swap(DeviceMemory& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(allocator_, other.allocator_);
  std::swap(stream_, other.stream_);
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace assay::device
