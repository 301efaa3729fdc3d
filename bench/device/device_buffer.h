#pragma once
// Device memory of the benchmarks: one arena per process, in which a case gets its buffers in the same places, filled with
// zeros, regardless of earlier cases.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "bench/device/buffer_places.h"

namespace assay::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(9);
}

inline cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return s;
  }();
  return made;
}

// A single allocation of 32 GiB, or of three quarters of the free memory if that is less. A buffer that does not fit is allocated
// separately, with a note, since its pages then depend on earlier cases.
class Arena {
 public:
  static Arena& get() {
    static Arena& arena = *new Arena;  // never destroyed: buffers may be given back until the process ends
    return arena;
  }
  std::int64_t bytes() const { return places_.bytes(); }

  // `bytes` bytes of zeros; null for none. Waits for the device.
  void* take(std::int64_t bytes, Lifetime lifetime = Lifetime::one_case) {
    if (bytes <= 0) return nullptr;
    void* memory = nullptr;
    if (const auto place = places_.take(bytes, lifetime)) {
      memory = memory_ + *place;
    } else {
      std::fprintf(stderr, "arena of %lld bytes: full, %lld bytes are allocated apart; times may depend on what ran before\n",
                   static_cast<long long>(this->bytes()), static_cast<long long>(bytes));
      check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc");
    }
    check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), stream()), "cudaMemsetAsync");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return memory;
  }

  // Once the device has done all that was launched, as cudaFree() has it. An error is that of an earlier call.
  void give_back(void* memory) {
    if (memory == nullptr) return;
    cudaDeviceSynchronize();
    const std::int64_t place = static_cast<char*>(memory) - memory_;
    if (place >= 0 && place < bytes()) {
      places_.give_back(place);
    } else {
      cudaFree(memory);
    }
  }

 private:
  Arena() : places_(size()) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes())), "cudaMalloc of the arena");
    memory_ = static_cast<char*>(memory);
  }
  static std::int64_t size() {
    std::size_t free_bytes = 0, all_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
    return std::min(std::int64_t{32} << 30, static_cast<std::int64_t>(free_bytes / 4 * 3));
  }

  BufferPlaces places_;
  char* memory_ = nullptr;
};

// Filled with zeros.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t bytes, Lifetime lifetime = Lifetime::one_case)
      : data_(Arena::get().take(bytes, lifetime)), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) Arena::get().give_back(data_);
  }
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

template <class T>
DeviceBuffer on_device(const std::vector<T>& values) {
  DeviceBuffer buffer(static_cast<std::int64_t>(values.size() * sizeof(T)));
  check(cudaMemcpyAsync(buffer.as(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  return buffer;
}

}  // namespace assay::bench
