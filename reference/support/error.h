#pragma once
// One error type for bad input: it names the argument, shows the value and says what was expected.

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay {

// Thrown before anything is written. `what()` reads "splits[2] is -1: expected a value of at least 0".
class InvalidArgument : public std::invalid_argument {
 public:
  InvalidArgument(std::string_view argument, std::string_view value, std::string_view expected)
      : std::invalid_argument(std::string(argument) + " is " + std::string(value) + ": expected " + std::string(expected)),
        argument_(argument) {}
  const std::string& argument() const { return argument_; }

 private:
  std::string argument_;
};

// A request that is well formed but that this build cannot serve. `what()` says what is missing.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Overloads show the value as a person would write it.
inline std::string show(std::string_view text) { return std::string(text); }
inline std::string show(const char* text) { return text; }
inline std::string show(const void* pointer) { return pointer == nullptr ? "null" : "a pointer"; }
inline std::string show(bool value) { return value ? "true" : "false"; }
template <class Number>
  requires std::is_arithmetic_v<Number>
std::string show(Number value) {
  char text[64];  // std::to_chars: the shortest exact form, whatever the locale
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

template <class Value>
void require(bool holds, std::string_view argument, const Value& value, std::string_view expected) {
  if (!holds) throw InvalidArgument(argument, show(value), expected);
}

}  // namespace assay
