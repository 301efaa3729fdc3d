#include "device/support/call_device.h"

#include <cuda_runtime_api.h>

#include <string>

#include "device/support/launch_check.h"
#include "device/support/memory_source.h"

namespace assay::device {
namespace {

// -1 if the memory belongs to no device, or its device is unknown.
int device_holding(const void* data) {
  cudaPointerAttributes attributes{};
  if (data == nullptr) return -1;
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // the launch reports the error of the device
    return -1;
  }
  return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

}  // namespace

CallDevice::CallDevice(Stream stream, std::initializer_list<NamedTensor> tensors) {
  int device = -1;
  const char* first = nullptr;
  for (const NamedTensor& tensor : tensors) {
    const int here = device_holding(tensor.data);
    if (here < 0) continue;
    if (device < 0) {
      device = here;
      first = tensor.name;
    } else if (here != device) {
      throw InvalidArgument(std::string(tensor.name) + " is on device " + std::to_string(here) + ": expected device " +
                            std::to_string(device) + ", where " + first + " is");
    }
  }
  if (device < 0) return;
  const MemorySource& cuda = device_memory();
  const int current = cuda.current_device();
  if (device != current) {
    cuda.set_current_device(device);
    before_ = current;
  }
  const int of_stream = cuda.device_of(stream);
  if (of_stream == device) return;
  if (before_ >= 0) cuda.set_current_device(before_);
  throw InvalidArgument("stream is of device " + std::to_string(of_stream) + ": expected one of device " +
                        std::to_string(device) + ", where " + first + " is");
}

CallDevice::~CallDevice() {
  if (before_ >= 0) static_cast<void>(cudaSetDevice(before_));
}

}  // namespace assay::device
