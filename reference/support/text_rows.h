#pragma once
// Tables as text: a row is `key=value key="any text" ...`. An indented line continues the row above it; a line that begins with
// '#' and an empty line are passed over.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// One row. Every field is taken once; `end` refuses those that are left, so that a misspelt key is never ignored.
class TextRow {
 public:
  TextRow(std::string place) : place_(std::move(place)) {}

  const std::string& place() const { return place_; }  // "presets.txt:12", the line on which the row begins
  // Adds the fields of one line. Errors (InvalidArgument): a word without '=', a text without its closing quote or without a blank
  // behind it, a key given twice.
  void add(std::string_view line);

  // The value of `key`; nothing where the row has no such field.
  std::optional<std::string> find(std::string_view key);
  // The same. Errors (InvalidArgument): the row has no such field; `expected` says what it should hold.
  std::string take(std::string_view key, std::string_view expected = "a value: the field has no plain one");
  // The same, or `otherwise` where the row has no such field.
  std::string take_or(std::string_view key, std::string_view otherwise);
  // Errors (InvalidArgument): a field is left that was not taken; `known` lists the keys there are.
  void end(std::string_view known) const;

  // "FILE:LINE: KEY", as messages name a field.
  std::string name_of(std::string_view key) const { return place_ + ": " + std::string(key); }

 private:
  struct Field {
    std::string key, value;
    bool taken = false;
  };
  std::string place_;
  std::vector<Field> fields_;
};

// The rows of `text`, which messages call `file`. Errors: those of TextRow::add; an indented line with no row above it.
std::vector<TextRow> read_rows(std::string_view text, std::string_view file);

}  // namespace assay
