#pragma once
// Whether this build has code for a device.

#include <string>

namespace assay::device {

// Empty if the kernels of this build can run on the current device, or if there is no device; else one sentence that names
// the architectures of the build, the device's, and the build option. Launches nothing.
std::string missing_device_code();

}  // namespace assay::device
