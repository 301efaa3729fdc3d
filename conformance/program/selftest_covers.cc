#include "conformance/program/selftest_covers.h"

#include <fmt/format.h>

#include <filesystem>

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/output_file.h"
#include "conformance/selftest/hunt/cover.h"
#include "conformance/selftest/hunt/profile_cover.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

void write_cover(const CoverFiles& files, const KillMatrix& matrix, const std::vector<std::int32_t>& cover) {
  std::string text = fmt::format(
      "# Computed by `assay selftest --cover`: each mutant that any case of the matrix kills is killed by {}, and none can be "
      "left "
      "out.\n# {}, seed {}, profile {}, {} mutants {}, cases {}\n",
      files.times == 1 ? "one of these" : fmt::format("{} of these, where there are so many", files.times), matrix.date,
      files.seed, matrix.profile, matrix.rows.size(), matrix.mutants_digest.substr(0, 16), matrix.cases_digest.substr(0, 16));
  for (const std::int32_t each : cover) text += matrix.cases[static_cast<std::size_t>(each)].line + "\n";
  write_output(files.cover, text);
  say("cover: {} of {} cases that kill, written to {}\n", cover.size(), matrix.cases.size(), files.cover);
}

// A file without a case is none.
void write_profile(const std::string& folder, const KillMatrix& matrix, const ProfileCover& cover, Profile profile, int times,
                   std::uint64_t seed) {
  const std::string path = (std::filesystem::path(folder) / fmt::format("cover_{}.txt", name_of(profile))).string();
  if (cover.lines.empty()) {
    std::error_code none;
    std::filesystem::remove(path, none);
    say("{}: needs no further line to kill {} mutants\n", name_of(profile), cover.mutants);
    return;
  }
  write_output(path, text_of(cover, profile, matrix, times, seed));
  say("{}: {} further lines, so that it kills {} mutants, written to {}\n", name_of(profile), cover.lines.size(), cover.mutants,
      path);
}

}  // namespace

void write_covers(const CoverFiles& files, const KillMatrix& matrix, const std::vector<bool>& counts) {
  const std::vector<std::int32_t> cover = cover_of(matrix, {files.times, files.seed, counts});
  if (!files.record.empty()) write_output(files.record, text_of(with_one_killer(matrix, cover)));
  if (!files.cover.empty()) write_cover(files, matrix, cover);
}

void write_profile_covers(const std::string& folder, const KillMatrix& matrix, std::uint64_t seed) {
  const auto offered = [&](Profile profile, double most_work) {
    std::vector<bool> made;
    for (const KillingCase& each : matrix.cases) made.push_back(each.work <= most_work && is_for(profile, each.line));
    return made;
  };
  const auto texts_of = [](Profile profile) {
    std::vector<std::string> made;
    for (const CaseLine& each : catalogue_without_covers(profile)) made.push_back(to_text(each));
    return made;
  };
  std::vector<bool> of_smoke, of_standard;
  for (const KillRow& row : matrix.rows) {
    of_standard.push_back(row.family != "benign");
    of_smoke.push_back(row.family != "benign" && row.family != kNotOfSmoke);
  }
  const ProfileCover smoke =
      profile_cover(matrix, texts_of(Profile::smoke), kSmokeTimes, seed, offered(Profile::smoke, kSmokeWork), of_smoke);
  write_profile(folder, matrix, smoke, Profile::smoke, kSmokeTimes, seed);
  std::vector<std::string> there = texts_of(Profile::standard);
  there.insert(there.end(), smoke.lines.begin(), smoke.lines.end());
  write_profile(folder, matrix,
                profile_cover(matrix, there, kStandardTimes, seed, offered(Profile::standard, kStandardWork), of_standard),
                Profile::standard, kStandardTimes, seed);
}

}  // namespace assay::conformance
