#include "conformance/program/report_counts.h"

#include <fmt/format.h>

namespace assay::conformance {

Counts count_cases(const std::vector<CaseReport>& cases) {
  Counts counts;
  for (const CaseReport& each : cases) {
    if (each.suite != kSelfCheck) count(counts, each.judgement);
  }
  return counts;
}

std::map<std::string, Basis> bases_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, Basis> bases;
  for (const CaseReport& each : cases) {
    if (each.suite == kSelfCheck || each.judgement.verdict != Verdict::passed) continue;
    Basis& basis = bases[ground_text(each.judgement)];
    ++basis.cases;
    basis.words += each.judgement.words;
  }
  return bases;
}

std::map<std::string, SettingCounts> settings_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, SettingCounts> settings;
  for (const CaseReport& each : cases) {
    if (each.variety.empty()) continue;
    SettingCounts& of = settings[each.setting.empty() ? "" : each.setting];
    count(of.counts, each.judgement);
    if (!each.judgement.plan.empty()) {
      of.known_words += each.judgement.words;
    } else if (each.judgement.verdict != Verdict::not_run) {
      ++of.unknown[each.variety];
    }
  }
  return settings;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string short_number(std::int64_t number) {
  if (number < 10000) return std::to_string(number);
  double value = static_cast<double>(number);
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (value < 999.95) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f}{}", value, unit);
}

}  // namespace assay::conformance
