#include "conformance/cases/language_rules.h"

namespace assay::conformance {

const std::deque<ScaleRule>& language_rules() {
  static const auto* const only = new std::deque<ScaleRule>(parse_scale_rules(kLanguageRuleText, "language.txt"));
  return *only;
}

const ScaleRule* find_case_rule(std::string_view name) {
  if (const ScaleRule* preset = find_scale_rule(name)) return preset;
  for (const ScaleRule& each : language_rules()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace assay::conformance
