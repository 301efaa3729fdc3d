#pragma once
// Rules that only cases name: conformance/cases/rules/language.txt, which the build puts into the library. They show what the language of
// scale rules does where no preset shows it; `assay list --presets` prints those of libraries alone.

#include <deque>
#include <string_view>

#include "reference/rules/scale_rule.h"

namespace assay {

extern const std::string_view kLanguageRuleText;  // cmake/embed_texts.cmake

namespace conformance {

const std::deque<ScaleRule>& language_rules();

// The preset or rule of the language with this name, or null.
const ScaleRule* find_case_rule(std::string_view name);

}  // namespace conformance
}  // namespace assay
