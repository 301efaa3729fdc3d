// assay merge RESULTS... -o FILE: the result files of shards, or the journal of workers, as those of one run. The same of predictions.

#include "conformance/report/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/program/merged_selection.h"
#include "conformance/program/run_items.h"
#include "conformance/program/run_source.h"
#include "conformance/program/verbs.h"
#include "conformance/report/merge_predictions.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/version.h"
#include "conformance/report/waivers.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

struct MergeOptions {
  std::vector<std::string> results;
  std::string output, json, baseline, waivers;
  std::vector<std::string> require;
  int show = 10;
};

TestedBackend tested_of(const nlohmann::json& header) {
  const nlohmann::json& backend = header.at("backend");
  TestedBackend tested{backend.at("name"), backend.at("device"), backend.at("architecture"), backend.at("software"),
                       backend.at("library").at("path")};
  tested.built_in = backend.at("built_in");
  return tested;
}

// Titles of selected cases without a verdict.
std::vector<std::string> missing_cases(const MergedRun& merged, const SelectedAgain& again) {
  std::set<std::pair<std::string, std::string>> judged;
  for (const CaseReport& each : merged.cases) judged.emplace(each.suite, each.line.empty() ? each.name : each.line);
  std::vector<std::string> missing;
  for (const RunItem& each : items_of(again.selection, again.options.whole_catalogue())) {
    if (judged.count({each.suite, each.key}) == 0) missing.push_back(each.title);
  }
  return missing;
}

// Names what has no verdict.
void note_missing(const MergedRun& merged, const SelectedAgain& again, int show, Report& report) {
  if (const std::string shards = missing_shards(merged.files); !shards.empty()) report.note_unfinished(shards);
  say_not_ended(merged.files, "run");
  if (again.why_not.empty()) {
    const std::vector<std::string> cases = missing_cases(merged, again);
    say_some("missing", cases, show);
    if (!cases.empty())
      report.note_unfinished(fmt::format("{} selected case{} no verdict", cases.size(), cases.size() == 1 ? " has" : "s have"));
    return;
  }
  report.note("cases without a verdict are counted, not named: " + again.why_not);
  std::int64_t generated = 0;
  bool ended = true;
  std::set<std::string> names;
  for (const CaseReport& each : merged.cases) generated += each.suite == kGenerated && names.insert(each.line).second;
  for (const MergedFile& each : merged.files) ended = ended && each.ended;
  if (generated < merged.whole_cases)
    report.note_unfinished(
        fmt::format("{} of {} generated cases have no verdict", merged.whole_cases - generated, merged.whole_cases));
  if (!ended) report.note_unfinished("a part of the run did not end");
}

// What the parts say beside their verdicts.
void take_notes(const MergedRun& merged, Report& report) {
  std::set<std::string> seen;
  for (const nlohmann::json& each : merged.others) {
    for (const nlohmann::json& left : each.value("not_tried", nlohmann::json::array())) {
      if (seen.insert(left.dump()).second) report.not_tried(left.at("what"), left.at("why"));
    }
    for (const nlohmann::json& bad : each.value("bad_fixtures", nlohmann::json::array())) {
      if (seen.insert(bad.dump()).second) report.bad_fixture(bad.at("file"), bad.at("why"));
    }
    for (const nlohmann::json& note : each.value("notes", nlohmann::json::array())) report.note(note);
  }
}

Claims claims_for(const MergeOptions& options, const SelectedAgain& again, const std::vector<Level>& requirements,
                  const std::vector<CaseReport>& cases) {
  Claimed claimed;
  claimed.requirements = requirements;
  fill(claimed, again.options, again.selection, {});
  Claims claims = claims_of(claimed, cases);
  if (options.baseline.empty()) return claims;
  RunOptions compared = again.options;
  compared.baseline = options.baseline;
  compare_with(claims, claimed, options.baseline, baseline_of(compared), cases);
  return claims;
}

// Whether all files hold predictions. Errors: golden::FixtureError where some do and some do not.
bool are_predictions(const MergeOptions& options) {
  const auto count = std::count_if(options.results.begin(), options.results.end(), holds_predictions);
  if (count == 0) return false;
  for (const std::string& each : options.results) {
    if (!holds_predictions(each))
      throw golden::FixtureError(each, "", "holds no predictions, and other files do: expected files of one kind");
  }
  for (const auto& [option, is_given] :
       {std::pair{"--json", !options.json.empty()}, std::pair{"--require", !options.require.empty()},
        std::pair{"--baseline", !options.baseline.empty()}, std::pair{"--waivers", !options.waivers.empty()}}) {
    if (is_given) throw cli::ValidationError(option, "is of verdicts: these are files of predictions");
  }
  return true;
}

ExitCode merge(const MergeOptions& options) {
  if (are_predictions(options)) return merge_prediction_files(options.results, options.output, options.show);
  for (const std::string& path : {options.output, options.json}) {
    if (!path.empty()) check_output(path);
  }
  std::vector<Level> requirements;
  for (const std::string& each : options.require) requirements.push_back(required(each));
  std::vector<RunPart> parts;
  for (const std::string& path : options.results) {
    for (RunPart& each : read_parts(path)) parts.push_back(std::move(each));
  }
  MergedRun merged = merge_parts(std::move(parts));
  std::vector<Waiver> waivers;
  if (!options.waivers.empty()) {
    waivers = read_waivers(options.waivers);
    merged.header["waivers"] = {{"path", options.waivers}, {"sha256", golden::sha256_hex_of_file(options.waivers)}};
  } else if (merged.header.contains("waivers")) {
    throw cli::ValidationError("--waivers", "is absent: the shards were run with waivers");
  }
  const SelectedAgain again = select_again(merged.header);
  if (!again.why_not.empty() && (!requirements.empty() || !options.baseline.empty()))
    throw cli::ValidationError("--require and --baseline", "the cases cannot be selected again: " + again.why_not);
  check_levels(again.options, requirements);

  Report report(merged.header.at("verb"), tested_of(merged.header), options.show);
  report.set_header(merged.header);
  report.took(merged.seconds);
  if (!options.waivers.empty()) report.use_waivers({std::move(waivers), tested_of(merged.header), today()});
  say_some("twice", merged.twice, options.show);
  say_same_files(merged.same_files);
  for (const CaseReport& each : merged.cases) report.add(each);
  if (!merged.header.at("selection").at("settings").get<std::string>().empty()) report.tell_settings();
  take_notes(merged, report);
  note_missing(merged, again, options.show, report);
  if (again.why_not.empty()) report.set_claims(claims_for(options, again, requirements, report.cases()));
  say("merged: {} file{}, {} verdicts, digest {}\n", merged.files.size(), merged.files.size() == 1 ? "" : "s",
      report.cases().size(), report.digest());
  report.conclude(options.json);
  if (!options.output.empty()) write_output(options.output, results_text(report.json()));
  return report.exit_code();
}

}  // namespace

Action add_merge(cli::App& verb) {
  const auto options = std::make_shared<MergeOptions>();
  verb.add_option("RESULTS", options->results,
                  "Files of --results or --json of the shards of one run, or folders of --journal, in any order; or all of these "
                  "of assay predict")
      ->required();
  verb.add_option("-o,--output", options->output,
                  "Write all verdicts to this file, as --results of one run would, or all predictions, as one predict would");
  verb.add_option("--json", options->json, "Write them to this file as --json of one run would");
  verb.add_option("--require", options->require,
                  "As of run: a level, words of case lines or a file of such lines; a required case that does not pass is a "
                  "failure; again for more")
      ->allow_extra_args(false);
  verb.add_option("--baseline", options->baseline,
                  "As of run: an earlier file; a case that passed there and does not here is a failure");
  verb.add_option("--waivers", options->waivers, "As of run: a file of known failures that do not count until a day");
  verb.add_option("--show", options->show, "Failures, missing cases and cases in two files that are printed, of each kind")
      ->capture_default_str()
      ->check(cli::Range(0, 1'000'000));
  verb.footer(
      R"(The files must be of one run: the same program and commit, backend, library, device, options, selection and settings. Files of
different runs, and files with different verdicts on one case, are refused (exit 3, nothing is written). A shard or a case
without a verdict is named, and the exit code is 5; the file says so too. The digest is one of all verdicts: it does not depend on
the number of shards, their order, times or machines, and equals that of one run without shards.
Files of predictions are joined alike, and FILE has the same bytes however the work was divided.)");
  return [options] {
    try {
      return merge(*options);
    } catch (const cli::ValidationError& error) {
      warn("assay merge: {}\n", error.what());
      return ExitCode::usage;
    }
  };
}

}  // namespace assay::conformance
