// The device backend with mutated copies of its kernels.
//
//   assay repro LINE --backend build/bin/assay_device_mutants.so --backend-options mutant=N
//
// plants mutant number N, as does ASSAY_DEVICE_MUTANT=N in the environment; with neither nothing is wrong. Other options are those of
// the backend `device`.

#include "device/tests/mutants/on_device/library.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string>

#include "conformance/backends/built_in.h"

namespace assay::mutants {

int chosen_by_host = kNone;
std::uint8_t reached_by_host[kMostMutants];

namespace {

const MutantRow kMutants[] = {
#include "points.inc"
};
constexpr int kCount = static_cast<int>(std::size(kMutants));
static_assert(kCount <= kMostMutants);

const Source* first_source = nullptr;  // before any source registers: initialised by a constant
std::uint8_t* reached_on_device = nullptr;
std::string open_fault, device_fault;
constexpr int kUnknown = -3;  // some sources have another number than others

// Whether a call of CUDA did what it was to do; else its text is kept.
bool succeeded(cudaError_t error) {
  if (error != cudaSuccess) device_fault = std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error);
  return error == cudaSuccess;
}

// Every source has the number of its own, which takes long: they get it when it changes.
bool choose(int number) {
  static Chosen now{kNone, nullptr};
  if (now.reached == nullptr) {
    void* memory = nullptr;
    if (!succeeded(cudaMalloc(&memory, kMostMutants)) || !succeeded(cudaMemset(memory, 0, kMostMutants))) return false;
    now.reached = reached_on_device = static_cast<std::uint8_t*>(memory);
  } else if (now.number == number) {
    return succeeded(cudaDeviceSynchronize());
  }
  chosen_by_host = now.number = number;
  for (const Source* each = first_source; each != nullptr; each = each->next) {
    if (each->choose(now)) continue;
    succeeded(cudaGetLastError());
    now.number = kUnknown;
    return false;
  }
  return succeeded(cudaDeviceSynchronize());
}

bool take_reached(std::uint8_t* all) {
  if (reached_on_device == nullptr) return false;
  if (!succeeded(cudaMemcpy(all, reached_on_device, kMostMutants, cudaMemcpyDeviceToHost))) return false;
  for (int i = 0; i < kCount; ++i) {
    all[i] |= reached_by_host[i];
    reached_by_host[i] = 0;
  }
  return succeeded(cudaMemset(reached_on_device, 0, kMostMutants)) && succeeded(cudaDeviceSynchronize());
}

// Takes `mutant=N` out of the options. Whether N is a number of a mutant, or is not given.
bool take_mutant(std::string& options, int& number) {
  const char* const variable = std::getenv("ASSAY_DEVICE_MUTANT");
  std::string text = variable == nullptr ? "" : variable, rest;
  for (std::size_t at = 0; at < options.size();) {
    const std::size_t end = std::min(options.find(',', at), options.size());
    const std::string item = options.substr(at, end - at);
    at = end + 1;
    if (item.starts_with("mutant=")) {
      text = item.substr(7);
    } else {
      rest += (rest.empty() ? "" : ",") + item;
    }
  }
  options = rest;
  if (text.empty()) return true;
  const char* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, number);
  if (read.ec == std::errc{} && read.ptr == last && number >= 0 && number < kCount) return true;
  open_fault = "mutant '" + text + "': expected a number from 0 to " + std::to_string(kCount - 1);
  return false;
}

assay_status open_mutants(const char* given, assay_context** context) {
  std::string options = given == nullptr ? "" : given;
  int number = kNone;
  open_fault.clear();
  if (!take_mutant(options, number)) return ASSAY_INVALID_ARGUMENT;
  const assay_status status = conformance::device_backend()->open(options.c_str(), context);
  if (status != ASSAY_OK || number == kNone) return status;
  if (choose(number)) return status;
  open_fault = "the mutant cannot be planted: " + device_fault;
  return ASSAY_DEVICE_LOST;
}

const assay_backend& table() {
  static const assay_backend made = [] {
    assay_backend table = *conformance::device_backend();
    table.open = open_mutants;
    table.last_error = [](assay_context* context) {
      return context == nullptr && !open_fault.empty() ? open_fault.c_str() : conformance::device_backend()->last_error(context);
    };
    return table;
  }();
  return made;
}

}  // namespace

Source::Source(bool (*choose_here)(const Chosen&)) : choose(choose_here), next(first_source) { first_source = this; }

}  // namespace assay::mutants

extern "C" {
__attribute__((visibility("default"))) const assay::mutants::Library* assay_device_mutants() {
  using namespace assay::mutants;
  static const Library library{
      sizeof(Library), kCount, kMutants, choose, take_reached, &table(), [] { return device_fault.c_str(); }};
  return &library;
}

__attribute__((visibility("default"))) const assay_backend* assay_backend_v1() { return &assay::mutants::table(); }
}
