// assay run [WORDS ...]: the suite on a backend.

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "conformance/cases/catalogue.h"
#include "conformance/cases/generator.h"
#include "conformance/cases/random_gemm.h"
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
  std::int64_t random = 0, seed = 1;
  std::string algorithms;
  std::vector<std::string> try_axes;
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

// Random products that every word matches. Errors: fewer than one in a thousand does.
std::vector<CaseLine> random_cases(const Options& options, const std::string& architecture) {
  std::vector<CaseLine> cases;
  std::set<std::string> texts;
  for (std::int64_t index = 0; static_cast<std::int64_t>(cases.size()) < options.random; ++index) {
    if (index >= 1000 * (options.random + 10)) {
      throw CLI::ValidationError("WORDS", fmt::format("{} of {} random cases match them: expected at least one in a thousand", cases.size(), index));
    }
    Selection selection = select({random_gemm(static_cast<std::uint64_t>(options.seed), index, architecture)}, options.words);
    for (CaseLine& each : selection.cases) {
      if (texts.insert(to_text(each)).second) cases.push_back(std::move(each));
    }
  }
  return cases;
}

// NAME=VALUE is that value, NAME each value of the axis but its default, "all" each of every axis.
SettingsToTry settings_of(const Options& options, Backend& backend) {
  SettingsToTry settings;
  settings.all_algorithms = options.algorithms == "all";
  const std::vector<assay_axis> axes = backend.axes();
  for (const std::string& each : options.try_axes) {
    const std::string name = each.substr(0, each.find('='));
    bool known = false;
    std::string names;
    for (const assay_axis& axis : axes) {
      names += (names.empty() ? "" : ", ") + std::string(axis.name);
      if (each != "all" && name != axis.name) continue;
      known = true;
      if (name.size() < each.size()) {
        settings.axes.emplace_back(name, each.substr(name.size() + 1));
        continue;
      }
      std::istringstream words(axis.values);
      std::string value;
      words >> value;  // the default
      while (words >> value) settings.axes.emplace_back(axis.name, value);
    }
    if (!known && each != "all") {
      throw CLI::ValidationError("--axes", fmt::format("'{}': expected all, NAME or NAME=VALUE with an axis of backend {}: {}", each, backend.name(),
                                                       names.empty() ? "it has none" : names));
    }
  }
  return settings;
}

ExitCode finish(const Options& options, Report& report) {
  if (interrupted()) report.note_interrupted();
  report.print_summary();
  if (!options.json.empty()) report.write_json(options.json);
  return report.exit_code();
}

ExitCode run(const Options& options) {
  const Shard shard = shard_of(options);
  if (const char* folder = std::getenv("ASSAY_GOLDEN"); folder != nullptr && *folder != '\0' && !std::filesystem::is_directory(folder)) {
    throw CLI::ValidationError("ASSAY_GOLDEN", fmt::format("'{}' is not a folder", folder));
  }
  const bool random = options.random > 0;
  const std::string verb = random ? fmt::format("run --random {} --seed {}", options.random, options.seed) : "run --profile " + options.profile;
  std::unique_ptr<Backend> opened;
  try {
    opened = options.backend.open();
    opened->device_info();  // whatever is wrong with it
  } catch (const BackendFault& fault) {
    Report report(verb, options.backend.name, options.show);
    report.add(report_of_open(fault));
    return finish(options, report);
  }
  Backend& backend = *opened;
  Report report(verb, backend, options.show);
  if (const std::string note = backend.note(); !note.empty()) report.note(note);
  const SettingsToTry settings = settings_of(options, backend);
  if (random || settings.any()) report.tell_settings();

  Selection selection;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> fixture_words;
  if (random) {
    selection.cases = random_cases(options, backend.device_info().architecture);
  } else {
    selection = select(catalogue(*profile_named(options.profile)), options.words);
    selection_of_fixtures(options.words, selection, files, fixture_words);
  }
  if (!selection.unmatched.empty()) {
    for (const std::string& word : selection.unmatched) {
      fmt::print("no case of profile {} and no fixture matches '{}' (assay list --profile {} shows the names)\n", options.profile, word, options.profile);
    }
    return ExitCode::nothing_selected;
  }
  const bool selected = !selection.cases.empty() || !files.empty();
  std::vector<CaseLine> cases = assay::conformance::shard(selection.cases, shard.index, shard.total);
  if (shard.index != 0) files.clear();  // fixtures and self-checks belong to the first shard
  // What was selected is judged by other shards.
  if (selected && cases.empty() && files.empty()) report.note_empty_shard(fmt::format("{}/{}", shard.index, shard.total));
  const bool whole = !random && options.words.empty() && shard.index == 0;

  keep_open(options.backend, std::move(opened));
  judge_lines(cases, options.backend, settings, !options.quiet, report);
  if (!interrupted() && !files.empty()) judge_fixtures(files, fixture_words, options.backend, !options.quiet, report, FixtureWords::whole_path);
  if (!interrupted() && whole) self_check(report, !options.quiet);
  close_backends(report);
  if (whole && files.empty()) {
    report.not_tried("fixtures", fmt::format("none in {} (ASSAY_GOLDEN sets the folder)", golden_folder().string()));
  }
  if (!random && options.backend.name != "device") {
    std::string why;
    if (best_backend(&why) == "device") why = "--backend device judges the CUDA implementation here";
    report.not_tried("device cases", why);
  }
  return finish(options, report);
}

}  // namespace

Action add_run(CLI::App& verb) {
  const auto options = std::make_shared<Options>();
  verb.add_option("WORDS", options->words, "Only cases whose name or line, and fixture cases whose path FILE.h5/CASE, contains every word (globs allowed); a word that matches nothing is exit 4");
  options->backend.add_to(verb);
  CLI::Option* named = verb.get_option("--backend")->default_str("device where one works, else reference");
  verb.add_option("--profile", options->profile, "How much: smoke (seconds), standard (a minute), full")
      ->capture_default_str()->check(CLI::IsMember({"smoke", "standard", "full"}));
  verb.add_option("--random", options->random, "In place of a profile: this many random grouped GEMMs, to 64 groups and K 8192 (WORDS choose among them)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  verb.add_option("--seed", options->seed, "With --random: another sequence")->capture_default_str()->check(CLI::NonNegativeNumber);
  verb.add_option("--algorithms", options->algorithms, "all: each case also with every algorithm that the backend lists for it")
      ->check(CLI::IsMember({"all"}));
  verb.add_option("--axes", options->try_axes, "Each case also under these settings: all, or a comma list of NAME and NAME=VALUE (assay list --axes)")
      ->delimiter(',')->allow_extra_args(false);
  verb.add_option("--shard", options->shard, "Only part I of N of the cases, as I/N (also GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX); a part that is empty passes");
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
