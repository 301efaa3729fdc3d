#pragma once
// The options of `assay run`.

#include <string>
#include <vector>

#include "conformance/program/backend_options.h"

namespace assay::conformance {

struct RunOptions {
  std::vector<std::string> words;
  std::vector<std::string> case_files;
  bool fixtures = false;  // with case_files: the recorded cases too
  BackendChoice backend;
  std::string profile = "standard";
  std::string shard;
  std::int64_t random = 0, seed = 1;
  std::string algorithms;
  std::vector<std::string> try_axes;
  std::vector<std::string> require;
  std::string baseline;
  std::string json, results, resume, save_got;
  std::string waivers;
  std::vector<std::string> predicted;  // files of predictions
  bool predicted_only = false;
  std::string device;
  std::string journal;
  std::int64_t lease_s = 60;
  std::int64_t blocks = 0;  // 0: by predicted time
  int show = 10;
  bool quiet = false;

  bool of_catalogue() const { return random == 0 && case_files.empty(); }
  bool whole_catalogue() const { return of_catalogue() && words.empty(); }
  // The source of the cases, "run --profile standard"; runs with the same source can be compared.
  std::string kind() const;
  // The same with what selects among them, as it is typed.
  std::string verb() const;
};

// Those that select cases: words, a profile, files, random ones, a shard.
void add_selection_options(cli::App& verb, RunOptions& options);

// --journal and what goes with it.
void add_journal_options(cli::App& verb, RunOptions& options);

// Adds the options, their help and the footer. Returns --backend, which says whether a backend was named.
const cli::Option* add_run_options(cli::App& verb, RunOptions& options);

}  // namespace assay::conformance
