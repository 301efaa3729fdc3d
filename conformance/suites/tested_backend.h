#pragma once
// The backend that a run judges: named before it is judged, and never replaced by another.

#include <filesystem>
#include <string>

#include "conformance/backends/backend_handle.h"

namespace assay::conformance {

struct BackendChoice;

// An implementation and where it runs.
struct TestedBackend {
  std::string backend;       // name of the backend
  std::string device;        // "NVIDIA H200"
  std::string architecture;  // "sm90"
  std::string software;      // versions, as the backend reports them
  std::string library;       // file of the code that is judged: the shared library, or this program for built-in backends
  std::string text() const;  // "backend faulty of ./faulty.so on CPU (x86-64), reference 0.1.0"
  bool built_in = true;
};
TestedBackend tested_backend_of(Backend& backend, const BackendChoice& choice);
// That of a backend that does not open.
TestedBackend unopened(const BackendChoice& choice);

// What `assay run` without --backend chooses by.
struct BackendAvailability {
  bool backend_named = false;  // --backend or --backend-options given
  bool device_built = false;   // this build has the backend `device`
  bool device_opens = false;   // and it works here
  std::string why_not;         // if it does not
  std::string device_seen;     // sign of an NVIDIA device, such as "/dev/nvidia0"; empty: none
};

struct BackendDecision {
  enum class Choice { as_named, device, reference, refused };
  Choice choice = Choice::reference;
  std::string text;  // reference: why no device is judged; refused: one line with the remedy
};

// If there is a device it is judged, or the run is refused: another backend does not answer "does it work here?".
BackendDecision decide_backend(const BackendAvailability& availability);

// The first sign of an NVIDIA device below `root`: dev/nvidiaN, else an entry of proc/driver/nvidia/gpus; empty: none.
// It uses no CUDA, so that a build without CUDA finds the device too.
std::string nvidia_device(const std::filesystem::path& root = "/");

// Opens the backend `device` where it is built, and looks for the signs of a device.
BackendAvailability backend_availability(bool backend_named);

}  // namespace assay::conformance
