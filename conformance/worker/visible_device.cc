#include "conformance/worker/visible_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "conformance/worker/answers.h"
#include "conformance/worker/process.h"

namespace assay::conformance::worker {
namespace {

std::string& visible_to_this_thread() {
  thread_local std::string visible;
  return visible;
}

// Numbers as nvidia-smi has them, unless the user asks CUDA for another order.
std::vector<std::string> order_of_devices() {
  return std::getenv("CUDA_DEVICE_ORDER") == nullptr ? std::vector<std::string>{"CUDA_DEVICE_ORDER=PCI_BUS_ID"}
                                                     : std::vector<std::string>{};
}

// The entries of CUDA_VISIBLE_DEVICES; none where it is not set.
std::vector<std::string> entries_given() {
  std::vector<std::string> entries;
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) entries.push_back(word);
  return entries;
}

// Functions of CUDA's driver, by the types that its header gives them.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
};

}  // namespace

OnDevice::OnDevice(std::string visible) : before_(std::exchange(visible_to_this_thread(), std::move(visible))) {}
OnDevice::~OnDevice() { visible_to_this_thread() = before_; }
const std::string& OnDevice::current() { return visible_to_this_thread(); }

std::vector<std::string> environment_on(const std::string& visible) {
  if (visible.empty()) return {};
  std::vector<std::string> environment = order_of_devices();
  environment.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  return environment;
}

std::vector<std::string> device_findings() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {"none CUDA's driver is not installed (libcuda.so.1)"};
  Driver driver;
  const auto find = [&](const char* symbol, auto& to) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    return to != nullptr;
  };
  if (!find("cuInit", driver.init) || !find("cuDeviceGetCount", driver.count) || !find("cuDeviceGet", driver.get) ||
      !find("cuDeviceGetName", driver.name))
    return {"none libcuda.so.1 is not CUDA's driver"};
  int count = 0;
  if (const int status = driver.init(0); status != 0)
    return {fmt::format("none cuInit() of libcuda.so.1 fails with error {}", status)};
  if (const int status = driver.count(&count); status != 0)
    return {fmt::format("none cuDeviceGetCount() of libcuda.so.1 fails with error {}", status)};
  if (count == 0) return {"none CUDA's driver shows no device"};
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[256] = "";
    if (driver.get(&device, i) != 0 || driver.name(name, sizeof name - 1, device) != 0)
      return {fmt::format("none CUDA's driver does not say what device {} is", i)};
    lines.push_back(std::string("device ") + name);
  }
  return lines;
}

SeenDevices seen_devices() {
  constexpr std::chrono::seconds kLimit{60};
  SeenDevices seen;
  const SharedMemory nothing(4096);
  const std::shared_ptr<Process> process =
      Process::start({worker_program()}, {kDevices}, nothing.descriptor(), {}, order_of_devices());
  if (!process->wait(kLimit)) {
    process->kill();
    seen.why_none = fmt::format("the process that asks CUDA's driver did not end within {} s", kLimit.count());
    return seen;
  }
  if (process->end_text() != "ended with exit code 0") {
    seen.why_none = "the process that asks CUDA's driver " + process->end_text();
    return seen;
  }
  const std::vector<std::string> entries = entries_given();
  std::istringstream text(printable(process->printed()));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("none ")) seen.why_none = line.substr(5);
    if (!line.starts_with("device ")) continue;
    const std::size_t number = seen.devices.size();
    seen.devices.push_back({line.substr(7), number < entries.size() ? entries[number] : std::to_string(number)});
  }
  if (seen.devices.empty() && seen.why_none.empty()) seen.why_none = "CUDA's driver shows no device";
  return seen;
}

}  // namespace assay::conformance::worker
