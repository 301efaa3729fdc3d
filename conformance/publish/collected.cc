#include "conformance/publish/collected.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "conformance/report/earlier_results.h"
#include "conformance/report/failure_parts.h"
#include "conformance/report/json_text.h"
#include "conformance/report/report_counts.h"
#include "conformance/suites/backend_choice.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

struct ReadRun {
  PublishedRun run;
  PublishedImplementation implementation;
  TestedBackend tested;
  json summary;
  std::string backend_words;
  std::vector<CaseReport> cases;
};

auto identity_of(const PublishedImplementation& each) {
  return std::tie(each.name, each.software, each.device, each.architecture, each.options, each.algorithm, each.axes, each.sha256);
}

std::string joined_words(const json& words, bool quote) {
  std::string text;
  if (!words.is_array()) return text;
  for (const json& each : words) {
    const std::string word = each.get<std::string>();
    text += (text.empty() ? "" : " ") + (quote ? conformance::quoted(word) : word);
  }
  return text;
}

void read_run_header(const json& header, ReadRun& read) {
  PublishedRun& run = read.run;
  run.date = text_at(header, "/date");
  run.verb = text_at(header, "/verb");
  run.arguments = joined_words(header.value("arguments", json::array()), true);
  run.program = "assay " + text_at(header, "/assay");
  run.commit = text_at(header, "/commit");
  run.host = text_at(header, "/host/name");
  run.system = text_at(header, "/host/system");
  if (const json::json_pointer threads("/host/threads"); header.contains(threads)) run.threads = header.at(threads);
  const json& backend = header.at("backend");
  PublishedImplementation& made = read.implementation;
  made.built_in = backend.value("built_in", false);
  made.library = text_at(backend, "/library/path");
  const bool named = made.built_in || made.library.empty();
  made.name = named ? backend.at("name").get<std::string>() : std::filesystem::path(made.library).filename().string();
  made.software = backend.value("software", "");
  made.device = backend.value("device", "");
  made.architecture = backend.value("architecture", "");
  made.options = backend.value("options", "");
  made.axes = joined_words(backend.value("axes", json::array()), false);
  if (const std::int64_t algorithm = backend.value("algorithm", std::int64_t{-1}); algorithm >= 0)
    made.algorithm = std::to_string(algorithm);
  if (!made.built_in) made.sha256 = text_at(backend, "/library/sha256");
  read.tested = {backend.at("name"), made.device, made.architecture, made.software, made.library, made.built_in};
  read.backend_words = " --backend " + conformance::quoted(named ? made.name : made.library);
  if (!made.options.empty()) read.backend_words += " --backend-options " + conformance::quoted(made.options);
  if (!made.algorithm.empty()) read.backend_words += " --algorithm " + made.algorithm;
}

ReadRun read_run(const std::string& path) {
  ReadRun read;
  EarlierResults results = read_results(path);
  read.run.file = std::filesystem::path(path).filename().string();
  read.run.sha256 = golden::sha256_hex_of_file(path);
  read.run.complete = results.has_summary;
  try {
    read_run_header(results.header, read);
    read.run.exit =
        results.exit < 0 ? "not recorded" : fmt::format("{} ({})", results.exit, meaning(static_cast<ExitCode>(results.exit)));
    for (const json& each : results.cases) read.cases.push_back(report_from(each));
    read.summary = std::move(results.summary);
    if (read.summary.is_object()) {
      read.run.seconds = read.summary.value("seconds", 0.0);
      read.run.notes = read.summary.value("notes", std::vector<std::string>{});
    }
  } catch (const std::exception& error) {  // of the JSON library, or of report_from
    throw golden::FixtureError(path, "", std::string("is not a result file of this program: ") + error.what());
  }
  return read;
}

PublishedCase published(CaseReport report, std::size_t run, std::size_t implementation, const std::string& backend_words) {
  PublishedCase made;
  made.run = run;
  made.implementation = implementation;
  made.title = report.line.empty() ? report.suite + "/" + report.name : report.line;
  if (!report.setting.empty()) made.title += " (" + report.setting + ")";
  made.shape = shape_class(report);
  made.report = std::move(report);
  FailureParts parts = failure_parts(made.report, backend_words);
  made.body = std::move(parts.text), made.repro = std::move(parts.repro);
  return made;
}

// What the summary of a run says beside its cases.
void add_summary(const ReadRun& read, Collected& all) {
  const std::string& file = read.run.file;
  const auto fault = [&](ExitCode code, const std::string& what, const std::string& why) {
    all.outcome.add(code);
    all.faults.emplace_back(what, why);
  };
  if (!read.run.complete) {
    fault(ExitCode::incomplete, file, "has no summary: its run did not end (--resume goes on), or the file is cut off");
    return;
  }
  const json& summary = read.summary;
  for (const json& each : summary.value("bad_fixtures", json::array()))
    fault(ExitCode::bad_fixture, each.at("file"), each.at("why"));
  for (const json& each : summary.value("not_tried", json::array()))
    all.not_tried.emplace_back(each.at("what").get<std::string>(), each.at("why").get<std::string>());
  std::set<int> codes;
  for (const json& each : summary.value("exits", json::array())) codes.insert(each.at("code").get<int>());
  for (const ExitCode each : {ExitCode::machine_failed, ExitCode::incomplete}) {
    if (codes.count(static_cast<int>(each)) == 0) continue;
    for (const json& why : summary.value("troubles", json::array())) fault(each, file, why);
    break;
  }
  const json claims = summary.value("claims", json::object());
  const auto losses = [&](const json& list, const char* title) {
    for (const json& each : list) {
      fault(ExitCode::failed,
            fmt::format("{} {}: {}", title, each.at("of").get<std::string>(), each.at("name").get<std::string>()),
            each.at("why"));
    }
  };
  losses(claims.value("unmet", json::array()), "required by");
  if (claims.contains("baseline")) losses(claims.at("baseline").at("lost"), "lost against");
}

using PublishedKey = std::tuple<std::size_t, std::string, std::string, std::string>;  // implementation, suite, name, setting

void add_published_cases(std::vector<ReadRun>& read, const std::vector<Waiver>* waivers, Collected& all) {
  std::map<PublishedKey, PublishedCase> newest;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::size_t implementation = all.runs[i].implementation;
    const std::string day = all.runs[i].date.empty() ? today() : all.runs[i].date.substr(0, 10);
    const Waivers held(waivers == nullptr ? std::vector<Waiver>{} : *waivers, read[i].tested, day);
    for (CaseReport& each : read[i].cases) {
      if (waivers != nullptr) each.waiver = held.standing(each);
      const PublishedKey key{implementation, each.suite, each.name, each.setting};
      const bool is_new = newest.find(key) == newest.end();
      if (!is_new) ++all.replaced;
      newest[key] = published(std::move(each), i, implementation, read[i].backend_words);
    }
  }
  for (auto& [key, each] : newest) all.cases.push_back(std::move(each));
  const auto order = [](const PublishedCase& each) {
    const CaseReport& report = each.report;
    return std::make_tuple(each.implementation, report.suite == kSelfCheck, std::cref(report.op), std::cref(report.recipe),
                           std::cref(report.suite), std::cref(each.title));
  };
  std::stable_sort(all.cases.begin(), all.cases.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
}

void settle_collected(const std::vector<Waiver>* waivers, Collected& all) {
  std::vector<CaseReport> reports;
  std::int64_t judged_passes = 0;
  for (const PublishedCase& each : all.cases) {
    add_to(all.outcome, each.report);
    if (each.report.suite == kSelfCheck) continue;
    count(all.counts, each.report);
    judged_passes += each.report.judgement.verdict == Verdict::passed;
  }
  if (all.outcome.exit_code() == ExitCode::passed && judged_passes == 0) all.outcome.add(ExitCode::nothing_selected);
  if (waivers == nullptr) return;
  for (const PublishedCase& each : all.cases) reports.push_back(each.report);
  std::set<std::string> unused;
  bool first = true;
  for (const PublishedImplementation& each : all.implementations) {
    const std::vector<std::string> places =
        Waivers(*waivers, {each.name, each.device, each.architecture, each.software, each.library, each.built_in}, "")
            .unused(reports);
    const std::set<std::string> here(places.begin(), places.end());
    std::set<std::string> both;
    for (const std::string& at : here) {
      if (first || unused.count(at) != 0) both.insert(at);
    }
    unused = std::move(both);
    first = false;
  }
  all.unused_waivers.assign(unused.begin(), unused.end());
}

}  // namespace

bool is_failure(const CaseReport& report) {
  return report.judgement.verdict != Verdict::passed && report.judgement.verdict != Verdict::not_run && !is_waived(report);
}

Collected collect_results(const std::vector<std::string>& paths, const std::vector<Waiver>* waivers) {
  std::vector<ReadRun> read;
  for (const std::string& path : paths) read.push_back(read_run(path));
  const auto order = [](const ReadRun& each) { return std::tie(each.run.date, each.run.sha256, each.run.file); };
  std::sort(read.begin(), read.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  const auto rest =
      std::unique(read.begin(), read.end(), [](const auto& a, const auto& b) { return a.run.sha256 == b.run.sha256; });
  Collected all;
  all.same_files = read.end() - rest;
  read.erase(rest, read.end());
  for (const ReadRun& each : read) all.implementations.push_back(each.implementation);
  const auto before = [](const auto& a, const auto& b) { return identity_of(a) < identity_of(b); };
  std::sort(all.implementations.begin(), all.implementations.end(), before);
  all.implementations.erase(std::unique(all.implementations.begin(), all.implementations.end(),
                                        [](const auto& a, const auto& b) { return identity_of(a) == identity_of(b); }),
                            all.implementations.end());
  for (const ReadRun& each : read) {
    all.runs.push_back(each.run);
    const auto found = std::lower_bound(all.implementations.begin(), all.implementations.end(), each.implementation, before);
    all.runs.back().implementation = static_cast<std::size_t>(found - all.implementations.begin());
    try {
      add_summary(each, all);
    } catch (const json::exception& error) {
      throw golden::FixtureError(each.run.file, "", std::string("has an invalid summary: ") + error.what());
    }
  }
  add_published_cases(read, waivers, all);
  settle_collected(waivers, all);
  return all;
}

double Collected::seconds() const {
  double sum = 0;
  for (const PublishedRun& each : runs) sum += each.seconds;
  return sum;
}

std::string Collected::implementation_text(std::size_t index) const {
  const PublishedImplementation& each = implementations.at(index);
  std::string text = each.name;
  if (!each.software.empty()) text += " (" + each.software + ")";
  if (!each.options.empty()) text += " with options " + each.options;
  if (!each.device.empty()) text += " on " + each.device;
  return each.architecture.empty() ? text : text + " (" + each.architecture + ")";
}

std::string Collected::verdict() const {
  if (outcome.exit_code() != ExitCode::passed) {
    std::string codes;
    for (const ExitCode code : outcome.all())
      codes += fmt::format("{}{} ({})", codes.empty() ? "" : ", ", static_cast<int>(code), meaning(code));
    return "FAIL: exit " + codes;
  }
  std::string partial;
  if (counts.not_run > 0) partial = fmt::format("{} of {} cases absent", counts.not_run, counts.cases());
  if (counts.waived > 0)
    partial += fmt::format("{}{} of {} failed, waived", partial.empty() ? "" : ", ", counts.waived, counts.cases());
  return partial.empty() ? "PASS" : "PASS (partial: " + partial + ")";
}

}  // namespace assay::conformance
