#pragma once
// Devices of CUDA, and workers that see one of them.

#include <string>
#include <vector>

namespace assay::conformance::worker {

// While this lives, a worker that this thread starts sees the device that CUDA_VISIBLE_DEVICES names by `visible`, and no other one; and a
// context that it opens is in such a worker. Empty: all that this process sees. Every backend that uses CUDA follows it.
class OnDevice {
 public:
  explicit OnDevice(std::string visible);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  // That of this thread.
  static const std::string& current();

 private:
  const std::string before_;
};

// Variables of a worker that sees one device, NAME=VALUE; none where `visible` is empty.
std::vector<std::string> environment_on(const std::string& visible);

struct SeenDevice {
  std::string name;     // "NVIDIA H100 80GB HBM3"
  std::string visible;  // as CUDA_VISIBLE_DEVICES names it
};
struct SeenDevices {
  std::vector<SeenDevice> devices;  // in the order of nvidia-smi, or of CUDA_VISIBLE_DEVICES where that is set
  std::string why_none;
};
// Asks CUDA's driver, in a process of its own.
SeenDevices seen_devices();

// What that process prints: "device NAME" for each device, or "none WHY".
constexpr const char* kDevices = "devices";
std::vector<std::string> device_findings();

}  // namespace assay::conformance::worker
