#include "device/support/memory_source.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/support/launch_check.h"

namespace assay::device {
namespace {

// Lets this thread allocate and copy while a stream of this or another thread captures: CUDA refuses that in the other
// modes, because such a call could wait for work that is only recorded. Nothing here waits for another stream.
class RelaxedCapture {
 public:
  RelaxedCapture() { check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// A stream that waits for no other, not even the null stream, and that no other waits for.
class OwnStream {
 public:
  OwnStream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~OwnStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

void* allocate(std::int64_t bytes) {
  const RelaxedCapture relaxed;
  const OwnStream stream;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "cudaMalloc");
  try {
    check_cuda(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), stream.get()), "cudaMemsetAsync");
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  } catch (...) {
    static_cast<void>(cudaFree(memory));
    throw;
  }
  return memory;
}

// Waits for the device. Called by destructors, which cannot report an error.
void release(void* memory) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  static_cast<void>(cudaFree(memory));
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
}

void upload(void* to, const void* from_host, std::int64_t bytes) {
  const RelaxedCapture relaxed;
  const OwnStream stream;
  check_cuda(cudaMemcpyAsync(to, from_host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream.get()),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void set_current_device(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }

int device_of(Stream stream) {
  // The null stream and the stream of a thread belong to the current device.
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return current_device();
  // A capturing stream cannot be queried. It is assumed to belong to the current device; a launch refuses it if it does not.
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &state), "cudaStreamIsCapturing");
  if (state != cudaStreamCaptureStatusNone) return current_device();
  int device = 0;
  check_cuda(cudaStreamGetDevice(stream, &device), "cudaStreamGetDevice");
  return device;
}

std::uint64_t capture_of(Stream stream) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  check_cuda(cudaStreamGetCaptureInfo(stream, &state, &id), "cudaStreamGetCaptureInfo");
  return state == cudaStreamCaptureStatusActive ? id : 0;
}

void when_graph_ends(Stream stream, void (*ended)(void*), void* argument) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamGetCaptureInfo(stream, &state, &id, &graph), "cudaStreamGetCaptureInfo");
  cudaUserObject_t object = nullptr;
  check_cuda(cudaUserObjectCreate(&object, argument, ended, 1, cudaUserObjectNoDestructorSync), "cudaUserObjectCreate");
  // The graph takes over the only reference, and an executable graph made of it holds one more. If that fails, the object is not
  // released, as this would call `ended`.
  check_cuda(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), "cudaGraphRetainUserObject");
}

}  // namespace

const MemorySource& device_memory() {
  static constexpr MemorySource kMemory{allocate,           release,   upload,     current_device,
                                        set_current_device, device_of, capture_of, when_graph_ends};
  return kMemory;
}

}  // namespace assay::device
