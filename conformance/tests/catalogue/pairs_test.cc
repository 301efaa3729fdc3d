// Every value of every option occurs with every value of every other one in some line of standard; exceptions state why.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// A number stands for its class.
std::string class_of(std::string_view key, const CaseLine& line) {
  if (key == "eps") return line.real(key) == 0 ? "0" : "positive";
  if (key == "sign_mask") return line.integer(key) == 0 ? "0" : "set";
  if (key == "margin") return line.integer(key) == 0 ? "0" : line.integer(key) > 0 ? "positive" : "negative";
  if (key == "extra_rows") return line.integer(key) == 0 ? "0" : "some";
  if (key == "noop") return line.real(key) == 0 ? "0" : line.real(key) == 1 ? "1" : "another";
  if (key == "alpha" || key == "beta") {
    const std::vector<double> values = line.reals(key);
    return values.size() > 1                        ? "one a group"
           : line.text(key) == "1"                  ? "1"
           : key == "beta" && line.text(key) == "0" ? "0"
                                                    : "another";
  }
  return line.text(key);
}

std::string groups_of(const CaseLine& line) {
  if (!line.has("splits")) return "one tensor";
  const std::vector<std::int64_t> splits = line.splits();
  if (std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) == 0) return "all empty";
  if (splits.back() == 0) return "last empty";
  return std::find(splits.begin(), splits.end(), 0) != splits.end() ? "some empty" : "none empty";
}

// Sizes have a test of their own (reach_test.cc); a seed is no option.
const std::set<std::string_view> kNoOption{"seed",   "K",      "N",     "R",    "tensors",   "length",
                                           "stride", "splits", "first", "last", "alignment", "max_m"};

using Options = std::map<std::string, std::string>;

bool applies(const KeySchema& key, const CaseLine& line) {
  for (const std::string_view condition : words_of(key.only_with, ';')) {
    const std::size_t equals = condition.find('='), begin = condition.find_first_not_of(' ');
    const std::vector<std::string_view> allowed = words_of(condition.substr(equals + 1), '|');
    if (std::find(allowed.begin(), allowed.end(), line.text(condition.substr(begin, equals - begin))) == allowed.end())
      return false;
  }
  return true;
}

// Optional inputs that depend on more than one key; GivesTheOptionalInputsThatThePairsSuppose compares this with the generated
// cases.
Options presence_of(const CaseLine& line) {
  Options inputs;
  const auto add = [&](const char* name, bool given) { inputs[std::string("in/") + name] = given ? "given" : "absent"; };
  if (line.op == "quantize" && line.text("recipe") == "nvfp4") {
    const std::string amax = line.text("amax");
    add("amax", amax != "own");
    add("columnwise_amax", amax == "apart" || amax == "single");
    add("rowwise_random",
        line.integer("stochastic") == 1 && line.text("draws") == "given" && line.text("direction") != "columnwise");
    add("columnwise_random",
        line.integer("stochastic") == 1 && line.text("draws") == "given" && line.text("direction") != "rowwise");
    add("rng_state", line.integer("stochastic") == 1 && line.text("draws") != "given");
  }
  if (line.op == "grouped_gemm") {
    const std::vector<double> betas = line.reals("beta");
    add("c", std::any_of(betas.begin(), betas.end(), [](double each) { return each != 0; }));
    add("alpha", line.reals("alpha").size() > 1);
    add("beta", betas.size() > 1);
  }
  return inputs;
}

Options options_of(const CaseLine& line) {
  Options options;
  for (const KeySchema& key : find_op(line.op)->keys) {
    if (kNoOption.count(key.key) || !applies(key, line)) continue;
    const bool counted = !key.allowed.empty() || key.kind == ValueKind::real || key.kind == ValueKind::reals ||
                         key.key == "sign_mask" || key.key == "margin" || key.key == "extra_rows";
    if (!counted) continue;
    options[std::string(key.key)] = line.has(key.key) ? class_of(key.key, line) : "none";
  }
  if (find_key(*find_op(line.op), "splits") != nullptr) options["groups"] = groups_of(line);
  options.merge(presence_of(line));
  return options;
}

// The two values of a pair, in the order of the keys' names.
using Pair = std::tuple<std::string, std::string, std::string, std::string>;

struct LeftOut {
  std::string_view op, key, value, other_key, other_value;  // * stands for all
  std::string_view reason;
};
// clang-format off
const LeftOut kLeftOut[] = {
    {"grouped_gemm", "in/alpha|in/beta", "given", "data|scales|split_accumulator|weight_block|kind", "*", "factors are applied to the whole sum"},
    {"grouped_gemm", "data", "wide_sums", "*", "*", "lines of its own cross it with every kind, layout and type of D"},
    {"grouped_gemm", "data", "unit_probes", "*", "*", "lines of its own for every kind and layout; what follows the sum is plain there"},
    {"grouped_gemm", "data", "step_edges", "*", "*", "lines of its own for every unit, whose accumulator is what it is about"},
    {"grouped_gemm", "data", "adversarial_thresholds", "*", "*", "sums at the smallest normal value of D, whatever is read and in which order"},
    {"grouped_gemm|dequantize", "scales", "extremes", "*", "*", "the largest and the least scale, which edge has in part: zeros beside them, and the largest value"},
    {"*", "beyond|contract|fault", "*", "*", "*", "what rows beyond the groups hold, and whether a call is made wrong too, change no result"},
    {"*", "check", "*", "*", "*", "what a comparison may claim follows from the data and from what a backend states"},
    {"*", "noop", "1|another", "*", "*", "1: nothing is written, whatever the other options are; another value stands for 0"},
    {"*", "data", "specials", "*", "*", "every_special holds what its name says at every size; specials is for recorded fixtures"},
    {"*", "groups", "all empty", "data|scales|zero_sign|eps", "*", "no element is read"},
    {"quantize", "zero_sign", "positive|free", "data", "*", "met with the patterns that hold zeros of both signs"},
    {"quantize", "data", "*", "scales", "*", "a given scale and a value meet in one product; six patterns meet every kind of scales"},
    {"quantize", "data", "*", "recipe", "tensor_delayed", "a given scale and a value meet in one product; six patterns meet every kind of scales"},
    {"quantize", "amax", "single", "*", "*", "one value for all groups in place of one each: what follows is that of amax=apart"},
    {"quantize", "draws|rng_state|in/rng_state", "te_vector_blockwise|te_tuned_1d|te_2d|plain|carries|last|given", "data", "*",
     "what is drawn does not depend on the values: three patterns meet every kernel and every kind of state"},
    {"quantize", "pow2|eps", "*", "scales|recipe", "*", "a given scale is taken as it is"},
    {"quantize", "activation", "swiglu", "data", "*", "what x is made of: three patterns and lines of its own; what is made of x meets every pattern without it"},
    {"linear_forward|linear_wgrad|scenario", "activation", "swiglu", "*", "*", "how x is quantized, which op quantize crosses with every option"},
    {"quantize", "data", "adversarial_gates", "*", "*", "values of gate and up; the options that decide what is read or written meet activation=swiglu"},
    {"quantize", "data", "adversarial_transform", "*", "*", "what is cut and rounded in a sum of 16 terms, whatever is made of the sums"},
    {"quantize", "data", "adversarial_thresholds", "*", "*", "ties and equal errors of a block, which adversarial_four_over_six has with every option"},
    {"quantize", "data", "adversarial_four_over_six", "groups", "*", "its errors are those of blocks, whatever group they belong to"},
    {"grouped_gemm", "scaling", "per_row_column", "data|scales|addends|alpha|beta|groups|arch", "*",
     "the sum is that of one scale a group, and its factors follow; three patterns and four kinds of scales meet it, on sm90"},
    {"grouped_gemm", "d_type", "e4m3|e5m2", "data|scales|addends|alpha|beta|groups|arch|in/c|in/alpha|in/beta", "*",
     "the f32 result is scaled and rounded; what makes it meets d_type=f32"},
    {"grouped_gemm", "d_scales", "*", "data|scales|addends|alpha|beta|groups|arch|in/c|in/alpha|in/beta|x_type|w_type|dy_type|weight_block|split_accumulator|scaling|grouped_layout|scale_layout|extra_rows|kind|layout", "*",
     "one factor for each group, after all others"},
    {"grouped_gemm", "w_type", "e2m1", "data|scales|addends|alpha|beta|groups|dy_type|arch|in/alpha|in/beta", "*",
     "the values of E2M1 are values of FP8: four patterns and three kinds of scales meet it, and every option that decides what is read"},
    {"grouped_gemm", "grouped_layout", "m_indices|psum|masked", "data|scales|addends|arch", "*",
     "the sums are those of the same rows in the plain layout; what is read and where D lies meets every other option"},
    {"grouped_gemm", "addends", "*", "data|scales", "*", "C and the bias are added to the rounded or scaled sum"},
    {"grouped_gemm", "alpha|beta", "one a group", "data|scales|split_accumulator|weight_block|kind", "*", "factors are applied to the whole sum"},
    {"grouped_gemm|dequantize|quantize", "scales", "negative", "data|addends|recipe", "*", "a sign is multiplied, whatever the values are; four patterns meet it"},
    {"grouped_gemm", "scales", "ones", "data|addends|groups|arch|alpha|beta|bias|x_type|w_type|dy_type", "*",
     "scales of 1 are what ties and promotion need"},
    {"grouped_gemm", "data", "adversarial_output_ties|adversarial_promotion|integers", "scales", "*", "these need scales of 1 or powers of two"},
    {"grouped_gemm", "arch", "*", "data|scales|addends|kind|groups|weight_block|split_accumulator|scale_layout", "*",
     "an architecture has not every kind; its arithmetic shows in the data that cut, and every layout, type and factor meets it"},
    {"linear_forward|linear_dgrad|linear_wgrad", "arch", "*", "*", "*",
     "the products of a layer are those of grouped_gemm, which meet every architecture"},
    {"quantize|delayed_update|linear_forward|linear_dgrad|linear_wgrad", "outputs",
     "codes|scale_inv|scale|amax|dbias|amax_history|y|w_rowwise_data|w_rowwise_scale_inv|w_rowwise_amax|dx|dw", "data|scales", "*",
     "values do not depend on which outputs are requested; each option does meet each output alone"},
    {"quantize|quantize_by_rule|dequantize", "groups", "one tensor", "extra_rows", "some", "rows beyond the groups need groups"},
    {"grouped_gemm", "split_accumulator", "0", "kind|weight_block", "*", "block scaling promotes always"},
    {"grouped_gemm", "arch", "sm80", "x_type|w_type|dy_type|scaling", "*", "sm80 has no FP8"},
};
// clang-format on

bool fits(std::string_view pattern, std::string_view text) {
  for (const std::string_view each : words_of(pattern, '|')) {
    if (each == "*" || each == text) return true;
  }
  return false;
}

bool left_out(std::string_view op, const Pair& pair, std::set<const LeftOut*>& used) {
  const auto& [key, value, other_key, other_value] = pair;
  for (const LeftOut& each : kLeftOut) {
    const bool straight =
        fits(each.key, key) && fits(each.value, value) && fits(each.other_key, other_key) && fits(each.other_value, other_value);
    const bool crossed =
        fits(each.key, other_key) && fits(each.value, other_value) && fits(each.other_key, key) && fits(each.other_value, value);
    if (fits(each.op, op) && (straight || crossed)) {
      used.insert(&each);
      return true;
    }
  }
  return false;
}

// Whether some line with one value can be changed to have the other too. parse_case_line refuses combinations that make no sense.
bool may_meet(const std::vector<const CaseLine*>& lines, const std::string& key, const std::string& value,
              const std::string& other_key, const std::string& other_value) {
  for (const CaseLine* line : lines) {
    try {
      const Options options = options_of(with(*line, other_key, other_value));
      const auto one = options.find(key), other = options.find(other_key);
      if (one != options.end() && one->second == value && other != options.end() && other->second == other_value) return true;
    } catch (const InvalidArgument&) {}
  }
  return false;
}

TEST(Standard, GivesTheOptionalInputsThatThePairsSuppose) {
  std::map<std::string, std::set<bool>> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || cost_of(line).elements > 20'000) continue;
    const Options supposed = presence_of(line);
    if (supposed.empty()) continue;
    const Case made = generate(line);
    for (const auto& [name, presence] : supposed) {
      EXPECT_EQ(presence == "given", made.in.count(name.substr(3)) != 0) << to_text(line) << ": " << name;
      met[line.op + " " + name].insert(presence == "given");
    }
  }
  EXPECT_EQ(met.size(), 8u);
  for (const auto& [name, values] : met) EXPECT_EQ(values.size(), 2u) << name;
}

TEST(Standard, MeetsEveryPairOfOptions) {
  std::map<std::string, std::vector<CaseLine>> by_op;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "scenario") by_op[line.op].push_back(line);  // a scenario's steps are lines of the other ops
  }
  std::set<const LeftOut*> used;
  for (const auto& [op, lines] : by_op) {
    std::set<Pair> met;
    std::map<std::string, std::map<std::string, std::vector<const CaseLine*>>> values;
    for (const CaseLine& line : lines) {
      const Options options = options_of(line);
      for (auto first = options.begin(); first != options.end(); ++first) {
        values[first->first][first->second].push_back(&line);
        for (auto second = std::next(first); second != options.end(); ++second) {
          met.insert({first->first, first->second, second->first, second->second});
        }
      }
    }
    for (const KeySchema& key : find_op(op)->keys) {  // values that no line has at all
      if (kNoOption.count(key.key)) continue;
      for (const std::string_view word : words_of(key.allowed)) values[std::string(key.key)][std::string(word)];
    }
    int missing = 0;
    for (auto first = values.begin(); first != values.end(); ++first) {
      for (auto second = std::next(first); second != values.end(); ++second) {
        for (const auto& [value, with_value] : first->second) {
          for (const auto& [other_value, with_other] : second->second) {
            const Pair pair{first->first, value, second->first, other_value};
            if (met.count(pair) || left_out(op, pair, used)) continue;
            const bool derived = first->first == "groups" || second->first == "groups";
            const bool sensible = derived || may_meet(with_value, first->first, value, second->first, other_value) ||
                                  may_meet(with_other, second->first, other_value, first->first, value);
            if (sensible) {
              ++missing;
              ADD_FAILURE() << op << ": no line has " << first->first << "=" << value << " and " << second->first << "="
                            << other_value;
            }
          }
        }
      }
    }
    EXPECT_EQ(missing, 0) << op;
  }
  for (const LeftOut& each : kLeftOut)
    EXPECT_TRUE(used.count(&each)) << "left out and met: " << each.op << " " << each.key << " " << each.other_key << ": "
                                   << each.reason;
}

}  // namespace
}  // namespace assay::conformance
