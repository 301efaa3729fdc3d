#include "conformance/cases/case_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/cases/case_line.h"
#include "reference/gemm/plan.h"
#include "reference/rules/scale_rule.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

double real_of(std::string_view argument, std::string_view text) {
  const auto value = number<double>(text);
  require(value && std::isfinite(*value), argument, text, "a finite decimal number");
  return *value;
}

std::string choice_of(std::string_view argument, std::string_view text, std::string_view allowed) {
  if (is_word_of(allowed, text)) return std::string(text);
  const std::vector<std::string_view> words = words_of(allowed);
  std::string expected = "one of";
  for (const std::string_view word : words) expected += " " + std::string(word);
  throw InvalidArgument(argument, text, expected + did_you_mean(text, words));
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

}  // namespace

std::int64_t integer_of(std::string_view argument, std::string_view text, std::int64_t minimum) {
  const auto value = number<std::int64_t>(text);
  require(value && *value >= minimum, argument, text, "an integer of at least " + show(minimum));
  return *value;
}

double factor_of(std::string_view argument, std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf")
    return text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const auto value = number<double>(text);
  require(value && std::isfinite(*value), argument, text, "a decimal number, inf, -inf or nan");
  return *value;
}

double real_of_key(std::string_view key, std::string_view text) {
  return key == "noop" ? factor_of(key, text) : real_of(key, text);
}

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
    case ValueKind::preset: return std::string(text);  // looked up with the other keys: rule_choice.h
    case ValueKind::block: return text == "usual" ? std::string(text) : to_text(parse_block_shape(key.key, text));
    case ValueKind::plan: {
      const AccumulationPlan* plan = find_accumulation_plan(text);
      require(plan != nullptr, key.key, text, "the name or the line of an accumulation plan (assay list --plans)");
      return std::string(plan->name);
    }
    case ValueKind::steps: return canonical_steps(key.key, text, key.allowed);
  }
  throw InvalidArgument("kind", show(static_cast<int>(key.kind)), "a kind of value");
}

}  // namespace assay::conformance
