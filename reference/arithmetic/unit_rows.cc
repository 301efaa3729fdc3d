// Rows of the table of units, read from text and written (spec tensor-core-2.2).

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "reference/arithmetic/unit_table.h"
#include "reference/support/text_rows.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// ---- The words of the file ----------------------------------------------------------------------------------------------

template <class Value>
struct Word {
  std::string_view text;
  Value value;
};
constexpr Word<Accumulator> kAccumulators[] = {{"f32_truncated", Accumulator::f32_truncated},
                                               {"e8m13_truncated", Accumulator::e8m13_truncated},
                                               {"f16_nearest", Accumulator::f16_nearest},
                                               {"f32_nearest", Accumulator::f32_nearest}};
constexpr Word<StepSum> kSums[] = {{"fused", StepSum::fused},
                                   {"joined", StepSum::joined},
                                   {"exact", StepSum::exact},
                                   {"tree", StepSum::tree},
                                   {"chains", StepSum::chains}};
constexpr Word<Flush> kFlushes[] = {
    {"none", Flush::none}, {"f32_values", Flush::f32_values}, {"operands_and_results", Flush::operands_and_results}};
constexpr Word<bool> kFarC[] = {{"floored", false}, {"dropped", true}};
constexpr Word<StepScaling> kScalings[] = {{"none", StepScaling::none},
                                           {"e8m0_per_32", StepScaling::e8m0_per_32},
                                           {"e4m3_per_16", StepScaling::e4m3_per_16},
                                           {"e8m0_per_16", StepScaling::e8m0_per_16}};
constexpr Word<Execution> kExecutions[] = {{"native", Execution::native}, {"emulated_fp8", Execution::emulated_fp8}};
constexpr Word<bool> kAnswers[] = {{"no", false}, {"yes", true}};
// Both tf32 and f32 stand in f32 registers: TensorCoreUnit::tf32 tells them apart.
// clang-format off
constexpr Word<Format> kOperands[] = {
    {"tf32", Format::f32}, {"f32", Format::f32}, {"bf16", Format::bf16}, {"f16", Format::f16}, {"e4m3", Format::e4m3},
    {"e5m2", Format::e5m2}, {"e4m3_fnuz", Format::e4m3_fnuz}, {"e5m2_fnuz", Format::e5m2_fnuz}, {"e3m2", Format::e3m2},
    {"e2m3", Format::e2m3}, {"e2m1", Format::e2m1}};
// clang-format on

template <class Value, std::size_t kCount>
std::string one_of(const Word<Value> (&words)[kCount]) {
  std::string text;
  for (std::size_t i = 0; i < kCount; ++i) {
    text += i == 0 ? "" : i + 1 == kCount ? " or " : ", ";
    text += words[i].text;
  }
  return text;
}

template <class Value, std::size_t kCount>
std::string_view text_of(const Word<Value> (&words)[kCount], Value value) {
  for (const Word<Value>& each : words) {
    if (each.value == value) return each.text;
  }
  return "?";
}

// Texts and lists that rows point to. Never destroyed, as the rows are not.
struct Storage {
  std::mutex mutex;
  std::deque<std::string> texts;
  std::deque<std::vector<Format>> formats;
};
Storage& storage() {
  static auto* only = new Storage;
  return *only;
}
std::string_view store(std::string_view text) {
  const std::lock_guard lock(storage().mutex);
  return storage().texts.emplace_back(text);
}
std::span<const Format> store(std::vector<Format> formats) {
  const std::lock_guard lock(storage().mutex);
  return storage().formats.emplace_back(std::move(formats));
}

// ---- A row as fields ----------------------------------------------------------------------------------------------------

// The fields of one row as values. Each is taken once; the name of a message is "FILE:LINE: FIELD".
class Row {
 public:
  explicit Row(TextRow& fields) : fields_(fields) {}

  std::string at(std::string_view key) const { return fields_.name_of(key); }

  std::string text_or(std::string_view key, std::string_view otherwise) { return fields_.take_or(key, otherwise); }
  std::string text(std::string_view key, std::string_view expected) {
    std::string value = fields_.take(key, expected);
    require(!value.empty(), at(key), "empty", expected);
    return value;
  }
  int number(std::string_view key, int least, int most, std::optional<int> plain = std::nullopt) {
    const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const std::optional<std::string> given = fields_.find(key);
    if (!given && plain) return *plain;
    require(given.has_value(), at(key), "missing", expected);
    int value = 0;
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), value);
    require(error == std::errc() && end == given->data() + given->size() && value >= least && value <= most, at(key), *given,
            expected);
    return value;
  }
  template <class Value, std::size_t kCount>
  Value word(std::string_view key, const Word<Value> (&words)[kCount], Value plain) {
    const std::optional<std::string> given = fields_.find(key);
    if (!given) return plain;
    for (const Word<Value>& each : words) {
      if (each.text == *given) return each.value;
    }
    require(false, at(key), *given, one_of(words));
    return plain;
  }
  // `tf32` is set where the word tf32 is among them.
  std::vector<Format> formats(std::string_view key, bool& tf32) {
    const std::string given = text(key, "formats with commas between them: " + one_of(kOperands));
    std::string_view rest = given;
    std::vector<Format> all;
    while (true) {
      const std::string_view name = rest.substr(0, rest.find(','));
      const auto* const found =
          std::find_if(std::begin(kOperands), std::end(kOperands), [&](const Word<Format>& each) { return each.text == name; });
      require(found != std::end(kOperands), at(key), name, one_of(kOperands));
      require(std::find(all.begin(), all.end(), found->value) == all.end(), at(key), name, "each format once");
      all.push_back(found->value);
      tf32 = tf32 || name == "tf32";
      if (name.size() == rest.size()) return all;
      rest.remove_prefix(name.size() + 1);
    }
  }
  void end(std::string_view known) const { fields_.end(known); }

 private:
  TextRow& fields_;
};

// ---- A row as a unit ----------------------------------------------------------------------------------------------------

// Sums of a step are held in 64 bits: 65 terms below 2^(F + 13), those of scaled FP4 being the largest.
constexpr int kMaxFractionBits = 40;
constexpr int kMaxNameLength = 63;  // a backend states its unit in 64 bytes

// spec tensor-core-1.3, 5.1. The other sums have no grid, and no floor.
int plain_floor(const TensorCoreUnit& unit) {
  if (unit.sum == StepSum::joined) return -126;
  if (unit.sum != StepSum::fused) return 0;
  return unit.accumulator == Accumulator::f16_nearest ? 4 - unit.fraction_bits : -108 - unit.fraction_bits;
}
Accumulator plain_accumulator(StepSum sum) {
  return sum == StepSum::fused ? Accumulator::f32_truncated : Accumulator::f32_nearest;
}
int plain_group(StepScaling scaling) {
  return scaling == StepScaling::e4m3_per_16 || scaling == StepScaling::e8m0_per_16 ? 16 : 1;
}

bool all_of(const TensorCoreUnit& unit, bool (*is)(Format)) {
  return std::all_of(unit.operands.begin(), unit.operands.end(), is);
}

void require_sound_name(std::string_view name, const Row& row) {
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_.";
  const std::size_t dot = name.find('.');
  require(name.size() <= kMaxNameLength && name.find_first_not_of(letters) == std::string_view::npos && dot != 0 &&
              dot < name.size() - 1,
          row.at("name"), name, "ARCHITECTURE.INSTRUCTION in small letters, digits, _ and ., of at most 63 letters");
}

// A fused step: scales and emulation need the operands and lengths for which they are defined.
void require_sound_step(const TensorCoreUnit& unit, const Row& row) {
  const std::string_view scaling = text_of(kScalings, unit.scaling);
  if (unit.execution == Execution::emulated_fp8) {
    require(all_of(unit, [](Format each) { return each == Format::e4m3 || each == Format::e5m2; }), row.at("execution"),
            "emulated_fp8", "operands=e4m3,e5m2 with it, or one of them");
    require(unit.scaling == StepScaling::none, row.at("scaling"), scaling, "none with emulated_fp8");
    require(unit.products_per_step % 4 == 0, row.at("products"), unit.products_per_step, "a multiple of 4 with emulated_fp8");
  }
  require(unit.group == 1 || unit.group == 16, row.at("group"), unit.group, "1 or 16");
  if (unit.scaling == StepScaling::none) {
    require(unit.group == 1, row.at("group"), unit.group, "1 without scales");
    return;
  }
  require(all_of(unit, [](Format each) { return bits_of(each) < 16; }), row.at("scaling"), scaling,
          "none for operands of 16 bits and more");
  if (unit.group == 16) {
    require(unit.operands.size() == 1 && unit.operands[0] == Format::e2m1, row.at("scaling"), scaling,
            "operands=e2m1 with sums of 16 products");
    const int multiple = products_per_scale(unit.scaling);
    require(unit.products_per_step % multiple == 0, row.at("products"), unit.products_per_step,
            "a multiple of " + std::to_string(multiple) + " with " + std::string(scaling));
  } else {
    require(unit.scaling == StepScaling::e8m0_per_32, row.at("group"), unit.group, "16 with a scale for 16 products");
    require(unit.products_per_step == 32, row.at("products"), unit.products_per_step, "32 with e8m0_per_32, or group=16");
  }
}

// The fields that each kind of sum has.
void require_sound_sum(const TensorCoreUnit& unit, const Row& row) {
  const StepSum sum = unit.sum;
  const auto only = [&](std::string_view field, bool holds, const auto& value, std::string_view expected) {
    require(holds, row.at(field), value, std::string(expected) + " with sum=" + std::string(text_of(kSums, sum)));
  };
  only("accumulator", (unit.accumulator == Accumulator::f32_nearest) == (sum != StepSum::fused),
       text_of(kAccumulators, unit.accumulator), sum == StepSum::fused ? "another than f32_nearest" : "f32_nearest");
  only("chains", unit.chains == 1 || sum == StepSum::joined || sum == StepSum::chains, unit.chains, "1");
  only("joined_bits", sum == StepSum::joined ? unit.joined_bits >= unit.fraction_bits : unit.joined_bits == 0, unit.joined_bits,
       sum == StepSum::joined ? "at least fraction_bits" : "none");
  only("far_c", sum == StepSum::joined || !unit.drops_far_c, "dropped", "floored");
  only("flush",
       unit.flush == Flush::none || (unit.flush == Flush::operands_and_results && sum == StepSum::tree) ||
           (unit.flush == Flush::f32_values && sum == StepSum::chains),
       text_of(kFlushes, unit.flush),
       sum == StepSum::tree     ? "none or operands_and_results"
       : sum == StepSum::chains ? "none or f32_values"
                                : "none");
  const bool plain_f32 = !unit.tf32 && unit.operands[0] == Format::f32;
  only("operands", !plain_f32 || sum == StepSum::chains, "f32", "tf32, or operands of 16 bits and fewer,");
  if (sum == StepSum::fused) return;
  only("scaling", unit.scaling == StepScaling::none, text_of(kScalings, unit.scaling), "none");
  only("execution", unit.execution == Execution::native, text_of(kExecutions, unit.execution), "native");
  only("products", sum != StepSum::tree || (unit.products_per_step & (unit.products_per_step - 1)) == 0, unit.products_per_step,
       "a power of two");
}

constexpr std::string_view kFields =
    "name, architecture, instruction, operands, products, sum, accumulator, scaling, group, execution, chains, joined_bits, "
    "far_c, "
    "flush, measured, evidence";
constexpr const char* kGridFields = ", fraction_bits, zero_floor";

TensorCoreUnit unit_of(TextRow& fields) {
  Row row(fields);
  TensorCoreUnit unit{};
  unit.name = store(row.text("name", "a name, such as sm90.wgmma.fp8"));
  unit.architecture = store(row.text_or("architecture", unit.name.substr(0, unit.name.find('.'))));
  unit.instruction = store(row.text("instruction", "the instruction, such as \"wgmma e4m3/e5m2 -> f32\""));
  unit.operands = store(row.formats("operands", unit.tf32));
  unit.products_per_step = row.number("products", 1, 64);
  unit.sum = row.word("sum", kSums, StepSum::fused);
  const bool has_grid = unit.sum == StepSum::fused || unit.sum == StepSum::joined;
  unit.fraction_bits = has_grid ? row.number("fraction_bits", 1, kMaxFractionBits) : 0;
  unit.accumulator = row.word("accumulator", kAccumulators, plain_accumulator(unit.sum));
  unit.zero_floor = has_grid ? row.number("zero_floor", -400, 400, plain_floor(unit)) : 0;
  unit.scaling = row.word("scaling", kScalings, StepScaling::none);
  unit.group = row.number("group", 1, 16, plain_group(unit.scaling));
  unit.execution = row.word("execution", kExecutions, Execution::native);
  unit.chains = row.number("chains", 1, unit.sum == StepSum::joined ? 2 : 64, 1);
  unit.joined_bits = row.number("joined_bits", 0, kMaxFractionBits, 0);
  unit.drops_far_c = row.word("far_c", kFarC, false);
  unit.flush = row.word("flush", kFlushes, Flush::none);
  unit.measured_by_us = row.word("measured", kAnswers, false);
  unit.evidence = store(row.text("evidence", "what the row rests on: outputs, a publication, a model"));
  row.end(std::string(kFields) + (has_grid ? kGridFields : ""));
  require_sound_name(unit.name, row);
  require_sound_sum(unit, row);
  require_sound_step(unit, row);
  return unit;
}

}  // namespace

std::vector<TensorCoreUnit> parse_units(std::string_view text, std::string_view file) {
  std::vector<TensorCoreUnit> units;
  for (TextRow& row : read_rows(text, file)) {
    const TensorCoreUnit unit = unit_of(row);
    for (const TensorCoreUnit& each : units) require(each.name != unit.name, row.name_of("name"), unit.name, "a name of its own");
    units.push_back(unit);
  }
  return units;
}

std::string_view name_of(StepSum sum) { return text_of(kSums, sum); }

std::string to_text(const TensorCoreUnit& unit) {
  std::string text = std::string("name=").append(unit.name);
  const auto add = [&](std::string_view field, std::string_view value) {
    text.append(" ").append(field).append("=").append(value);
  };
  const auto quote = [](std::string_view value) { return std::string("\"").append(value).append("\""); };
  if (unit.architecture != unit.name.substr(0, unit.name.find('.'))) add("architecture", unit.architecture);
  add("instruction", quote(unit.instruction));
  std::string operands;
  for (const Format each : unit.operands) {
    operands += operands.empty() ? "" : ",";
    operands += each == Format::f32 && !unit.tf32 ? "f32" : text_of(kOperands, each);
  }
  add("operands", operands);
  add("products", std::to_string(unit.products_per_step));
  if (unit.sum != StepSum::fused) add("sum", text_of(kSums, unit.sum));
  if (unit.fraction_bits != 0) add("fraction_bits", std::to_string(unit.fraction_bits));
  if (unit.accumulator != plain_accumulator(unit.sum)) add("accumulator", text_of(kAccumulators, unit.accumulator));
  if (unit.zero_floor != plain_floor(unit)) add("zero_floor", std::to_string(unit.zero_floor));
  if (unit.scaling != StepScaling::none) add("scaling", text_of(kScalings, unit.scaling));
  if (unit.group != plain_group(unit.scaling)) add("group", std::to_string(unit.group));
  if (unit.execution != Execution::native) add("execution", text_of(kExecutions, unit.execution));
  if (unit.chains != 1) add("chains", std::to_string(unit.chains));
  if (unit.joined_bits != 0) add("joined_bits", std::to_string(unit.joined_bits));
  if (unit.drops_far_c) add("far_c", text_of(kFarC, true));
  if (unit.flush != Flush::none) add("flush", text_of(kFlushes, unit.flush));
  if (unit.measured_by_us) add("measured", "yes");
  add("evidence", quote(unit.evidence));
  return text;
}

}  // namespace assay
