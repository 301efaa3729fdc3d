// assay predict [WORDS ...] --out FILE: expected outputs as digests, for assay run --predicted.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include <nlohmann/json.hpp>

#include "conformance/program/predict_case.h"
#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/program/run_source.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/report/predictions_file.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/support/parallel.h"
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

// Plan and unit that earlier runs have recorded, by case line.
using RecordedPlans = std::map<std::string, std::set<std::pair<std::string, std::string>>>;

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

json header_of(const PredictOptions& options, const RunSelection& selection, const ShardChoice& shard, Layer layer) {
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
  json header = run_header(verb, {}, options.run.backend, &text);
  header.erase("backend");
  header.erase("format");
  header.update(predictor_of(layer));
  header["asked"] = options.asks ? options.run.backend.words() : "";
  if (options.asks && options.run.backend.name == "reference")
    header["asked"] = " --backend reference" + options.run.backend.words();
  header["plans"] = options.plans;
  header["units_stated"] = options.units;
  header["record"] = "header";
  return header;
}

// The file as it grows. Safe from any thread.
class PredictionsWriter {
 public:
  PredictionsWriter(const PredictOptions& options, const json& header) {
    if (options.resume) {
      const BegunPredictions begun = begun_predictions(options.out, header);
      for (const json& each : begun.predictions) {
        sum_.add(each);
        if (each.at("case") != begun.last_case)
          done_.insert(each.at("case").get<std::string>());  // of the last one calls may be missing
        if (begun.has_summary) done_.insert(each.at("case").get<std::string>());
      }
      is_whole_ = begun.has_summary;
    }
    if (is_whole_) return;
    file_ = std::make_unique<ResultsFile>(options.out, options.resume);
    if (!options.resume) file_->append({header});
  }

  bool is_whole() const { return is_whole_; }
  bool has(const std::string& line) const { return done_.count(line) != 0; }

  void add(const std::string& line, const PredictedCase& made) {
    std::vector<json> entries;
    for (const auto& [call, outputs] : made.calls) entries.push_back(to_json(line, call, outputs));
    const std::lock_guard lock(mutex_);
    if (entries.empty()) {
      ++left_out_[made.why_not.empty() ? "no plan is known" : made.why_not];
      return;
    }
    for (const json& each : entries) sum_.add(each);
    done_.insert(line);
    file_->append(entries);
  }

  // Appends the summary, and says what the file holds.
  void finish(const std::string& path, std::size_t cases) {
    std::int64_t left_out = 0;
    for (const auto& [why, number] : left_out_) {
      say("not predicted, {} case{}: {}\n", number, number == 1 ? "" : "s", why);
      left_out += number;
    }
    if (is_whole_) {
      say("{} was whole already\n", path);
    } else {
      file_->append({{{"record", "summary"},
                      {"cases", cases},
                      {"predicted", done_.size()},
                      {"predictions", sum_.predictions()},
                      {"left_out", left_out_},
                      {"digest", sum_.hex()}}});
    }
    say("predicted: {} of {} cases, {} calls, digest {}: {}\n", done_.size(), cases, sum_.predictions(), sum_.hex(), path);
  }
  bool is_empty() const { return done_.empty(); }

 private:
  std::unique_ptr<ResultsFile> file_;
  bool is_whole_ = false;
  PredictionsDigest sum_;
  std::set<std::string> done_;
  std::map<std::string, std::int64_t> left_out_;
  std::mutex mutex_;
};

class Predictor {
 public:
  Predictor(const PredictOptions& options, Layer layer, PredictionsWriter& writer)
      : options_(options), layer_(layer), writer_(writer), recorded_(recorded_plans(options.stated)) {
    for (const std::string& each : options.plans) given_.plans_and_units.emplace_back(each, "");
    for (const std::string& each : options.units) given_.plans_and_units.emplace_back("", each);
  }

  void predict_all(const std::vector<CaseLine>& cases) {
    std::vector<const CaseLine*> small, large;
    for (const CaseLine& each : cases) {
      if (!writer_.has(to_text(each))) (is_large(each) ? large : small).push_back(&each);
    }
    Progress progress("predict", static_cast<std::int64_t>(small.size() + large.size()), !options_.run.quiet);
    for (const auto& [part, alone] : {std::pair{&small, false}, std::pair{&large, true}}) {
      const auto line_of = [part = part](std::int64_t i) -> const CaseLine& { return *(*part)[static_cast<std::size_t>(i)]; };
      const auto count = static_cast<std::int64_t>(part->size());
      const auto take = [&](const CaseLine& line, const PredictedCase& made) {
        if (!interrupted()) writer_.add(to_text(line), made);
        progress.done(to_text(line), false);
      };
      if (options_.asks) {
        judge_in_parallel(
            options_.run.backend, count,
            [&](std::int64_t i, Judged judged) {
              take(line_of(i), asked(judged, line_of(i)));
              return Verdict::passed;
            },
            [&](std::int64_t i, Judgement judgement) {
              take(line_of(i), {{}, judgement.text});
            },
            alone);
        continue;
      }
      parallel_for(count, alone ? std::max<std::int64_t>(count, 1) : 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end && !interrupted(); ++i) take(line_of(i), computed(line_of(i)));
      });
    }
  }

 private:
  PredictedCase computed(const CaseLine& line) const {
    StatedPlans plans = given_;
    const auto found = recorded_.find(to_text(line));
    if (found != recorded_.end())
      plans.plans_and_units.insert(plans.plans_and_units.end(), found->second.begin(), found->second.end());
    return predict_case(line, plans, layer_);
  }

  PredictedCase asked(Judged judged, const CaseLine& line) const {
    JudgeOptions options = options_.run.backend.judge_options();
    try {
      PredictedCase made = predict_case_for(judged.backend, line, options);
      judged.settle();
      return made;
    } catch (const BackendError& error) {
      return {{}, std::string("the backend fails as it is asked: ") + error.what()};
    }
  }

  const PredictOptions& options_;
  const Layer layer_;
  PredictionsWriter& writer_;
  const RecordedPlans recorded_;
  StatedPlans given_;
};

ExitCode predict(PredictOptions& options) {
  const ShardChoice shard = shard_of(options.run.shard);
  check_stated(options);
  if (!options.resume) check_output(options.out);
  std::string architecture = options.architecture;
  std::unique_ptr<Backend> opened;
  if (options.asks) {
    opened = options.run.backend.open();
    if (architecture.empty()) architecture = opened->device_info().architecture;
  }
  const RunSelection selection = select_for_run(cases_of(options.run, architecture), false, options.run.words, shard);
  for (const std::string& word : selection.unmatched)
    say("no case {} matches '{}'\n",
        options.run.case_files.empty() ? "of profile " + options.run.profile : "of the files in profile " + options.run.profile,
        word);
  if (!selection.unmatched.empty() || !selection.selected) return ExitCode::nothing_selected;

  const Layer layer = options.asks ? options.run.backend.judge_options().layer : Layer::fast;
  PredictionsWriter writer(options, header_of(options, selection, shard, layer));
  if (opened != nullptr) keep_open(options.run.backend, std::move(opened));
  if (!writer.is_whole()) Predictor(options, layer, writer).predict_all(selection.cases);
  if (options.asks) {
    Report faults(options.run.verb(), unopened(options.run.backend), 0);
    close_backends(faults);
    for (const CaseReport& each : faults.cases()) warn("assay predict: {}\n", each.judgement.text);
  }
  if (interrupted()) {
    say("interrupted: {} has no summary (--resume goes on)\n", options.out);
    return ExitCode::incomplete;
  }
  writer.finish(options.out, selection.cases.size());
  return writer.is_empty() && !selection.cases.empty() ? ExitCode::nothing_selected : ExitCode::passed;
}

}  // namespace

Action add_predict(cli::App& verb) {
  const auto options = std::make_shared<PredictOptions>();
  verb.add_option(
      "WORDS", options->run.words,
      "As of run: only cases whose name or line contains every word (globs allowed); a word that matches nothing is exit 4");
  verb.add_option("--out", options->out, "Write the predictions to this file")->required();
  verb.add_flag("--resume", options->resume, "Go on with this file: what it predicts is not computed again");
  add_selection_options(verb, options->run);
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
The cases of fixtures hold what is expected of them, and are not predicted.)");
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
