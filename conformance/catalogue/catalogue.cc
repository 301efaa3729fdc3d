#include "conformance/catalogue/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <set>

#include "conformance/catalogue/case_text.h"
#include "conformance/catalogue/case_word.h"
#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/lines_of_the_build.h"
#include "reference/types/error.h"

namespace assay::conformance {

void append(std::vector<CaseLine>& lines, std::vector<CaseLine> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

namespace {

void append_written(std::vector<CaseLine>& lines, Profile section, bool covers = false) {
  for (const CaseText& each : written_cases()) {
    if (each.is_cover == covers) append(lines, each.of(section));
  }
}

void insert_written_covers(std::vector<CaseLine>& lines, std::size_t place, Profile section) {
  std::vector<CaseLine> covers;
  append_written(covers, section, true);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), covers.begin(), covers.end());
}

}  // namespace

std::optional<Profile> profile_named(std::string_view name) {
  for (const Profile each : {Profile::smoke, Profile::standard, Profile::full}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

std::string_view name_of(Profile profile) {
  return profile == Profile::smoke ? "smoke" : profile == Profile::standard ? "standard" : "full";
}

namespace {

// The cases of a profile begin with those of the smaller one. What computes lines from those before it does not see the covers: they
// would change what it computes, and are put in afterwards.
std::vector<CaseLine> lines_of(Profile profile, bool covers) {
  std::vector<CaseLine> lines;
  if (profile == Profile::full) {
    lines = covers ? catalogue(Profile::standard) : lines_of(Profile::standard, false);
  } else {
    append_written(lines, Profile::smoke);
  }
  const std::size_t smoke_end = lines.size();
  if (profile == Profile::standard) {
    append_written(lines, Profile::standard);
    append(lines, covered_lines(0));
    append(lines, size_lines());
    append(lines, order_free_lines());
    append(lines, unit_probe_lines());
    append(lines, input_lines());
    append(lines, remaining_lines(lines));
    append(lines, option_lines(lines));
    append(lines, output_lines());
    append(lines, negative_scale_lines());
    append(lines, thin_lines());
    append(lines, rule_lines(0));
    append(lines, plan_lines(0));
    if (covers) append_written(lines, Profile::standard, true);
  }
  if (covers && profile != Profile::full) insert_written_covers(lines, smoke_end, Profile::smoke);
  if (profile == Profile::full) {
    append_written(lines, Profile::full);
    append(lines, covered_lines(1));
    append(lines, covered_lines(2));
    append(lines, rule_lines(1));
    append(lines, plan_lines(1));
  }
  std::set<std::string> seen;
  std::vector<CaseLine> unique;
  for (CaseLine& line : lines) {
    if (seen.insert(to_text(line)).second) unique.push_back(std::move(line));
  }
  return unique;
}

}  // namespace

const std::vector<CaseLine>& catalogue(Profile profile) {
  static std::array<std::vector<CaseLine>, 3> made;
  static std::array<std::once_flag, 3> is_made;
  const auto place = static_cast<std::size_t>(profile);
  std::call_once(is_made[place], [&] {
    const std::string_view written = profile == Profile::standard ? lines_of_the_build() : std::string_view();
    made[place] = written.empty() ? lines_of(profile, true)
                                  : std::move(parse_case_text(written, "lines of the build", Marks::optional).sections[0]);
  });
  return made[place];
}

std::vector<CaseLine> computed_catalogue(Profile profile) { return lines_of(profile, true); }

std::vector<CaseLine> catalogue_without_covers(Profile profile) { return lines_of(profile, false); }

Selection select(const std::vector<CaseLine>& cases, const std::vector<std::string>& words) {
  if (words.empty()) return {cases, {}};  // names, by which words select, take as long to make as the lines to print
  Selection selection;
  const std::vector<CaseWord> chosen(words.begin(), words.end());
  std::vector<bool> found(words.size(), false);
  for (const CaseLine& line : cases) {
    const std::string text = to_text(line), name = name_of(line);
    bool all = true;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool match = chosen[i].matches(text, name);
      found[i] = found[i] || match;
      all = all && match;
    }
    if (all) selection.cases.push_back(line);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!found[i]) selection.unmatched.push_back(words[i]);
  }
  return selection;
}

}  // namespace assay::conformance
