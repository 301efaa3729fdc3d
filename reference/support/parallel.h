#pragma once
// One thread pool for the CPU side. Work is cut into ranges that do not depend on the number of threads, and no range
// reads what another writes, so results do not depend on it either.

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

namespace assay {

// Threads in use: ASSAY_THREADS if set (1 or more), else the number of processors this process may run on.
int thread_count();

// Calls body(begin, end) for consecutive ranges of at most `grain` that cover [0, count), each in the default floating-point mode.
// An exception thrown by a body is rethrown here after the others have finished. A call from inside a body runs inline.
// Returns when all are done. Errors: `grain` below 1.
void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body);

// What parallel_for throws once it is cancelled. Outputs then hold anything.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};

// While this lives, parallel_for called on this thread begins no further range after `flag` is true, and throws Cancelled.
class CancelledBy {
 public:
  explicit CancelledBy(const std::atomic<bool>& flag);
  ~CancelledBy();
  CancelledBy(const CancelledBy&) = delete;
  CancelledBy& operator=(const CancelledBy&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

}  // namespace assay
