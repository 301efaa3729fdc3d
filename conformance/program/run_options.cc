#include "conformance/program/run_options.h"

#include <fmt/format.h>

namespace assay::conformance {

std::string RunOptions::kind() const {
  if (random > 0) return fmt::format("run --random {} --seed {}", random, seed);
  std::string text = "run";
  for (const std::string& each : case_files) text += " --cases " + quoted(each);
  return text + " --profile " + profile;
}

std::string RunOptions::verb() const {
  std::string text = kind() + (fixtures ? " --fixtures" : "");
  for (const std::string& word : words) text += " " + quoted(word);
  return shard.empty() ? text : text + " --shard " + shard;
}

namespace {

void add_evidence_options(cli::App& verb, RunOptions& options) {
  verb.add_option("--require", options.require,
                  "A level (assay list --levels), words of case lines or a file of such lines: a required case that does not "
                  "pass is a failure; again for more")
      ->allow_extra_args(false);
  verb.add_option("--baseline", options.baseline,
                  "An earlier --json or --results file: a case that passed there and does not here is a failure");
  verb.add_option("--waivers", options.waivers,
                  "TOML file of known failures (docs/qualify_a_library.md): a failure that is in it is no failure; a waiver that "
                  "expired, or whose case passes, is exit 7");
  verb.add_option("--retries", options.backend.retries,
                  "Judge a case that fails again, at most so often: one that then passes is flaky, which is no pass (exit 1)")
      ->capture_default_str()
      ->check(cli::Range(0, 100));
  verb.add_option("--json", options.json, "Write every verdict to this file at the end (conformance/report/report.schema.json)");
  verb.add_option("--results", options.results, "Append every verdict to this file as it falls, one line of JSON each");
  verb.add_option("--resume", options.resume,
                  "Go on with a run that --results has recorded: cases with a verdict are not judged again");
}

void add_prediction_options(cli::App& verb, RunOptions& options) {
  cli::Option* predicted =
      verb.add_option("--predicted", options.predicted,
                      "A file of assay predict: outputs are compared with its digests, and the reference computes "
                      "only what no file predicts, or what differs; again for more")
          ->allow_extra_args(false)
          ->excludes(verb.get_option("--expect-by"));
  verb.add_flag("--predicted-only", options.predicted_only,
                "With --predicted: a case that could be predicted and is not, or not under the plan that the backend states, is "
                "not tried (exit 5)")
      ->needs(predicted)
      ->excludes(verb.get_option("--journal"));
}

}  // namespace

void add_selection_options(cli::App& verb, RunOptions& options) {
  verb.add_option("--profile", options.profile, "How much: smoke (three seconds on two cores), standard (ten), full (minutes)")
      ->capture_default_str()
      ->check(cli::IsMember({"smoke", "standard", "full"}));
  verb.add_option("--random", options.random,
                  "In place of a profile: this many random grouped GEMMs, to 64 groups and K 8192 (WORDS choose among them)")
      ->check(cli::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  verb.add_option("--seed", options.seed, "With --random: another sequence")
      ->capture_default_str()
      ->check(cli::NonNegativeNumber);
  verb.add_option("--shard", options.shard,
                  "Only part I of N, as I/N with I from 0, all of equal work (also GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX); an "
                  "empty part passes");
  verb.add_option(
          "--cases", options.case_files,
          "The cases of this file in place of the catalogue's: a case line a line, # comments, sections [smoke], [standard], "
          "[full] or none; again for more")
      ->allow_extra_args(false)
      ->excludes(verb.get_option("--random"));
}

void add_journal_options(cli::App& verb, RunOptions& options) {
  cli::Option* journal = verb.add_option("--journal", options.journal,
                                         "A folder that this and other workers share, on any machine: each leases blocks of "
                                         "cases and appends what it finds, until all "
                                         "are done; assay merge joins the parts (docs/scale/README.md)");
  verb.add_option("--lease", options.lease_s,
                  "With --journal: seconds without a sign of life after which the blocks of a worker of another machine are "
                  "leased again; the first worker's counts")
      ->capture_default_str()
      ->check(cli::Range(1, 86400))
      ->needs(journal);
  verb.add_option("--blocks", options.blocks,
                  "With --journal: into how many blocks generated cases are divided; the first worker's counts")
      ->check(cli::Range(std::int64_t{1}, std::int64_t{100'000}))
      ->needs(journal);
}

const cli::Option* add_run_options(cli::App& verb, RunOptions& options) {
  verb.add_option("WORDS", options.words,
                  "Only cases whose name or line, and fixture cases whose path FILE.h5/CASE, contains every word (globs "
                  "allowed); a word that matches nothing is exit 4");
  add_judge_options(verb, options.backend);
  verb.add_option(
      "--device", options.device,
      "all, or numbers of devices, as 0,2: a process each, among which the cases are divided as they fall; devices of one "
      "model, in the order of nvidia-smi");
  cli::Option* named = verb.get_option("--backend")->default_str("device where there is one, else reference");
  add_selection_options(verb, options);
  verb.add_option("--algorithms", options.algorithms, "all: each case also with every algorithm that the backend lists for it")
      ->check(cli::IsMember({"all"}));
  verb.add_option("--axes", options.try_axes,
                  "Each case also under these settings: all, or a comma list of NAME and NAME=VALUE (assay list --axes)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--fixtures", options.fixtures, "With --cases: the recorded cases too, which are else not run")
      ->needs(verb.get_option("--cases"));
  add_journal_options(verb, options);
  add_prediction_options(verb, options);
  add_evidence_options(verb, options);
  add_save_got(verb, options.save_got);
  verb.add_option("--show", options.show, "Failures printed in full")->capture_default_str()->check(cli::Range(0, 1'000'000));
  verb.add_flag("--quiet", options.quiet, "No progress");
  verb.footer(R"(What is judged is said first, on standard error; the last line of standard output is the verdict:
  PASS                                     nothing failed, and nothing was declared absent
  PASS (partial: A of N cases absent)      nothing failed; A cases are not there, as the backend declared and proved
  FAIL                                     anything else; the exit codes follow
with the backend, its library, its device, the counts, the words that passed by bits, by order-free bits (any order of
sums gives them) and by bound (no plan is known), and the levels passed. A level is passed when every case that it requires
passed, in the profile that was run; above the verdict stand the levels that were not, and why.
A device that is there and cannot be judged is exit code 9, unless --backend names something else.)");
  return named;
}

}  // namespace assay::conformance
