#pragma once
// Progress of a run: one line that is updated on a terminal, else a line every half minute.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace assay::conformance {

class Progress {
 public:
  // If standard error is not a terminal, a line is printed every `seldom`.
  Progress(std::string what, std::int64_t total, bool wanted, std::chrono::milliseconds seldom = std::chrono::seconds(30));
  ~Progress();
  // Safe from any thread.
  void done(const std::string& name, bool failed);

 private:
  void draw(const std::string& name);

  std::string what_;
  std::int64_t total_, finished_ = 0, failed_ = 0;
  bool shown_, on_terminal_;
  std::chrono::milliseconds seldom_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
  std::mutex mutex_;
};

// Whether colour may be used on this file descriptor: it is a terminal and NO_COLOR is not set.
bool colour_allowed(int descriptor);

}  // namespace assay::conformance
