#pragma once
// Clock and power of a device, from the management library of its driver (NVML), which is loaded at run time.

#include <string>

namespace assay::bench {

class Board {
 public:
  struct Reading {
    double mhz = 0, watts = 0;  // of the multiprocessors; of the whole board, now
  };

  // `bus`: the PCI bus id, as cudaDeviceGetPCIBusId writes it. NVML counts all devices of a machine, whatever CUDA_VISIBLE_DEVICES
  // says. Errors: std::runtime_error where the library or the device is not found.
  explicit Board(const std::string& bus, const std::string& library = "libnvidia-ml.so.1");

  // Errors: std::runtime_error.
  Reading read() const;

 private:
  void* library_;  // stays loaded
  void* device_ = nullptr;
};

}  // namespace assay::bench
