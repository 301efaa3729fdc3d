#pragma once
// Messages go to standard error. A message that cannot be written is lost and changes nothing else.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace assay::conformance {

// As fmt::print(stderr, ...), but throws nothing where standard error is full, closed or a pipe without a reader.
template <class... Arguments>
void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace assay::conformance
