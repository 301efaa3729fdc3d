#include "conformance/suites/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "conformance/backends/backend_handle.h"
#include "conformance/worker/visible_device.h"

namespace assay::conformance {
namespace {

ChosenDevices refused(std::string fault, bool is_usage = true) { return {{}, std::move(fault), is_usage}; }

std::string range_text(std::size_t count) {
  return count == 1 ? "CUDA shows 1 device here, 0" : fmt::format("CUDA shows {} devices here, 0 to {}", count, count - 1);
}

}  // namespace

ChosenDevices chosen_devices(const std::string& text, const std::string& backend, bool single) {
  if (backend == "reference" || backend == "null")
    return refused(fmt::format("{}: backend {} runs on the host processor and has no devices", text, backend));
  std::vector<std::size_t> numbers;
  std::istringstream words(text);
  for (std::string word; text != "all" && std::getline(words, word, ',');) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || end != word.data() + word.size())
      return refused(
          fmt::format("'{}': expected {}", text, single ? "the number of a device, as 0" : "all, or numbers of devices, as 0,2"));
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end())
      return refused(fmt::format("'{}': names device {} twice", text, number));
    numbers.push_back(number);
  }
  if (text.ends_with(',') || (text != "all" && numbers.empty()))
    return refused(fmt::format("'{}': expected all, or numbers of devices, as 0,2", text));
  if (single && numbers.size() != 1) return refused(fmt::format("'{}': expected the number of one device", text));
  const worker::SeenDevices seen = worker::seen_devices();
  if (seen.devices.empty()) return refused(fmt::format("{}: {}", text, seen.why_none), false);
  for (std::size_t i = 0; text == "all" && i < seen.devices.size(); ++i) numbers.push_back(i);
  ChosenDevices chosen;
  for (const std::size_t number : numbers) {
    if (number >= seen.devices.size())
      return refused(fmt::format("{}: there is no device {}: {}", text, number, range_text(seen.devices.size())));
    const worker::SeenDevice& device = seen.devices[number];
    chosen.devices.push_back({static_cast<std::int64_t>(number), device.visible, device.name});
    const JudgingDevice& first = chosen.devices.front();
    if (first.name != device.name)
      return refused(fmt::format("{}: device {} is {}, and device {} is {}: expected devices of one model", text, first.number,
                                 first.name, number, device.name));
  }
  return chosen;
}

}  // namespace assay::conformance
