#include "conformance/cases/rule_choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/language_rules.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

const ScaleRule& rule_named(const std::string& name) {
  const ScaleRule* rule = find_case_rule(name);
  if (rule != nullptr) return *rule;
  std::vector<std::string_view> names;
  for (const ScaleRule& each : scale_rules()) names.push_back(each.name);
  throw InvalidArgument("preset", "'" + name + "'", "a name that `assay list --presets` prints" + did_you_mean(name, names));
}

Format output_of(const CaseLine& line, const ScaleRule& rule) {
  const std::string word = line.text("otype");
  if (word == "usual") return rule.outputs.front();
  const Format output = *format_named(word);
  std::string known;
  for (const Format each : rule.outputs) known += (known.empty() ? "" : ", ") + std::string(name_of(each));
  require(std::find(rule.outputs.begin(), rule.outputs.end(), output) != rule.outputs.end(), "otype", word,
          "a type that preset " + rule.name + " has: " + known);
  return output;
}

}  // namespace

RuleChoice rule_choice(const CaseLine& line) {
  const std::string preset = line.text("preset");
  const ScaleRule& rule = rule_named(preset);
  const std::string block = line.text("block"), storage = line.text("storage");
  return {&rule, output_of(line, rule), block == "usual" ? rule.blocks.front() : parse_block_shape("block", block),
          parse_scale_storage("storage", storage == "usual" ? rule.storage : storage)};
}

void require_rule(const CaseLine& line) {
  const RuleChoice choice = rule_choice(line);
  const Format scale = choice.rule->scale_type;
  const bool bytes = scale == Format::e8m0 || scale == Format::e4m3;
  const ScaleStorage::Order order = choice.storage.order;
  if (order == ScaleStorage::Order::packed) {
    require(scale == Format::e8m0, "storage", name_of(choice.storage), "a preset whose scales are e8m0");
  }
  if (order == ScaleStorage::Order::swizzled_128x4 || order == ScaleStorage::Order::swizzled_8x4) {
    require(bytes, "storage", name_of(choice.storage), "a preset whose scales are e8m0 or e4m3");
  }
  if (choice.rule->outer == OuterAmax::row) {
    require(choice.block.rows == 1, "block", to_text(choice.block),
            "blocks of one row: preset " + choice.rule->name + " has an amax a row");
  }
  const int bits = bits_of(choice.output);
  const std::int64_t unit = bits == 4 ? 2 : bits == 6 ? 4 : 1;
  const std::string expected =
      "a multiple of " + show(unit) + ": codes of " + std::string(name_of(choice.output)) + " fill whole bytes";
  if (line.integer("transposed") == 0) {
    require(line.integer("K") % unit == 0, "K", line.text("K"), expected);
  } else if (line.has("splits")) {
    for (const std::int64_t rows : line.splits()) require(rows % unit == 0, "splits", rows, expected);
    require(line.integer("extra_rows") % unit == 0, "extra_rows", line.text("extra_rows"), expected);
  } else {
    require(line.integer("R") % unit == 0, "R", line.text("R"), expected);
  }
  const std::string part = line.text("outputs");
  const bool outer = choice.rule->outer != OuterAmax::none;
  require(outer || line.text("amax") == "own", "amax", line.text("amax"),
          "own: preset " + choice.rule->name + " has no amax of the tensor or row");
  require(part != "amax" || outer, "outputs", part, "a preset with an amax of the tensor or row");
}

}  // namespace assay::conformance
