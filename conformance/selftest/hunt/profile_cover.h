#pragma once
// The lines by which profiles are complemented, so that they find what any case of a kill matrix finds: conformance/cases/cover_*.txt.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

// How often a profile has to kill each mutant, and the work (KillingCase::work; a small case has 400,000) above which it takes no case.
constexpr int kSmokeTimes = 1, kStandardTimes = 2;
constexpr double kSmokeWork = 480'000, kStandardWork = 8'000'000;
// The family that smoke need not kill: every scale rule has faults of its own, which would take a case for each rule.
constexpr const char* kNotOfSmoke = "rules";

struct ProfileCover {
  std::vector<std::string> lines;  // canonical
  std::int64_t mutants = 0;        // that have to be killed
  std::int64_t costly = 0;         // of the matrix's, those that only costlier cases kill
};

// What has to be added to cases that are `there` so that they kill every mutant of the matrix that cases of at most `most_work` (0: of
// any cost) kill, `times` times, where there are so many. None of the lines can be left out. `counts`: as of CoverDemand.
ProfileCover profile_cover(const KillMatrix& matrix, const std::vector<std::string>& there, int times, std::uint64_t seed,
                           double most_work, const std::vector<bool>& counts);

// The whole file. `profile`: "smoke" or "standard".
std::string text_of(const ProfileCover& cover, const std::string& profile, const KillMatrix& matrix, int times,
                    std::uint64_t seed);

}  // namespace assay::conformance
