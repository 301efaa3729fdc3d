#pragma once
// Events around a call: checks the time that a backend reports, and that events change nothing else.

#include <chrono>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"

namespace assay::conformance {

// Three events, which are recorded before and after calls of a stream. The backend must have event functions.
class Events {
 public:
  explicit Events(Backend& backend);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Records the next event on the stream; the first starts again. A failure is a fault. Errors: BackendFault.
  void record(assay_stream* stream);
  // What is wrong with the time between them, after the stream has been waited for, or empty: a status other than ok, no number, less
  // than 0, less up to the last event than up to the one before, more than has passed here. Errors: BackendFault.
  std::string fault();
  // What is wrong with the answer where the events stand in the wrong order or one was not recorded, or empty: no status of the
  // interface, a refusal without a reason of one line, a time that is not a number. Anything else in the answer is not checked.
  std::string fault_of_misuse();

 private:
  using Clock = std::chrono::steady_clock;
  bool elapsed(std::size_t from, std::size_t to, double& milliseconds);
  std::string misuse(assay_event* from, assay_event* to, const char* what);

  Backend& backend_;
  std::vector<assay_event*> events_;
  assay_event* unrecorded_ = nullptr;
  std::size_t recorded_ = 0;
  Clock::time_point begun_;
  std::string fault_;
};

}  // namespace assay::conformance
