#include "conformance/tests/fuzz/extreme_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "reference/types/error.h"

namespace assay::fuzz {
namespace {

using namespace assay::conformance;

// A small case of each op, recipe, kind, layout and place of groups, with splits and without.
std::vector<CaseLine> bases() {
  std::map<std::string, CaseLine> chosen;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    const OpSchema& op = *find_op(line.op);
    const auto word = [&](const char* key) {
      return find_key(op, key) != nullptr && line.has(key) ? line.text(key) + " " : std::string("- ");
    };
    const bool is_single = find_key(op, "splits") != nullptr && !line.has("splits");
    const std::string kind = line.op + " " + word("recipe") + word("kind") + word("layout") + word("grouped_layout") +
                             word("token_scales") + (is_single ? "R" : "");
    const auto [place, is_new] = chosen.emplace(kind, line);
    if (!is_new && to_text(line).size() < to_text(place->second).size()) place->second = line;
  }
  std::vector<CaseLine> lines;
  for (const auto& [kind, line] : chosen) lines.push_back(line);
  return lines;
}

constexpr const char* kIntegers[] = {"0",
                                     "1",
                                     "127",
                                     "65535",
                                     "1048576",
                                     "2147483647",
                                     "4294967296",
                                     "68719476735",
                                     "68719476736",
                                     "68719476737",
                                     "9007199254740992",
                                     "4611686018427387904",
                                     "9223372036854775807"};
// Of two keys at a time: each nothing, much, or more than there is.
constexpr const char* kFewIntegers[] = {"0", "1", "1048576", "68719476736", "9223372036854775807"};
constexpr const char* kSplits[] = {"0x0", "0", "65536x1", "68719476736", "68719476736,1", "9223372036854775807", "4x2147483648"};
constexpr const char* kFewSplits[] = {"0", "0,0,0", "4096x1", "68719476736"};
// A million groups take a moment by themselves.
constexpr const char* kManyGroups[] = {"1048576x0", "1048577x1", "one(1048576,68719476736,5)",
                                       "zipf(1048576,9223372036854775807,1)", "zipf(1048576,1048576,1),zipf(1048576,1048576,1)"};
constexpr const char* kReals[] = {"0", "-0", "1e308", "-1e308", "5e-324", "1e39"};
constexpr const char* kReplays[] = {"1:data", "1000000:data", "1000000:data,splits,scales", "1000001:data"};
constexpr const char* kBlocks[] = {"1x1", "1x1024", "1024x1024", "allx1", "1xall", "allxall", "1025x1"};
constexpr const char* kOutputs[] = {"1:i32", "9223372036854775807:i64", "9223372036854775807:i32:inclusive"};
constexpr const char* kPlans[] = {
    "unit=sm90.wgmma.f16,slices=9223372036854775807x16,merge=sequential_f32",
    "unit=sm90.wgmma.f16,slices=2147483647x16,merge=sequential_f32",
    "unit=sm90.wgmma.f16,slices=2x9223372036854775792,merge=sequential_f32",
    "unit=sm90.wgmma.f16,slices=1048576x16,merge=sequential_output",
    "unit=sm90.wgmma.f16,slices=2147483647x16,merge=tree_f32",
    "unit=sm90.wgmma.fp8,promote=9223372036854775776,slices=2147483647x32,merge=sequential_f32",
    "unit=sm90.wgmma.fp8,promote=128,association=rows_first,slices=2147483647x128,merge=sequential_f32"};

std::string repeated(const std::string& item, int count) {
  std::string list = item;
  for (int i = 1; i < count; ++i) list += "," + item;
  return list;
}

std::vector<std::string> values_of(const KeySchema& key) {
  const auto all = [](const auto& list) { return std::vector<std::string>(std::begin(list), std::end(list)); };
  switch (key.kind) {
    case ValueKind::integer: {
      std::vector<std::string> values;
      if (!key.allowed.empty()) {
        for (const std::string_view word : words_of(key.allowed)) values.emplace_back(word);
        return values;
      }
      values = all(kIntegers);
      if (key.minimum < 0) values.push_back(show(key.minimum));
      return values;
    }
    case ValueKind::real: return all(kReals);
    case ValueKind::reals: {
      std::vector<std::string> values = all(kReals);
      values.insert(values.end(), {"inf", "nan", repeated("0.5", 1000)});
      return values;
    }
    case ValueKind::splits:
    case ValueKind::dims: return all(kSplits);
    case ValueKind::replay: return all(kReplays);
    case ValueKind::block: return all(kBlocks);
    case ValueKind::outputs: {
      std::vector<std::string> values = all(kOutputs);
      values.push_back(repeated("3:i64", 2000));
      return values;
    }
    case ValueKind::plan: return all(kPlans);
    case ValueKind::steps:
      return {repeated("forward", 500), repeated("forward,dgrad,wgrad", 100), "forward/dgrad/wgrad/forward/dgrad/wgrad"};
    case ValueKind::preset:
    case ValueKind::choice: {
      std::vector<std::string> values;
      for (const std::string_view word : words_of(key.allowed)) values.emplace_back(word);
      return values;
    }
  }
  return {};
}

// The line with these words in place of its own; other keys keep their values.
std::string changed(const CaseLine& line, const std::vector<std::pair<std::string_view, std::string>>& words) {
  const auto is_changed = [&](std::string_view key) {
    return std::any_of(words.begin(), words.end(), [&](const auto& each) { return each.first == key; });
  };
  std::string text = line.op;
  for (const Parameter& each : line.parameters)
    if (!is_changed(each.key)) text += " " + each.key + "=" + each.value;
  for (const auto& [key, value] : words) text.append(" ").append(key).append("=").append(value);
  return text;
}

bool has_rows(const KeySchema& key) { return key.kind == ValueKind::splits || key.kind == ValueKind::dims; }
bool is_number(const KeySchema& key) { return key.kind == ValueKind::integer && key.allowed.empty() && key.key != "seed"; }

// The line with extreme values of `key` and of a number or the rows of another key.
void add_pairs(const CaseLine& base, const OpSchema& op, const KeySchema& key, std::vector<ExtremeLine>& lines) {
  for (const KeySchema& other : op.keys) {
    const bool is_later = is_number(other) && key.key < other.key;
    if (!has_rows(other) && !is_later) continue;
    for (const char* const value : kFewIntegers) {
      const auto add = [&](const char* next) {
        lines.push_back({changed(base, {{key.key, value}, {other.key, next}}), base.op, std::string(key.key)});
      };
      if (is_later) std::for_each(std::begin(kFewIntegers), std::end(kFewIntegers), add);
      if (has_rows(other)) std::for_each(std::begin(kFewSplits), std::end(kFewSplits), add);
    }
  }
}

}  // namespace

std::vector<ExtremeLine> extreme_lines(bool pairs) {
  std::vector<ExtremeLine> lines;
  std::string op_before;
  for (const CaseLine& base : bases()) {
    const OpSchema& op = *find_op(base.op);
    const bool is_first = op_before != base.op;
    op_before = base.op;
    for (const KeySchema& key : op.keys) {
      std::vector<std::string> values = values_of(key);
      if (has_rows(key) && is_first) values.insert(values.end(), std::begin(kManyGroups), std::end(kManyGroups));
      if (key.kind == ValueKind::dims) {  // as many as the base has
        for (const char* const each : kIntegers) values.push_back(show(base.splits(key.key).size()) + "x" + each);
      }
      for (const std::string& value : values) lines.push_back({changed(base, {{key.key, value}}), base.op, std::string(key.key)});
      if (pairs && is_number(key)) add_pairs(base, op, key, lines);
    }
  }
  return lines;
}

}  // namespace assay::fuzz
