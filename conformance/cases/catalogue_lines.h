#pragma once
// The hand-written part of the catalogue: case lines as text, one a line; # starts a comment.

#include <string_view>

namespace assay::conformance {

extern const std::string_view kSmokeLines, kStandardLines, kFullLines;

}  // namespace assay::conformance
