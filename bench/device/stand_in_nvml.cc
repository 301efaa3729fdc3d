// NVML with two boards, for two_regimes_test.cc: one states its power now, an older one only the mean.

#include <cstring>

namespace {

struct FieldValue {
  unsigned field, scope;
  long long moment, latency;
  int type, result;
  union {
    double real;
    unsigned word;
  } value;
};

char boards[2];
bool initialized;
constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  initialized = true;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  if (!initialized) return kUninitialized;
  for (int i = 0; i < 2; ++i) {
    if (std::strcmp(bus, i == 0 ? "0000:17:00.0" : "0000:18:00.0") == 0) {
      *device = &boards[i];
      return kSuccess;
    }
  }
  return kNotFound;
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  if (clock != 1) return kInvalidArgument;  // 0: graphics; 1: multiprocessors; 2: memory
  *mhz = device == &boards[0] ? 1410 : 1605;
  return kSuccess;
}

int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    values[i].result = device == &boards[0] && values[i].field == 186 ? kSuccess : kNotSupported;
    values[i].value.word = 699500;
  }
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = device == &boards[0] ? 1 : 350000;
  return kSuccess;
}
}
