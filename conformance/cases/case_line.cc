#include "conformance/cases/case_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/counter_random.h"
#include "conformance/cases/former_words.h"
#include "conformance/cases/scenario.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMaxGroups = 1 << 20;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::int64_t integer_of(std::string_view argument, std::string_view text, std::int64_t minimum) {
  const auto value = number<std::int64_t>(text);
  require(value && *value >= minimum, argument, text, "an integer of at least " + show(minimum));
  return *value;
}

double real_of(std::string_view argument, std::string_view text) {
  const auto value = number<double>(text);
  require(value && std::isfinite(*value), argument, text, "a finite decimal number");
  return *value;
}

// A factor of a product or a flag, which may be infinite or NaN: those have one spelling each.
double factor_of(std::string_view argument, std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") return text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const auto value = number<double>(text);
  require(value && std::isfinite(*value), argument, text, "a decimal number, inf, -inf or nan");
  return *value;
}

// A skip flag may have any value.
double real_of_key(std::string_view key, std::string_view text) { return key == "noop" ? factor_of(key, text) : real_of(key, text); }

std::string choice_of(std::string_view argument, std::string_view text, std::string_view allowed) {
  const std::vector<std::string_view> words = words_of(allowed);
  if (std::find(words.begin(), words.end(), text) != words.end()) return std::string(text);
  std::string expected = "one of";
  for (const std::string_view word : words) expected += " " + std::string(word);
  throw InvalidArgument(argument, text, expected + did_you_mean(text, words));
}

// Splits at commas that are not inside parentheses.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && depth == 0)) {
      items.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    } else if (text[at] == '(') {
      ++depth;
    } else if (text[at] == ')') {
      --depth;
    }
  }
  return items;
}

std::string canonical_outputs(std::string_view argument, std::string_view text) {
  std::string canonical;
  bool any = false;
  for (const std::string_view item : items_of(text)) {
    const std::vector<std::string_view> parts = words_of(item, ':');
    std::size_t next = 2;
    const auto is_next = [&](std::string_view word) { return next < parts.size() && parts[next] == word && ++next > 0; };
    const bool inclusive = is_next("inclusive"), absent = is_next("absent");
    const bool well_formed = parts.size() >= 2 && next == parts.size() && number<std::int64_t>(parts[0]).value_or(-1) >= 0 &&
                             (parts[1] == "i32" || parts[1] == "i64");
    require(well_formed, argument, item, "STRIDE:TYPE[:inclusive][:absent], STRIDE at least 0, TYPE i32 or i64");
    canonical += (canonical.empty() ? "" : ",") + show(*number<std::int64_t>(parts[0])) + ":" + std::string(parts[1]) +
                 (inclusive ? ":inclusive" : "") + (absent ? ":absent" : "");
    any = any || !absent;
  }
  require(any, argument, text, "one output at least that is not absent");
  return canonical;
}

std::string canonical_replay(std::string_view argument, std::string_view text) {
  constexpr std::string_view kChanges = "data splits scales noop pieces";
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::int64_t count = integer_of(argument, text.substr(0, colon), 1);
  require(count <= 1'000'000, argument, text, "at most 1000000 replays");
  std::vector<std::string_view> changes;
  if (colon < text.size()) {
    for (const std::string_view item : items_of(text.substr(colon + 1))) {
      choice_of(argument, item, kChanges);
      changes.push_back(item);
    }
  }
  std::string canonical = show(count);
  char separator = ':';
  for (const std::string_view change : words_of(kChanges)) {
    if (std::find(changes.begin(), changes.end(), change) == changes.end()) continue;
    canonical += separator + std::string(change);
    separator = ',';
  }
  return canonical;
}

std::string canonical_steps(std::string_view argument, std::string_view text, std::string_view allowed) {
  constexpr std::size_t kMax = 64;
  std::size_t count = 0;
  for (const std::string_view graph : words_of(text, '/')) {
    for (const std::string_view step : items_of(graph)) {
      choice_of(argument, step, allowed);
      ++count;
    }
  }
  const bool whole = !text.empty() && text.front() != '/' && text.back() != '/' && text.find("//") == std::string_view::npos;
  require(whole && count <= kMax, argument, text, "1 to 64 steps, commas between calls and slashes between graphs");
  return std::string(text);
}

std::string canonical_value(const KeySchema& key, std::string_view text) {
  switch (key.kind) {
    case ValueKind::integer:
      if (!key.allowed.empty()) return choice_of(key.key, text, key.allowed);
      return show(integer_of(key.key, text, key.minimum));
    case ValueKind::real: {
      const double value = real_of_key(key.key, text);
      return std::isfinite(value) ? show(value == 0 ? 0.0 : value) : std::string(text);  // one spelling of zero
    }
    case ValueKind::reals: {
      std::string canonical;
      for (const std::string_view item : items_of(text)) {
        const double value = factor_of(key.key, item);
        canonical += (canonical.empty() ? "" : ",") + (std::isfinite(value) ? show(value == 0 ? 0.0 : value) : std::string(item));
      }
      return canonical;
    }
    case ValueKind::choice: return choice_of(key.key, text, key.allowed);
    case ValueKind::splits:
    case ValueKind::dims: return splits_text(parse_splits(key.key, text));
    case ValueKind::outputs: return canonical_outputs(key.key, text);
    case ValueKind::replay: return canonical_replay(key.key, text);
    case ValueKind::steps: return canonical_steps(key.key, text, key.allowed);
  }
  throw InvalidArgument("kind", show(static_cast<int>(key.kind)), "a kind of value");
}

using Values = std::map<std::string, std::string, std::less<>>;

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
  const std::string_view value = value_in_effect(op, *key, given);
  const std::vector<std::string_view> wanted = words_of(condition.substr(equals + 1), '|');
  return std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// "DEFAULT; key=value: OTHER; ...", see KeySchema.
std::string_view default_of(const OpSchema& op, const KeySchema& key, const Values& given) {
  const std::vector<std::string_view> clauses = words_of(key.fallback, ';');
  for (std::size_t i = 1; i < clauses.size(); ++i) {
    const std::size_t colon = clauses[i].find(':');
    if (holds(op, trimmed(clauses[i].substr(0, colon)), given)) return trimmed(clauses[i].substr(colon + 1));
  }
  return trimmed(clauses[0]);
}

std::string_view value_in_effect(const OpSchema& op, const KeySchema& key, const Values& given) {
  const auto found = given.find(key.key);
  return found != given.end() ? std::string_view(found->second) : default_of(op, key, given);
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

Values values_of(const CaseLine& line) {
  Values values;
  for (const Parameter& each : line.parameters) values[each.key] = each.value;
  return values;
}

// That the recipe has the output which `outputs` asks for alone.
void require_part_of_quantize(const CaseLine& line) {
  const std::string part = line.text("outputs"), recipe = line.text("recipe");
  if (part == "scale") require(recipe == "tensor_current", "outputs", part, "a recipe that makes a scale: tensor_current");
  if (part == "amax") {
    require(recipe.starts_with("tensor") || recipe == "nvfp4", "outputs", part, "a recipe with an amax: tensor_current, tensor_delayed or nvfp4");
  }
  if (part == "dbias") require(line.integer("dbias") == 1, "outputs", part, "dbias=1");
  const bool unaligned = line.has("fault") && line.text("fault") == "unaligned_rows";
  require(!unaligned || part == "usual" || part == "all", "outputs", part, "usual or all with fault=unaligned_rows");
}

void require_part_of_forward(const CaseLine& line) {
  const std::string part = line.text("outputs");
  require(part == "usual" || line.has("noop"), "outputs", part, "usual without noop");
  if (part == "w_rowwise_amax") require(line.text("recipe") == "nvfp4", "outputs", part, "recipe=nvfp4");
}

// Rules between keys that the table does not hold.
void require_consistent(const CaseLine& line) {
  const OpSchema& op = schema_of(line.op);
  const auto known = [&](std::string_view key) { return find_key(op, key) != nullptr; };
  const bool ragged = known("splits") && line.has("splits");

  if (known("R")) {
    require(ragged != line.has("R"), "R", line.has("R") ? line.text("R") : "not given",
            "either splits or R, and not both");
  }
  if (known("extra_rows") && line.integer("extra_rows") > 0) {
    require(ragged, "extra_rows", line.text("extra_rows"), "0 where there are no splits");
  }
  if (known("beyond") && line.text("beyond") != "nan") {
    require(line.integer("extra_rows") > 0, "beyond", line.text("beyond"), "nan where there are no rows beyond the splits (extra_rows)");
  }
  if (known("contract") && line.integer("contract") == 1) {
    require(!line.has("replay"), "contract", line.text("contract"), "0 where the call is replayed");
  }
  if (known("fault") && line.has("fault")) {
    const std::string fault = line.text("fault");
    require(!line.has("replay") && line.integer("contract") == 0, "fault", fault, "no replay and no contract beside it");
    require(ragged || known("first"), "fault", fault, "splits, which hold the fault");
    const std::string_view key = known("recipe") ? "recipe" : "kind";
    require(fault != "unaligned_rows" || line.text(key) == "nvfp4", "fault", fault, std::string(key) + "=nvfp4, whose codes share bytes");
  }
  if (known("recipe") && known("otype")) {
    const bool four_bits = line.text("recipe") == "nvfp4";
    for (const std::string_view key : {"otype", "grad_otype"}) {
      if (!known(key)) continue;
      require((line.text(key) == "e2m1") == four_bits, key, line.text(key),
              four_bits ? "e2m1 with recipe=nvfp4" : "e4m3 or e5m2 with recipe=" + line.text("recipe"));
    }
  }
  if (line.op == "quantize" || line.op == "dequantize") {
    if (line.text("recipe") == "nvfp4") {
      require(line.integer("K") % 2 == 0, "K", line.text("K"), "an even number with recipe=nvfp4: two codes share a byte");
      const std::string direction = line.text("direction");
      if (direction != "rowwise") {
        const std::vector<std::int64_t> rows =
            ragged ? line.splits() : std::vector<std::int64_t>{line.integer("R")};
        for (const std::int64_t each : rows) {
          require(each % 2 == 0, ragged ? "splits" : "R", each,
                  "even numbers of rows with recipe=nvfp4 columnwise: two codes share a byte");
        }
        if (ragged) {
          require(line.integer("extra_rows") % 2 == 0, "extra_rows", line.text("extra_rows"),
                  "an even number with recipe=nvfp4 columnwise");
        }
      }
    }
  }
  if (known("eps")) require(line.real("eps") >= 0, "eps", line.text("eps"), "a value of at least 0");
  if (known("sign_mask")) require(line.integer("sign_mask") <= 0xffff, "sign_mask", line.text("sign_mask"), "16 bits");
  if (line.op == "quantize") {
    if (line.integer("hadamard") == 1) {
      require(line.text("x_type") == "bf16", "x_type", line.text("x_type"), "bf16 with hadamard=1");
      require(line.text("direction") != "rowwise", "direction", line.text("direction"), "both or columnwise with hadamard=1");
    }
    const bool four_over_six = line.text("four_over_six") != "off";
    if (line.integer("hadamard") == 1) {
      require(line.integer("two_dimensional") == 0, "two_dimensional", "1", "0 with hadamard=1");
      require(!four_over_six, "four_over_six", line.text("four_over_six"), "off with hadamard=1");
    }
    if (line.integer("stochastic") == 1) {
      require(!four_over_six, "four_over_six", line.text("four_over_six"), "off with stochastic=1");
    }
    if (line.text("e4m3_max") == "256") require(four_over_six, "e4m3_max", "256", "448 with four_over_six=off");
    if (line.text("outputs") == "all") {
      const bool more = line.text("recipe").starts_with("tensor") || (line.text("recipe") == "nvfp4" && line.text("amax") != "own");
      require(more, "outputs", "all", "a recipe with further outputs: tensor_current, tensor_delayed, or nvfp4 with an amax that is given");
    }
    require_part_of_quantize(line);
    if (line.text("data") == "adversarial_eps") {
      require(line.real("eps") > 0, "eps", line.text("eps"), "more than 0 with data=adversarial_eps");
    }
    if (line.text("data") == "adversarial_four_over_six") {
      require(four_over_six, "four_over_six", "off", "mae or mse with data=adversarial_four_over_six");
    }
  }
  if (line.op == "linear_forward") require_part_of_forward(line);
  if (line.op == "grouped_gemm") {
    const std::string kind = line.text("kind");
    require(line.text("scales") != "two_roundings" || kind == "fp8_per_tensor" || kind == "fp8_block", "scales", "two_roundings",
            "kind=fp8_per_tensor or kind=fp8_block: f32 scales");
    const std::vector<double> betas = line.reals("beta");
    const bool has_addend = line.integer("bias") == 1 || std::any_of(betas.begin(), betas.end(), [](double each) { return each != 0; });
    require(has_addend || line.text("addends") == "plain", "addends", line.text("addends"), "plain where there is neither beta nor bias");
    const std::size_t groups = line.splits().size();
    const bool per_group = line.text("arch") == "sm100";
    for (const std::string_view key : {"alpha", "beta"}) {
      const std::size_t count = line.reals(key).size();
      require(count == 1 || (per_group && count == groups), key, line.text(key),
              per_group ? "one value, or one for each of the " + show(groups) + " groups"
                        : "one value: per-group factors need arch=sm100");
    }
    if (line.text("layout") == "NT") {
      require(line.text("weight_block") == "128x128", "weight_block", line.text("weight_block"),
              "layout TN or NN: NT reads no weights");
    }
    if (line.text("check") == "order_free") {
      require(line.text("data") == "integers" || line.text("data") == "wide_sums", "data", line.text("data"),
              "integers or wide_sums with check=order_free");
      require(line.text("kind") != "nvfp4", "kind", "nvfp4", "another kind with check=order_free: its factor is a rounded one");
    }
    if (line.text("data") == "integers" || line.text("data") == "wide_sums") {
      const std::string scales = line.text("scales");
      require(scales == "pow2" || scales == "ones", "scales", scales, "pow2 or ones with data=" + line.text("data"));
    }
    if (line.text("data") == "unit_probes") {  // D is then the accumulator
      require(line.text("kind") != "nvfp4", "kind", "nvfp4", "another kind with data=unit_probes: its units have one arithmetic");
      require(line.text("d_type") == "f32", "d_type", line.text("d_type"), "f32 with data=unit_probes");
      for (const auto& [key, value] : {std::pair("alpha", "1"), std::pair("beta", "0"), std::pair("bias", "0")}) {
        require(line.text(key) == value, key, line.text(key), std::string(value) + " with data=unit_probes");
      }
      require(!line.has("scales") || line.text("scales") == "ones", "scales", line.text("scales"), "ones with data=unit_probes");
    }
    if (line.text("kind") == "nvfp4") {
      require(line.integer("K") % 16 == 0, "K", line.text("K"), "a multiple of 16 with kind=nvfp4");
      require(line.integer("N") % 16 == 0, "N", line.text("N"), "a multiple of 16 with kind=nvfp4");
      for (const std::int64_t rows : line.splits()) {
        require(line.text("layout") != "NT" || rows % 16 == 0, "splits", rows,
                "multiples of 16 with kind=nvfp4 layout=NT");
      }
    }
  }
  if (known("scales") && line.has("scales") && line.text("scales") == "negative") {
    const bool e8m0 = line.op == "grouped_gemm" ? line.text("kind") == "mxfp8" : line.op == "dequantize" && line.text("recipe") == "mxfp8";
    require(!e8m0, "scales", "negative", "scales of a type with a sign: E8M0, of mxfp8, has none");
  }
  if (line.op == "dequantize" && line.text("scales") == "two_roundings") {
    require(line.text("recipe") != "mxfp8" && line.text("recipe") != "nvfp4", "scales", "two_roundings", "a recipe with f32 scales");
  }
  if (line.op == "linear_wgrad" && line.text("recipe") == "nvfp4") {
    require(line.text("x_type") == "bf16", "x_type", line.text("x_type"), "bf16 with recipe=nvfp4: the Hadamard transform takes no other");
  }
  if (line.op == "splits_to_offsets_2d") {
    const std::size_t first = line.splits("first").size(), last = line.splits("last").size();
    require(first == last, "last", show(last) + " values", "as many as first has, " + show(first));
  }
  if (line.has("replay")) {
    const ReplayPlan plan = replay_plan(line);
    require(!plan.splits || ragged || known("first"), "replay", line.text("replay"), "no change of splits where there are none");
    require(!plan.noop || (known("noop") && line.has("noop")), "replay", line.text("replay"),
            "a change of noop only where the case has noop");
    require(!plan.pieces || ((plan.data || plan.scales) && !plan.splits && line.op != "scenario"), "replay", line.text("replay"),
            "pieces of data or scales, with the splits as they are, in a single call");
  }
  if (line.op == "scenario") scenario_of(line);  // its steps are lines of their own
}

CaseLine assemble(const OpSchema& op, const Values& given) {
  CaseLine line;
  line.op = op.op;
  for (const KeySchema& key : op.keys) {
    const auto found = given.find(key.key);
    if (found == given.end()) {
      require(key.fallback != "required", key.key, "not given",
              std::string(op.op) + " to have " + std::string(key.key) + "=...");
      continue;
    }
    if (found->second == default_of(op, key, given)) continue;
    for (const std::string_view condition : words_of(key.only_with, ';')) {
      require(holds(op, trimmed(condition), given), key.key, found->second,
              "to be given only with " + std::string(trimmed(condition)));
    }
    line.parameters.push_back({std::string(key.key), found->second});
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
  const std::string value(default_of(schema, found, values_of(*this)));
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
    const bool fresh = given.emplace(name, canonical_value(key, present_value(op.op, name, text))).second;
    require(fresh, key.key, text, "to be given once");
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
  Values given = values_of(line);
  if (value.empty()) {
    given.erase(std::string(key));
  } else {
    given[std::string(key)] = canonical_value(schema, present_value(line.op, key, value));
  }
  return assemble(op, given);
}

// Recorded results, baselines, fixtures and levels hold names: a name is made of the words that the case had first, so that it
// stays the same when a word gets a new name.
std::string name_of(const CaseLine& line) {
  std::string name = line.op;
  const OpSchema& op = schema_of(line.op);
  for (const std::string_view key : {"recipe", "kind", "algorithm", "layout", "x_type", "otype", "dy_type", "d_type"}) {
    if (find_key(op, key) == nullptr || !line.has(key)) continue;
    if (line.op == "grouped_gemm" && (key == "x_type" || key == "dy_type")) {  // only where the product reads it, and where it is a choice
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

std::string splits_text(const std::vector<std::int64_t>& splits) {
  if (splits.empty()) return "0x0";
  std::string text;
  for (std::size_t begin = 0; begin < splits.size();) {
    std::size_t end = begin;
    while (end < splits.size() && splits[end] == splits[begin]) ++end;
    const std::size_t run = end - begin >= 3 ? end - begin : 1;
    if (!text.empty()) text += ',';
    if (run >= 3) text += show(run) + "x";
    text += show(splits[begin]);
    begin += run;
  }
  return text;
}

std::vector<std::int64_t> parse_splits(std::string_view argument, std::string_view text) {
  constexpr std::string_view kExpected = "rows separated by commas: ROWS, COUNTxROWS, one(G,ROWS,g) or zipf(G,ROWS,SEED)";
  std::vector<std::int64_t> splits;
  const auto append = [&](std::int64_t count, std::int64_t rows) {
    require(static_cast<std::int64_t>(splits.size()) + count <= kMaxGroups, argument, text, "at most 1048576 groups");
    splits.insert(splits.end(), static_cast<std::size_t>(count), rows);
  };
  for (const std::string_view item : items_of(text)) {
    const std::size_t open = item.find('('), times = item.find('x');
    if (open != std::string_view::npos) {
      const std::string_view name = item.substr(0, open);
      require((name == "one" || name == "zipf") && item.back() == ')', argument, item, kExpected);
      const std::vector<std::string_view> arguments = items_of(item.substr(open + 1, item.size() - open - 2));
      require(arguments.size() == 3, argument, item, name == "one" ? "one(GROUPS,ROWS,GROUP)" : "zipf(GROUPS,ROWS,SEED)");
      const std::int64_t groups = integer_of(argument, arguments[0], 1), rows = integer_of(argument, arguments[1], 0);
      const std::int64_t last = integer_of(argument, arguments[2], 0);
      require(groups <= kMaxGroups, argument, item, "at most 1048576 groups");
      if (name == "one") {
        require(last < groups, argument, item, "a group below " + show(groups));
        append(last, 0);
        append(1, rows);
        append(groups - last - 1, 0);
      } else {
        const std::vector<std::int64_t> drawn = zipf_splits(groups, rows, static_cast<std::uint64_t>(last));
        append(0, 0);
        require(static_cast<std::int64_t>(splits.size() + drawn.size()) <= kMaxGroups, argument, text, "at most 1048576 groups");
        splits.insert(splits.end(), drawn.begin(), drawn.end());
      }
    } else if (times != std::string_view::npos) {
      const auto count = number<std::int64_t>(item.substr(0, times)), rows = number<std::int64_t>(item.substr(times + 1));
      require(count && rows && *count >= 0 && *rows >= 0 && *count <= kMaxGroups, argument, item, kExpected);
      append(*count, *rows);
    } else {
      const auto rows = number<std::int64_t>(item);
      require(rows && *rows >= 0, argument, item, kExpected);
      append(1, *rows);
    }
  }
  return splits;
}

// The group of rank r gets rows * (1/r) / (1 + 1/2 + ... + 1/G), cut to an integer; what is left over goes to rank 1.
std::vector<std::int64_t> zipf_splits(std::int64_t groups, std::int64_t rows, std::uint64_t seed) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 32;  // 1/r in 32 fraction bits
  std::uint64_t total = 0;
  for (std::int64_t rank = 1; rank <= groups; ++rank) total += kUnit / static_cast<std::uint64_t>(rank);

  // Ranks are assigned by a Fisher-Yates shuffle.
  std::vector<std::size_t> group_of(static_cast<std::size_t>(groups));
  for (std::size_t i = 0; i < group_of.size(); ++i) group_of[i] = i;
  const CounterRandom random(seed, "zipf");
  for (std::size_t i = group_of.size(); i > 1; --i) {
    std::swap(group_of[i - 1], group_of[random.below(i, static_cast<std::uint32_t>(i))]);
  }

  std::vector<std::int64_t> splits(static_cast<std::size_t>(groups), 0);
  std::int64_t assigned = 0;
  for (std::int64_t rank = 2; rank <= groups; ++rank) {
    const std::uint64_t share = kUnit / static_cast<std::uint64_t>(rank);
    const auto part = static_cast<std::int64_t>(static_cast<unsigned __int128>(rows) * share / total);
    splits[group_of[static_cast<std::size_t>(rank - 1)]] = part;
    assigned += part;
  }
  splits[group_of[0]] = rows - assigned;
  return splits;
}

bool is_unit_probe(const CaseLine& line) { return line.op == "grouped_gemm" && line.text("data") == "unit_probes"; }

CheckKind check_kind(const CaseLine& line) {
  if (find_key(schema_of(line.op), "check") == nullptr) return CheckKind::bits;
  const std::string check = line.text("check");
  return check == "bits" ? CheckKind::bits : check == "order_free" ? CheckKind::order_free : CheckKind::bound;
}

ReplayPlan replay_plan(const CaseLine& line) {
  ReplayPlan plan;
  if (!line.has("replay")) return plan;
  const std::string value = line.text("replay");
  const std::size_t colon = std::min(value.find(':'), value.size());
  plan.count = static_cast<int>(integer_of("replay", std::string_view(value).substr(0, colon), 1));
  for (const std::string_view item : items_of(std::string_view(value).substr(std::min(colon + 1, value.size())))) {
    plan.data |= item == "data";
    plan.splits |= item == "splits";
    plan.scales |= item == "scales";
    plan.noop |= item == "noop";
    plan.pieces |= item == "pieces";
  }
  return plan;
}

std::vector<OffsetsOutputSpec> offsets_outputs(const CaseLine& line) {
  std::vector<OffsetsOutputSpec> outputs;
  const std::string value = line.text("outputs");
  for (const std::string_view item : items_of(value)) {
    const std::vector<std::string_view> parts = words_of(item, ':');
    outputs.push_back({*number<std::int64_t>(parts[0]), parts[1] == "i32", parts.size() > 2 && parts[2] == "inclusive", parts.back() == "absent"});
  }
  return outputs;
}

}  // namespace assay::conformance
