// The part of the catalogue that covers scale rules: every preset with its blocks, outputs and storages, pairwise.

#include <string>
#include <vector>

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "conformance/catalogue/size_lines.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance {
namespace {

// Words "KEY=VALUE" of the values of a preset; the first is what the line says without the word.
template <class Values, class Text>
Axis axis_of(const char* key, const Values& values, Text text) {
  Axis axis{""};
  for (std::size_t i = 1; i < values.size(); ++i) axis.push_back(key + text(values[i]));
  return axis;
}

// A few storages that the type of the scales allows: option_pairs() has all of them, beside every other option.
Axis storages_of(const ScaleRule& rule) {
  if (rule.scale_type == Format::f32) return {"", "storage=mn_major", "storage=tma_aligned_per_group"};
  if (rule.scale_type == Format::e8m0) return {"", "storage=packed_per_group", "storage=swizzled_128x4"};
  return {"", "storage=swizzled_128x4_per_group", "storage=swizzled_8x4"};
}

// Any two options together, over a preset for each type of scales.
std::vector<CaseLine> option_pairs(int seed) {
  Axis storages{""};
  for (const std::string& each : scale_storage_names()) storages.push_back("storage=" + each);
  return covering_lines(
      "quantize_by_rule",
      {{"preset=deepgemm", "preset=torchao.mx_floor", "preset=nvfp4.te", "preset=fbgemm.per_row", "preset=nvfp4.te_row_scaled"},
       storages,
       {"", "otype=e4m3", "otype=e5m2", "otype=e3m2", "otype=e2m3", "otype=e2m1"},
       {"x_type=bf16", "x_type=f16", "x_type=f32"},
       {"", "transposed=1"},
       {"", "outputs=data", "outputs=scale_inv", "outputs=amax"},
       {"", "amax=given"},
       {"R=8 K=72", "splits=4,0,12 K=68", "splits=4,8 extra_rows=4 K=36", "splits=4,8 extra_rows=4 beyond=large K=36"},
       {"data=uniform", "data=full_exponent", "data=near_underflow", "data=subnormals", "data=every_special", "data=ties",
        "data=block_scales", "data=zeros", "data=adversarial_midpoints", "data=adversarial_amax"}},
      seed);
}

}  // namespace

void rule_sizes(Lines& lines) {
  std::size_t turn = 0;
  // A preset for each way in which rows and columns share scales.
  const std::vector<Axis> rules{{"preset=deepgemm", "preset=vllm.per_token", "preset=torchao.mx_floor",
                                 "preset=deepgemm block=128x128", "preset=torchao.rowwise block=allx1", "preset=te.per_tensor"},
                                {"x_type=bf16", "x_type=f32", "x_type=f16"},
                                {"", "storage=mn_major", "storage=tma_aligned_per_group"},
                                {"", "transposed=1"}};
  for (const Pair& each : pairs(turn++, 8)) lines.add("quantize_by_rule" + words("R", each.length, "K", each.beside), rules);
  for (const Pair& each : pairs(turn++, 8)) lines.add("quantize_by_rule" + words("K", each.length, "R", each.beside), rules);
  lines.add("quantize_by_rule splits=1,15,16,17,0,64,65,112,127,129,128 K=79", rules);
  small_sizes("quantize_by_rule", "R", rules, lines);
  lines.add("quantize_by_rule splits=1025x1 K=17", rules);
  lines.add("quantize_by_rule splits=17x32 K=32", rules);
  lines.add("quantize_by_rule splits=65x16 K=32", rules);
  lines.add("quantize_by_rule preset=deepgemm R=4097 K=257", {});
}

std::vector<CaseLine> rule_lines(int round) {
  std::vector<CaseLine> lines;
  // Shapes whose rows and columns fit packed codes, and such as fit no block.
  Axis shapes{"R=36 K=272", "splits=4,0,40 K=144", "splits=4,0,8 extra_rows=12 K=136", "splits=130,1 K=130", "R=1 K=132"};
  Axis data{"data=uniform", "data=full_exponent", "data=every_special", "data=near_underflow", "data=adversarial_amax"};
  if (round > 0) {
    shapes = {"R=128 K=1040", "splits=16x4 K=64", "R=520 K=36", "splits=140,4 K=260", "splits=12,0,64,4 extra_rows=4 K=272"};
    data = {"data=ties", "data=subnormals", "data=full_exponent", "data=block_scales", "data=adversarial_midpoints"};
  }
  int seed = 30'000 + 5'000 * round;
  if (round == 0) append(lines, option_pairs(seed - 1'000));
  for (const ScaleRule& rule : scale_rules()) {
    const bool outer = rule.outer != OuterAmax::none;
    std::vector<Axis> axes{shapes,
                           data,
                           round == 0 ? storages_of(rule) : Axis{""},
                           axis_of("block=", rule.blocks, [](const BlockShape& each) { return to_text(each); }),
                           axis_of("otype=", rule.outputs, [](Format each) { return std::string(name_of(each)); }),
                           {"x_type=bf16", "x_type=f16", "x_type=f32"},
                           {"", "transposed=1"}};
    axes.push_back(outer ? Axis{"", "outputs=data", "outputs=scale_inv", "outputs=amax"}
                         : Axis{"", "outputs=data", "outputs=scale_inv"});
    if (outer) axes.push_back({"", "amax=given"});
    const std::string prefix = "quantize_by_rule preset=" + rule.name;
    if (round > 0) {
      append(lines, covering_lines(prefix, axes, seed));
    } else {
      SeededLines each(seed);
      each.add_each(prefix, axes);
      append(lines, each.take());
    }
    seed += 100;
  }
  return lines;
}

}  // namespace assay::conformance
