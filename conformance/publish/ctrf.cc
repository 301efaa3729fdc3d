// CTRF: one object for each case. A flaky case is a failed one that is marked as flaky.

#include <fmt/format.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "conformance/publish/formats.h"
#include "conformance/report/report_counts.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

std::string ctrf_status(const CaseReport& report) {
  if (is_waived(report)) return report.waiver->state == WaiverStanding::State::covers ? "other" : "failed";
  switch (report.judgement.verdict) {
    case Verdict::passed: return report.waiver ? "failed" : "passed";  // a waiver that is out of date is no pass
    case Verdict::not_run: return "skipped";
    case Verdict::not_tried: return "pending";
    default: return "failed";
  }
}

std::string ctrf_message(const PublishedCase& each) {
  const CaseReport& report = each.report;
  const Verdict verdict = report.judgement.verdict;
  if (report.waiver && report.waiver->state != WaiverStanding::State::other_failure)
    return fmt::format("waiver ({}): {}", name_of(report.waiver->state), waiver_text(*report.waiver));
  if (verdict == Verdict::passed) return "";
  if (verdict == Verdict::not_run)
    return fmt::format("absent: {}; proof: {}", first_line(report.judgement.text), absence_proof());
  return first_line_of_failure(each);
}

json ctrf_test(const Collected& all, const PublishedCase& each) {
  const CaseReport& report = each.report;
  const Judgement& judgement = report.judgement;
  json suite = json::array({report.suite, report.op});
  if (report.recipe != "-") suite.push_back(report.recipe);
  if (all.implementations.size() > 1) suite.insert(suite.begin(), all.implementation_text(each.implementation));
  json made{{"name", each.title},
            {"status", ctrf_status(report)},
            {"duration", std::llround(judgement.seconds * 1000)},
            {"suite", suite},
            {"rawStatus", name_of(judgement.verdict)},
            {"type", "conformance"},
            {"extra", {{"elements", judgement.elements}, {"ground", basis_text(judgement)}, {"shape", each.shape}}}};
  if (const std::string message = ctrf_message(each); !message.empty()) made["message"] = message;
  if (is_failure(report)) {
    made["trace"] = judgement.text;
    made["extra"]["fingerprint"] = report.fingerprint;
    made["extra"]["repro"] = each.repro;
  }
  if (!judgement.plan.empty()) made["extra"]["plan"] = judgement.plan;
  if (report.tries.empty()) return made;
  made["retries"] = report.tries.size() - 1;
  made["flaky"] = judgement.verdict == Verdict::flaky;
  for (std::size_t i = 0; i < report.tries.size(); ++i) {
    const TriedVerdict& tried = report.tries[i];
    made["retryAttempts"].push_back({{"attempt", i + 1}, {"status", tried.verdict == Verdict::passed ? "passed" : "failed"}});
    if (!tried.fingerprint.empty()) made["retryAttempts"].back()["extra"] = {{"fingerprint", tried.fingerprint}};
  }
  return made;
}

// The identity of a report is that of its files.
std::string identity(const Collected& all) {
  std::string files;
  for (const PublishedRun& each : all.runs) files += each.sha256 + "\n";
  std::string hex = hex_digest(files).substr(0, 32);
  hex[12] = '8';  // a UUID of one's own making (RFC 9562)
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4), hex.substr(20));
}

}  // namespace

json ctrf_json(const Collected& all) {
  json tests = json::array(), faults = json::array();
  std::map<std::string, std::int64_t> by_status;
  std::set<json> suites;
  std::int64_t flaky = 0;
  for (const PublishedCase& each : all.cases) {
    tests.push_back(ctrf_test(all, each));
    ++by_status[tests.back().at("status").get<std::string>()];
    suites.insert(tests.back().at("suite"));
    flaky += each.report.judgement.verdict == Verdict::flaky;
  }
  for (const auto& [what, why] : all.faults) {
    tests.push_back({{"name", what}, {"status", "failed"}, {"duration", 0}, {"suite", {"run"}}, {"message", why}});
    ++by_status["failed"];
    suites.insert(tests.back().at("suite"));
  }
  std::int64_t start = all.runs.empty() ? 0 : milliseconds_of(all.runs.front().date), stop = start;
  for (const PublishedRun& each : all.runs)
    stop = std::max<std::int64_t>(stop, milliseconds_of(each.date) + std::llround(each.seconds * 1000));
  json made{{"reportFormat", "CTRF"},
            {"specVersion", "0.0.0"},
            {"reportId", identity(all)},
            {"generatedBy", fmt::format("assay {}", kVersion)},
            {"results",
             {{"tool", {{"name", "assay"}, {"version", kVersion}}},
              {"summary",
               {{"tests", tests.size()},
                {"passed", by_status["passed"]},
                {"failed", by_status["failed"]},
                {"skipped", by_status["skipped"]},
                {"pending", by_status["pending"]},
                {"other", by_status["other"]},
                {"flaky", flaky},
                {"suites", suites.size()},
                {"start", start},
                {"stop", stop},
                {"extra", {{"verdict", all.verdict()}, {"exit", static_cast<int>(all.outcome.exit_code())}}}}},
              {"tests", tests}}}};
  if (!all.date().empty()) made["timestamp"] = all.date();
  json& environment = made["results"]["environment"];
  environment = {{"reportName", "assay"}, {"osPlatform", "linux"}};
  if (!all.runs.empty()) {
    const PublishedRun& run = all.runs.back();
    environment["appName"] = all.implementations[run.implementation].name;
    environment["appVersion"] = all.implementations[run.implementation].software;
    environment["osRelease"] = run.system;
    environment["commit"] = run.commit;
    environment["healthy"] = all.outcome.exit_code() == ExitCode::passed;
    environment["extra"] = {{"device", all.implementations[run.implementation].device}, {"host", run.host}};
  }
  return made;
}

}  // namespace assay::conformance
