#pragma once
// The device of a call: that of its tensors and of its stream, not the current device.

#include <initializer_list>

#include "device/support/stream.h"

namespace assay::device {

struct NamedTensor {
  const char* name;
  const void* data;  // null, and memory that belongs to no device, are skipped
};

// Makes the device of the tensors current until the end of the scope. The null stream is then that device's.
// Errors: InvalidArgument, naming the tensor, where tensors lie on different devices or the stream belongs to another one.
class CallDevice {
 public:
  CallDevice(Stream stream, std::initializer_list<NamedTensor> tensors);
  ~CallDevice();
  CallDevice(const CallDevice&) = delete;
  CallDevice& operator=(const CallDevice&) = delete;

 private:
  int before_ = -1;  // -1: nothing was changed
};

}  // namespace assay::device
