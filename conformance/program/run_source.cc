#include "conformance/program/run_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/program/case_files.h"
#include "conformance/suites/fixture_cases.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {

EarlierResults earlier_of(const char* option, const std::string& path) {
  try {
    return read_results(path);
  } catch (const golden::FixtureError& error) {
    throw cli::ValidationError(option, error.what());
  }
}

Level required(const std::string& word) {
  try {
    return requirement_of(word);
  } catch (const golden::FixtureError& error) {
    throw cli::ValidationError("--require", error.what());
  }
}

EarlierResults baseline_of(const RunOptions& options) {
  EarlierResults earlier = earlier_of("--baseline", options.baseline);
  const std::string verb = earlier.header.value("verb", "");
  if (verb != options.kind() && !verb.starts_with(options.kind() + " ")) {
    throw cli::ValidationError(
        "--baseline", fmt::format("{} is of '{}': this is '{}', whose cases are others", options.baseline, verb, options.kind()));
  }
  return earlier;
}

std::vector<CaseLine> cases_of(const RunOptions& options, const std::string& architecture) {
  if (options.random > 0) return random_cases(options.random, options.seed, options.words, architecture);
  const Profile profile = *profile_named(options.profile);
  return options.case_files.empty() ? catalogue(profile) : cases_of_files(options.case_files, profile);
}

void check_levels(const RunOptions& options, const std::vector<Level>& requirements) {
  if (options.of_catalogue()) return;
  for (const Level& each : requirements) {
    for (const Level& level : levels()) {
      if (each.title() != level.title()) continue;
      throw cli::ValidationError("--require",
                                 fmt::format("{} is a level of the catalogue's cases: expected words or a file of words with {}",
                                             level.title(), options.random > 0 ? "--random" : "--cases"));
    }
  }
}

void fill(Claimed& claimed, const RunOptions& options, const RunSelection& selection, const ShardChoice& shard) {
  claimed.profile = options.of_catalogue() ? options.profile : "";
  claimed.whole_run = options.whole_catalogue() && shard.total == 1;
  claimed.sharded = shard.total > 1;
  claimed.shard = selection.other_shards;
  for (const CaseLine& each : selection.all) {
    claimed.texts.push_back(to_text(each));
    claimed.names.push_back(name_of(each));
  }
  for (const std::filesystem::path& file : golden_files()) claimed.fixtures.push_back(file.filename().string());
}

}  // namespace assay::conformance
