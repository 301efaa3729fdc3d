#include "device/support/memory_source.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/support/launch_check.h"

namespace assay::device {
namespace {

void* allocate(std::int64_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc");
  const cudaError_t cleared = cudaMemset(memory, 0, static_cast<std::size_t>(bytes));
  const cudaError_t done = cleared != cudaSuccess ? cleared : cudaDeviceSynchronize();
  if (done != cudaSuccess) {
    cudaFree(memory);
    check_cuda(done, "cudaMemset");
  }
  return memory;
}

void release(void* memory) { cudaFree(memory); }  // waits for the device; a destructor has nobody to tell of an error

void upload(void* to, const void* from_host, std::int64_t bytes) {
  check_cuda(cudaMemcpy(to, from_host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice), "cudaMemcpy");
}

int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

std::uint64_t capture_of(Stream stream) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  check_cuda(cudaStreamGetCaptureInfo(stream, &state, &id), "cudaStreamGetCaptureInfo");
  return state == cudaStreamCaptureStatusActive ? id : 0;
}

}  // namespace

const MemorySource& device_memory() {
  static constexpr MemorySource kMemory{allocate, release, upload, current_device, capture_of};
  return kMemory;
}

}  // namespace assay::device
