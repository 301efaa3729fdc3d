#pragma once
// Text in lines of at most 100 columns.

#include <string>
#include <string_view>

namespace assay::conformance {

// Breaks at spaces so that lines end before column 100; continuation lines begin with `indent` spaces. The text itself is
// taken to begin after `first` columns. A word that is longer has a line of its own.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t first);
inline std::string wrapped(std::string_view text, std::size_t indent) { return wrapped(text, indent, indent); }

}  // namespace assay::conformance
