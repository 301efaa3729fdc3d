#include "conformance/suites/device_lanes.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "conformance/support/interrupt.h"
#include "reference/support/on_this_thread.h"

namespace assay::conformance {

DeviceLanes::DeviceLanes(std::int64_t count, std::size_t devices, JudgeOn judge_on)
    : count_(count), judge_on_(std::move(judge_on)), gone_(devices) {}

void DeviceLanes::judge_all(std::size_t threads) {
  // A device may fail once the others have found nothing left: then they begin again.
  for (std::vector<std::size_t> devices = usable(); has_cases() && !devices.empty() && !interrupted(); devices = usable()) {
    std::vector<std::thread> lanes;
    for (std::size_t i = 0; i < std::max(threads, devices.size()); ++i) {
      lanes.emplace_back([this, device = devices[i % devices.size()]] { on_this_thread([&] { run(device); }); });
    }
    for (std::thread& each : lanes) each.join();
    if (fault_ != nullptr) std::rethrow_exception(fault_);
  }
}

std::vector<std::size_t> DeviceLanes::usable() const {
  std::vector<std::size_t> devices;
  for (std::size_t i = 0; i < gone_.size(); ++i) {
    if (gone_[i].empty()) devices.push_back(i);
  }
  return devices;
}

std::vector<std::int64_t> DeviceLanes::left() {
  std::vector<std::int64_t> indices;
  for (std::int64_t index = 0; take(index);) indices.push_back(index);
  return indices;
}

bool DeviceLanes::take(std::int64_t& index) {
  const std::lock_guard lock(mutex_);
  if (!returned_.empty()) {
    index = returned_.back();
    returned_.pop_back();
    return true;
  }
  if (next_ >= count_) return false;
  index = next_++;
  return true;
}

void DeviceLanes::run(std::size_t device) {
  try {
    std::string why;
    for (std::int64_t index = 0; !interrupted() && take(index);) {
      if (judge_on_(index, device, why)) continue;
      const std::lock_guard lock(mutex_);
      returned_.push_back(index);
      gone_[device] = why;
      return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (fault_ == nullptr) fault_ = std::current_exception();
    next_ = count_;
  }
}

}  // namespace assay::conformance
