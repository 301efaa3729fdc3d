// assay run [WORDS ...]: the suite on a backend.

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "conformance/cases/catalogue.h"
#include "conformance/cases/generator.h"
#include "conformance/program/fixture_cases.h"
#include "conformance/program/interrupt.h"
#include "conformance/program/parallel_judging.h"
#include "conformance/program/progress.h"
#include "conformance/program/self_check.h"
#include "conformance/program/suite.h"
#include "conformance/program/verbs.h"

namespace assay::conformance {
namespace {

struct Options {
  std::vector<std::string> words;
  BackendChoice backend;
  std::string profile = "standard";
  std::string shard;
  std::string json;
  int show = 10;
  bool quiet = false;
};

struct Shard {
  std::int64_t index = 0, total = 1;
};

std::int64_t number_from_environment(const char* name, std::int64_t absent) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return absent;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (*end != '\0' || value < 0) throw CLI::ValidationError(name, fmt::format("'{}' is not a number of 0 or more", text));
  return value;
}

// --shard I/N, or what GoogleTest's sharding asks for.
Shard shard_of(const Options& options) {
  Shard shard;
  if (!options.shard.empty()) {
    long long index = 0, total = 0;
    char rest = 0;
    if (std::sscanf(options.shard.c_str(), "%lld/%lld%c", &index, &total, &rest) != 2 || total < 1 || index < 0 || index >= total) {
      throw CLI::ValidationError("--shard", fmt::format("'{}': expected I/N with I from 0 to N-1", options.shard));
    }
    return {index, total};
  }
  shard.total = number_from_environment("GTEST_TOTAL_SHARDS", 1);
  shard.index = number_from_environment("GTEST_SHARD_INDEX", 0);
  if (shard.total < 1 || shard.index >= shard.total) {
    throw CLI::ValidationError("GTEST_SHARD_INDEX", fmt::format("{} of GTEST_TOTAL_SHARDS {}: expected an index below the total", shard.index, shard.total));
  }
  if (const char* file = std::getenv("GTEST_SHARD_STATUS_FILE"); file != nullptr && *file != '\0') std::ofstream(file).flush();
  return shard;
}

ExitCode run(const Options& options) {
  const Shard shard = shard_of(options);
  if (const char* folder = std::getenv("ASSAY_GOLDEN"); folder != nullptr && *folder != '\0' && !std::filesystem::is_directory(folder)) {
    throw CLI::ValidationError("ASSAY_GOLDEN", fmt::format("'{}' is not a folder", folder));
  }
  const std::unique_ptr<Backend> opened = options.backend.open();
  Backend& backend = *opened;
  Report report("run --profile " + options.profile, backend, options.show);

  Selection selection = select(catalogue(*profile_named(options.profile)), options.words);
  std::vector<std::filesystem::path> files;
  std::vector<std::string> fixture_words;
  selection_of_fixtures(options.words, selection, files, fixture_words);
  if (!selection.unmatched.empty()) {
    for (const std::string& word : selection.unmatched) {
      fmt::print("no case of profile {} and no fixture matches '{}' (assay list --profile {} shows the names)\n", options.profile, word, options.profile);
    }
    return ExitCode::nothing_selected;
  }
  std::vector<CaseLine> cases = assay::conformance::shard(selection.cases, shard.index, shard.total);
  if (shard.index != 0) files.clear();  // fixtures and self-checks belong to the first shard

  judge_lines(cases, options.backend, !options.quiet, report);
  if (!interrupted() && !files.empty()) judge_fixtures(files, fixture_words, options.backend, !options.quiet, report);
  if (!interrupted() && options.words.empty() && shard.index == 0) self_check(report, !options.quiet);
  if (interrupted()) report.note_interrupted();
  if (options.words.empty() && shard.index == 0 && files.empty()) {
    report.not_tried("fixtures", fmt::format("none in {} (ASSAY_GOLDEN sets the folder)", golden_folder().string()));
  }
  if (backend.name() != "device") {
    std::string why;
    if (best_backend(&why) == "device") why = "--backend device judges the CUDA implementation here";
    report.not_tried("device cases", why);
  }
  report.print_summary();
  if (!options.json.empty()) report.write_json(options.json);
  return report.exit_code();
}

}  // namespace

Action add_run(CLI::App& verb) {
  const auto options = std::make_shared<Options>();
  verb.add_option("WORDS", options->words, "Only cases whose name or line contains every word (globs allowed); a word that matches nothing is exit 4");
  options->backend.add_to(verb);
  CLI::Option* named = verb.get_option("--backend")->default_str("device where one works, else reference");
  verb.add_option("--profile", options->profile, "How much: smoke (seconds), standard (a minute), full")
      ->capture_default_str()->check(CLI::IsMember({"smoke", "standard", "full"}));
  verb.add_option("--shard", options->shard, "Only part I of N of the cases, as I/N (also GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX)");
  verb.add_option("--json", options->json, "Write every verdict to this file");
  verb.add_option("--show", options->show, "Failures printed in full")->capture_default_str()->check(CLI::Range(0, 1'000'000));
  verb.add_flag("--quiet", options->quiet, "No progress");
  return [options, named] {
    try {
      if (named->count() == 0 && options->backend.options.empty()) options->backend.name = best_backend();
      return run(*options);
    } catch (const CLI::ValidationError& error) {
      fmt::print(stderr, "assay run: {}\n", error.what());
      return ExitCode::usage;
    }
  };
}

}  // namespace assay::conformance
