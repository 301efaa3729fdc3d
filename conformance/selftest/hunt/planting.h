#pragma once
// Plants mutants one after another, each in processes of its own, and judges the cases in which they can make a difference.

#include <cstdint>
#include <functional>
#include <vector>

#include "conformance/selftest/hunt/mutant_library.h"
#include "conformance/selftest/hunt/recording.h"

namespace assay::conformance {

// How a case ended under a mutant.
enum class Ended : std::uint8_t {
  passed,   // the mutant was not seen
  outputs,  // an output is wrong
  memory,   // memory was written that must not be
  refused,  // the call failed or was refused
  other,    // any other failure: two runs that differ, a statement that does not hold
  process,  // the process ended
  late,     // it took so much longer that it was stopped
};
const char* name_of(Ended ended);

struct Planted {
  std::int32_t differs = 0;           // cases in which the mutant can make a difference
  std::int32_t tried = 0;             // of those
  std::vector<std::int32_t> killers;  // cases that did not pass, in the order in which they were tried
  Ended how = Ended::passed;          // of the first killer
};

struct PlantingLimits {
  int kills = 1;  // a mutant is left after so many
  int tries = 0;  // and after so many cases in all; 0: no such limit
  int jobs = 1;
};

// For each of `mutants`: its outcome, in the order of TrialOrder. Mutants that an interrupt left out have `tried` -1. `all`,
// if not empty, is what an earlier call returned: goes on from there. Does not depend on limits.jobs. False: interrupted.
// Errors: ProcessError.
bool plant(const MutantLibrary& library, const Recording& recording, const std::vector<const Mutant*>& mutants,
           const PlantingLimits& limits, std::vector<Planted>& all, const std::function<void(std::int64_t)>& progress);

}  // namespace assay::conformance
