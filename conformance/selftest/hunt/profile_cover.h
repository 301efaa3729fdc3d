#pragma once
// The lines by which profiles are complemented, so that they find what any case of a kill matrix finds: conformance/cases/cover_*.txt.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/selftest/hunt/kill_matrix.h"

namespace assay::conformance {

// How often a profile has to kill each mutant, and the work (KillingCase::work; a small case has 400,000) above which it takes no case.
constexpr int kSmokeTimes = 1, kStandardTimes = 2;
constexpr double kSmokeWork = 480'000, kStandardWork = 8'000'000;
// The family that smoke need not kill: every scale rule has faults of its own, which would take a case for each rule.
constexpr const char* kNotOfSmoke = "rules";
// Whether a profile may have a line for its cover. Smoke has no wrong calls, since a library is asked for results first, and each of
// its cases has an element to write, so that a library which writes nothing fails it.
bool is_for(Profile profile, const std::string& line);

struct ProfileCover {
  std::vector<std::string> lines;  // canonical
  std::int64_t mutants = 0;        // that have to be killed
  std::int64_t others = 0;         // of the matrix's, those that only cases which are not offered kill
};

// What has to be added to cases that are `there` so that they kill every mutant of the matrix that they or cases which are `offered`
// kill, `times` times, where there are so many. None of the lines can be left out. `offered`, `counts`: as of CoverDemand.
ProfileCover profile_cover(const KillMatrix& matrix, const std::vector<std::string>& there, int times, std::uint64_t seed,
                           const std::vector<bool>& offered, const std::vector<bool>& counts);

// The whole file, with the lines in the profile's section.
std::string text_of(const ProfileCover& cover, Profile profile, const KillMatrix& matrix, int times, std::uint64_t seed);

}  // namespace assay::conformance
