// Every scale rule taken for its neighbour, and every word of it changed; every product rounded in another way.

#include <array>
#include <cmath>
#include <memory>

#include "conformance/ops/product.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/catalogued/product_parts.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance {
namespace {

// A call by another rule than it asks for: that of `row`, for calls by the preset of this name.
CallFault other_rule(const std::string& preset, const std::string& kind, std::string says, const std::string& row) {
  const auto changed = [preset, row](const Request& request) {
    Request copy = request;
    copy.attributes.erase("preset");
    copy.attributes["rule"] = row;
    return copy;
  };
  const auto meant = [preset](const Request& request) {
    if (request.op() != "quantize_by_rule") return false;
    if (request.text_or("preset", "") == preset) return true;
    return request.text_or("rule", "").rfind("name=" + preset + " ", 0) == 0;
  };
  return {"rule." + preset + "." + kind,
          "rules",
          std::move(says),
          false,
          [=](const Request& request) { return meant(request) && is_answerable(changed(request)); },
          [=](Request& request) {
            const Request other = changed(request);
            answer(meant(request) && is_answerable(other) ? other : request, Layer::fast);
          }};
}

struct RuleChange {
  const char* name;
  const char* says;
  void (*change)(ScaleRule&);
};
using Round = CodeRounding::Round;
constexpr RuleChange kRuleChanges[] = {
    {"round.even", "codes are rounded to nearest even", [](ScaleRule& rule) { rule.rounding.round = Round::even; }},
    {"round.down", "a code in the middle becomes the one nearer to zero",
     [](ScaleRule& rule) { rule.rounding.round = Round::down; }},
    {"round.away", "a code in the middle becomes the one farther from zero",
     [](ScaleRule& rule) { rule.rounding.round = Round::away; }},
    {"round.truncate", "codes are rounded toward zero", [](ScaleRule& rule) { rule.rounding.round = Round::truncate; }},
    {"overflow", "codes past the largest one are finite where they must not be, or the other way round",
     [](ScaleRule& rule) {
       using Overflow = CodeRounding::Overflow;
       rule.rounding.overflow = rule.rounding.overflow == Overflow::saturate ? Overflow::special : Overflow::saturate;
     }},
    {"nan", "a NaN of a code without NaN is 0 where it must be the largest code, or the other way round",
     [](ScaleRule& rule) {
       using NanCode = CodeRounding::NanCode;
       rule.rounding.nan = rule.rounding.nan == NanCode::largest ? NanCode::zero : NanCode::largest;
     }},
    {"negative_zero.kept", "negative zero is kept",
     [](ScaleRule& rule) { rule.rounding.negative_zero = CodeRounding::NegativeZero::kept; }},
    {"negative_zero.underflow", "negative zero occurs where a negative underflows alone",
     [](ScaleRule& rule) { rule.rounding.negative_zero = CodeRounding::NegativeZero::underflow; }},
    {"negative_zero.never", "negative zero never occurs",
     [](ScaleRule& rule) { rule.rounding.negative_zero = CodeRounding::NegativeZero::never; }},
    {"amax_nan", "a NaN counts in the amax where it must not, or the other way round",
     [](ScaleRule& rule) { rule.nan = rule.nan == AmaxNan::ignored ? AmaxNan::propagated : AmaxNan::ignored; }},
};

// Whether a code of the rule can say what the field is about: only codes of 8 bits have NaN and infinity.
bool is_meant(const ScaleRule& rule, const std::string& field) {
  const auto is_wide = [](Format output) { return output == Format::e4m3 || output == Format::e5m2; };
  if (field == "nan") return !std::all_of(rule.outputs.begin(), rule.outputs.end(), is_wide);
  return field != "overflow" || std::any_of(rule.outputs.begin(), rule.outputs.end(), is_wide);
}

// Whether a call by `rule` can be carried out by `other`.
bool is_neighbour(const ScaleRule& rule, const ScaleRule& other) {
  return rule.text != other.text && rule.scale_type == other.scale_type && rule.outer == other.outer &&
         rule.is_gated() == other.is_gated();
}

// How an f32 value is rounded to a narrower type: a code, of which the next one is farther from zero.
enum class Mode { toward_zero, up, down, away };

std::uint16_t rounded(float value, Format type, Mode mode) {
  const bool bf16 = type == Format::bf16;
  const auto value_of = [&](std::uint16_t code) { return bf16 ? scalar::decode_bf16(code) : scalar::decode_f16(code); };
  const std::uint16_t nearest = bf16 ? scalar::encode_bf16(value) : scalar::encode_f16(value);
  if (!std::isfinite(value)) return nearest;
  const std::uint16_t sign = nearest & 0x8000u;
  std::uint16_t low = nearest & 0x7fffu;  // the largest magnitude that is not above
  while (low > 0 && std::fabs(value_of(low)) > std::fabs(value)) --low;
  if (std::fabs(value_of(low)) == std::fabs(value)) return static_cast<std::uint16_t>(sign | low);
  const double below = std::fabs(value_of(low)), above = std::fabs(value_of(static_cast<std::uint16_t>(low + 1))),
               at = std::fabs(value);
  const bool outward = mode == Mode::up     ? sign == 0
                       : mode == Mode::down ? sign != 0
                                            : mode == Mode::away && at - below >= above - at;
  return static_cast<std::uint16_t>(sign | (outward ? low + 1 : low));
}

// D of the product in f32, rounded in another way. Where C or a bias enter, D has other roundings too, and is right.
void round_product(Request& request, Mode mode) {
  const OutputView output = request.out.at(product_output(request.op()));
  std::vector<std::byte> made = bytes_of(output);
  std::vector<std::byte> wide(made.size() * 2 + 64);
  visit_product(request, [&](const GroupedGemmProblem& problem, void*) {
    if (problem.c != nullptr || problem.bias != nullptr) return;
    ChangedProduct product(problem);
    product.problem.d_type = Format::f32;
    void* to = wide.data();
    std::size_t room = wide.size();
    std::align(16, made.size() * 2 + 1, to, room);
    grouped_gemm(product.problem, to);
    for (const GroupView& group : product.view.groups) {
      for (std::int64_t e = group.d_offset; e < group.d_offset + group.m * group.n; ++e)
        put(made.data(), e, rounded(at<float>(to, e), output.type, mode));
    }
  });
  answer(request, Layer::fast);
  visit_product(request, [&](const GroupedGemmProblem& problem, void*) {
    if (problem.c != nullptr || problem.bias != nullptr || made.empty()) return;
    const ChangedProduct product(problem);
    for (const GroupView& group : product.view.groups)
      std::memcpy(static_cast<std::byte*>(output.data) + group.d_offset * 2, made.data() + group.d_offset * 2,
                  static_cast<std::size_t>(group.m * group.n * 2));
  });
}

}  // namespace

void add_rule_swaps(std::vector<CallFault>& to) {
  const std::deque<ScaleRule>& rules = scale_rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const ScaleRule& rule = rules[i];
    // The next row of the table that can stand for this one.
    for (std::size_t n = 1; n < rules.size(); ++n) {
      const ScaleRule& other = rules[(i + n) % rules.size()];
      if (!is_neighbour(rule, other)) continue;
      ScaleRule swapped = other;
      swapped.blocks = rule.blocks;  // what is asked for stays
      swapped.outputs = rule.outputs;
      swapped.storage = rule.storage;
      if (swapped.reduces() != rule.reduces()) continue;
      to.push_back(
          other_rule(rule.name, "as." + other.name, "rule " + rule.name + " is carried out as " + other.name, to_text(swapped)));
      break;
    }
    for (const RuleChange& each : kRuleChanges) {
      ScaleRule changed = rule;
      each.change(changed);
      if (to_text(changed) == to_text(rule) || !is_meant(rule, each.name)) continue;
      to.push_back(other_rule(rule.name, each.name, "rule " + rule.name + ": " + each.says, to_text(changed)));
    }
  }
  constexpr std::array<std::pair<const char*, const char*>, 4> kModes = {
      {{"toward_zero", "toward zero"},
       {"up", "up"},
       {"down", "down"},
       {"away", "to nearest, a value in the middle away from zero"}}};
  for (const char* op : {"grouped_gemm", "linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (std::size_t m = 0; m < kModes.size(); ++m) {
      const auto has = [op](const Request& request) {
        if (request.op() != op || !has_product(request)) return false;
        const Format type = request.out.at(product_output(op)).type;
        return type == Format::bf16 || type == Format::f16;
      };
      to.push_back({std::string("rounding.") + op + "." + kModes[m].first, "rounding",
                    std::string(op) + ": the product is rounded " + kModes[m].second, false, has, [has, m](Request& request) {
                      has(request) ? round_product(request, static_cast<Mode>(m)) : answer(request, Layer::fast);
                    }});
    }
  }
}

}  // namespace assay::conformance
