// Plans as lines of text (spec plans-1.5), and what must hold of a plan.

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "reference/gemm/merge_shape.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// The words of a field and what they stand for; the first is the plain value, which is not printed.
template <class Value>
struct Word {
  std::string_view text;
  Value value;
};

constexpr Word<Promotion> kAssociations[] = {
    {"add", Promotion::add},
    {"scales_first", Promotion::fma_scales_first},
    {"rows_first", Promotion::fma_rows_first},
    {"cols_first", Promotion::fma_cols_first},
    {"rescale_by_ratio", Promotion::rescale_by_ratio},
    {"rescale_in_turn", Promotion::rescale_in_turn},
};
constexpr Word<SliceMerge> kMerges[] = {
    {"none", SliceMerge::none},
    {"sequential_f32", SliceMerge::sequential_f32},
    {"sequential_output", SliceMerge::sequential_output},
    {"tree_f32", SliceMerge::tree_f32},
};
constexpr Word<ScaleVectors> kVectors[] = {
    {"none", ScaleVectors::none},
    {"rows_first", ScaleVectors::rows_first},
    {"cols_first", ScaleVectors::cols_first},
    {"scales_first", ScaleVectors::scales_first},
};
constexpr Word<GemmEpilogue> kEpilogues[] = {
    {"alpha_beta", GemmEpilogue::scaled_alpha_beta},
    {"reduce_add", GemmEpilogue::reduce_add},
    {"reduce_add_ftz", GemmEpilogue::reduce_add_ftz},
};
constexpr Word<Subnormals> kSubnormals[] = {{"kept", Subnormals::kept}, {"flushed", Subnormals::flushed}};
constexpr Word<std::optional<Format>> kWidths[] = {{"none", std::nullopt}, {"f16", Format::f16}, {"bf16", Format::bf16}};

constexpr std::string_view kFields = "unit, widen, promote, association, slices, merge, scale_vectors, subnormals, epilogue";

template <class Value, std::size_t count>
std::string_view word_of(const Word<Value> (&words)[count], const Value& value) {
  for (const Word<Value>& each : words) {
    if (each.value == value) return each.text;
  }
  return "unknown";
}

template <class Value, std::size_t count>
Value value_of_word(std::string_view field, std::string_view text, const Word<Value> (&words)[count],
                    std::string_view also = "") {
  std::string expected;
  for (const Word<Value>& each : words) {
    if (each.text == text) return each.value;
    expected.append(expected.empty() ? "" : &each == words + count - 1 && also.empty() ? " or " : ", ").append(each.text);
  }
  throw InvalidArgument(field, text, expected.append(also));
}

std::int64_t positive(std::string_view field, std::string_view text, std::string_view digits, std::string_view expected) {
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  require(whole && value >= 1 && digits.front() != '0', field, text, expected);
  return value;
}

void set_field(std::string_view name, std::string_view text, AccumulationPlan& plan) {
  const std::string field = "plan." + std::string(name);
  if (name == "unit") {
    const TensorCoreUnit* unit = find_tensor_core_unit(text);
    require(unit != nullptr, field, text, "a row of the tensor-core table (assay list --units)");
    plan.unit = unit->name;
  } else if (name == "widen") {
    plan.widen = value_of_word(field, text, kWidths);
  } else if (name == "promote") {
    plan.promotion_interval = positive(field, text, text, "a number of products, 1 or more; without promotion no such field");
    if (plan.promotion == Promotion::none) plan.promotion = Promotion::add;
  } else if (name == "association") {
    plan.promotion = value_of_word(field, text, kAssociations);
  } else if (name == "slices") {
    constexpr std::string_view kExpected = "COUNTxLENGTH, such as 2x3584, both 1 or more; with one slice no such field";
    const std::size_t times = text.find('x');
    require(times != std::string_view::npos && times > 0 && times + 1 < text.size(), field, text, kExpected);
    plan.slices = positive(field, text, text.substr(0, times), kExpected);
    plan.slice_length = positive(field, text, text.substr(times + 1), kExpected);
    require(plan.slices > 1, field, text, kExpected);
  } else if (name == "merge") {
    if (text.starts_with('(')) {
      plan.merge_shape = text;
      plan.merge = SliceMerge::shape_f32;
    } else {
      plan.merge = value_of_word(field, text, kMerges, " or a shape such as ((0+1)+(2+3))");
    }
  } else if (name == "scale_vectors") {
    plan.scale_vectors = value_of_word(field, text, kVectors);
  } else if (name == "subnormals") {
    plan.subnormals = value_of_word(field, text, kSubnormals);
  } else if (name == "epilogue") {
    plan.epilogue = value_of_word(field, text, kEpilogues);
  } else {
    throw InvalidArgument("plan", name, "one of the fields " + std::string(kFields));
  }
}

// What is flushed is what was measured: values of one chain and of promotions, in f32.
void require_flush(const AccumulationPlan& plan) {
  require(plan.subnormals <= Subnormals::flushed, "plan.subnormals", static_cast<std::uint32_t>(plan.subnormals), "a Subnormals");
  if (plan.subnormals == Subnormals::kept) return;
  require(plan.promotion != Promotion::none || plan.scale_vectors != ScaleVectors::none, "plan.subnormals", "flushed",
          "a promotion or scale vectors, whose values are flushed");
  require(!rescales(plan.promotion), "plan.subnormals", "flushed",
          "kept with association=" + std::string(word_of(kAssociations, plan.promotion)));
  require(plan.slices == 1, "plan.subnormals", "flushed", "kept with several slices");
}

bool takes_operand(const TensorCoreUnit& unit, Format format) {
  return std::find(unit.operands.begin(), unit.operands.end(), format) != unit.operands.end();
}

constexpr std::int64_t kMaxLeaves = 1024;  // slices of a tree

void require_slices(const AccumulationPlan& plan) {
  require(plan.slices >= 1, "plan.slices", plan.slices, "1 or more slices");
  if (plan.slices == 1) {
    require(plan.slice_length == 0, "plan.slices", "1x" + show(plan.slice_length), "no length with one slice");
    const bool unmerged = plan.merge == SliceMerge::none;
    require(unmerged, "plan.merge", plan.merge == SliceMerge::shape_f32 ? plan.merge_shape : word_of(kMerges, plan.merge),
            "several slices to merge (slices=COUNTxLENGTH)");
    return;
  }
  const std::string slices = show(plan.slices) + "x" + show(plan.slice_length);
  require(plan.slice_length > 0, "plan.slices", slices, "slices of 1 or more products");
  require(plan.merge != SliceMerge::none, "plan.merge", "none", "a way to merge " + show(plan.slices) + " slices");
  if (plan.merge == SliceMerge::tree_f32 || plan.merge == SliceMerge::shape_f32)
    require(plan.slices <= kMaxLeaves, "plan.slices", slices, "at most " + show(kMaxLeaves) + " slices merged as a tree");
  if (plan.merge == SliceMerge::shape_f32) require_merge_shape(plan.merge_shape, plan.slices);
}

}  // namespace

void require_sound(const AccumulationPlan& plan, const TensorCoreUnit& unit) {
  require(plan.promotion <= Promotion::rescale_in_turn, "plan.association", static_cast<std::uint32_t>(plan.promotion),
          "a Promotion");
  require(plan.merge <= SliceMerge::shape_f32, "plan.merge", static_cast<std::uint32_t>(plan.merge), "a SliceMerge");
  require(plan.scale_vectors <= ScaleVectors::scales_first, "plan.scale_vectors", static_cast<std::uint32_t>(plan.scale_vectors),
          "a ScaleVectors");
  require(plan.epilogue <= GemmEpilogue::reduce_add_ftz, "plan.epilogue", static_cast<std::uint32_t>(plan.epilogue),
          "a GemmEpilogue");
  require(plan.promotion_interval >= 0, "plan.promote", plan.promotion_interval, "0 or more products");
  require(plan.promotion != Promotion::none || plan.promotion_interval == 0, "plan.promote", plan.promotion_interval,
          "0 without promotion");
  require(!has_scales_inside(plan.promotion) || (plan.promotion_interval > 0 && 128 % plan.promotion_interval == 0),
          "plan.promote", plan.promotion_interval, "a divisor of 128 where scales of blocks enter, so that each has one scale");
  require_slices(plan);
  require_flush(plan);
  if (has_scales_inside(plan.promotion)) {
    require(plan.slice_length % plan.promotion_interval == 0, "plan.slices", show(plan.slices) + "x" + show(plan.slice_length),
            "a length that is a multiple of promote=" + show(plan.promotion_interval));
  }
  if (rescales(plan.promotion)) {
    require(unit.accumulator != Accumulator::f16_nearest, "plan.association", word_of(kAssociations, plan.promotion),
            "a unit whose accumulator is an f32: " + std::string(unit.name) + " has f16");
  }
  if (plan.widen) {
    const std::string_view width = word_of(kWidths, plan.widen);
    require(width != "unknown", "plan.widen", name_of(*plan.widen), "f16 or bf16");
    require(takes_operand(unit, *plan.widen), "plan.widen", width, "an operand type of " + std::string(unit.name));
  }
  if (unit.scaling == StepScaling::none) return;
  const std::string multiple = "a multiple of " + show(unit.products_per_step) + " for " + std::string(unit.name);
  require(plan.promotion_interval % unit.products_per_step == 0, "plan.promote", plan.promotion_interval, multiple);
  require(plan.slice_length % unit.products_per_step == 0, "plan.slices", show(plan.slices) + "x" + show(plan.slice_length),
          multiple);
}

void require_serves(const AccumulationPlan& plan, const TensorCoreUnit& unit, GemmKind kind, bool row_and_column_scales) {
  const StepScaling scaling = kind == GemmKind::mxfp8   ? StepScaling::e8m0_per_32
                              : kind == GemmKind::nvfp4 ? StepScaling::e4m3_per_16
                                                        : StepScaling::none;
  const std::string name(name_of(kind));
  require(unit.scaling == scaling, "plan.unit", plan.unit, "a unit that scales its operands as kind " + name);
  const std::string_view association = plan.promotion == Promotion::none ? "none" : word_of(kAssociations, plan.promotion);
  if (kind == GemmKind::fp8_block) {
    require(has_scales_inside(plan.promotion), "plan.association", association,
            "scales_first, rows_first, cols_first, rescale_by_ratio or rescale_in_turn for kind " + name);
  } else {
    require(!has_scales_inside(plan.promotion), "plan.association", association,
            "add, or no promotion, for kind " + name + ", which has no scales of blocks in f32");
  }
  const bool vectors = plan.scale_vectors != ScaleVectors::none;
  require(vectors == row_and_column_scales, "plan.scale_vectors", word_of(kVectors, plan.scale_vectors),
          row_and_column_scales ? "rows_first, cols_first or scales_first where rows and columns have scales"
                                : "none where rows and columns have no scales of their own");
  const bool fp8 = kind == GemmKind::fp8_per_tensor || kind == GemmKind::fp8_block;
  require(!plan.widen || fp8, "plan.widen", word_of(kWidths, plan.widen), "none for kind " + name + ": FP8 codes are widened");
}

std::string plan_line(const AccumulationPlan& plan) {
  std::string line = "unit=" + std::string(plan.unit);
  const auto put = [&](std::string_view field, std::string_view value) {
    line.append(",").append(field).append("=").append(value);
  };
  if (plan.widen) put("widen", word_of(kWidths, plan.widen));
  if (plan.promotion != Promotion::none) put("promote", show(plan.promotion_interval));
  if (plan.promotion != Promotion::none && plan.promotion != Promotion::add)
    put("association", word_of(kAssociations, plan.promotion));
  if (plan.slices != 1) put("slices", show(plan.slices) + "x" + show(plan.slice_length));
  if (plan.merge != SliceMerge::none)
    put("merge", plan.merge == SliceMerge::shape_f32 ? plan.merge_shape : word_of(kMerges, plan.merge));
  if (plan.scale_vectors != ScaleVectors::none) put("scale_vectors", word_of(kVectors, plan.scale_vectors));
  if (plan.subnormals != Subnormals::kept) put("subnormals", word_of(kSubnormals, plan.subnormals));
  if (plan.epilogue != GemmEpilogue::scaled_alpha_beta) put("epilogue", word_of(kEpilogues, plan.epilogue));
  return line;
}

AccumulationPlan read_plan_line(std::string_view line) {
  AccumulationPlan plan{{}, {}, 0, Promotion::none, 1, 0, SliceMerge::none, GemmEpilogue::scaled_alpha_beta};
  std::set<std::string_view> given;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    const std::string_view item = line.substr(at, comma - at);
    const std::size_t equals = item.find('=');
    require(equals != std::string_view::npos && equals > 0 && equals + 1 < item.size(), "plan", item,
            "FIELD=VALUE, separated by commas; the fields are " + std::string(kFields));
    const std::string_view name = item.substr(0, equals);
    require(given.insert(name).second, "plan." + std::string(name), item.substr(equals + 1), "each field once");
    set_field(name, item.substr(equals + 1), plan);
    at = comma + 1;
  }
  require(given.contains("unit"), "plan.unit", "not given", "a row of the tensor-core table (assay list --units)");
  require(!given.contains("association") || given.contains("promote"), "plan.association", word_of(kAssociations, plan.promotion),
          "promote=INTERVAL beside it");
  require_sound(plan, *find_tensor_core_unit(plan.unit));
  return plan;
}

const AccumulationPlan* find_accumulation_plan(std::string_view name_or_line) {
  for (const AccumulationPlan& each : accumulation_plans()) {
    if (each.name == name_or_line) return &each;
  }
  if (name_or_line.find('=') == std::string_view::npos) return nullptr;

  struct Kept {
    std::string line, shape;
    AccumulationPlan plan;
  };
  AccumulationPlan read = read_plan_line(name_or_line);
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Kept>, std::less<>> lines;
  std::string line = plan_line(read);
  const std::lock_guard lock(mutex);
  std::unique_ptr<Kept>& kept = lines[line];
  if (kept == nullptr) {
    kept = std::make_unique<Kept>(Kept{line, std::string(read.merge_shape), read});
    kept->plan.name = kept->line;
    kept->plan.merge_shape = kept->shape;
  }
  return &kept->plan;
}

}  // namespace assay
