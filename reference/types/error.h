#pragma once
// One error type for bad input: it names the argument, shows the value and says what was expected.

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay {

// Thrown before anything is written. `what()` reads "splits[2] is -1: expected a value of at least 0".
class InvalidArgument : public std::invalid_argument {
 public:
  InvalidArgument(std::string_view argument, std::string_view value, std::string_view expected);
  const std::string& argument() const { return argument_; }

 private:
  std::string argument_;
};

// A valid request that this build cannot serve. `what()` says what is missing.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A value as text: numbers in the shortest exact form, in every locale.
std::string show(std::string_view text);
std::string show(const char* text);
std::string show(const void* pointer);
std::string show(bool value);
std::string show(long long value);
std::string show(unsigned long long value);
std::string show(double value);
std::string show(float value);
template <class Number>
requires std::is_integral_v<Number> std::string show(Number value) {
  if constexpr (std::is_signed_v<Number>) {
    return show(static_cast<long long>(value));
  } else {
    return show(static_cast<unsigned long long>(value));
  }
}

template <class Value>
void require(bool holds, std::string_view argument, const Value& value, std::string_view expected) {
  if (!holds) throw InvalidArgument(argument, show(value), expected);
}

}  // namespace assay
