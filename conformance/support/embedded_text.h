#pragma once

#include <span>
#include <string_view>

namespace assay::conformance {

// A text file that the build has put into the program (cmake/embed_texts.cmake).
struct EmbeddedText {
  std::string_view file, text;  // the name without its folder; the bytes
};

}  // namespace assay::conformance
