#include "conformance/selftest/hunt/profile_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/selftest/hunt/cover.h"

namespace assay::conformance {

ProfileCover profile_cover(const KillMatrix& matrix, const std::vector<std::string>& there, int times, std::uint64_t seed,
                           double most_work, const std::vector<bool>& counts) {
  const std::set<std::string> held(there.begin(), there.end());
  CoverDemand demand{times, seed, counts, {}, most_work};
  for (const KillingCase& each : matrix.cases) demand.given.push_back(held.count(each.line) != 0);
  ProfileCover made;
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    const std::vector<std::int32_t>& killers = matrix.rows[row].killers;
    if (killers.empty() || (!counts.empty() && !counts[row])) continue;
    const bool is_cheap = std::any_of(killers.begin(), killers.end(), [&](std::int32_t each) {
      const auto at = static_cast<std::size_t>(each);
      return demand.given[at] || most_work == 0 || matrix.cases[at].work <= most_work;
    });
    ++(is_cheap ? made.mutants : made.costly);
  }
  for (const std::int32_t each : cover_of(matrix, demand))
    made.lines.push_back(matrix.cases[static_cast<std::size_t>(each)].line);
  std::sort(made.lines.begin(), made.lines.end());
  return made;
}

std::string text_of(const ProfileCover& cover, const std::string& profile, const KillMatrix& matrix, int times,
                    std::uint64_t seed) {
  std::string text = fmt::format(
      "# Computed by `assay selftest --matrix FILE ... --cover-profiles`, from the kill matrix of {}, mutants {}, with seed {}.\n"
      "# With these lines the profile {} kills each of {} planted faults {}; without any one of them it does not.\n",
      matrix.date, matrix.mutants_digest.substr(0, 16), seed, profile, cover.mutants,
      times == 1 ? "that some case kills" : fmt::format("by {} cases, where the matrix has so many", times));
  if (cover.costly > 0)
    text += fmt::format("# Not among them: {} that only costlier cases kill (docs/selftest.md).\n", cover.costly);
  text += "\n[standard]\n";
  for (const std::string& each : cover.lines) text += each + "\n";
  return text;
}

}  // namespace assay::conformance
