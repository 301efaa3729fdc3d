#pragma once
// How the program leaves while a call has not finished: what was found is told, and then it is gone at once, without
// waiting for threads, contexts or the driver, any of which may wait for the call for ever.

#include <functional>
#include <string>

#include "conformance/program/exit_code.h"
#include "conformance/program/report.h"

namespace assay::conformance {

// The device is held by a call that does not finish; `call` says which. Contexts are given up, and the first is remembered.
// Safe from any thread.
void note_busy_device(const std::string& call);
// That call, or empty.
std::string busy_device();

// A verb's end: `tell` completes, prints and writes `report`. While this lives, leave() may come first.
class Departure {
 public:
  Departure(Report& report, std::function<void()> tell);
  ~Departure();
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

  // Tells, and returns the exit code; where the device is busy the program ends with it.
  ExitCode finish();
  // The same from wherever the program is stuck; false where no verb has a departure.
  static bool leave();

 private:
  void tell();
  Report& report_;
  std::function<void()> tell_;
};

// Ends the program with this code, and destroys nothing.
[[noreturn]] void leave_at_once(ExitCode code);

}  // namespace assay::conformance
