#include "conformance/cases/case_rules.h"

#include <algorithm>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/plan_rules.h"
#include "conformance/cases/rule_choice.h"
#include "conformance/cases/scenario.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

bool case_knows(const CaseLine& line, std::string_view key) { return find_key(*find_op(line.op), key) != nullptr; }
bool is_ragged(const CaseLine& line) { return case_knows(line, "splits") && line.has("splits"); }

// Rows: of one tensor or of groups, and beyond the groups.
void require_rows(const CaseLine& line) {
  if (case_knows(line, "R")) {
    require(is_ragged(line) != line.has("R"), "R", line.has("R") ? line.text("R") : "not given",
            "either splits or R, and not both");
  }
  if (case_knows(line, "extra_rows") && line.integer("extra_rows") > 0) {
    require(is_ragged(line), "extra_rows", line.text("extra_rows"), "0 where there are no splits");
  }
  const bool placed = line.op == "grouped_gemm" && line.text("grouped_layout") != "splits";
  if (case_knows(line, "beyond") && line.text("beyond") != "nan" && !placed) {
    require(line.integer("extra_rows") > 0, "beyond", line.text("beyond"),
            "nan where there are no rows beyond the splits (extra_rows)");
  }
}

// Calls that are wrong on purpose.
void require_wrong_call(const CaseLine& line) {
  if (case_knows(line, "contract") && line.integer("contract") == 1) {
    require(!line.has("replay"), "contract", line.text("contract"), "0 where the call is replayed");
  }
  if (case_knows(line, "fault") && line.has("fault")) {
    const std::string fault = line.text("fault");
    require(!line.has("replay") && line.integer("contract") == 0, "fault", fault, "no replay and no contract beside it");
    require(is_ragged(line) || case_knows(line, "first") || fault == "wrong_row", "fault", fault, "splits, which hold the fault");
    const bool indices = case_knows(line, "grouped_layout") && line.text("grouped_layout") == "m_indices";
    require(fault == "wrong_row" || (fault == "wrong_group") == indices, "fault", fault,
            indices ? "wrong_group with grouped_layout=m_indices" : "another one without grouped_layout=m_indices");
    const bool apart = case_knows(line, "grouped_layout") && line.text("grouped_layout") != "splits";
    require(fault != "unaligned_rows" || !apart, "fault", fault, "another one where groups do not follow one another");
    const std::string_view key = case_knows(line, "recipe") ? "recipe" : "kind";
    require(fault != "unaligned_rows" || line.text(key) == "nvfp4", "fault", fault,
            std::string(key) + "=nvfp4, whose codes share bytes");
  }
}

// Codes fit the recipe, and rows and columns fit codes that share a byte.
void require_codes(const CaseLine& line) {
  const bool ragged = is_ragged(line);
  if (case_knows(line, "recipe") && case_knows(line, "otype")) {
    const bool four_bits = line.text("recipe") == "nvfp4";
    for (const std::string_view key : {"otype", "grad_otype"}) {
      if (!case_knows(line, key)) continue;
      require((line.text(key) == "e2m1") == four_bits, key, line.text(key),
              four_bits ? "e2m1 with recipe=nvfp4" : "e4m3 or e5m2 with recipe=" + line.text("recipe"));
    }
  }
  if (line.op == "quantize" || line.op == "dequantize") {
    if (line.text("recipe") == "nvfp4") {
      const std::string direction = line.text("direction");
      if (direction != "columnwise" || line.op == "dequantize") {  // whose codes are generated in rows of whole bytes
        require(line.integer("K") % 2 == 0, "K", line.text("K"), "an even number with recipe=nvfp4: two codes share a byte");
      }
      if (direction != "rowwise") {
        const std::vector<std::int64_t> rows = ragged ? line.splits() : std::vector<std::int64_t>{line.integer("R")};
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
}

// Checks that the recipe has the output that `outputs` requests alone.
void require_part_of_quantize(const CaseLine& line) {
  const std::string part = line.text("outputs"), recipe = line.text("recipe");
  if (part == "scale") require(recipe == "tensor_current", "outputs", part, "a recipe that makes a scale: tensor_current");
  if (part == "amax") {
    require(recipe.starts_with("tensor") || recipe == "nvfp4", "outputs", part,
            "a recipe with an amax: tensor_current, tensor_delayed or nvfp4");
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

// What the kernels take that draw in this way.
void require_draws(const CaseLine& line) {
  const std::string draws = line.text("draws");
  if (draws == "given") return;
  require(line.integer("hadamard") == 0, "hadamard", "1", "0 with draws=" + draws);
  if (draws == "te_vector_blockwise") return;
  require(line.text("x_type") == "bf16", "x_type", line.text("x_type"), "bf16 with draws=" + draws);
  const bool tiles = draws == "te_2d";
  require((line.integer("two_dimensional") == 1) == tiles, "two_dimensional", line.text("two_dimensional"),
          std::string(tiles ? "1" : "0") + " with draws=" + draws);
  require(tiles || line.text("direction") != "columnwise", "direction", "columnwise", "both or rowwise with draws=" + draws);
}

void require_quantize(const CaseLine& line) {
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
    require_draws(line);
  }
  if (line.text("e4m3_max") == "256") require(four_over_six, "e4m3_max", "256", "448 with four_over_six=off");
  if (line.text("outputs") == "all") {
    const bool more = line.text("recipe").starts_with("tensor") || (line.text("recipe") == "nvfp4" && line.text("amax") != "own");
    require(more, "outputs", "all",
            "a recipe with further outputs: tensor_current, tensor_delayed, or nvfp4 with an amax that is given");
  }
  require_part_of_quantize(line);
  const bool activated = line.text("activation") != "off";
  if (activated) {
    require(line.text("x_type") != "f32", "x_type", "f32", "bf16 or f16 with activation=" + line.text("activation"));
    require(line.integer("dbias") == 0, "dbias", "1", "0 with activation=" + line.text("activation"));
  }
  if (line.text("data") == "adversarial_gates") {
    require(activated, "activation", "off", "swiglu with data=adversarial_gates");
  }
  if (line.text("data") == "adversarial_eps") {
    require(line.real("eps") > 0, "eps", line.text("eps"), "more than 0 with data=adversarial_eps");
  }
  if (line.text("data") == "adversarial_transform") {
    require(line.integer("hadamard") == 1, "hadamard", "0", "1 with data=adversarial_transform");
  }
  if (line.text("data") == "adversarial_four_over_six" || line.text("data") == "adversarial_thresholds") {
    require(four_over_six, "four_over_six", "off", "mae or mse with data=" + line.text("data"));
  }
}

void require_factors(const CaseLine& line) {
  const std::string kind = line.text("kind");
  require(line.text("scales") != "two_roundings" || kind == "fp8_per_tensor" || kind == "fp8_block", "scales", "two_roundings",
          "kind=fp8_per_tensor or kind=fp8_block: f32 scales");
  const std::vector<double> betas = line.reals("beta");
  const bool has_addend =
      line.integer("bias") == 1 || std::any_of(betas.begin(), betas.end(), [](double each) { return each != 0; });
  require(has_addend || line.text("addends") == "plain", "addends", line.text("addends"),
          "plain where there is neither beta nor bias");
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
}

// Data that only some products can have.
void require_product_data(const CaseLine& line) {
  if (line.text("check") == "order_free") {
    require(line.text("data") == "integers" || line.text("data") == "wide_sums", "data", line.text("data"),
            "integers or wide_sums with check=order_free");
    require(line.text("kind") != "nvfp4", "kind", "nvfp4", "another kind with check=order_free: its factor is a rounded one");
  }
  if (line.text("data") == "integers" || line.text("data") == "wide_sums") {
    const std::string scales = line.text("scales");
    require(scales == "pow2" || scales == "ones", "scales", scales, "pow2 or ones with data=" + line.text("data"));
  }
  if (line.text("data") == "adversarial_thresholds") {
    require(line.text("kind") == "bf16" || line.text("kind") == "f16", "kind", line.text("kind"),
            "bf16 or f16 with data=adversarial_thresholds: other codes do not reach the smallest normal value");
  }
  if (line.text("data") == "unit_probes") {  // D is then the accumulator
    require(line.text("kind") != "nvfp4", "kind", "nvfp4", "another kind with data=unit_probes: its units have one arithmetic");
    require(line.text("d_type") == "f32", "d_type", line.text("d_type"), "f32 with data=unit_probes");
    for (const auto& [key, value] : {std::pair("alpha", "1"), std::pair("beta", "0"), std::pair("bias", "0")}) {
      require(line.text(key) == value, key, line.text(key), std::string(value) + " with data=unit_probes");
    }
    require(!line.has("scales") || line.text("scales") == "ones", "scales", line.text("scales"), "ones with data=unit_probes");
  }
}

// Weights of E2M1 beside FP8 activations.
void require_fp4_weights(const CaseLine& line) {
  const std::string kind = line.text("kind");
  if (kind == "bf16" || kind == "f16" || kind == "nvfp4" || line.text("w_type") != "e2m1") return;
  require(kind == "mxfp8" && line.text("layout") == "TN", "w_type", "e2m1", "e4m3 or e5m2, but for kind=mxfp8 in layout TN");
  require(line.integer("K") % 2 == 0, "K", line.text("K"), "an even number with w_type=e2m1: two codes share a byte");
  const std::string data = line.text("data");
  require(data != "wide_sums" && data != "unit_probes", "data", data,
          "another pattern with w_type=e2m1, whose codes hold few values");
}

// D in FP8 is the f32 value, scaled.
void require_quantized_output(const CaseLine& line) {
  const std::string d_type = line.text("d_type");
  if (d_type != "e4m3" && d_type != "e5m2") return;
  require(line.text("beta") == "0", "beta", line.text("beta"), "0 with d_type=" + d_type);
  require(line.integer("bias") == 0, "bias", "1", "0 with d_type=" + d_type);
  const std::string data = line.text("data");
  require(data != "adversarial_output_ties" && data != "wide_sums", "data", data, "another pattern with d_type=" + d_type);
  if (!line.has("plan")) return;
  require(find_accumulation_plan(line.text("plan"))->merge != SliceMerge::sequential_output, "plan", line.text("plan"),
          "a merge in f32 with d_type=" + d_type);
}

// Rows of groups that do not follow one another.
void require_grouped_layout(const CaseLine& line) {
  const std::string placed = line.text("grouped_layout"), kind = line.text("kind");
  require(line.has("max_m") == (placed == "masked"), "max_m", line.has("max_m") ? line.text("max_m") : "not given",
          "a number of rows with grouped_layout=masked, and with no other");
  if (placed == "splits") return;
  if (line.text("layout") == "NT") {
    require(placed == "psum", "grouped_layout", placed, "psum in layout NT");
    const bool untransposed =
        kind == "bf16" || kind == "f16" || kind == "mxfp8" || (kind == "fp8_per_tensor" && line.text("arch").size() > 4);
    require(untransposed, "kind", kind,
            "bf16, f16, mxfp8, or fp8_per_tensor from sm100 on in layout NT: groups are not transposed");
    require(line.text("beyond") == "nan" || line.integer("extra_rows") > 0, "beyond", line.text("beyond"),
            "nan in layout NT, where the rows between groups are 0");
  }
  if (placed != "masked") return;
  require(line.integer("extra_rows") == 0, "extra_rows", line.text("extra_rows"), "0 with grouped_layout=masked");
  for (const std::int64_t rows : line.splits())
    require(rows <= line.integer("max_m"), "splits", rows, "at most max_m, " + line.text("max_m"));
}

// Choices that can be dropped, and an output that is there.
void require_routing(const CaseLine& line) {
  std::int64_t entries = 0;
  require(line.integer("R") >= 0, "R", line.text("R"), "0 or more");
  require(!__builtin_mul_overflow(line.integer("R"), line.integer("topk"), &entries), "topk", line.text("topk"),
          "sizes that fit int64");
  require(line.integer("dropped") >= 0 && line.integer("dropped") <= entries, "dropped", line.text("dropped"),
          "at most R * topk, " + show(entries));
  if (line.op == "permute" && line.text("outputs") == "permuted_scale_inv")
    require(line.text("token_scales") != "absent", "outputs", "permuted_scale_inv", "token_scales with it");
}

void require_nvfp4_product(const CaseLine& line) {
  require(line.integer("K") % 16 == 0, "K", line.text("K"), "a multiple of 16 with kind=nvfp4");
  require(line.integer("N") % 16 == 0, "N", line.text("N"), "a multiple of 16 with kind=nvfp4");
  for (const std::int64_t rows : line.splits()) {
    require(line.text("layout") != "NT" || rows % 16 == 0, "splits", rows, "multiples of 16 with kind=nvfp4 layout=NT");
  }
}

void require_replay(const CaseLine& line) {
  if (line.has("replay")) {
    const ReplayPlan plan = replay_plan(line);
    require(!plan.splits || is_ragged(line) || case_knows(line, "first"), "replay", line.text("replay"),
            "no change of splits where there are none");
    require(!plan.noop || (case_knows(line, "noop") && line.has("noop")), "replay", line.text("replay"),
            "a change of noop only where the case has noop");
    require(!plan.pieces || ((plan.data || plan.scales) && !plan.splits && line.op != "scenario"), "replay", line.text("replay"),
            "pieces of data or scales, with the splits as they are, in a single call");
  }
}

}  // namespace

void require_consistent(const CaseLine& line) {
  require_rows(line);
  require_wrong_call(line);
  require_codes(line);
  if (case_knows(line, "eps")) require(line.real("eps") >= 0, "eps", line.text("eps"), "a value of at least 0");
  if (case_knows(line, "sign_mask")) require(line.integer("sign_mask") <= 0xffff, "sign_mask", line.text("sign_mask"), "16 bits");
  if (line.op == "quantize") require_quantize(line);
  if (line.op == "quantize_by_rule") require_rule(line);
  if (line.op == "linear_forward") require_part_of_forward(line);
  if (line.op == "grouped_gemm") {
    require_factors(line);
    require_product_data(line);
    require_grouped_layout(line);
    require_fp4_weights(line);
    require_quantized_output(line);
    if (line.text("kind") == "nvfp4") require_nvfp4_product(line);
  }
  if (case_knows(line, "scales") && line.has("scales") && line.text("scales") == "negative") {
    const bool e8m0 =
        line.op == "grouped_gemm" ? line.text("kind") == "mxfp8" : line.op == "dequantize" && line.text("recipe") == "mxfp8";
    require(!e8m0, "scales", "negative", "scales of a type with a sign: E8M0, of mxfp8, has none");
  }
  if (line.op == "dequantize" && line.text("scales") == "two_roundings") {
    require(line.text("recipe") != "mxfp8" && line.text("recipe") != "nvfp4", "scales", "two_roundings",
            "a recipe with f32 scales");
  }
  if (line.op == "linear_wgrad" && line.text("recipe") == "nvfp4") {
    require(line.text("x_type") == "bf16", "x_type", line.text("x_type"),
            "bf16 with recipe=nvfp4: the Hadamard transform takes no other");
  }
  require_plan(line);
  if (line.op == "permute" || line.op == "unpermute") require_routing(line);
  if (line.op == "unpermute" && line.text("data") == "fused_ties") {
    require(line.integer("weights") == 1, "weights", line.text("weights"), "1 with data=fused_ties: its products are ties");
    require(line.integer("topk") > 1, "topk", line.text("topk"), "at least 2 with data=fused_ties");
  }
  if (line.op == "splits_to_offsets_2d") {
    const std::size_t first = line.splits("first").size(), last = line.splits("last").size();
    require(first == last, "last", show(last) + " values", "as many as first has, " + show(first));
  }
  require_replay(line);
  if (line.op == "scenario") scenario_of(line);  // its steps are lines of their own
}

}  // namespace assay::conformance
