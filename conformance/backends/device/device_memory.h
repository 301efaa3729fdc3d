#pragma once
// Device memory for thousands of small buffers: blocks of powers of two, cut from slabs and kept for the next buffer.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace assay::conformance {

class DeviceMemory {
 public:
  // `pooled` false: every buffer is an allocation of its own, so that memory checkers detect accesses past its ends.
  explicit DeviceMemory(bool pooled) : pooled_(pooled) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // 256-byte aligned; null when the device has no more.
  void* allocate(std::int64_t bytes);
  void release(void* data);
  // From here on no block is reused: unfinished work may still write to it.
  void stop_reuse() { reuse_ = false; }

 private:
  static constexpr int kSmallest = 12, kLargest = 48;  // block sizes, as powers of two
  static constexpr int kLargestCut = 22;               // larger blocks are allocations of their own
  static constexpr std::int64_t kSlab = std::int64_t{64} << 20;

  void* fresh(int size_class);
  void trim();

  bool pooled_;
  bool reuse_ = true;
  std::array<std::vector<void*>, kLargest + 1> free_;
  std::unordered_map<void*, int> class_of_;  // of every block in use
  std::vector<void*> slabs_;
  char* slab_ = nullptr;  // what is left of the newest slab
  std::int64_t slab_left_ = 0;
};

}  // namespace assay::conformance
