#pragma once
// The built-in cases: a fixed list in three sizes, each with the smaller one in it.
//
//   smoke     every op and recipe, small: seconds
//   standard  shapes, types, splits, patterns and options against one another, and the adversarial cases: a minute
//   full      larger and odder shapes, up to 1024 groups
//
// Lines stand in a fixed order, smoke first, and no line occurs twice.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

enum class Profile { smoke, standard, full };
std::optional<Profile> profile_named(std::string_view name);
std::string_view name_of(Profile profile);

// Kept after the first call of a process. The standard profile takes a second to compute: the build did that (lines_of_the_build.h).
const std::vector<CaseLine>& catalogue(Profile profile);
// The same, computed now.
std::vector<CaseLine> computed_catalogue(Profile profile);
// Without the lines of cover_*.txt, which `assay selftest --cover-profiles` adds where other lines of the profile do not find a
// planted fault.
std::vector<CaseLine> catalogue_without_covers(Profile profile);

struct Selection {
  std::vector<CaseLine> cases;         // in the given order
  std::vector<std::string> unmatched;  // words that no case matches
};

// Cases that every word matches (case_word.h). No words: all cases.
Selection select(const std::vector<CaseLine>& cases, const std::vector<std::string>& words);

}  // namespace assay::conformance
