#pragma once
// An open context of a backend on CUDA, and how a failed call becomes a status. Internal to cuda_backend.cc and cuda_open.cc.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "conformance/backends/device/cuda_backend.h"
#include "conformance/backends/device/device_memory.h"
#include "reference/types/error.h"

namespace assay::conformance {

// The interface's opaque types.
struct CudaContext {
  int device = 0;
  std::string error;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<CudaCalls> calls;
  cudaStream_t probe = nullptr;          // captures calls to check whether they can be made; executes nothing
  std::uint32_t* status = nullptr;       // one word in device memory
  std::uint32_t* status_read = nullptr;  // pinned
  bool status_in_doubt = false;          // something ran since the word was last read
};
inline CudaContext& of(assay_context* context) { return *reinterpret_cast<CudaContext*>(context); }
inline cudaStream_t of(assay_stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
inline cudaEvent_t of(assay_event* event) { return reinterpret_cast<cudaEvent_t>(event); }
inline cudaGraphExec_t of(assay_graph* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }

// A call of CUDA that failed.
class CudaFailure : public std::runtime_error {
 public:
  CudaFailure(cudaError_t error, const std::string& doing)
      : std::runtime_error(doing + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error)), error_(error) {}
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
};

// Errors: CudaFailure, whose message says that `doing` failed.
void check(cudaError_t error, const char* doing);

// The status of the exception that is being handled, and its text.
assay_status status_of_exception(std::string& error);

template <class Body>
assay_status caught(std::string& error, Body body) {
  try {
    body();
    return ASSAY_OK;
  } catch (...) {
    return status_of_exception(error);
  }
}

// Why the last open_cuda() of this thread failed, or the last call without a context.
std::string& cuda_open_error();

// The same for a call on an open context, whose device becomes the thread's.
template <class Body>
assay_status guarded(assay_context* context, Body body) {
  if (context == nullptr) return caught(cuda_open_error(), [] { throw InvalidArgument("context", "null", "an open context"); });
  CudaContext& at = of(context);
  return caught(at.error, [&] {
    check(cudaSetDevice(at.device), "choose the device");
    body(at);
  });
}

// Releases everything of a context, also of one that failed to open.
void free_all(CudaContext& context);

}  // namespace assay::conformance
