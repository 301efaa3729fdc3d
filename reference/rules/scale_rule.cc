// Scale rules read from text, checked and written (spec scale-rules-1.2).

#include "reference/rules/scale_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <mutex>

#include "reference/rules/batch_formula.h"
#include "reference/rules/preset_text.h"
#include "reference/support/text_rows.h"
#include "reference/types/error.h"

namespace assay {
namespace {

template <class Value>
struct Word {
  std::string_view text;
  Value value;
};
using Round = CodeRounding::Round;
using Overflow = CodeRounding::Overflow;
using NanCode = CodeRounding::NanCode;
using NegativeZero = CodeRounding::NegativeZero;

// The first word of each list is the plain value.
constexpr Word<Format> kScaleTypes[] = {{"f32", Format::f32}, {"e8m0", Format::e8m0}, {"e4m3", Format::e4m3}};
constexpr Word<Format> kOutputs[] = {
    {"e4m3", Format::e4m3}, {"e5m2", Format::e5m2}, {"e3m2", Format::e3m2}, {"e2m3", Format::e2m3}, {"e2m1", Format::e2m1}};
constexpr Word<AmaxNan> kAmaxNans[] = {{"ignored", AmaxNan::ignored}, {"propagated", AmaxNan::propagated}};
constexpr Word<OuterAmax> kOuters[] = {{"none", OuterAmax::none}, {"tensor", OuterAmax::tensor}, {"row", OuterAmax::row}};
constexpr Word<Round> kRounds[] = {
    {"even", Round::even}, {"down", Round::down}, {"away", Round::away}, {"truncate", Round::truncate}};
constexpr Word<Overflow> kOverflows[] = {{"saturate", Overflow::saturate}, {"special", Overflow::special}};
constexpr Word<NanCode> kNanCodes[] = {{"largest", NanCode::largest}, {"zero", NanCode::zero}};
constexpr Word<NegativeZero> kNegativeZeros[] = {
    {"kept", NegativeZero::kept}, {"underflow", NegativeZero::underflow}, {"never", NegativeZero::never}};

template <class Value, std::size_t kCount>
Value value_of(const std::string& name, const std::string& text, const Word<Value> (&words)[kCount]) {
  std::string known;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (words[i].text == text) return words[i].value;
    known += (i == 0 ? "" : i + 1 == kCount ? " or " : ", ") + std::string(words[i].text);
  }
  throw InvalidArgument(name, "'" + text + "'", known);
}

template <class Value, std::size_t kCount>
std::string_view text_of(Value value, const Word<Value> (&words)[kCount]) {
  for (const Word<Value>& each : words) {
    if (each.value == value) return each.text;
  }
  return "?";
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The formula assigns what is stored and what is rounded, and only the code depends on the element.
void check_formula(ScaleRule& rule, const std::string& name) {
  rule.scale = rule.formula.find("scale");
  rule.code = rule.formula.find("code");
  require(rule.scale >= kRuleVariables, name, "'" + rule.text + "'", "an assignment to scale");
  require(rule.code >= kRuleVariables, name, "'" + rule.text + "'", "an assignment to code");
  for (std::size_t s = 0; s < rule.formula.statements.size(); ++s) {
    const FormulaStatement& statement = rule.formula.statements[s];
    if (statement.target == rule.scale) rule.scale_statement = s;
    if (statement.target == rule.code) rule.code_statement = s;
    const bool uses_x = rule.formula.depends(s, kElement);
    if (statement.reduction != FormulaReduction::none) {
      const auto is_code = [&](const FormulaStep& step) { return step.op == FormulaOp::variable && step.index == rule.code; };
      require(std::none_of(statement.steps.begin(), statement.steps.end(), is_code), name, "'" + rule.text + "'",
              "x, not code, in what is joined over a block");
    }
    require(!uses_x || statement.target == rule.code, name, "'" + rule.text + "'",
            "x in the assignment to code alone: the others are of a whole block");
    require(rule.outer != OuterAmax::none || !rule.formula.depends(s, kOuterAmax), name, "'" + rule.text + "'",
            "outer=tensor or outer=row where outer_amax is used");
  }
  require(rule.formula.depends(rule.code_statement, kElement), name, "'" + rule.text + "'", "x in the assignment to code");
}

constexpr std::string_view kFields =
    "name, blocks, outputs, scale_type, amax_nan, outer, round, overflow, nan, negative_zero, storage, activation, rule, source, "
    "evidence";

ScaleRule rule_of(TextRow& row) {
  ScaleRule rule;
  rule.name = row.take("name");
  for (const std::string& each : split(row.take("blocks"))) rule.blocks.push_back(parse_block_shape(row.name_of("blocks"), each));
  for (const std::string& each : split(row.take_or("outputs", "e4m3"))) {
    rule.outputs.push_back(value_of(row.name_of("outputs"), each, kOutputs));
  }
  const auto word = [&](std::string_view key, const auto& words) {
    return value_of(row.name_of(key), row.take_or(key, words[0].text), words);
  };
  rule.scale_type = word("scale_type", kScaleTypes);
  rule.nan = word("amax_nan", kAmaxNans);
  rule.outer = word("outer", kOuters);
  rule.rounding = {word("round", kRounds), word("overflow", kOverflows), word("nan", kNanCodes),
                   word("negative_zero", kNegativeZeros)};
  rule.storage = row.take_or("storage", "k_major");
  rule.activation_text = row.take_or("activation", "");
  rule.text = row.take("rule");
  rule.source = row.take("source");
  rule.evidence = row.take_or("evidence", "not compared by us");
  row.end(kFields);
  parse_scale_storage(row.name_of("storage"), rule.storage);
  rule.formula = parse_formula(row.name_of("rule"), rule.text, kRuleNames, kElement);
  check_formula(rule, row.name_of("rule"));
  for (const BlockShape& block : rule.blocks) {
    require(!rule.reduces() || block == kReducedBlock, row.name_of("blocks"), "'" + to_text(block) + "'",
            to_text(kReducedBlock) + " with block_sum, block_squares or block_max");
  }
  const std::size_t values = fast::compile(rule).variables;  // names, and parts of code that are the same for a block
  require(values <= 128, row.name_of("rule"), values, "at most 128 names and parts of code without x");
  if (rule.is_gated()) {
    rule.activation = parse_formula(row.name_of("activation"), rule.activation_text, kActivationNames);
    require(rule.activation.find("x") >= 0, row.name_of("activation"), "'" + rule.activation_text + "'", "an assignment to x");
  }
  if (rule.outer == OuterAmax::row) {
    for (const BlockShape& block : rule.blocks) {
      require(block.rows == 1, row.name_of("blocks"), to_text(block), "blocks of one row, as outer=row has an amax a row");
    }
  }
  return rule;
}

struct Presets {
  std::mutex mutex;
  std::deque<ScaleRule> rules = parse_scale_rules(kPresetText, "presets.txt");
};
Presets& presets() {
  static auto* only = new Presets;  // never destroyed: rules that were given out stay valid
  return *only;
}

}  // namespace

std::deque<ScaleRule> parse_scale_rules(std::string_view text, std::string_view file) {
  std::deque<ScaleRule> rules;
  for (TextRow& row : read_rows(text, file)) {
    ScaleRule rule = rule_of(row);
    const bool twice = std::any_of(rules.begin(), rules.end(), [&](const ScaleRule& each) { return each.name == rule.name; });
    require(!twice, row.name_of("name"), "'" + rule.name + "'", "a name that no row above has");
    rules.push_back(std::move(rule));
  }
  return rules;
}

const std::deque<ScaleRule>& scale_rules() { return presets().rules; }

const ScaleRule* find_scale_rule(std::string_view name) {
  for (const ScaleRule& each : scale_rules()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

void add_scale_rules(std::string_view text, std::string_view file) {
  std::deque<ScaleRule> added = parse_scale_rules(text, file);
  const std::lock_guard lock(presets().mutex);
  for (const ScaleRule& rule : added) {
    const ScaleRule* known = find_scale_rule(rule.name);
    require(known == nullptr || to_text(*known) == to_text(rule), std::string(file) + ": name", "'" + rule.name + "'",
            "a name that no other rule has; that one is: " + (known == nullptr ? "" : to_text(*known)));
  }
  for (ScaleRule& rule : added) {
    if (find_scale_rule(rule.name) == nullptr) presets().rules.push_back(std::move(rule));
  }
}

std::string to_text(const ScaleRule& rule) {
  std::string text = "name=" + rule.name + " blocks=";
  for (std::size_t i = 0; i < rule.blocks.size(); ++i) text += (i == 0 ? "" : ",") + to_text(rule.blocks[i]);
  std::string outputs;
  for (const Format output : rule.outputs) outputs += (outputs.empty() ? "" : ",") + std::string(text_of(output, kOutputs));
  const auto add = [&](std::string_view key, std::string_view value, std::string_view plain) {
    if (value != plain) text += " " + std::string(key) + "=" + std::string(value);
  };
  add("outputs", outputs, "e4m3");
  add("scale_type", text_of(rule.scale_type, kScaleTypes), "f32");
  add("amax_nan", text_of(rule.nan, kAmaxNans), "ignored");
  add("outer", text_of(rule.outer, kOuters), "none");
  add("round", text_of(rule.rounding.round, kRounds), "even");
  add("overflow", text_of(rule.rounding.overflow, kOverflows), "saturate");
  add("nan", text_of(rule.rounding.nan, kNanCodes), "largest");
  add("negative_zero", text_of(rule.rounding.negative_zero, kNegativeZeros), "kept");
  add("storage", rule.storage, "k_major");
  if (rule.is_gated()) text += " activation=\"" + rule.activation_text + "\"";
  return text + " rule=\"" + rule.text + "\" source=\"" + rule.source + "\" evidence=\"" + rule.evidence + "\"";
}

bool ScaleRule::reduces() const {
  return std::any_of(formula.statements.begin(), formula.statements.end(),
                     [](const FormulaStatement& each) { return each.reduction != FormulaReduction::none; });
}

std::string to_text(const BlockShape& block) {
  const auto extent = [](std::int64_t size) { return size == 0 ? std::string("all") : show(size); };
  return extent(block.rows) + "x" + extent(block.columns);
}

BlockShape parse_block_shape(std::string_view argument, std::string_view text) {
  BlockShape block;
  const std::size_t by = text.find('x');
  const auto extent = [&](std::string_view word) -> std::int64_t {
    if (word == "all") return 0;
    std::int64_t value = 0;
    for (const char c : word) {
      value = c >= '0' && c <= '9' && value <= 1024 ? value * 10 + (c - '0') : 4096;
    }
    require(!word.empty() && value >= 1 && value <= 1024, argument, "'" + std::string(text) + "'",
            "ROWSxCOLUMNS, each 1 to 1024 or all");
    return value;
  };
  require(by != std::string_view::npos, argument, "'" + std::string(text) + "'", "ROWSxCOLUMNS, each 1 to 1024 or all");
  block.rows = extent(text.substr(0, by));
  block.columns = extent(text.substr(by + 1));
  return block;
}

float output_pow2(Format format) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(max_finite(format)) & 0xFF80'0000); }

int output_mantissa_bits(Format format) {
  switch (format) {
    case Format::e4m3:
    case Format::e2m3: return 3;
    case Format::e5m2:
    case Format::e3m2: return 2;
    default: return 1;
  }
}

}  // namespace assay
