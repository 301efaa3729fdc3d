#pragma once
// The enumerator with a name, where a table holds the names in the order of the values.

#include <cstddef>
#include <optional>
#include <string_view>

namespace assay {

template <class Enum, std::size_t count>
std::optional<Enum> named(const std::string_view (&names)[count], std::string_view name) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace assay
