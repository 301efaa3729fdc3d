#include "conformance/backends/device/device_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

namespace assay::conformance {
namespace {

void* device_malloc(std::size_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) == cudaSuccess) return data;
  cudaGetLastError();  // out of memory is not an error of the next call
  return nullptr;
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  if (!pooled_) {
    for (const auto& [data, size_class] : class_of_) cudaFree(data);
    return;
  }
  for (const auto& [data, size_class] : class_of_) {
    if (size_class > kLargestCut) cudaFree(data);
  }
  trim();
  for (void* slab : slabs_) cudaFree(slab);
}

void* DeviceMemory::fresh(int size_class) {
  const std::int64_t bytes = std::int64_t{1} << size_class;
  if (size_class > kLargestCut) return device_malloc(static_cast<std::size_t>(bytes));
  if (slab_left_ < bytes) {  // what is left becomes free blocks
    for (int each = kLargestCut; each >= kSmallest; --each) {
      for (const std::int64_t part = std::int64_t{1} << each; slab_left_ >= part; slab_ += part, slab_left_ -= part) {
        free_[static_cast<std::size_t>(each)].push_back(slab_);
      }
    }
    void* slab = device_malloc(kSlab);
    if (slab == nullptr) return nullptr;
    slabs_.push_back(slab);
    slab_ = static_cast<char*>(slab);
    slab_left_ = kSlab;
  }
  void* block = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return block;
}

// Gives free blocks with an allocation of their own back to the device.
void DeviceMemory::trim() {
  for (int size_class = kLargestCut + 1; size_class <= kLargest; ++size_class) {
    for (void* data : free_[static_cast<std::size_t>(size_class)]) cudaFree(data);
    free_[static_cast<std::size_t>(size_class)].clear();
  }
}

void* DeviceMemory::allocate(std::int64_t bytes) {
  if (bytes < 0 || bytes > std::int64_t{1} << kLargest) return nullptr;
  const int size_class =
      std::max(kSmallest, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1) - 1))));
  void* data = nullptr;
  if (!pooled_) {
    data = device_malloc(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  } else if (auto& free = free_[static_cast<std::size_t>(size_class)]; !free.empty()) {
    data = free.back();
    free.pop_back();
  } else {
    data = fresh(size_class);
    if (data == nullptr) {
      trim();
      data = fresh(size_class);
    }
  }
  if (data != nullptr) class_of_.emplace(data, size_class);
  return data;
}

void DeviceMemory::release(void* data) {
  const auto found = class_of_.find(data);
  if (found == class_of_.end() || !reuse_) return;
  const int size_class = found->second;
  class_of_.erase(found);
  if (pooled_) {
    free_[static_cast<std::size_t>(size_class)].push_back(data);
  } else {
    cudaFree(data);
  }
}

}  // namespace assay::conformance
