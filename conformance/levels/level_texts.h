#pragma once
// conformance/levels/*.txt as the build has put them into the program.

#include <span>
#include <string_view>

namespace assay::conformance {

struct LevelText {
  std::string_view file, text;
};
extern const std::span<const LevelText> kLevelTexts;

}  // namespace assay::conformance
