#include "conformance/report/waivers.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "conformance/catalogue/case_word.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/report/report_counts.h"

namespace assay::conformance {
namespace {

bool fits_pattern(const std::string& pattern, const std::string& text) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; }

// FILE.h5/CASE
std::string fixture_path_of(const CaseReport& report) { return report.suite + "/" + report.name; }

// A failure is a matter for a waiver; a machine that failed and a case that was not tried are not, nor is one that is flaky.
bool can_be_waived(Verdict verdict) {
  return verdict == Verdict::failed || verdict == Verdict::unproven_skip || verdict == Verdict::unfinished;
}

std::string toml_text(const std::string& text) {
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return made + "\"";
}

}  // namespace

std::string_view name_of(WaiverStanding::State state) {
  switch (state) {
    case WaiverStanding::State::covers: return "covers";
    case WaiverStanding::State::expired: return "expired";
    case WaiverStanding::State::other_failure: return "other failure";
    case WaiverStanding::State::passes: return "passes";
  }
  return "unknown";
}

Waivers::Waivers(std::vector<Waiver> all, TestedBackend tested, std::string day) : day_(std::move(day)) {
  for (Waiver& each : all) {
    if (!each.backend.empty() && !fits_pattern(each.backend, tested.backend)) continue;
    if (!each.device.empty() && !fits_pattern(each.device, tested.device) && !fits_pattern(each.device, tested.architecture))
      continue;
    all_.push_back(std::move(each));
  }
}

bool Waivers::selects(const Waiver& waiver, const CaseReport& report) const {
  if (report.suite == kSelfCheck) return false;
  if (waiver.setting.empty() ? !report.setting.empty() : !fits_pattern(waiver.setting, report.setting)) return false;
  if (!waiver.one_case.empty()) return waiver.one_case == (report.line.empty() ? fixture_path_of(report) : report.line);
  return std::all_of(waiver.words.begin(), waiver.words.end(), [&](const std::string& word) {
    return report.line.empty() ? matches(word, report.name, fixture_path_of(report)) : matches(word, report.line, report.name);
  });
}

std::optional<WaiverStanding> Waivers::standing(const CaseReport& report) const {
  using State = WaiverStanding::State;
  const bool passed = report.judgement.verdict == Verdict::passed;
  if (!passed && !can_be_waived(report.judgement.verdict)) return std::nullopt;
  const auto standing_of = [](State state, const Waiver& each) {
    return WaiverStanding{state, each.at, each.reason, each.link, each.owner, each.expires};
  };
  std::optional<WaiverStanding> found;
  for (const Waiver& each : all_) {
    if (!selects(each, report)) continue;
    const bool same =
        std::find(each.fingerprints.begin(), each.fingerprints.end(), report.fingerprint) != each.fingerprints.end();
    if (!passed && same && each.expires >= day_) return standing_of(State::covers, each);
    const State state = passed ? State::passes : same ? State::expired : State::other_failure;
    if (!found || (state == State::expired && found->state == State::other_failure)) found = standing_of(state, each);
  }
  return found;
}

std::vector<std::string> Waivers::unused(const std::vector<CaseReport>& cases) const {
  std::vector<std::string> places;
  for (const Waiver& each : all_) {
    const bool used = std::any_of(cases.begin(), cases.end(), [&](const CaseReport& report) { return selects(each, report); });
    if (!used) places.push_back(each.at);
  }
  return places;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string drafted_waivers(const std::vector<CaseReport>& cases) {
  std::string text;
  std::vector<const CaseReport*> sorted;
  for (const CaseReport& each : cases) {
    if (each.suite != kSelfCheck && can_be_waived(each.judgement.verdict) && !is_waived(each)) sorted.push_back(&each);
  }
  std::sort(sorted.begin(), sorted.end(), [](const CaseReport* a, const CaseReport* b) {
    return std::tie(a->suite, a->name, a->setting) < std::tie(b->suite, b->name, b->setting);
  });
  for (const CaseReport* each : sorted) {
    text += "\n[[waiver]]\n";
    text += "case = " + toml_text(each->line.empty() ? fixture_path_of(*each) : each->line) + "\n";
    if (!each->setting.empty()) text += "setting = " + toml_text(each->setting) + "\n";
    text += "fingerprint = " + toml_text(each->fingerprint) + "\n";
    text += "reason = \"\"   # why the failure is accepted\nlink = \"\"     # where it is followed up\n";
    text += "owner = \"\"    # who decides\nexpires = \"\"  # the last day, such as 2027-01-31, without quotes\n";
  }
  return text;
}

}  // namespace assay::conformance
