#include "reference/types/error.h"

#include <charconv>

namespace assay {
namespace {

template <class Number>
std::string shortest(Number value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string sentence(std::string_view argument, std::string_view value, std::string_view expected) {
  std::string text(argument);
  text += " is ";
  text += value;
  text += ": expected ";
  text += expected;
  return text;
}

}  // namespace

InvalidArgument::InvalidArgument(std::string_view argument, std::string_view value, std::string_view expected)
    : std::invalid_argument(sentence(argument, value, expected)), argument_(argument) {}

std::string show(std::string_view text) { return std::string(text); }
std::string show(const char* text) { return text; }
std::string show(const void* pointer) { return pointer == nullptr ? "null" : "a pointer"; }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(long long value) { return shortest(value); }
std::string show(unsigned long long value) { return shortest(value); }
std::string show(double value) { return shortest(value); }
std::string show(float value) { return shortest(value); }

}  // namespace assay
