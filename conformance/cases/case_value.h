#pragma once
// Values of keys as text: numbers, lists, and the one spelling that canonical text has for each. Internal to case lines.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case_schema.h"

namespace assay::conformance {

// The number that the whole text represents; nothing if it is not a number.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Errors (InvalidArgument, here and below): the text is not such a value; the message names `argument`.
std::int64_t integer_of(std::string_view argument, std::string_view text, std::int64_t minimum);

// A factor of a product or a flag, which may be infinite or NaN: those have one spelling each.
double factor_of(std::string_view argument, std::string_view text);

// The value of a key of real numbers: a skip flag may have any value, the others are finite.
double real_of_key(std::string_view key, std::string_view text);

// Splits at commas that are not inside parentheses.
std::vector<std::string_view> items_of(std::string_view text);

// The canonical spelling of a value of this key.
std::string canonical_value(const KeySchema& key, std::string_view text);

}  // namespace assay::conformance
