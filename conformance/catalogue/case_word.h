#pragma once
// A word that selects cases: on the command line, in a level, in a waiver.

#include <string>
#include <string_view>

namespace assay::conformance {

// A word matches a case if it is part of the canonical text or of the name, or, where it holds * or ?, if it matches one
// whole word of the text or the whole name as a file pattern does. Words of earlier versions match what they matched then.
class CaseWord {
 public:
  explicit CaseWord(std::string_view word);
  bool matches(std::string_view text, std::string_view name) const;

 private:
  bool matches_spelling(std::string_view text, std::string_view name) const;

  std::string word_;
  bool is_pattern_;
  bool is_former_;  // it can only be part of a line in the former words
};

// The same for a word that is asked once.
inline bool matches(std::string_view word, std::string_view text, std::string_view name) {
  return CaseWord(word).matches(text, name);
}

}  // namespace assay::conformance
