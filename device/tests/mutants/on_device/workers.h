#pragma once
// Processes side by side on one device, each with a context of its own. One that ends, or does not answer, is replaced.

#include <string>
#include <vector>

#include "device/tests/mutants/on_device/calls.h"

namespace assay::mutants {

struct Planting {
  std::string library;
  int jobs = 8;
  int devices = 1;            // which the processes share
  int most_calls = 400;       // that a mutant is tried under
  int limit_seconds = 20;     // after which a process that does not answer is ended, beyond the limit of its call
  double note_seconds = 1e9;  // no more calls are noted after this time
  double seconds = 1e9;       // no more mutants are begun after this time
  std::uint64_t seed = 1;
};

// w: wrong outputs, memory or status; e: the device failed, or the process ended; t: the call did not end.
struct Planted {
  char how = 0;      // 0: not planted; '.': survived
  int reaching = 0;  // calls that evaluate the point
  int tried = 0;
  int killer = -1;  // the call
};

// Each call that is not noted yet without a mutant, until the budget of noting is spent or a signal comes: what is not made keeps verdict 0. Errors:
// std::runtime_error where no process can use the device.
void note_calls(const std::vector<Call>& calls, const Planting& planting, Noted* noted);

// Each of the mutants under the calls that reach it, in an order that the seed decides, until one shows it.
std::vector<Planted> plant_all(const std::vector<Call>& calls, const std::vector<int>& mutants, const Planting& planting);

// After this, at a signal, no more is begun, and the functions above return what they have.
void stop_at_signals();
bool is_stopped();

struct Described {
  std::string device;                // name, driver, libraries
  std::vector<std::string> mutants;  // by number: "FILE: LINE OF THE SOURCE point K: CHANGE"
};
Described describe(const Planting& planting);

}  // namespace assay::mutants
