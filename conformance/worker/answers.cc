#include "conformance/worker/answers.h"

#include <cstring>

namespace assay::conformance {
namespace {

// Bytes of the UTF-8 character that starts here, or 0 where none does.
std::size_t character(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F ? 0 : 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) {
    const bool good = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0);  // shortest form; no surrogates
    return good && follows(1) && follows(2) ? 3 : 0;
  }
  const bool good = (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
  return good && follows(1) && follows(2) && follows(3) ? 4 : 0;
}

// Empty when `text` ends within its room.
template <std::size_t size>
std::string check_text(const char* function, const char* field, char (&text)[size]) {
  if (std::memchr(text, '\0', size) == nullptr) return std::string(function) + " gives a " + field + " without an end";
  const std::string clean = printable(text);
  if (clean == text) return "";
  const std::size_t kept = std::min(clean.size(), size - 1);
  std::memcpy(text, clean.data(), kept);
  text[kept] = '\0';
  return "";
}

std::string check_choice(const char* field, std::int32_t value) {
  if (value >= -1 && value <= 1) return "";
  return std::string("numerics() gives ") + field + " " + std::to_string(value) + ": expected 1, 0 or -1";
}

std::string first_of(std::initializer_list<std::string> faults) {
  for (const std::string& each : faults) {
    if (!each.empty()) return each;
  }
  return "";
}

}  // namespace

std::string printable(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = character(text, at);
    if (count > 0) {
      made.append(text, at, count);
    } else {
      const auto byte = static_cast<unsigned char>(text[at]);
      made += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
    at += count > 0 ? count : 1;
  }
  return made;
}

std::string check_answer(assay_device_info& info) {
  constexpr const char* kFunction = "device_info()";
  return first_of({check_text(kFunction, "name", info.name), check_text(kFunction, "architecture", info.architecture),
                   check_text(kFunction, "software", info.software)});
}

std::string check_answer(assay_numerics& stated) {
  return first_of({check_text("numerics()", "unit", stated.unit), check_text("numerics()", "plan", stated.plan),
                   check_text("numerics()", "plan_line", stated.plan_line),
                   check_choice("keeps_zero_sign", stated.keeps_zero_sign), check_choice("deterministic", stated.deterministic),
                   check_choice("batch_invariant", stated.batch_invariant)});
}

std::string check_answer(assay_algorithm& algorithm) {
  return check_text("list_algorithms()", "description", algorithm.description);
}

std::string check_answer(assay_axis& axis) {
  constexpr const char* kFunction = "list_axes()";
  return first_of({check_text(kFunction, "name", axis.name), check_text(kFunction, "description", axis.description),
                   check_text(kFunction, "list of values", axis.values)});
}

std::string check_count(const std::string& function, std::int32_t count) {
  constexpr std::int32_t kMax = 8192;
  if (count >= 0 && count <= kMax) return "";
  return function + " counts " + std::to_string(count) + ": expected 0 to " + std::to_string(kMax);
}

}  // namespace assay::conformance
