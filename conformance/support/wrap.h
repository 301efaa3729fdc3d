#pragma once
// Text in lines of a bounded width.

#include <string>
#include <string_view>

namespace assay::conformance {

inline constexpr std::size_t kTableColumns = 60;  // of a table that is also read in a narrow window

// Breaks at spaces so that lines hold at most `columns`; continuation lines begin with `indent` spaces. The text itself is
// taken to begin after `first` columns. A word that is longer has a line of its own.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t first, std::size_t columns = 100);
inline std::string wrapped(std::string_view text, std::size_t indent) { return wrapped(text, indent, indent); }

}  // namespace assay::conformance
