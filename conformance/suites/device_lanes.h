#pragma once
// Cases divided among devices: threads that take one after another, each for one device.

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace assay::conformance {

class DeviceLanes {
 public:
  // `judge_on(index, device, why)`, called from many threads, judges a case. False: the device cannot be used any more, for the reason
  // `why`; the case is another one's then.
  using JudgeOn = std::function<bool(std::int64_t index, std::size_t device, std::string& why)>;
  DeviceLanes(std::int64_t count, std::size_t devices, JudgeOn judge_on);

  // Cases 0 to count - 1, each once, with at least one thread for each device, unless the run is interrupted. Rethrows what judge_on throws.
  void judge_all(std::size_t threads);

  // By device: why it cannot be used any more; empty: it can.
  const std::vector<std::string>& gone() const { return gone_; }
  // Devices that can be used.
  std::vector<std::size_t> usable() const;
  // Cases that no device was left for.
  std::vector<std::int64_t> left();

 private:
  bool has_cases() const { return next_ < count_ || !returned_.empty(); }
  bool take(std::int64_t& index);
  void run(std::size_t device);

  const std::int64_t count_;
  const JudgeOn judge_on_;
  std::mutex mutex_;
  std::int64_t next_ = 0;
  std::vector<std::int64_t> returned_;
  std::vector<std::string> gone_;
  std::exception_ptr fault_;
};

}  // namespace assay::conformance
