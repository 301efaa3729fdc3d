#include "conformance/cases/case_line.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "conformance/cases/case_rules.h"
#include "conformance/cases/case_schema.h"
#include "conformance/cases/case_value.h"
#include "conformance/cases/former_words.h"
#include "conformance/support/counter_random.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// What a line gives, in any order. It has few keys: to look through them costs less than a map, which parsing would make anew
// for each line of the catalogue.
using Values = std::vector<Parameter>;

const std::string* find_value(const Values& given, std::string_view key) {
  const auto found = std::find_if(given.begin(), given.end(), [&](const Parameter& each) { return each.key == key; });
  return found == given.end() ? nullptr : &found->value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string_view value_in_effect(const OpSchema& op, const KeySchema& key, const Values& given);

// "key=a|b": the key has one of these values, given or by default.
bool holds(const OpSchema& op, std::string_view condition, const Values& given) {
  const std::size_t equals = condition.find('=');
  const KeySchema* key = find_key(op, condition.substr(0, equals));
  return is_word_of(condition.substr(equals + 1), value_in_effect(op, *key, given), '|');
}

// "DEFAULT; key=value: OTHER; ...", see KeySchema.
std::string_view default_of(const OpSchema& op, const KeySchema& key, const Values& given) {
  if (key.fallback.find(';') == std::string_view::npos) return trimmed(key.fallback);
  const std::vector<std::string_view> clauses = words_of(key.fallback, ';');
  for (std::size_t i = 1; i < clauses.size(); ++i) {
    const std::size_t colon = clauses[i].find(':');
    if (holds(op, trimmed(clauses[i].substr(0, colon)), given)) return trimmed(clauses[i].substr(colon + 1));
  }
  return trimmed(clauses[0]);
}

std::string_view value_in_effect(const OpSchema& op, const KeySchema& key, const Values& given) {
  const std::string* found = find_value(given, key.key);
  return found != nullptr ? std::string_view(*found) : default_of(op, key, given);
}

const OpSchema& schema_of(std::string_view op) {
  const OpSchema* schema = find_op(op);
  if (schema == nullptr) {
    std::vector<std::string_view> names;
    std::string expected = "one of";
    for (const OpSchema& each : case_schema()) {
      names.push_back(each.op);
      expected += " " + std::string(each.op);
    }
    throw InvalidArgument("op", op, expected + did_you_mean(op, names));
  }
  return *schema;
}

const KeySchema& key_of(const OpSchema& op, std::string_view key, std::string_view word) {
  const KeySchema* schema = find_key(op, key);
  if (schema == nullptr) {
    std::vector<std::string_view> names;
    std::string expected = "a key of " + std::string(op.op) + ":";
    for (const KeySchema& each : op.keys) {
      names.push_back(each.key);
      expected += " " + std::string(each.key);
    }
    throw InvalidArgument("key", word, expected + did_you_mean(key, names));
  }
  return *schema;
}

CaseLine assemble(const OpSchema& op, const Values& given) {
  CaseLine line;
  line.op = op.op;
  for (const KeySchema& key : op.keys) {
    const std::string* value = find_value(given, key.key);
    if (value == nullptr) {
      if (key.fallback != "required") continue;
      throw InvalidArgument(key.key, "not given", std::string(op.op) + " to have " + std::string(key.key) + "=...");
    }
    if (*value == default_of(op, key, given)) continue;
    for (const std::string_view condition : words_of(key.only_with, ';')) {
      if (holds(op, trimmed(condition), given)) continue;
      throw InvalidArgument(key.key, *value, "to be given only with " + std::string(trimmed(condition)));
    }
    line.parameters.push_back({std::string(key.key), *value});
  }
  require_consistent(line);
  return line;
}

}  // namespace

bool CaseLine::has(std::string_view key) const {
  const OpSchema& schema = schema_of(op);
  for (const Parameter& each : parameters) {
    if (each.key == key) return true;
  }
  const KeySchema* found = find_key(schema, key);
  return found != nullptr && found->fallback != "none" && found->fallback != "required";
}

std::string CaseLine::text(std::string_view key) const {
  for (const Parameter& each : parameters) {
    if (each.key == key) return each.value;
  }
  const OpSchema& schema = schema_of(op);
  const KeySchema& found = key_of(schema, key, key);
  const std::string value(default_of(schema, found, parameters));
  require(value != "none" && value != "required", key, "not given", "a value");
  return value;
}

std::int64_t CaseLine::integer(std::string_view key) const {
  const std::string value = text(key);
  const auto parsed = number<std::int64_t>(value);
  require(parsed.has_value(), key, value, "an integer");
  return *parsed;
}

double CaseLine::real(std::string_view key) const { return real_of_key(key, text(key)); }

std::vector<double> CaseLine::reals(std::string_view key) const {
  const std::string value = text(key);
  std::vector<double> values;
  for (const std::string_view item : items_of(value)) values.push_back(factor_of(key, item));
  return values;
}

std::vector<std::int64_t> CaseLine::splits(std::string_view key) const { return parse_splits(key, text(key)); }

CaseLine parse_case_line(std::string_view line) {
  std::string spaced(line);
  for (char& letter : spaced) {
    if (letter == '\t' || letter == '\n' || letter == '\r') letter = ' ';
  }
  const std::vector<std::string_view> words = words_of(spaced);
  require(!words.empty(), "case line", "empty", "an op and key=value words");
  const OpSchema& op = schema_of(words[0]);
  Values given;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    require(equals != std::string_view::npos, "word", words[i], "key=value");
    const std::string_view name = present_key(op.op, words[i].substr(0, equals)), text = words[i].substr(equals + 1);
    const KeySchema& key = key_of(op, name, name);
    std::string value = canonical_value(key, present_value(op.op, name, text));
    require(find_value(given, name) == nullptr, key.key, text, "to be given once");
    given.push_back({std::string(name), std::move(value)});
  }
  return assemble(op, given);
}

std::string to_text(const CaseLine& line) {
  std::string text = line.op;
  for (const Parameter& each : line.parameters) text += " " + each.key + "=" + each.value;
  return text;
}

CaseLine with(const CaseLine& line, std::string_view given_key, std::string_view value) {
  const OpSchema& op = schema_of(line.op);
  const std::string_view key = present_key(line.op, given_key);
  const KeySchema& schema = key_of(op, key, key);
  Values given = line.parameters;
  std::erase_if(given, [&](const Parameter& each) { return each.key == key; });
  if (!value.empty()) given.push_back({std::string(key), canonical_value(schema, present_value(line.op, key, value))});
  return assemble(op, given);
}

// Recorded results, baselines, fixtures and levels hold names: a name is made of the words that the case had first, so that it
// stays the same when a word gets a new name.
std::string name_of(const CaseLine& line) {
  std::string name = line.op;
  const OpSchema& op = schema_of(line.op);
  if (line.op == "grouped_gemm") {  // apart from the products that a backend computes in its own way, which levels require
    if (line.text("grouped_layout") != "splits")
      name += "/" + line.text("grouped_layout");
    else if (line.has("plan"))
      name += "/plan";
    else if (line.text("scaling") == "per_row_column")
      name += "/per_row_column";
    else if (line.text("w_type") == "e2m1")
      name += "/fp8_fp4";
    else if (line.text("d_type") == "e4m3" || line.text("d_type") == "e5m2")
      name += "/fp8_output";
  }
  if (line.op.starts_with("linear_") && line.has("plan")) name += "/plan";
  if (line.op == "quantize" && line.has("draws") && line.text("draws") != "given") name += "/drawn";
  if (find_key(op, "activation") != nullptr && line.text("activation") != "off") name += "/activated";
  for (const std::string_view key : {"recipe", "kind", "algorithm", "layout", "x_type", "otype", "dy_type", "d_type"}) {
    if (find_key(op, key) == nullptr || !line.has(key)) continue;
    if (line.op == "grouped_gemm" &&
        (key == "x_type" || key == "dy_type")) {  // only where the product reads it, and where it is a choice
      const std::string kind = line.text("kind");
      if (kind == "bf16" || kind == "f16" || kind == "nvfp4") continue;
      if ((key == "x_type") != (line.text("layout") == "TN")) continue;
    }
    name.append("/").append(former_value(line.op, key, line.text(key)));
  }
  if (line.op == "scenario") {  // a path's slashes are its own
    std::string steps = line.text("steps");
    std::replace(steps.begin(), steps.end(), '/', '+');
    name += "/" + steps;
  }
  if (find_key(op, "R") != nullptr) name += line.has("splits") ? "/grouped" : "/single";
  if (find_key(op, "data") != nullptr) name += "/" + line.text("data");
  if (line.has("replay")) name += "/replay";
  char digest[9];
  const std::uint64_t hash = fnv1a(former_text(to_text(line)));
  std::snprintf(digest, sizeof digest, "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
  return name + "/" + digest;
}

bool is_unit_probe(const CaseLine& line) { return line.op == "grouped_gemm" && line.text("data") == "unit_probes"; }

CheckKind check_kind(const CaseLine& line) {
  if (find_key(schema_of(line.op), "check") == nullptr) return CheckKind::bits;
  const std::string check = line.text("check");
  return check == "bits" ? CheckKind::bits : check == "order_free" ? CheckKind::order_free : CheckKind::bound;
}

}  // namespace assay::conformance
