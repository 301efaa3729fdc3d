#pragma once
// Device memory that outlives calls, and queries about devices, streams and captures.

#include <cstdint>

#include "device/support/stream.h"

namespace assay::device {

// Where the memory comes from; tests use their own. allocate and upload wait for no other stream of the device, and may be
// called while any stream captures: neither becomes part of a graph.
struct MemorySource {
  void* (*allocate)(std::int64_t bytes);  // of the current device, 256-byte aligned, all 0. Errors: CudaError
  void (*release)(void* memory);          // after everything that uses it has ended; null: nothing
  void (*upload)(void* to, const void* from_host, std::int64_t bytes);  // done when it returns
  int (*current_device)();
  void (*set_current_device)(int device);
  int (*device_of)(Stream stream);             // the null stream, and one that captures, count as the current device's
  std::uint64_t (*capture_of)(Stream stream);  // a unique number of the capture of the stream; 0: it is not capturing
  // Calls ended(argument) once when the graph that `stream` captures into, and every executable graph made of it, has been
  // destroyed; from any thread, which must not call CUDA then. The stream is capturing. Errors: CudaError, and `ended`
  // is not called then.
  void (*when_graph_ends)(Stream stream, void (*ended)(void* argument), void* argument);
};

// CUDA's.
const MemorySource& device_memory();

// A caller's own memory, such as the caching allocator of a framework. Both functions are called with `device` current.
struct Allocator {
  void* context = nullptr;  // passed back to both
  // At least `bytes` of `device`, 256-byte aligned, with any contents, for work on `stream`; it must be able to serve a call
  // while the stream captures, with memory that is not the graph's. Errors: any exception, which the caller's call then throws.
  void* (*allocate)(void* context, std::int64_t bytes, int device, Stream stream) = nullptr;  // null: CUDA's
  // The stream may still have work that uses the memory.
  void (*release)(void* context, void* memory, std::int64_t bytes, int device, Stream stream) noexcept = nullptr;
};

// Device memory, released with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // `bytes`, at least 1, of the current device: from the allocator where it has functions, else from `source`, which must
  // outlive this. Errors: those of the two.
  DeviceMemory(const MemorySource& source, const Allocator& allocator, Stream stream, std::int64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory(static_cast<DeviceMemory&&>(other)).swap(*this);
    return *this;
  }
  ~DeviceMemory();

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept;
  const MemorySource* source_ = nullptr;
  Allocator allocator_;
  Stream stream_ = nullptr;
  int device_ = 0;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Makes `device` current until the end of the scope, then the one that was current before.
class DeviceScope {
 public:
  DeviceScope(const MemorySource& source, int device)
      : source_(source), before_(source.current_device()), changed_(before_ != device) {
    if (changed_) source_.set_current_device(device);
  }
  ~DeviceScope() {
    if (changed_) source_.set_current_device(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const MemorySource& source_;
  int before_;
  bool changed_;
};

}  // namespace assay::device
