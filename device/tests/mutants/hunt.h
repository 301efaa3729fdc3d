#pragma once
// Mutants one after another, each in processes of its own.

#include <string>
#include <vector>

#include "device/tests/mutants/trial.h"

namespace assay::mutants {

struct Hunted {
  int reaching = 0;  // calls that evaluate the point
  int tried = 0;
  int kills = 0;
  int first = -1;  // the trial that killed it first
  Outcome how = Outcome::same;
};

struct HuntLimits {
  int kills;  // a mutant is left after so many
  int jobs;
  int calls;  // that a mutant is tried under, at most
};

// For each mutant with `wanted`: its killers. `killers` names the trial to begin with, or nothing. A call that ends its process or
// takes too long kills too, and the next call gets another process.
std::vector<Hunted> hunt_all(const std::vector<Trial>& trials, const std::vector<bool>& wanted,
                             const std::vector<std::string>& killers, const HuntLimits& limits);

}  // namespace assay::mutants
