// The same call with one option changed: every key of the case schema, at its other values.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/former_words.h"
#include "conformance/diagnose/other_calls/other_call.h"
#include "reference/types/error.h"

namespace assay::conformance::diagnosis {
namespace {

std::string shown(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<std::string>(value);
}

// "0; kind=fp8_block: 1": every value that the key can have by default.
std::vector<std::string> defaults_of(const KeySchema& key) {
  std::vector<std::string> values;
  if (key.fallback == "required" || key.fallback == "none") return values;
  for (const std::string_view part : words_of(key.fallback, ';')) {
    const std::size_t colon = part.rfind(": ");
    std::string_view value = colon == std::string_view::npos ? part : part.substr(colon + 2);
    while (value.starts_with(' ')) value.remove_prefix(1);
    values.emplace_back(value);
  }
  return values;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<Attribute> integers(const KeySchema& key, const Attribute* given) {
  std::vector<Attribute> values;
  const auto add = [&](std::string_view text) {
    if (const auto value = number<std::int64_t>(text)) values.emplace_back(*value);
  };
  for (const std::string_view word : words_of(key.allowed)) add(word);
  if (!values.empty()) return values;
  for (const std::string& each : defaults_of(key)) add(each);
  values.emplace_back(std::int64_t{0});
  values.emplace_back(std::int64_t{1});
  const auto* now = given == nullptr ? nullptr : std::get_if<std::int64_t>(given);
  if (now == nullptr || *now < -(std::int64_t{1} << 40) || *now > (std::int64_t{1} << 40)) return values;
  for (const std::int64_t other : {-*now, *now - 1, *now + 1, *now * 2, *now / 2}) values.emplace_back(other);
  // The bits of a mask in reverse order, and inverted.
  if (*now >= 0 && *now <= 0xffff) {
    std::int64_t reversed = 0;
    for (int bit = 0; bit < 16; ++bit) reversed |= (*now >> bit & 1) << (15 - bit);
    values.emplace_back(reversed);
    values.emplace_back(*now ^ 0xffff);
  }
  return values;
}

std::vector<Attribute> reals(const KeySchema& key, const Attribute* given) {
  std::vector<Attribute> values;
  for (const std::string& each : defaults_of(key)) {
    if (const auto value = number<double>(each)) values.emplace_back(*value);
  }
  values.emplace_back(0.0);
  values.emplace_back(1.0);
  const auto* now = given == nullptr ? nullptr : std::get_if<double>(given);
  if (now == nullptr) return values;
  const auto cut = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(*now)) & 0xffff0000u);
  for (const double other : {-*now, *now * *now, 1 / *now, *now * 2, *now / 2, static_cast<double>(cut)})
    values.emplace_back(other);
  return values;
}

std::vector<Attribute> values_of(const KeySchema& key, const Attribute* given) {
  std::vector<Attribute> values;
  switch (key.kind) {
    case ValueKind::integer: return integers(key, given);
    case ValueKind::real:
    case ValueKind::reals: return reals(key, given);
    case ValueKind::choice:
      for (const std::string_view word : words_of(key.allowed)) values.emplace_back(std::string(word));
      return values;
    default: return values;
  }
}

// Keys that choose a plan: with another value the stated plan no longer applies.
bool chooses_plan(std::string_view key) {
  return key == "arch" || key == "split_accumulator" || key == "recipe" || key == "kind";
}

// Removes the input of an option that is now off.
void drop_unread_input(Request& request) {
  try {
    outputs_of(request);
  } catch (const NotSupported&) {
    for (const auto& [name, view] : request.in) {
      Request less = request;
      less.in.erase(name);
      try {
        outputs_of(less);
      } catch (const std::exception&) {
        continue;
      }
      request = std::move(less);
      return;
    }
  } catch (const std::exception&) {}
}

}  // namespace

void calls_with_other_options(const Suspect& suspect, const Try& attempt) {
  const OpSchema* schema = find_op(suspect.request.op());
  if (schema == nullptr) return;
  for (const KeySchema& key : schema->keys) {
    if (key.key == "arch") continue;                          // product_sums.cc tries its plans and units by name
    const std::string name(former_key(schema->op, key.key));  // of the attribute
    const auto text_of = [&](const Attribute& value) { return std::string(present_value(schema->op, key.key, shown(value))); };
    const auto found = suspect.request.attributes.find(name);
    const Attribute* given = found == suspect.request.attributes.end() ? nullptr : &found->second;
    if (given == nullptr && suspect.request.in.count(name) != 0) continue;  // the input replaces the attribute
    std::set<std::string> tried;
    if (given != nullptr) tried.insert(text_of(*given));
    for (const Attribute& value : values_of(key, given)) {
      if (!tried.insert(text_of(value)).second) continue;
      OtherCall call(suspect.request);
      const bool is_text = std::holds_alternative<std::string>(value);
      call.request.attributes[name] = is_text ? Attribute(std::string(former_value(schema->op, key.key, shown(value)))) : value;
      if (chooses_plan(key.key)) call.request.attributes.erase("plan");
      if (key.key == "stochastic") call.request.attributes.erase("draws"), call.request.attributes.erase("direction");
      drop_unread_input(call.request);
      call.text = fmt::format("with {}={}", key.key, text_of(value));
      if (given != nullptr) call.text += fmt::format(" in place of {}", text_of(*given));
      if (!attempt(std::move(call))) return;
    }
  }
}

}  // namespace assay::conformance::diagnosis
