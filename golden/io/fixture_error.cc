#include "golden/io/fixture_error.h"

#include <cstdint>

#include "golden/io/utf8.h"

namespace assay::golden {
namespace {

// The code point of a well-formed sequence.
std::uint32_t code_point(std::string_view sequence) {
  const auto lead = static_cast<std::uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead;
  std::uint32_t value = lead & (0x7Fu >> sequence.size());
  for (const char each : sequence.substr(1)) value = value << 6 | (static_cast<std::uint8_t>(each) & 0x3Fu);
  return value;
}

bool is_printable(std::uint32_t point) {
  const auto within = [&](std::uint32_t first, std::uint32_t last) { return first <= point && point <= last; };
  return !within(0, 0x1F) && !within(0x7F, 0x9F) && point != 0x61C && !within(0x200E, 0x200F) && !within(0x2028, 0x202E) &&
         !within(0x2066, 0x2069);
}

// Length of the printable sequence at text[at], or 0.
std::size_t printable_sequence(std::string_view text, std::size_t at) {
  const std::size_t length = utf8_sequence(text, at);
  return length > 0 && is_printable(code_point(text.substr(at, length))) ? length : 0;
}

}  // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : 0; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const int lead = byte(0);
  if (at >= text.size()) return 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

bool is_printable_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = printable_sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool is_utf8_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence(text, at);
    if (length == 0 || text[at] == '\0') return false;
    at += length;
  }
  return true;
}

std::string one_line(std::string_view text, std::size_t limit) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    if (line.size() >= limit) return line + "...";
    const std::size_t length = printable_sequence(text, at);
    const auto byte = static_cast<std::uint8_t>(text[at]);
    if (length == 0) {
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      at += 1;
    } else {
      line += text.substr(at, length);
      at += length;
    }
  }
  return line;
}

}  // namespace assay::golden
