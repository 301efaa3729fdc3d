#include "conformance/suites/tested_backend.h"

#include <fmt/format.h>

#include <set>

#include "conformance/suites/backend_choice.h"

namespace assay::conformance {
namespace {

// "nvidia12", and not "nvidiactl".
bool is_device_node(const std::string& name) {
  return name.size() > 6 && name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == std::string::npos;
}

}  // namespace

std::string TestedBackend::text() const {
  std::string made = "backend " + backend;
  if (!built_in) made += " of " + library;
  made += " on " + device + (architecture.empty() ? "" : " (" + architecture + ")");
  return software.empty() ? made : made + ", " + software;
}

TestedBackend tested_backend_of(Backend& backend, const BackendChoice& choice) {
  const assay_device_info info = backend.device_info();
  TestedBackend tested{backend.name(), info.name, info.architecture, info.software, "", is_built_in(choice.name)};
  std::error_code failed;
  const std::filesystem::path file =
      tested.built_in ? std::filesystem::path("/proc/self/exe") : std::filesystem::path(choice.name);
  const std::filesystem::path found = std::filesystem::canonical(file, failed);
  tested.library = failed ? choice.name : found.string();  // the loader has found a bare name
  return tested;
}

TestedBackend unopened(const BackendChoice& choice) {
  return {choice.name, "no device", "", "", choice.name, is_built_in(choice.name)};
}

BackendDecision decide_backend(const BackendAvailability& availability) {
  using Choice = BackendDecision::Choice;
  if (availability.backend_named) return {Choice::as_named, ""};
  if (availability.device_built && availability.device_opens) return {Choice::device, ""};
  const std::string why = availability.device_built ? availability.why_not : "this build has no CUDA half";
  if (availability.device_seen.empty()) return {Choice::reference, why};
  return {Choice::refused,
          fmt::format("this machine has an NVIDIA device ({}) that this build cannot judge: {}. Build for it "
                      "(ASSAY_CUDA_ARCHITECTURES=90a-real, or what "
                      "the device has; a driver that is new enough), or say --backend reference to judge the CPU reference",
                      availability.device_seen, why)};
}

std::string nvidia_device(const std::filesystem::path& root) {
  std::error_code failed;
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(root / "dev", failed)) {
    if (is_device_node(entry.path().filename().string())) found.insert(entry.path().string());
  }
  if (!found.empty()) return *found.begin();
  for (const auto& entry : std::filesystem::directory_iterator(root / "proc/driver/nvidia/gpus", failed))
    found.insert(entry.path().string());
  return found.empty() ? "" : *found.begin();
}

BackendAvailability backend_availability(bool backend_named) {
  BackendAvailability availability;
  availability.backend_named = backend_named;
  if (backend_named) return availability;
  availability.device_built = is_built_in("device");
  if (availability.device_built) availability.device_opens = best_backend(&availability.why_not) == "device";
  availability.device_seen = nvidia_device();
  return availability;
}

}  // namespace assay::conformance
