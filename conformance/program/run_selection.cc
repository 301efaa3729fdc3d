#include "conformance/program/run_selection.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <span>

#include "conformance/cases/former_words.h"
#include "conformance/catalogue/random_gemm.h"
#include "conformance/program/cli.h"
#include "conformance/suites/shards.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

std::int64_t number_from_environment(const char* name, std::int64_t absent) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return absent;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (*end != '\0' || value < 0) throw cli::ValidationError(name, fmt::format("'{}' is not a number of 0 or more", text));
  return value;
}

// Errors: cli::ValidationError for more shards than allowed.
ShardChoice checked(const ShardChoice& shard, const char* name) {
  constexpr std::int64_t kMax = 1'000'000;
  if (shard.total > kMax) throw cli::ValidationError(name, fmt::format("{} shards: expected at most {}", shard.total, kMax));
  return shard;
}

}  // namespace

ShardChoice shard_of(const std::string& option) {
  ShardChoice shard;
  if (!option.empty()) {
    long long index = 0, total = 0;
    char rest = 0;
    if (std::sscanf(option.c_str(), "%lld/%lld%c", &index, &total, &rest) != 2 || total < 1 || index < 0 || index >= total) {
      throw cli::ValidationError("--shard", fmt::format("'{}': expected I/N with I from 0 to N-1", option));
    }
    return checked({index, total}, "--shard");
  }
  shard.total = number_from_environment("GTEST_TOTAL_SHARDS", 1);
  shard.index = number_from_environment("GTEST_SHARD_INDEX", 0);
  if (shard.total < 1 || shard.index >= shard.total) {
    throw cli::ValidationError("GTEST_SHARD_INDEX", fmt::format("{} of GTEST_TOTAL_SHARDS {}: expected an index below the total",
                                                                shard.index, shard.total));
  }
  if (const char* file = std::getenv("GTEST_SHARD_STATUS_FILE"); file != nullptr && *file != '\0') std::ofstream(file).flush();
  return checked(shard, "GTEST_TOTAL_SHARDS");
}

std::vector<CaseLine> random_cases(std::int64_t count, std::int64_t seed, const std::vector<std::string>& words,
                                   const std::string& architecture) {
  std::vector<CaseLine> cases;
  std::set<std::string> texts;
  for (std::int64_t index = 0; static_cast<std::int64_t>(cases.size()) < count; ++index) {
    if (index >= 1000 * (count + 10)) {
      throw cli::ValidationError(
          "WORDS", fmt::format("{} of {} random cases match them: expected at least one in a thousand", cases.size(), index));
    }
    Selection selection = select({random_gemm(static_cast<std::uint64_t>(seed), index, architecture)}, words);
    for (CaseLine& each : selection.cases) {
      if (texts.insert(to_text(each)).second) cases.push_back(std::move(each));
    }
  }
  return cases;
}

RunSelection select_for_run(std::vector<CaseLine> cases, bool with_fixtures, const std::vector<std::string>& words,
                            const ShardChoice& shard) {
  RunSelection made;
  made.all = std::move(cases);
  Selection selection = select(made.all, words);
  if (with_fixtures) selection_of_fixtures(words, selection, made.files, made.fixture_words);
  made.unmatched = selection.unmatched;
  made.selected = !selection.cases.empty() || !made.files.empty();
  made.cases = assay::conformance::shard(selection.cases, shard.index, shard.total);
  if (shard.total > 1) {
    std::set<std::string> mine;
    for (const CaseLine& each : made.cases) mine.insert(to_text(each));
    for (const CaseLine& each : selection.cases) {
      std::string text = to_text(each);
      if (mine.count(text) == 0) made.other_shards.push_back(std::move(text));
    }
  }
  made.chosen = std::move(selection.cases);
  return made;
}

namespace {

std::string digest_with(const std::vector<CaseLine>& cases, const std::vector<std::filesystem::path>& files) {
  golden::Sha256 sum;
  const auto add = [&](const std::string& text) { sum.update(std::as_bytes(std::span(text))); };
  for (const CaseLine& each : cases) add(former_text(to_text(each)) + "\n");  // the digest of earlier versions
  for (const std::filesystem::path& file : files) add(file.filename().string() + " " + golden::sha256_hex_of_file(file) + "\n");
  return golden::hex_of(sum.digest());
}

}  // namespace

std::string digest_of(const RunSelection& selection) { return digest_with(selection.cases, selection.files); }
std::string whole_digest_of(const RunSelection& selection) { return digest_with(selection.chosen, selection.files); }

}  // namespace assay::conformance
