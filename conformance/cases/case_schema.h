#pragma once
// The words of a case line: every op with its keys, defaults, allowed values and what they mean. One table serves the
// parser, the canonical text and the help.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::conformance {

enum class ValueKind {
  integer,  // decimal, at least the key's `minimum`
  real,     // finite decimal
  reals,    // one real, or a comma list
  choice,   // one of `allowed`
  splits,   // rows of each group: case_line.h
  dims,     // a comma list of integers, at least 0, with the same shorthands as splits
  outputs,  // STRIDE:TYPE[:inclusive][:absent], comma list
  replay,   // COUNT:WHAT,WHAT
  preset,   // name of a scale rule: `assay list --presets`
  block,    // ROWSxCOLUMNS, each a number or "all"; or "usual"
  plan,     // name or line of an accumulation plan
  steps,    // words of `allowed`, commas between calls and slashes between graphs
};

struct KeySchema {
  std::string_view key;
  ValueKind kind;
  // The default. "required": the key must be given. "none": there is no value. "DEFAULT; key=value: OTHER; ..."
  // when it depends on another key; the first condition that holds applies.
  std::string_view fallback;
  std::string_view allowed;    // choice: the words, separated by spaces
  std::string_view only_with;  // "key=a|b; key=c": the key may differ from its default only then; empty: always
  std::string_view help;
  long minimum = 0;  // integer
};

struct OpSchema {
  std::string_view op;
  std::string_view help;
  std::vector<KeySchema> keys;  // in the order in which canonical text prints them
};

std::span<const OpSchema> case_schema();

// The op or key with this name, or null.
const OpSchema* find_op(std::string_view op);
const KeySchema* find_key(const OpSchema& op, std::string_view key);

// The op with this name. Errors (InvalidArgument): there is none; the nearest is named.
const OpSchema& op_named(std::string_view op);

// The keys of an op as text for people, in lines of at most 100 columns.
std::string describe_keys(const OpSchema& op);

// What the value of a key looks like: its words, or a pattern such as COUNT:WHAT,...
std::string value_text(const KeySchema& key);

// Takes what stands before the first separator, and the separator, from `list`: empty between two separators.
std::string_view take_word(std::string_view& list, char separator = ' ');
// The words of `list` ("a b c").
std::vector<std::string_view> words_of(std::string_view list, char separator = ' ');
// Whether `word` is one of them.
bool is_word_of(std::string_view list, std::string_view word, char separator = ' ');

// " (did you mean X?)" when one of `candidates` is at most two edits away from `word`, else "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace assay::conformance
