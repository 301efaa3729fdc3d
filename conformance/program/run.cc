// assay run [WORDS ...]: the suite on a backend.

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "conformance/program/case_files.h"
#include "conformance/program/run_journal.h"
#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/program/run_source.h"
#include "conformance/program/verbs.h"
#include "conformance/report/earlier_results.h"
#include "conformance/report/predictions_file.h"
#include "conformance/report/waivers.h"
#include "conformance/suites/failure_bundle.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/self_check.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "golden/io/replace_file.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

// NAME=VALUE is that value, NAME each value of the axis but its default, "all" each of every axis.
SettingsToTry settings_of(const RunOptions& options, Backend& backend) {
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
      throw cli::ValidationError("--axes", fmt::format("'{}': expected all, NAME or NAME=VALUE with an axis of backend {}: {}",
                                                       each, backend.name(), names.empty() ? "it has none" : names));
    }
  }
  return settings;
}

// Verdicts of an earlier run that are final: of cases all of whose settings were judged.
void take_earlier(const EarlierResults& earlier, Report& report) {
  std::map<std::pair<std::string, std::string>, std::vector<const nlohmann::json*>> by_case;
  for (const nlohmann::json& each : earlier.cases)
    by_case[{each.at("suite"), each.value("case", each.at("name").get<std::string>())}].push_back(&each);
  for (const auto& [key, entries] : by_case) {
    std::vector<CaseReport> reports;
    bool final = entries.size() == entries.back()->value("of", std::size_t{1});
    for (const nlohmann::json* each : entries) {
      reports.push_back(report_from(*each));
      const Verdict verdict = reports.back().judgement.verdict;
      final = final && (verdict == Verdict::passed || verdict == Verdict::failed || verdict == Verdict::flaky ||
                        verdict == Verdict::not_run || verdict == Verdict::unproven_skip);
    }
    if (!final) continue;
    for (CaseReport& each : reports) report.add_earlier(std::move(each));
  }
}

nlohmann::json header_of(const RunOptions& options, const SelectionText& text, const Report& report) {
  nlohmann::json header = run_header(options.verb(), report.tested(), options.backend, &text);
  if (!options.waivers.empty())
    header["waivers"] = {{"path", options.waivers}, {"sha256", golden::sha256_hex_of_file(options.waivers)}};
  for (const JudgingDevice& each : options.backend.devices)
    header["devices"].push_back({{"number", each.number}, {"name", each.name}});
  if (options.backend.predictions != nullptr) header["predicted"] = options.backend.predictions->files();
  return header;
}

// The header, the file of results and what an earlier run found. Errors: cli::ValidationError where that was another run.
void prepare_files(const RunOptions& options, const SelectionText& text, Report& report) {
  const std::string results = options.resume.empty() ? options.results : options.resume;
  if (options.json.empty() && results.empty()) return;
  const nlohmann::json header = header_of(options, text, report);
  report.set_header(header);
  if (results.empty()) return;
  EarlierResults earlier;
  if (!options.resume.empty()) {
    earlier = earlier_of("--resume", options.resume);
    if (const std::string difference = header_difference(earlier.header, header); !difference.empty()) {
      throw cli::ValidationError("--resume", fmt::format("{} is of another run: {}", options.resume, difference));
    }
  }
  try {
    take_earlier(earlier, report);
  } catch (const std::exception& error) {  // a line of another shape
    throw cli::ValidationError("--resume", fmt::format("{}: {}", options.resume, error.what()));
  }
  report.append_to(std::make_unique<ResultsFile>(results, !options.resume.empty()));
}

// Two outputs with one path would replace each other. Anything but a regular file can take both.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (std::filesystem::exists(one, none) && !std::filesystem::is_regular_file(one, none)) return false;
  const auto place = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(golden::link_target(path), none);
  };
  return place(one) == place(other);
}

void check_paths(const RunOptions& options) {
  if (const char* folder = std::getenv("ASSAY_GOLDEN");
      folder != nullptr && *folder != '\0' && !std::filesystem::is_directory(folder)) {
    throw cli::ValidationError("ASSAY_GOLDEN", fmt::format("'{}' is not a folder", folder));
  }
  if (!options.resume.empty() && !options.results.empty() && options.resume != options.results) {
    throw cli::ValidationError("--resume", "continues in its own file: leave --results out");
  }
  const std::string& results = options.resume.empty() ? options.results : options.resume;
  if (!options.json.empty() && !results.empty() && is_same_file(options.json, results)) {
    const char* option = options.resume.empty() ? "--results" : "--resume";
    throw cli::ValidationError("--json", fmt::format("{} is the file of {} too: expected another", options.json, option));
  }
  if (!options.json.empty()) check_output(options.json);
  if (!options.results.empty()) check_output(options.results);
}

// Whether what was asked for is there; if not, a line says so.
bool is_there(const RunOptions& options, const RunSelection& selection) {
  const std::string files = names_of_files(options.case_files);
  for (const std::string& word : selection.unmatched) {
    if (options.case_files.empty()) {
      say("no case of profile {} and no fixture matches '{}' (assay list --profile {} shows the names)\n", options.profile, word,
          options.profile);
    } else {
      say("no case of {} in profile {}{} matches '{}'\n", files, options.profile, options.fixtures ? " and no fixture" : "",
          word);
    }
  }
  if (selection.unmatched.empty() && selection.all.empty() && !options.fixtures)
    say("no case of {} is in profile {}\n", files, options.profile);
  return selection.unmatched.empty() && (!selection.all.empty() || options.fixtures);
}

std::string plural(std::size_t number, const char* what) { return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s"); }

// The selection as reports and files of results give it.
SelectionText text_of(const RunOptions& options, const RunSelection& selection, const ShardChoice& shard) {
  const bool random = options.random > 0;
  SelectionText text{random ? "" : options.profile,
                     options.case_files,
                     options.words,
                     shard.text(),
                     options.random,
                     random ? options.seed : 0,
                     options.algorithms,
                     0,
                     {},
                     "",
                     0,
                     ""};
  for (const std::string& each : options.try_axes) text.settings += " " + each;
  text.cases = static_cast<std::int64_t>(selection.cases.size());
  for (const std::filesystem::path& file : selection.files) text.fixtures.push_back(file.filename().string());
  text.whole_cases = static_cast<std::int64_t>(selection.chosen.size());
  if (!options.json.empty() || !options.results.empty() || !options.resume.empty() || !options.journal.empty()) {
    text.sha256 = digest_of(selection);
    if (shard.total > 1) text.whole_sha256 = whole_digest_of(selection);
  }
  return text;
}

// The backend on the devices after the first: all are opened before anything is judged. Errors: BackendError; cli::ValidationError for
// another device than the first.
std::vector<std::unique_ptr<Backend>> opened_on_others(const BackendChoice& choice, const TestedBackend& first) {
  std::vector<std::unique_ptr<Backend>> opened;
  for (std::size_t i = 1; i < choice.devices.size(); ++i) {
    opened.push_back(choice.open(i));
    const assay_device_info info = opened.back()->device_info();
    if (info.name == first.device && info.architecture == first.architecture) continue;
    throw cli::ValidationError(
        "--device",
        fmt::format("the backend says that device {} is {} ({}), and device {} is {} ({}): expected devices of one model",
                    choice.devices[0].number, first.device, first.architecture, choice.devices[i].number, info.name,
                    info.architecture));
  }
  return opened;
}

// Predictions that the reference contradicts are faults of their files.
void note_wrong_predictions(const RunOptions& options, Report& report) {
  if (options.backend.predictions == nullptr) return;
  for (const auto& [file, fault] : options.backend.predictions->faults()) report.bad_fixture(file, fault);
}

// What this run leaves out, so that a report of it says so.
void note_not_judged(const RunOptions& options, const RunSelection& selection, const ShardChoice& shard,
                     const std::string& no_device, Report& report) {
  if (selection.selected && report.cases().empty())
    report.note_empty_shard(shard.text());  // other shards judge what was selected
  if (options.whole_catalogue() && selection.files.empty()) {
    report.not_tried("fixtures", fmt::format("none in {} (ASSAY_GOLDEN sets the folder)", golden_folder().string()));
  }
  if (options.random <= 0 && report.tested().built_in && options.backend.name != "device") {
    report.not_tried("device cases",
                     no_device.empty() ? "--backend device judges the CUDA implementation, where there is one" : no_device);
  }
}

ExitCode run(RunOptions& options, const std::string& no_device) {
  const ShardChoice shard = shard_of(options.shard);
  check_paths(options);
  check_journal_options(options, shard);
  const bool random = options.random > 0, with_fixtures = options.of_catalogue() || options.fixtures;
  if (const std::string missing = with_fixtures ? missing_fixtures() : ""; !missing.empty()) {
    warn("assay run: the fixtures that belong to the program are not there: {} (ASSAY_GOLDEN names another folder)\n", missing);
    return ExitCode::machine_failed;
  }
  Claimed claimed;
  for (const std::string& each : options.require) claimed.requirements.push_back(required(each));
  check_levels(options, claimed.requirements);
  const std::optional<EarlierResults> baseline = options.baseline.empty() ? std::nullopt : std::optional(baseline_of(options));

  std::vector<Waiver> waivers;
  if (!options.waivers.empty()) waivers = read_waivers(options.waivers);

  if (!options.predicted.empty()) {
    options.backend.predictions =
        std::make_shared<Predictions>(options.predicted, options.backend.judge_options().layer, options.predicted_only);
  }

  options.backend.devices = devices_given(options.device, options.backend.name, false);
  std::unique_ptr<Backend> opened = options.backend.open();
  options.backend.open_expecting();  // opened before anything is judged, so that a failure shows at once
  const TestedBackend tested = tested_backend_of(*opened, options.backend);
  std::vector<std::unique_ptr<Backend>> others = opened_on_others(options.backend, tested);
  Backend& backend = *opened;
  Report report(options.verb(), tested, options.show);
  if (!options.waivers.empty()) report.use_waivers({std::move(waivers), tested, today()});
  if (const std::string note = backend.note(); !note.empty()) report.note(note);
  const SettingsToTry settings = settings_of(options, backend);
  if (random || settings.any()) report.tell_settings();
  const RunSelection selection =
      select_for_run(cases_of(options, report.tested().architecture), with_fixtures, options.words, shard);
  if (!is_there(options, selection)) return ExitCode::nothing_selected;

  fill(claimed, options, selection, shard);
  for (const Level& each : claimed.requirements) {
    if (each.fixtures.empty() && required_by(each, claimed.texts, claimed.names).empty()) {
      std::vector<std::string_view> known;
      for (const Level& level : levels()) known.push_back(level.name);
      say("no case of {} is required by '{}'{}\n", options.kind(), each.name, did_you_mean(each.name, known));
      return ExitCode::nothing_selected;
    }
  }

  const SelectionText text = text_of(options, selection, shard);
  std::string devices;
  for (const JudgingDevice& each : options.backend.devices)
    devices += (!devices.empty()                      ? ", "
                : options.backend.devices.size() == 1 ? "; device "
                                                      : "; devices ") +
               std::to_string(each.number);
  warn("assay: judging {}{}{}: {}, {}, {}\n", report.tested().text(), devices,
       no_device.empty() ? "" : " (no device: " + no_device + ")", options.verb(), plural(selection.cases.size(), "case"),
       plural(selection.files.size(), "fixture file"));
  prepare_files(options, text, report);
  if (!options.save_got.empty()) {
    options.backend.save_got =
        std::make_shared<BundleFolder>(options.save_got, header_text(options.verb(), report.tested(), options.backend, &text));
  }

  keep_open(options.backend, std::move(opened));
  for (std::size_t i = 0; i < others.size(); ++i) keep_open(options.backend, std::move(others[i]), i + 1);
  if (!options.journal.empty()) {
    run_with_journal(options, selection, settings, header_of(options, text, report), report);
    close_backends(report);
    note_wrong_predictions(options, report);
    if (interrupted()) report.note_interrupted();
    report.conclude(options.json);
    return report.exit_code();
  }
  judge_lines(selection.cases, options.backend, settings, !options.quiet, report);
  if (!interrupted() && !selection.files.empty()) {
    judge_fixtures(selection.files, selection.fixture_words, options.backend, !options.quiet, report, FixtureWords::whole_path,
                   shard.index, shard.total);
  }
  if (!interrupted() && options.whole_catalogue()) self_check(report, !options.quiet, shard.index, shard.total);
  close_backends(report);
  note_wrong_predictions(options, report);
  if (interrupted()) report.note_interrupted();
  note_not_judged(options, selection, shard, no_device, report);
  if (options.backend.save_got != nullptr) tell_saved(*options.backend.save_got, report);
  Claims claims = claims_of(claimed, report.cases());
  if (baseline) compare_with(claims, claimed, options.baseline, *baseline, report.cases());
  report.set_claims(std::move(claims));
  report.conclude(options.json);
  return report.exit_code();
}

}  // namespace

Action add_run(cli::App& verb) {
  const auto options = std::make_shared<RunOptions>();
  const cli::Option* const named = add_run_options(verb, *options);
  return [options, named] {
    try {
      const BackendAvailability availability = backend_availability(named->count() != 0 || !options->backend.options.empty());
      const BackendDecision decision = decide_backend(availability);
      if (decision.choice == BackendDecision::Choice::refused) {
        warn("assay run: {}\n", decision.text);
        return ExitCode::machine_failed;
      }
      if (decision.choice == BackendDecision::Choice::device) options->backend.name = "device";
      return run(*options, decision.choice == BackendDecision::Choice::reference ? decision.text : "");
    } catch (const BackendFault& fault) {  // before the first case
      Report report(options->verb(), unopened(options->backend), options->show);
      report.add(report_of_open(fault));
      if (interrupted()) report.note_interrupted();
      report.conclude(options->json);
      return report.exit_code();
    } catch (const cli::ValidationError& error) {
      warn("assay run: {}\n", error.what());
      return ExitCode::usage;
    }
  };
}

}  // namespace assay::conformance
