#include "bench/device/board.h"

#include <dlfcn.h>

#include <stdexcept>

namespace assay::bench {
namespace {

// The part of NVML's binary interface that is used.
constexpr int kSuccess = 0, kClockOfMultiprocessors = 1;
constexpr unsigned kPowerNow = 186;  // mW; nvmlDeviceGetPowerUsage() is a mean over a second on some boards
struct FieldValue {
  unsigned field, scope;
  long long moment, latency;
  int type, result;
  union {
    double real;
    unsigned word;
    unsigned long long wide;
  } value;
};

template <class Function>
Function* function_of(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("the NVML library has no ") + name);
  return reinterpret_cast<Function*>(found);
}

void expect_success(int result, const char* call) {
  if (result != kSuccess) throw std::runtime_error(std::string(call) + ": NVML error " + std::to_string(result));
}

}  // namespace

Board::Board(const std::string& bus, const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw std::runtime_error(library + ": " + dlerror());
  expect_success(function_of<int()>(library_, "nvmlInit_v2")(), "nvmlInit_v2");
  expect_success(function_of<int(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2")(bus.c_str(), &device_),
                 ("nvmlDeviceGetHandleByPciBusId_v2(" + bus + ")").c_str());
}

Board::Reading Board::read() const {
  unsigned mhz = 0;
  expect_success(
      function_of<int(void*, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo")(device_, kClockOfMultiprocessors, &mhz),
      "nvmlDeviceGetClockInfo");
  FieldValue power{};
  power.field = kPowerNow;
  expect_success(function_of<int(void*, int, FieldValue*)>(library_, "nvmlDeviceGetFieldValues")(device_, 1, &power),
                 "nvmlDeviceGetFieldValues");
  if (power.result != kSuccess)  // an older board: the mean
    expect_success(function_of<int(void*, unsigned*)>(library_, "nvmlDeviceGetPowerUsage")(device_, &power.value.word),
                   "nvmlDeviceGetPowerUsage");
  return {static_cast<double>(mhz), power.value.word * 1e-3};
}

}  // namespace assay::bench
