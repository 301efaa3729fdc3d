// assay selftest: plants faults in the reference, one after another, and says which the suite finds.

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/program/case_files.h"
#include "conformance/program/run_selection.h"
#include "conformance/program/selftest_covers.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/selftest/hunt/hunt.h"
#include "conformance/selftest/hunt/summary.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

struct SelftestOptions {
  std::vector<std::string> words, case_files, mutants, families, matrices, survivors_of;
  std::string profile = "smoke", library, proofs, again, shard, json, list, profile_covers;
  CoverFiles covers;
  std::int64_t killers = 1, seed = 1, cost_limit = 0;
  int kills = 2, tries = 0, jobs = 0, show = 10;
  bool unproved = false;
};

// Some mutants leave the record untrue when the code that they are in changes; so many are too many.
constexpr double kMostUnrecorded = 0.1;

// Cases that are judged for each mutant before further ones are for any, and how many times as many in each pass that follows: an
// interrupt leaves something of each mutant.
constexpr std::int64_t kFirstTries = 60, kMoreTries = 4;

// Progress of a part, on standard error.
class PartProgress {
 public:
  PartProgress(const std::string& what, std::int64_t total) : progress_(what, total, true) {}
  void operator()(std::int64_t done) {
    for (; told_ < done; ++told_) progress_.done("", false);
  }

 private:
  Progress progress_;
  std::int64_t told_ = 0;
};

KillMatrix matrix_given(const char* option, const std::string& path) {
  try {
    return read_kill_matrix(path);
  } catch (const golden::FixtureError&) {
    if (!std::filesystem::exists(path)) throw cli::ValidationError(option, fmt::format("'{}': no such file", path));
    throw;
  }
}

Proofs proofs_of(const SelftestOptions& options, const std::vector<Mutant>& mutants) {
  if (!options.proofs.empty()) return Proofs::read(options.proofs, mutants);
  const std::string own = ASSAY_SOURCE_SELFTEST "/proofs";
  return std::filesystem::exists(own) ? Proofs::read(own, mutants) : Proofs();
}

ExitCode conclude(const SelftestOptions& options, const MutantLibrary& library, const KillMatrix& matrix, Outcome outcome) {
  std::vector<const Mutant*> mutants;
  {
    std::map<std::string, const Mutant*> by_id;
    for (const Mutant& each : library.mutants()) by_id[each.id] = &each;
    for (const KillRow& row : matrix.rows) mutants.push_back(by_id.at(row.id));
  }
  const Proofs proofs = proofs_of(options, library.mutants());
  const MutantSummary summary(matrix, mutants, proofs);
  summary.add_to(outcome);
  say("{}{}", summary.findings(options.show, library.path()), summary.table());
  if (!proofs.unknown().empty())
    say("proofs of {} mutants that the library does not have, such as {}\n", proofs.unknown().size(), proofs.unknown().front());
  if (!options.list.empty()) {
    std::string text;
    for (std::size_t i = 0; i < mutants.size(); ++i)
      text += fmt::format("{}\t{}\t{}\t{}\n", name_of(summary.fate(i)), mutants[i]->id, mutants[i]->family, mutants[i]->says);
    write_output(options.list, text);
  }
  if (!options.json.empty()) write_output(options.json, text_of(matrix));
  if (options.covers.any()) {
    std::vector<bool> counts;
    for (const Mutant* each : mutants) counts.push_back(!each->benign);
    CoverFiles files = options.covers;
    files.seed = static_cast<std::uint64_t>(options.seed);
    write_covers(files, matrix, counts);
  }
  const FateCounts all = summary.counts("");
  const ExitCode code = outcome.exit_code();
  say("{} selftest: profile {}, {} cases, {} mutants: {} killed, {} proved equivalent, {} survived, {} not reached; benign: {} "
      "failed; exit {}{}\n",
      code == ExitCode::passed ? "PASS" : "FAIL", matrix.profile, matrix.judged_cases, all.mutants, all.killed, all.proved,
      all.survived, all.not_reached, summary.count(Fate::failed), static_cast<int>(code),
      code == ExitCode::passed ? "" : fmt::format(" ({})", meaning(code)));
  return code;
}

std::set<std::string> ids_of(const std::vector<KillMatrix>& matrices) {
  std::set<std::string> ids;
  for (const KillMatrix& each : matrices) {
    for (const KillRow& row : each.rows) ids.insert(row.id);
  }
  return ids;
}

ExitCode report_matrices(const SelftestOptions& options, const MutantLibrary& library) {
  std::vector<KillMatrix> matrices;
  for (const std::string& each : options.matrices) matrices.push_back(matrix_given("--matrix", each));
  std::vector<std::string> order;
  for (const Mutant& each : library.mutants()) order.push_back(each.id);
  KillMatrix matrix = joined(matrices, options.matrices, order);
  matrix.mutants = static_cast<std::int64_t>(order.size());
  matrix.mutants_digest = library.digest();
  if (const std::size_t all = ids_of(matrices).size(); matrix.rows.size() < all)
    say("{} of {} mutants of the files are not in this library\n", all - matrix.rows.size(), all);
  if (!options.profile_covers.empty()) {
    const std::set<std::string> ids = ids_of(matrices);
    write_profile_covers(options.profile_covers, joined(matrices, options.matrices, {ids.begin(), ids.end()}),
                         static_cast<std::uint64_t>(options.seed));
  }
  return conclude(options, library, matrix, {});
}

// A part of the cases of a record, each with all mutants that it kills: a case is judged without a mutant too, in one part alone.
std::vector<CaseLine> part_of(std::vector<CaseLine> cases, const ShardChoice& shard) {
  std::stable_sort(cases.begin(), cases.end(),
                   [](const CaseLine& a, const CaseLine& b) { return relative_cost(a) > relative_cost(b); });
  std::vector<CaseLine> part;
  for (std::size_t i = static_cast<std::size_t>(shard.index); i < cases.size(); i += static_cast<std::size_t>(shard.total))
    part.push_back(std::move(cases[i]));
  return part;
}

// Those that mutants are tried on: of a record its killers alone.
std::vector<CaseLine> cases_meant(const SelftestOptions& options, const Record& record, const ShardChoice& shard) {
  if (options.again.empty()) {
    const Profile profile = *profile_named(options.profile);
    return select(options.case_files.empty() ? catalogue(profile) : cases_of_files(options.case_files, profile), options.words)
        .cases;
  }
  std::vector<CaseLine> cases;
  std::set<std::string> texts;
  for (const auto& [id, line] : record.killers) {
    if (texts.insert(line).second) cases.push_back(parse_case_line(line));
  }
  return part_of(select(cases, options.words).cases, shard);
}

// Takes out the cases above --cost-limit; how many they were.
std::int64_t without_costly(const SelftestOptions& options, std::vector<CaseLine>& cases) {
  if (options.cost_limit == 0) return 0;
  return static_cast<std::int64_t>(
      std::erase_if(cases, [&](const CaseLine& each) { return relative_cost(each) > static_cast<double>(options.cost_limit); }));
}

// Recorded kills that were not made again, and mutants that the record does not have.
void tell_record(const SelftestOptions& options, const Record& record, const KillMatrix& matrix, std::int64_t fresh,
                 Outcome& outcome) {
  std::int64_t again = 0, lost = 0;
  for (const KillRow& row : matrix.rows) {
    if (!row.killers.empty()) {
      ++again;
    } else if (lost++ < options.show) {
      say("lost         {}\n  recorded as killed by {}\n", row.id, record.killers.at(row.id));
    }
  }
  say("record {}: {} kills made again, {} lost; {} mutants are not in it\n", options.again, again, lost, fresh);
  if (lost > 0) outcome.add(ExitCode::failed);
  const auto most = static_cast<std::int64_t>(kMostUnrecorded * static_cast<double>(record.killed.size()));
  if (fresh > most) {
    say("record {}: too old: expected at most {} mutants that are not in it (docs/selftest.md)\n", options.again, most);
    outcome.add(ExitCode::failed);
  }
}

// False: interrupted.
bool plant_in_passes(const SelftestOptions& options, const MutantLibrary& library, const Recording& recording,
                     const std::vector<const Mutant*>& mutants, PlantingLimits limits, std::vector<Planted>& planted) {
  const auto count = static_cast<std::int64_t>(recording.cases.size());
  const std::int64_t most = options.tries == 0 ? count : std::min<std::int64_t>(options.tries, count);
  for (std::int64_t tries = std::min(kFirstTries, most);; tries = std::min(tries * kMoreTries, most)) {
    limits.tries = static_cast<int>(tries);
    PartProgress progress(tries == kFirstTries || planted.empty() ? "planting" : fmt::format("trying up to {} cases", tries),
                          static_cast<std::int64_t>(mutants.size()));
    if (!plant(library, recording, mutants, limits, planted, std::ref(progress))) return false;
    if (tries == most) return true;
  }
}

ExitCode plant_mutants(const SelftestOptions& options, const MutantLibrary& library) {
  MutantSelection meant;
  meant.words = options.mutants, meant.families = options.families;
  const ShardChoice shard = options.shard.empty() ? ShardChoice() : shard_of(options.shard);
  if (options.again.empty()) meant.shard = shard.index, meant.shards = shard.total;
  for (const std::string& each : options.survivors_of) meant.not_killed_in.push_back(matrix_given("--survivors-of", each));
  meant.killers = options.killers;
  const Proofs proofs = options.unproved ? proofs_of(options, library.mutants()) : Proofs();
  if (options.unproved) meant.not_proved_in = &proofs;
  KillMatrix recorded;
  Record record;
  if (!options.again.empty()) record = record_of(recorded = matrix_given("--again", options.again));
  std::vector<const Mutant*> mutants = selected_mutants(library.mutants(), meant);
  std::vector<CaseLine> lines = cases_meant(options, record, shard);
  if (const std::int64_t left_out = without_costly(options, lines); left_out > 0)
    say("cases of a relative cost above {}: {} left out, {} remain\n", options.cost_limit, left_out, lines.size());
  const std::int64_t fresh =
      std::count_if(mutants.begin(), mutants.end(), [&](const Mutant* each) { return record.killed.count(each->id) == 0; });
  if (!options.again.empty()) {
    std::set<std::string> texts;
    for (const CaseLine& each : lines) texts.insert(to_text(each));
    std::erase_if(mutants, [&](const Mutant* each) {
      const auto killer = record.killers.find(each->id);
      return killer == record.killers.end() || each->benign || texts.count(killer->second) == 0;
    });
  }
  if (mutants.empty() || lines.empty()) {
    warn("assay selftest: nothing selected: {}\n",
         lines.empty() ? "no case has every word" : "no mutant is of the families and has one of the words");
    return ExitCode::nothing_selected;
  }

  Recording recording(std::move(lines), library.count());
  recording.order(static_cast<std::uint64_t>(options.seed));
  Outcome outcome;
  {
    PartProgress progress("recording", static_cast<std::int64_t>(recording.cases.size()));
    if (!record_cases(library, recording, options.again.empty() ? mutants : std::vector<const Mutant*>(), options.jobs,
                      std::ref(progress))) {
      warn("assay selftest: interrupted before a mutant was planted\n");
      return ExitCode::incomplete;
    }
  }
  for (const RecordedCase& each : recording.cases) {
    if (!each.is_fault) continue;
    say("without a mutant, this case does not pass:\n{}\n", each.why_not);
    outcome.add(ExitCode::failed);
  }
  if (!options.again.empty()) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < recording.cases.size(); ++i) numbers[recording.cases[i].text] = i;
    for (const Mutant* each : mutants) recording.try_on(numbers.at(record.killers.at(each->id)), *each);
  }
  prepare_cases(library, recording);
  PlantingLimits limits{options.again.empty() ? options.kills : 1, 0, options.jobs};
  std::vector<Planted> planted;
  const bool whole = plant_in_passes(options, library, recording, mutants, limits, planted);
  KillMatrix matrix = matrix_of(library, recording, mutants, planted);
  matrix.kills = limits.kills, matrix.tries = options.tries;
  matrix.profile = options.again.empty() ? options.profile : "of the record";
  matrix.words = options.words;
  if (options.cost_limit > 0) matrix.words.push_back(fmt::format("cost<={}", options.cost_limit));
  matrix.selected = meant.text();
  matrix.shard = fmt::format("{}/{}", shard.index, shard.total);
  matrix.seed = options.seed;
  if (!whole) {
    say("interrupted: {} of {} mutants were planted, not all of them in every case\n", matrix.rows.size(), mutants.size());
    outcome.add(ExitCode::incomplete);
  }
  if (!options.again.empty()) tell_record(options, record, matrix, fresh, outcome);
  return conclude(options, library, matrix, outcome);
}

void add_selftest_options(cli::App& verb, SelftestOptions& options) {
  verb.add_option("WORDS", options.words, "Only cases whose line or name has every word (as of run)");
  verb.add_option("--profile", options.profile, "The cases that have to find the mutants")
      ->check(cli::IsMember({"smoke", "standard", "full"}))
      ->capture_default_str();
  verb.add_option("--cases", options.case_files, "Cases of this file in place of the catalogue's; again for more")
      ->allow_extra_args(false);
  verb.add_option("--mutants", options.mutants,
                  "Only mutants with this text in their name or in what is wrong, such as minifloat.h or unit.sm90; * stands for "
                  "any text; again for others")
      ->allow_extra_args(false);
  verb.add_option("--family", options.families, "Only mutants of this family (points, once, options, ...); again for others")
      ->allow_extra_args(false);
  verb.add_option(
          "--survivors-of", options.survivors_of,
          "Only mutants that this earlier --json file of any profile has no kill of: its survivors, those that it did not reach, "
          "and those that it does not have; again for more files, of which none may have a kill")
      ->allow_extra_args(false);
  verb.add_option(
          "--killed-by-fewer", options.killers,
          "With --survivors-of: mutants that fewer cases than this kill there; 2 takes those too that hang on a single case")
      ->capture_default_str()
      ->check(cli::Range(1, 100'000));
  verb.add_flag("--unproved", options.unproved, "Only mutants without a written proof");
  verb.add_option("--kills", options.kills, "Cases that may kill a mutant before it is left; 2 show what hangs on a single case")
      ->capture_default_str()
      ->check(cli::Range(1, 100'000));
  verb.add_option("--tries", options.tries, "Cases that are judged for a mutant at most; 0: all in which it makes a difference")
      ->capture_default_str()
      ->check(cli::Range(0, 1'000'000));
  verb.add_option("--cost-limit", options.cost_limit,
                  "Only cases that cost at most as much as so many of the smallest ones; 0: all. What is left out is counted")
      ->capture_default_str()
      ->check(cli::Range(0, 1'000'000'000));
  verb.add_option("--jobs", options.jobs, "Processes at a time; default: as many as there are processors")
      ->check(cli::Range(1, 4096));
  verb.add_option("--shard", options.shard,
                  "Only the mutants of part I of N, as I/N from 0 to N-1; of --again those that this part of its cases kills");
  verb.add_option("--seed", options.seed, "Decides the order of cases of about the same cost")
      ->capture_default_str()
      ->check(cli::NonNegativeNumber);
  verb.add_option("--json", options.json, "Write the kill matrix to this file");
  verb.add_option("--list", options.list, "Write a line for each mutant to this file: the outcome, name, family, what is wrong");
  verb.add_option("--matrix", options.matrices,
                  "Plant nothing: join these --json files, as of shards, and report; again for more")
      ->allow_extra_args(false);
  verb.add_option("--again", options.again,
                  "Make the kills of this --record or --json file again, one for each mutant; a kill that is lost is a failure. "
                  "Profile and cases are "
                  "those of the file");
  verb.add_option("--cover", options.covers.cover,
                  "Write to this file case lines of which none can be left out and which kill every mutant that was killed");
  verb.add_option("--record", options.covers.record, "Write for --again which case of the cover kills each mutant");
  verb.add_option("--cover-times", options.covers.times, "Lines of the cover that have to kill a mutant, where there are so many")
      ->capture_default_str()
      ->check(cli::Range(1, 1000));
  verb.add_option(
      "--cover-profiles", options.profile_covers,
      "Write to this folder cover_smoke.txt and cover_standard.txt: the lines by which these profiles are complemented");
  verb.add_option("--proofs", options.proofs,
                  "Written proofs that a mutant is no fault, a file or a folder of files; default: conformance/selftest/proofs "
                  "of the sources");
  verb.add_option("--library", options.library, "The library of mutants; default: assay_mutants.so beside this program");
  verb.add_option("--show", options.show, "Survivors and failures that are printed, of each kind")
      ->capture_default_str()
      ->check(cli::Range(0, 1'000'000));
  // With --matrix nothing is planted.
  for (const char* const planting : {"WORDS", "--profile", "--cases", "--mutants", "--family", "--survivors-of", "--unproved",
                                     "--kills", "--tries", "--cost-limit", "--shard"}) {
    verb.get_option("--matrix")->excludes(verb.get_option(planting));
  }
}

}  // namespace

Action add_selftest(cli::App& verb) {
  const auto options = std::make_shared<SelftestOptions>();
  add_selftest_options(verb, *options);
  verb.footer(
      R"(Each case is judged once without a mutant, while the library notes which mutants would have changed anything. Then each
mutant is planted, and the cases in which it makes a difference are judged, the cheapest first, as run and repro judge them, until
--kills of them fail. A process that ends or hangs counts as a kill. The outcome of a mutant depends neither on --jobs nor on the machine.

killed        a case failed; `by one case`: of all in which it makes a difference, one
proved        no case failed, and a written proof says that none can
survived      no case failed: a case is missing, or a proof
not reached   it makes a difference in no case of the profile

Exit code 0: no mutant survived without a proof, no benign variation failed, and all kills of --again were made again. 1: otherwise.
2: wrong usage, or a library of another build. 4: no case or no mutant selected. 5: interrupted. docs/selftest.md says more.)");
  return [options] {
    try {
      for (const std::string& path : {options->json, options->covers.cover, options->covers.record, options->list}) {
        if (!path.empty()) check_output(path);
      }
      if (!options->profile_covers.empty()) check_output(options->profile_covers + "/cover_smoke.txt");
      if (options->matrices.empty() && !options->profile_covers.empty())
        throw cli::ValidationError("--cover-profiles", "is computed from recorded matrices: expected --matrix beside it");
      if (!options->matrices.empty() && !options->again.empty())
        throw cli::ValidationError("--again", "plants mutants: expected no --matrix beside it");
      fix_addresses();
      if (options->jobs == 0) options->jobs = thread_count();
      // One thread a process, in the library too.
      setenv("ASSAY_THREADS", "1", 1);
      unsetenv("ASSAY_MUTANT");
      const MutantLibrary library(options->library.empty() ? mutant_library_beside_program() : options->library);
      return options->matrices.empty() ? plant_mutants(*options, library) : report_matrices(*options, library);
    } catch (const cli::ValidationError& error) {
      warn("assay selftest: {}\n", error.what());
      return ExitCode::usage;
    }
  };
}

}  // namespace assay::conformance
