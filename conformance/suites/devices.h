#pragma once
// The devices among which a run divides its cases: one process each (worker/visible_device.h).

#include <cstdint>
#include <string>
#include <vector>

namespace assay::conformance {

struct JudgingDevice {
  std::int64_t number = 0;  // as the user names it
  std::string visible;      // as CUDA_VISIBLE_DEVICES names it
  std::string name;         // "NVIDIA H100 80GB HBM3"
};

struct ChosenDevices {
  std::vector<JudgingDevice> devices;
  std::string fault;      // why not: for a message behind "--device"
  bool is_usage = false;  // the text names what is not there; otherwise the machine shows no device
};

// `text`: "all", or numbers with commas between them. `single`: one number alone.
ChosenDevices chosen_devices(const std::string& text, const std::string& backend, bool single);

}  // namespace assay::conformance
