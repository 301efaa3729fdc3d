#pragma once
// Whether this build has code for a device.

#include <string>

namespace assay::device {

// Empty if the kernels of this build can run on the current device, or if there is none to ask; else one sentence that names
// the architectures which the build has, the device's, and what to build with. Launches nothing.
std::string missing_device_code();

}  // namespace assay::device
