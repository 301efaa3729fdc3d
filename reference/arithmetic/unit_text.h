#pragma once
// reference/arithmetic/units.txt, which the build puts into the library (cmake/embed_texts.cmake).

#include <string_view>

namespace assay {

extern const std::string_view kUnitText;

}  // namespace assay
