#include "conformance/catalogue/case_word.h"

#include <cstddef>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/former_words.h"

namespace assay::conformance {
namespace {

// `pattern` with * and ? against the whole of `text`.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Whether the word can only be part of a line in the former words.
bool is_former(std::string_view word) {
  for (const FormerKey& each : former_keys()) {
    if (word.find(each.former) != std::string_view::npos) return true;
  }
  for (const FormerValue& each : former_values()) {
    if (word.find(std::string(each.key).append("=").append(each.former)) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

CaseWord::CaseWord(std::string_view word)
    : word_(word), is_pattern_(word.find_first_of("*?") != std::string_view::npos), is_former_(is_former(word)) {}

bool CaseWord::matches_spelling(std::string_view text, std::string_view name) const {
  if (!is_pattern_) return text.find(word_) != std::string_view::npos || name.find(word_) != std::string_view::npos;
  if (glob(word_, name)) return true;
  while (!text.empty()) {
    if (const std::string_view each = take_word(text); !each.empty() && glob(word_, each)) return true;
  }
  return false;
}

bool CaseWord::matches(std::string_view text, std::string_view name) const {
  return matches_spelling(text, name) || (is_former_ && matches_spelling(former_text(text), name));
}

}  // namespace assay::conformance
