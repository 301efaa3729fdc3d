#include "conformance/support/wrap.h"

#include <algorithm>

namespace assay::conformance {

std::string wrapped(std::string_view text, std::size_t indent, std::size_t first, std::size_t columns) {
  std::string out;
  std::size_t column = first;
  bool begins = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!begins && column + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!begins) {
      out += ' ';
      ++column;
    }
    begins = false;
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace assay::conformance
