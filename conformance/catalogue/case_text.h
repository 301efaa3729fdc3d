#pragma once
// Cases as a text file holds them: those of the catalogue (conformance/cases/*.txt), and those of `assay run --cases FILE`.
//
//   # a comment, in a line of its own
//   [smoke]
//   quantize recipe=mxfp8 R=33 K=272 seed=10
//   [standard]
//   quantize recipe=mxfp8 R=128 K=512 data=every_code seed=152
//
// A mark begins a section: [smoke], [standard], [full], in this order, each at most once. A case belongs to the section it
// stands in, and a profile takes its own section and those before it.

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/catalogue/catalogue.h"

namespace assay::conformance {

// `what()` reads "quantize.txt: line 12: x_type is bf17: expected one of bf16 f16 f32 (did you mean bf16?)".
class CaseTextError : public std::invalid_argument {
 public:
  CaseTextError(std::string_view source, int line, std::string_view reason);
  const std::string& place() const { return place_; }  // "line 12"; empty for the text as a whole
  const std::string& reason() const { return reason_; }

 private:
  std::string place_, reason_;
};

struct CaseText {
  std::array<std::vector<CaseLine>, 3> sections;  // by Profile
  std::string_view file = {};                     // of written_cases(): its name in conformance/cases
  bool is_cover = false;                          // cover_*.txt: computed, from what the other cases find of planted faults
  const std::vector<CaseLine>& of(Profile section) const { return sections[static_cast<std::size_t>(section)]; }
};

enum class Marks { required, optional };  // optional: a text without marks is one section, [smoke], which every profile takes

// Errors: CaseTextError, which names `source`, for a line that is not a case, a mark that is unknown, repeated or out of order, a
// case above the first mark, and a text without cases.
CaseText parse_case_text(std::string_view text, std::string_view source, Marks marks);

// The cases of conformance/cases/*.txt. Errors: as parse_case_text, with the name of the file.
const std::vector<CaseText>& written_cases();

}  // namespace assay::conformance
