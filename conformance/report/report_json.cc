// A report as JSON: conformance/report/report.schema.json. Counts of elements are written twice: as `elements`, and as `words`,
// their former name, for programs that read reports of earlier versions.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "conformance/cases/former_words.h"
#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/report.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/verdict_digest.h"
#include "conformance/report/waivers.h"

namespace assay::conformance {

using nlohmann::json;

json to_json(const CaseReport& report) {
  json entry = to_json(report.judgement);
  entry["suite"] = report.suite;
  entry["name"] = report.name;
  entry["op"] = report.op;
  entry["recipe"] = report.recipe;
  if (!report.line.empty()) entry["case"] = report.line;
  if (!report.setting.empty()) entry["setting"] = report.setting;
  if (report.device >= 0) entry["device"] = report.device;
  if (!report.variety.empty()) entry["variety"] = report.variety;
  if (!report.fingerprint.empty()) entry["fingerprint"] = report.fingerprint;
  for (const TriedVerdict& each : report.tries) {
    entry["tries"].push_back({{"verdict", name_of(each.verdict)}});
    if (!each.fingerprint.empty()) entry["tries"].back()["fingerprint"] = each.fingerprint;
  }
  if (report.waiver) {
    entry["waiver"] = {{"state", name_of(report.waiver->state)}, {"at", report.waiver->at},
                       {"reason", report.waiver->reason},        {"link", report.waiver->link},
                       {"owner", report.waiver->owner},          {"expires", report.waiver->expires}};
  }
  const Verdict verdict = report.judgement.verdict;
  if (verdict == Verdict::not_run || verdict == Verdict::not_tried) {
    entry["reason"] = first_line(report.judgement.text);
  } else if (verdict != Verdict::passed && report.judgement.findings.empty()) {
    entry["findings"] = json::array({to_json(finding_of("other", report.judgement.text))});  // every failure has an entry
  }
  return entry;
}

CaseReport report_from(const json& entry) {
  // A file of an earlier version may have the former words.
  const std::string op = entry.at("op"), recipe = entry.at("recipe");
  const std::string_view key = op == "grouped_gemm" ? "kind" : "recipe";
  CaseReport report{entry.at("suite"),
                    entry.at("name"),
                    present_text(entry.value("case", "")),
                    op,
                    std::string(present_value(op, key, recipe)),
                    judgement_from(entry)};
  report.setting = entry.value("setting", "");
  report.variety = entry.value("variety", "");
  report.device = entry.value("device", std::int64_t{-1});
  report.fingerprint = entry.value("fingerprint", "");
  if (entry.contains("tries")) {
    for (const json& each : entry.at("tries")) {
      const std::string verdict = each.at("verdict");
      if (!verdict_named(verdict)) throw std::runtime_error("verdict of a try is '" + verdict + "'");
      report.tries.push_back({*verdict_named(verdict), each.value("fingerprint", "")});
    }
  }
  if (entry.contains("waiver")) {
    const json& waiver = entry.at("waiver");
    using State = WaiverStanding::State;
    const std::string state = waiver.at("state");
    std::optional<State> found;
    for (const State each : {State::covers, State::expired, State::other_failure, State::passes}) {
      if (state == name_of(each)) found = each;
    }
    if (!found)
      throw std::runtime_error("state of a waiver is '" + state + "': expected covers, expired, other failure or passes");
    report.waiver = {*found, waiver.at("at"), waiver.at("reason"), waiver.at("link"), waiver.at("owner"), waiver.at("expires")};
  }
  return report;
}

Report::Report(std::string verb, TestedBackend tested, int most_shown)
    : verb_(std::move(verb)), tested_(std::move(tested)), most_shown_(most_shown) {}
Report::~Report() = default;

void Report::set_header(const nlohmann::json& header) { header_ = std::make_unique<nlohmann::json>(header); }

void Report::append_header() {
  nlohmann::json first = header();
  first["record"] = "header";
  results_->append({first});
}

void Report::append_cases(const std::vector<CaseReport>& reports) {
  std::vector<nlohmann::json> entries;
  for (const CaseReport& each : reports) {
    entries.push_back(to_json(each));
    entries.back()["record"] = "case";
    if (reports.size() > 1) entries.back()["of"] = reports.size();
  }
  results_->append(entries);
}

void Report::append_summary() {
  nlohmann::json last = outcome_json();
  last["record"] = "summary";
  results_->append({last});
}

void Report::write_report(const std::string& path) { write_json(path, json()); }

nlohmann::json Report::header() const {
  if (header_ != nullptr) return *header_;
  return {{"format", kReportFormat}, {"verb", verb_}, {"backend", {{"name", tested_.backend}}}};
}

std::string Report::digest() const {
  std::vector<nlohmann::json> entries;
  for (const CaseReport& each : cases_) entries.push_back(to_json(each));
  return verdict_digest(entries);
}

nlohmann::json Report::outcome_json() const {
  nlohmann::json not_tried = nlohmann::json::array(), bad = nlohmann::json::array(), exits = nlohmann::json::array();
  for (const auto& [what, why] : not_tried_) not_tried.push_back({{"what", what}, {"why", why}});
  for (const auto& [file, why] : bad_fixtures_) bad.push_back({{"file", file}, {"why", why}});
  for (const ExitCode code : outcome_.all()) exits.push_back({{"code", static_cast<int>(code)}, {"meaning", meaning(code)}});
  const Counts all = count_cases(cases_);
  nlohmann::json settings = nlohmann::json::array();
  for (const auto& [setting, all_of_it] : settings_of(cases_)) {
    nlohmann::json unknown = nlohmann::json::object();
    for (const auto& [variety, number] : all_of_it.unknown) unknown[variety] = number;
    settings.push_back({{"setting", setting},
                        {"passed", all_of_it.counts.passed},
                        {"failed", all_of_it.counts.failed},
                        {"not_run", all_of_it.counts.not_run},
                        {"other", all_of_it.counts.other},
                        {"elements", all_of_it.counts.elements},
                        {"words", all_of_it.counts.elements},
                        {"elements_with_known_plan", all_of_it.known_elements},
                        {"words_with_known_plan", all_of_it.known_elements},
                        {"unknown", unknown}});
  }
  nlohmann::json bases = nlohmann::json::object();
  for (const auto& [basis, counts] : bases_of(cases_)) {
    bases[basis] = {{"cases", counts.cases},
                    {"elements", counts.elements},
                    {"words", counts.elements},
                    {"bounded", counts.bounded},
                    {"unbounded", counts.unbounded}};
  }
  nlohmann::json made{{"exit", static_cast<int>(outcome_.exit_code())},
                      {"exits", exits},
                      {"verdict", verdict_line()},
                      {"counts",
                       {{"passed", all.passed},
                        {"failed", all.failed},
                        {"not_run", all.not_run},
                        {"other", all.other},
                        {"flaky", all.flaky},
                        {"waived", all.waived},
                        {"elements", all.elements},
                        {"words", all.elements}}},
                      {"bases", bases},
                      {"resumed", resumed_},
                      {"settings", settings},
                      {"not_tried", not_tried},
                      {"bad_fixtures", bad},
                      {"troubles", troubles_},
                      {"notes", notes_},
                      {"seconds", seconds_},
                      {"digest", digest()}};
  if (claims_) made["claims"] = to_json(*claims_);
  return made;
}

nlohmann::json Report::json() {
  std::stable_sort(cases_.begin(), cases_.end(), [](const CaseReport& a, const CaseReport& b) {
    return std::tie(a.suite, a.name) < std::tie(b.suite, b.name);
  });
  nlohmann::json cases = nlohmann::json::array();
  for (const CaseReport& each : cases_) cases.push_back(to_json(each));
  nlohmann::json report = header();
  report.update(outcome_json());
  report["cases"] = std::move(cases);
  report["sha256"] = report_digest(report);
  return report;
}

}  // namespace assay::conformance
