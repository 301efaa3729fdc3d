#include "reference/support/text_rows.h"

#include <algorithm>

#include "reference/types/error.h"

namespace assay {

void TextRow::add(std::string_view line) {
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
  };
  for (skip(); at < line.size(); skip()) {
    const std::size_t equals = line.find_first_of("= \t", at);
    if (equals == std::string_view::npos || line[equals] != '=' || equals == at) {
      const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      throw InvalidArgument(place_ + ": field", line.substr(at, end - at), "FIELD=VALUE or FIELD=\"TEXT\"");
    }
    Field field;
    field.key = line.substr(at, equals - at);
    at = equals + 1;
    if (at < line.size() && line[at] == '"') {
      const std::size_t close = line.find('"', at + 1);
      if (close == std::string_view::npos) {
        throw InvalidArgument(name_of(field.key), std::string(line.substr(at, 40)), "a closing quote on the same line");
      }
      field.value = line.substr(at + 1, close - at - 1);
      at = close + 1;
      if (at < line.size() && line.find_first_of(" \t\r", at) != at)
        throw InvalidArgument(name_of(field.key), std::string(line.substr(at, 40)), "a blank after the closing quote");
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      field.value = line.substr(at, end - at);
      at = end;
    }
    const bool twice = std::any_of(fields_.begin(), fields_.end(), [&](const Field& each) { return each.key == field.key; });
    if (twice) throw InvalidArgument(name_of(field.key), "given twice", "each field once");
    fields_.push_back(std::move(field));
  }
}

std::optional<std::string> TextRow::find(std::string_view key) {
  for (Field& each : fields_) {
    if (each.key != key) continue;
    each.taken = true;
    return each.value;
  }
  return std::nullopt;
}

std::string TextRow::take(std::string_view key, std::string_view expected) {
  std::optional<std::string> value = find(key);
  if (!value) throw InvalidArgument(name_of(key), "missing", expected);
  return *std::move(value);
}

std::string TextRow::take_or(std::string_view key, std::string_view otherwise) {
  return find(key).value_or(std::string(otherwise));
}

void TextRow::end(std::string_view known) const {
  for (const Field& each : fields_) {
    if (!each.taken) throw InvalidArgument(name_of(each.key), "'" + each.value + "'", "one of the fields " + std::string(known));
  }
}

std::vector<TextRow> read_rows(std::string_view text, std::string_view file) {
  std::vector<TextRow> rows;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    if (first == 0) {
      rows.emplace_back(std::string(file) + ":" + std::to_string(number));
    } else if (rows.empty()) {
      throw InvalidArgument(std::string(file) + ":" + std::to_string(number), "an indented line", "a row above it to continue");
    }
    rows.back().add(line);
  }
  return rows;
}

}  // namespace assay
