#include "conformance/selftest/hunt/profile_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/backends/built_in.h"
#include "conformance/cases/case_line.h"
#include "conformance/judge/calls/content_faults.h"
#include "conformance/selftest/hunt/cover.h"
#include "conformance/suites/judge_line.h"

namespace assay::conformance {
namespace {

// Whether a backend that writes nothing fails the case by an element: nothing else says of every op which calls write. Of a replay
// the first call is asked.
bool has_an_element_to_write(const CaseLine& line) {
  BackendChoice choice;
  choice.name = "null";
  choice.explains = false;
  Backend backend(*null_backend());
  const CaseLine call = line.op == "scenario" ? line : with(line, "replay", "");
  const Judgement judgement = judge_line(call, Judged{backend}, choice).judgement;
  return judgement.verdict == Verdict::failed && judgement.elements > 0;
}

}  // namespace

bool is_for(Profile profile, const std::string& line) {
  if (profile != Profile::smoke) return true;
  const CaseLine parsed = parse_case_line(line);
  const bool is_right_call = fault_word(parsed).empty() && (parsed.op == "scenario" || parsed.integer("contract") == 0);
  return is_right_call && has_an_element_to_write(parsed);
}

ProfileCover profile_cover(const KillMatrix& matrix, const std::vector<std::string>& there, int times, std::uint64_t seed,
                           const std::vector<bool>& offered, const std::vector<bool>& counts) {
  const std::set<std::string> held(there.begin(), there.end());
  CoverDemand demand{times, seed, counts, {}, offered};
  for (const KillingCase& each : matrix.cases) demand.given.push_back(held.count(each.line) != 0);
  ProfileCover made;
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    const std::vector<std::int32_t>& killers = matrix.rows[row].killers;
    if (killers.empty() || (!counts.empty() && !counts[row])) continue;
    const bool is_possible = std::any_of(killers.begin(), killers.end(), [&](std::int32_t each) {
      const auto at = static_cast<std::size_t>(each);
      return demand.given[at] || offered.empty() || offered[at];
    });
    ++(is_possible ? made.mutants : made.others);
  }
  for (const std::int32_t each : cover_of(matrix, demand))
    made.lines.push_back(matrix.cases[static_cast<std::size_t>(each)].line);
  std::sort(made.lines.begin(), made.lines.end());
  return made;
}

std::string text_of(const ProfileCover& cover, Profile profile, const KillMatrix& matrix, int times, std::uint64_t seed) {
  std::string text = fmt::format(
      "# Computed by `assay selftest --matrix FILE ... --cover-profiles`, from the kill matrix of {}, mutants {}, with seed {}.\n"
      "# With these lines the profile {} kills each of {} planted faults {}; without any one of them it does not.\n",
      matrix.date, matrix.mutants_digest.substr(0, 16), seed, name_of(profile), cover.mutants,
      times == 1 ? "that some case kills" : fmt::format("by {} cases, where the matrix has so many", times));
  if (cover.others > 0)
    text += fmt::format("# Not among them: {} that only {} kill (docs/selftest.md).\n", cover.others,
                        profile == Profile::smoke ? "costlier cases, wrong calls or calls that write nothing" : "costlier cases");
  text += fmt::format("\n[{}]\n", name_of(profile));
  for (const std::string& each : cover.lines) text += each + "\n";
  return text;
}

}  // namespace assay::conformance
