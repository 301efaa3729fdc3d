#pragma once
// Which cases `assay run` takes: a profile's, those of files or random ones, those that words choose, those of a shard.

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/claims.h"
#include "conformance/report/run_header.h"
#include "conformance/suites/suite.h"

namespace assay::conformance {

struct ShardChoice {
  std::int64_t index = 0, total = 1;
  std::string text() const { return std::to_string(index) + "/" + std::to_string(total); }
};
// `option` is --shard's I/N; empty: what GoogleTest's sharding requests. Errors: cli::ValidationError.
ShardChoice shard_of(const std::string& option);

// `count` random products that every word matches. Errors (cli::ValidationError): fewer than one in a thousand
// matches.
std::vector<CaseLine> random_cases(std::int64_t count, std::int64_t seed, const std::vector<std::string>& words,
                                   const std::string& architecture);

struct RunSelection {
  std::vector<CaseLine> all;                 // that words and shards select from
  std::vector<CaseLine> chosen;              // by the words, in all shards together
  std::vector<CaseLine> cases;               // of those, this shard's
  std::vector<std::filesystem::path> files;  // fixtures
  std::vector<std::string> fixture_words;    // that select their cases
  std::vector<std::string> unmatched;        // words that match nothing
  std::vector<std::string> other_shards;     // texts of selected cases of other shards
  bool selected = false;                     // any case, in all shards together
};
// `cases`: the profile's, those of files, or random ones. `with_fixtures`: of the recorded ones too.
RunSelection select_for_run(std::vector<CaseLine> cases, bool with_fixtures, const std::vector<std::string>& words,
                            const ShardChoice& shard);

// SHA-256 of the cases' lines and of the fixtures' names and bytes. Errors: golden::FixtureError for a file that cannot be read.
std::string digest_of(const RunSelection& selection);
// The same of all shards together.
std::string whole_digest_of(const RunSelection& selection);

}  // namespace assay::conformance
