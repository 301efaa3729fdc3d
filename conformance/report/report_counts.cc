#include "conformance/report/report_counts.h"

#include <fmt/format.h>

namespace assay::conformance {

Counts count_cases(const std::vector<CaseReport>& cases) {
  Counts counts;
  for (const CaseReport& each : cases) {
    if (each.suite != kSelfCheck) count(counts, each);
  }
  return counts;
}

std::map<std::string, BasisCounts> bases_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, BasisCounts> bases;
  for (const CaseReport& each : cases) {
    if (each.suite == kSelfCheck || each.judgement.verdict != Verdict::passed) continue;
    BasisCounts& counts = bases[basis_text(each.judgement)];
    ++counts.cases;
    counts.elements += each.judgement.elements;
    counts.bounded += each.judgement.elements_bounded;
    counts.unbounded += each.judgement.elements_unbounded;
  }
  return bases;
}

std::string elements_text(const std::map<std::string, BasisCounts>& bases) {
  std::map<std::string, std::int64_t> by;
  std::string text;
  const auto add = [&](std::int64_t elements, const std::string& how) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", elements, how);
  };
  std::int64_t unbounded = 0;
  const std::string bound(name_of(CheckBasis::bound)), free(name_of(CheckBasis::order_free_bits));
  for (const auto& [basis, counts] : bases) {
    const bool is_bound = basis.starts_with(bound);
    const std::string rest = is_bound ? basis.substr(bound.size()) : "";
    if (is_bound && counts.bounded > 0) by["within bounds" + rest] += counts.bounded;
    if (!is_bound || counts.elements > counts.bounded)
      by["by " + (is_bound ? free + rest : basis)] += counts.elements - counts.bounded;
    unbounded += counts.unbounded;
  }
  for (const auto& [how, elements] : by) add(elements, how);
  if (unbounded > 0) text += fmt::format("; {} unbounded, not compared", unbounded);
  return text;
}

std::string standing_text(const Judgement& judgement) {
  const std::string basis = basis_text(judgement);
  const std::string by = judgement.elements == 0 || basis == name_of(CheckBasis::bits) ? "" : fmt::format("by {}", basis);
  return fmt::format("{}{}{}", by, by.empty() || judgement.way.empty() ? "" : "; ", judgement.way);
}

std::map<std::int64_t, std::int64_t> devices_of(const std::vector<CaseReport>& cases) {
  std::map<std::int64_t, std::int64_t> made;
  for (const CaseReport& each : cases) {
    if (each.device >= 0) ++made[each.device];
  }
  return made;
}

std::map<Predicted, std::int64_t> predicted_of(const std::vector<CaseReport>& cases) {
  std::map<Predicted, std::int64_t> made;
  for (const CaseReport& each : cases) {
    if (each.judgement.predicted != Predicted::not_asked) ++made[each.judgement.predicted];
  }
  return made;
}

std::map<std::string, std::int64_t> ways_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, std::int64_t> ways;
  for (const CaseReport& each : cases) {
    if (!each.judgement.way.empty()) ++ways[each.judgement.way];
  }
  return ways;
}

std::map<std::string, SettingCounts> settings_of(const std::vector<CaseReport>& cases) {
  std::map<std::string, SettingCounts> settings;
  for (const CaseReport& each : cases) {
    if (each.variety.empty()) continue;
    SettingCounts& of = settings[each.setting.empty() ? "" : each.setting];
    count(of.counts, each);
    if (!each.judgement.plan.empty()) {
      of.known_elements += each.judgement.elements;
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
