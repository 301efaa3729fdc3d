// assay predict [WORDS ...] --out FILE | --journal FOLDER: expected outputs as digests, for assay run --predicted.

#include <fmt/format.h>

#include <set>

#include <nlohmann/json.hpp>

#include "conformance/program/predict_cases.h"
#include "conformance/program/run_journal.h"
#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/program/run_source.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/suites/journal_worker.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/shards.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

struct PredictOptions {
  RunOptions run;  // the selection, and the backend that is asked
  std::string out;
  std::vector<std::string> plans, units, stated;
  std::string architecture;
  bool resume = false;
  bool asks = false;  // --backend was given
};

RecordedPlans recorded_plans(const std::vector<std::string>& paths) {
  RecordedPlans recorded;
  for (const std::string& path : paths) {
    const EarlierResults earlier = earlier_of("--stated", path);
    for (const json& each : earlier.cases) {
      const std::string line = each.value("case", "");
      if (line.empty()) continue;
      const std::string plans = each.value("plan", "");  // of a scenario several: "A, B"
      for (std::size_t at = 0; at <= plans.size();) {
        const std::size_t end = std::min(plans.find(", ", at), plans.size());
        recorded[line].emplace(plans.substr(at, end - at), each.value("unit", ""));
        at = end + 2;
      }
    }
  }
  return recorded;
}

void check_stated(const PredictOptions& options) {
  for (const std::string& each : options.plans)
    require(find_accumulation_plan(each) != nullptr, "--plan", each,
            "the name or the line of an accumulation plan (assay list --plans)");
  for (const std::string& each : options.units)
    require(find_tensor_core_unit(each) != nullptr, "--unit", each, "a row of the tensor-core table (assay list --units)");
  if (options.asks && (!options.plans.empty() || !options.units.empty() || !options.stated.empty()))
    throw cli::ValidationError("--backend", "with --plan, --unit or --stated: the backend itself states what it follows");
}

json header_of(const PredictOptions& options, const TestedBackend& asked, const RunSelection& selection, const ShardChoice& shard,
               Layer layer, const std::string& architecture) {
  SelectionText text;
  text.profile = options.run.random > 0 ? "" : options.run.profile;
  text.case_files = options.run.case_files;
  text.words = options.run.words;
  text.shard = shard.text();
  text.random = options.run.random;
  text.seed = options.run.random > 0 ? options.run.seed : 0;
  text.cases = static_cast<std::int64_t>(selection.cases.size());
  text.sha256 = digest_of(selection);
  text.whole_cases = static_cast<std::int64_t>(selection.chosen.size());
  if (shard.total > 1) text.whole_sha256 = whole_digest_of(selection);
  std::string verb = options.run.verb();
  verb.replace(0, 3, "predict");  // of "run ..."
  json header = run_header(verb, asked, options.run.backend, &text);
  if (options.asks) header["library"] = header.at("backend").at("library").at("sha256");
  header.erase("backend");
  header.erase("format");
  header.update(predictor_of(layer));
  header["asked"] = options.asks ? options.run.backend.words() : "";
  if (options.asks && options.run.backend.name == "reference")
    header["asked"] = " --backend reference" + options.run.backend.words();
  header["plans"] = std::set<std::string>(options.plans.begin(), options.plans.end());
  header["units_stated"] = std::set<std::string>(options.units.begin(), options.units.end());
  std::set<std::string> stated;
  for (const std::string& each : options.stated) stated.insert(golden::sha256_hex_of_file(each));
  header["stated"] = stated;
  if (options.run.random > 0) header["architecture"] = architecture;
  header["record"] = "header";
  return header;
}

// Cases that no backend could be asked about: another machine, or another time, may do better.
ExitCode say_not_asked(const PredictionsWriter& writer, const char* remedy) {
  warn("assay predict: {} case{} not asked about: {} ({})\n", writer.not_asked(), writer.not_asked() == 1 ? " was" : "s were",
       writer.why_not_asked(), remedy);
  return ExitCode::machine_failed;
}

// Into one file. A file that was begun is gone on with.
ExitCode predict_to_file(const PredictOptions& options, const json& header, const std::vector<CaseLine>& cases,
                         const Predictor& predictor) {
  const RecordedPredictions known = options.resume ? begun_predictions(options.out, header) : RecordedPredictions();
  std::unique_ptr<ResultsFile> file;  // none: it is whole
  if (!known.has_summary) file = std::make_unique<ResultsFile>(options.out, options.resume);
  if (!options.resume) file->append({header});
  PredictionsWriter writer(std::move(file), known);
  if (!known.has_summary) predictor.predict(cases, writer);
  if (interrupted()) {
    say("interrupted: {} has no summary (--resume goes on)\n", options.out);
    return ExitCode::incomplete;
  }
  if (writer.not_asked() > 0) return say_not_asked(writer, "--resume goes on");
  say_left_out(writer.left_out());
  if (known.has_summary) {
    say("{} was whole already\n", options.out);
  } else {
    writer.finish(cases.size());
  }
  say("predicted: {} of {} cases, {} calls, digest {}: {}\n", writer.predicted(), cases.size(), writer.digest().predictions(),
      writer.digest().hex(), options.out);
  return writer.predicted() == 0 && !cases.empty() ? ExitCode::nothing_selected : ExitCode::passed;
}

class JournalPrediction : public JournalWorker {
 public:
  JournalPrediction(Journal& journal, const std::vector<CaseLine>& cases, const Predictor& predictor)
      : JournalWorker(journal), cases_(cases), predictor_(predictor) {
    if (journal.settings().blocks > 0) lines_ = shards_of(cases, journal.settings().blocks);  // as the first worker divided them
  }
  ExitCode exit_code() const { return code_; }

 private:
  void begin(const std::vector<std::string>& earlier) override {
    known_ = {};
    for (const std::string& path : earlier) {
      try {
        known_.merge(recorded_predictions(path));
      } catch (const golden::FixtureError&) {  // its worker died before it wrote a line
      }
    }
  }

  bool do_block(std::int64_t block, std::unique_ptr<ResultsFile> file) override {
    std::vector<CaseLine> cases;
    for (const std::size_t each : lines_[static_cast<std::size_t>(block)]) cases.push_back(cases_[each]);
    PredictionsWriter writer(std::move(file), known_);
    predictor_.predict(cases, writer);
    if (writer.not_asked() > 0) code_ = say_not_asked(writer, "workers of other machines go on");
    return writer.not_asked() == 0;
  }

  void lost(std::int64_t block, std::int64_t appends) override {
    say("another worker took block {} over: {} cases of this one are not in the journal\n", block, appends);
  }

  const std::vector<CaseLine>& cases_;
  const Predictor& predictor_;
  std::vector<std::vector<std::size_t>> lines_;
  RecordedPredictions known_;  // of the block
  ExitCode code_ = ExitCode::passed;
};

ExitCode predict_with_journal(const PredictOptions& options, const json& header, const std::vector<CaseLine>& cases,
                              const Predictor& predictor) {
  const std::string& folder = options.run.journal;
  Journal journal(folder, header, {blocks_of_cases(cases, options.run.blocks), static_cast<double>(options.run.lease_s)});
  JournalPrediction worker(journal, cases, predictor);
  const std::int64_t finished = worker.work();
  say("{}\n", worker_text(journal, folder, finished, "predictions"));
  for (const std::int64_t each : journal.given_up()) say("{}\n", given_up_text(each));
  if (worker.exit_code() != ExitCode::passed) return worker.exit_code();
  if (interrupted()) say("interrupted: other workers, or another call of this command, go on\n");
  return interrupted() || !journal.given_up().empty() ? ExitCode::incomplete : ExitCode::passed;
}

// Where the predictions go. Errors: cli::ValidationError.
void check_place(const PredictOptions& options, const ShardChoice& shard) {
  const bool has_journal = !options.run.journal.empty();
  if (!has_journal && options.out.empty())
    throw cli::ValidationError("--out", "is absent: expected --out FILE or --journal FOLDER");
  if (!has_journal && !options.resume) check_output(options.out);
  if (!has_journal) return;
  if (!options.out.empty() || options.resume) {
    throw cli::ValidationError(
        "--journal", "with --out or --resume: the journal holds the predictions, and assay merge writes them to one file");
  }
  check_journal_shard(shard);
}

ExitCode predict(PredictOptions& options) {
  const ShardChoice shard = shard_of(options.run.shard);
  check_stated(options);
  check_place(options, shard);
  std::string architecture = options.architecture;
  std::unique_ptr<Backend> opened;
  TestedBackend asked;
  if (options.asks) {
    opened = options.run.backend.open();
    asked = tested_backend_of(*opened, options.run.backend);
    if (architecture.empty()) architecture = asked.architecture;
  }
  const RunSelection selection = select_for_run(cases_of(options.run, architecture), false, options.run.words, shard);
  for (const std::string& word : selection.unmatched)
    say("no case {} matches '{}'\n",
        options.run.case_files.empty() ? "of profile " + options.run.profile : "of the files in profile " + options.run.profile,
        word);
  if (!selection.unmatched.empty() || !selection.selected) return ExitCode::nothing_selected;

  const Layer layer = options.asks ? options.run.backend.judge_options().layer : Layer::fast;
  const json header = header_of(options, asked, selection, shard, layer, architecture);
  if (opened != nullptr) keep_open(options.run.backend, std::move(opened));
  StatedPlans given;
  for (const std::string& each : options.plans) given.plans_and_units.emplace_back(each, "");
  for (const std::string& each : options.units) given.plans_and_units.emplace_back("", each);
  const Predictor predictor(options.run.backend, options.asks, given, recorded_plans(options.stated), layer, !options.run.quiet);
  const ExitCode code = options.run.journal.empty() ? predict_to_file(options, header, selection.cases, predictor)
                                                    : predict_with_journal(options, header, selection.cases, predictor);
  if (options.asks) {
    Report faults(options.run.verb(), unopened(options.run.backend), 0);
    close_backends(faults);
    for (const CaseReport& each : faults.cases()) warn("assay predict: {}\n", each.judgement.text);
  }
  return code;
}

}  // namespace

Action add_predict(cli::App& verb) {
  const auto options = std::make_shared<PredictOptions>();
  verb.add_option(
      "WORDS", options->run.words,
      "As of run: only cases whose name or line contains every word (globs allowed); a word that matches nothing is exit 4");
  verb.add_option("--out", options->out, "Write the predictions to this file");
  verb.add_flag("--resume", options->resume, "Go on with this file: what it predicts is not computed again");
  add_selection_options(verb, options->run);
  add_journal_options(verb, options->run);
  verb.add_option("--architecture", options->architecture,
                  "With --random: the device's, as sm90, by which run chooses types; by default that of --backend");
  verb.add_option("--plan", options->plans,
                  "Predict products under this accumulation plan, by name or as a line (assay list --plans); again for more")
      ->allow_extra_args(false);
  verb.add_option(
          "--unit", options->units,
          "Predict for a backend that states this unit and no plan (assay list --units): products of one step; again for more")
      ->allow_extra_args(false);
  verb.add_option("--stated", options->stated,
                  "A file of --results or --json of an earlier run: predict each case under the plan that was stated there; "
                  "again for more")
      ->allow_extra_args(false);
  add_judge_options(verb, options->run.backend);
  verb.remove_option(verb.get_option("--expect-by"));
  cli::Option* named = verb.get_option("--backend")->default_str("none is asked");
  verb.add_flag("--quiet", options->run.quiet, "No progress");
  verb.footer(
      R"(Digests of the outputs that run would expect, by case line, computed without the device: assay run --predicted FILE compares with
them. A product has other bits under another accumulation plan. Which plans are predicted:
  --backend NAME           those that this backend states, if it opens on this machine; no call is made
  --stated, --plan, --unit what these say
  none of these            the plan of the reference (assay list --plans), and for inputs that every order of sums gives one
                           result, that one
A run computes what it does not find: under another plan, bounds; it says how many cases that were.
The cases of fixtures hold what is expected of them, and are not predicted.
Files of shards, and journals, are joined by assay merge: the file that it writes has the same bytes however the work was divided.)");
  return [options, named] {
    options->asks = named->count() != 0;
    try {
      return predict(*options);
    } catch (const cli::ValidationError& error) {
      warn("assay predict: {}\n", error.what());
      return ExitCode::usage;
    } catch (const BackendError& error) {
      warn("assay predict: {}: --plan and --stated predict without the backend\n", error.what());
      return ExitCode::machine_failed;
    }
  };
}

}  // namespace assay::conformance
