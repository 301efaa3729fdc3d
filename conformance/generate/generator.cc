#include "conformance/generate/generator.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "conformance/cases/rule_choice.h"

#include "conformance/cases/case_schema.h"
#include "conformance/cases/scenario.h"
#include "conformance/generate/ops.h"
#include "conformance/generate/tensors.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

// Rows beyond the splits are the last elements of every operand that the splits divide, in any storage order.
void enlarge_rows_beyond(const CaseLine& line, Case& result) {
  const std::int64_t extra = line.integer("extra_rows"), rows = inputs::sum_of(line.splits()) + extra;
  for (auto& [name, tensor] : result.in) {
    const bool data = name == "x" || name == "dy" || name.starts_with("x_") || name.starts_with("dy_") ||
                      name == "rowwise_data" || name == "columnwise_data";
    if (!data || (name.find('_') != std::string::npos && !name.ends_with("_data"))) continue;
    const std::int64_t count = tensor.elements() / rows * extra;
    const std::vector<std::uint32_t> codes(static_cast<std::size_t>(count * (tensor.type == Format::e2m1 ? 2 : 1)),
                                           inputs::largest_code(tensor.type));
    inputs::store(codes, tensor,
                  tensor.elements() * (tensor.type == Format::e2m1 ? 2 : 1) - static_cast<std::int64_t>(codes.size()));
  }
}

// An extent can then be multiplied by a number of groups, 2^20 at most, or by a small factor.
void require_extents(const CaseLine& line) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 36;
  for (const std::string_view key : {"R", "K", "N", "extra_rows", "max_m", "topk", "tensors", "length"}) {
    if (find_key(*find_op(line.op), key) == nullptr || !line.has(key)) continue;
    require(line.integer(key) <= kLongest, key, line.integer(key), "at most 2^36");
  }
}

// A line may state any sizes. Larger costs count as the largest, so that sums over many cases stay within int64.
constexpr std::int64_t kLargestCost = std::int64_t{1} << 50;

std::int64_t cost_product(std::initializer_list<std::int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t each : factors) {
    if (__builtin_mul_overflow(product, each, &product) || product > kLargestCost) return kLargestCost;
  }
  return product;
}

std::int64_t cost_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) || sum > kLargestCost ? kLargestCost : sum;
}

std::vector<std::string> outputs_of_quantize(const CaseLine& line) {
  const std::string recipe = line.text("recipe"), direction = line.text("direction"), part = line.text("outputs");
  const bool rowwise = direction != "columnwise", columnwise = direction != "rowwise", all = part == "all",
             some = leaves_outputs_out(line);
  const bool per_tensor = recipe.starts_with("tensor"), nvfp4 = recipe == "nvfp4";
  std::vector<std::string> outputs;
  const auto add = [&](std::string_view of, bool usual, const char* name) {
    if (some ? of == part : usual) outputs.push_back(name);
  };
  if (rowwise) add("codes", true, "rowwise_data");
  if (rowwise) add("scale_inv", true, "rowwise_scale_inv");
  if (columnwise) add("codes", true, "columnwise_data");
  if (columnwise && (all || !(per_tensor && rowwise)))
    add("scale_inv", true, "columnwise_scale_inv");  // one serves both directions
  const bool amax = all || (nvfp4 ? line.text("amax") == "own" : recipe == "tensor_current");
  if (per_tensor || (nvfp4 && rowwise)) add("amax", amax, "amax");
  if (nvfp4 && columnwise) add("amax", amax, "columnwise_amax");
  if (recipe == "tensor_current") add("scale", true, "scale");
  if (line.integer("dbias") == 1) add("dbias", true, "dbias");
  return outputs;
}

}  // namespace

Case generate(const CaseLine& line) {
  require(line.op != "scenario", "op", line.op, "one call: a scenario has several");
  require_extents(line);
  Case result;
  result.name = name_of(line);
  result.op = line.op;
  if (line.op == "quantize") {
    inputs::generate_quantize(line, result);
  } else if (line.op == "quantize_by_rule") {
    inputs::generate_quantize_by_rule(line, result);
  } else if (line.op == "grouped_gemm") {
    inputs::generate_grouped_gemm(line, result);
  } else if (line.op.starts_with("splits_to_offsets")) {
    inputs::generate_offsets(line, result);
  } else if (line.op == "delayed_update") {
    inputs::generate_delayed_update(line, result);
  } else if (line.op == "dequantize") {
    inputs::generate_dequantize(line, result);
  } else if (line.op == "swizzle" || line.op == "unswizzle") {
    inputs::generate_swizzle(line, result);
  } else if (line.op == "grouped_dbias") {
    inputs::generate_grouped_dbias(line, result);
  } else if (line.op == "permute") {
    inputs::generate_permute(line, result);
  } else if (line.op == "unpermute") {
    inputs::generate_unpermute(line, result);
  } else {
    inputs::generate_linear(line, result);
  }
  const OpSchema& op = *find_op(line.op);
  const bool placed = line.op == "grouped_gemm" && line.text("grouped_layout") != "splits";  // its maker did so
  if (find_key(op, "beyond") != nullptr && line.text("beyond") == "large" && !placed) enlarge_rows_beyond(line, result);
  return result;
}

bool leaves_outputs_out(const CaseLine& line) {
  if (line.op == "splits_to_offsets_multi" || find_key(*find_op(line.op), "outputs") == nullptr) return false;
  const std::string outputs = line.text("outputs");
  return outputs != "usual" && outputs != "all";
}

std::vector<std::string> wanted_outputs(const CaseLine& line) {
  std::vector<std::string> outputs;
  if (line.op == "quantize") {
    outputs = outputs_of_quantize(line);
  } else if (leaves_outputs_out(line)) {
    outputs = {line.text("outputs")};
  } else if (line.op == "quantize_by_rule") {
    outputs = {"data", "scale_inv"};
    if (rule_choice(line).rule->outer != OuterAmax::none && line.text("amax") == "own") outputs.push_back("amax");
  } else if (line.op == "grouped_gemm") {
    outputs = {"d"};
  } else if (line.op == "permute") {
    outputs = {"permuted"};
    if (line.text("token_scales") != "absent") outputs.push_back("permuted_scale_inv");
  } else if (line.op == "unpermute") {
    outputs = {"x"};
  } else if (line.op == "splits_to_offsets_multi") {
    const std::vector<OffsetsOutputSpec> all = offsets_outputs(line);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].absent) outputs.push_back("offsets_" + show(i));
    }
  } else if (line.op.starts_with("splits_to_offsets")) {
    outputs = {"offsets"};
  } else if (line.op == "delayed_update") {
    outputs = {"amax_history", "scale"};
  } else if (line.op == "dequantize") {
    outputs = {"x"};
  } else if (line.op == "swizzle") {
    outputs = {"swizzled"};
  } else if (line.op == "unswizzle") {
    outputs = {"compact"};
  } else if (line.op == "grouped_dbias") {
    outputs = {"dbias"};
  } else if (line.op == "linear_forward") {
    outputs = {"y"};
    if (line.has("noop")) outputs.insert(outputs.end(), {"w_rowwise_data", "w_rowwise_scale_inv"});
    if (line.has("noop") && line.text("recipe") == "nvfp4") outputs.push_back("w_rowwise_amax");
  } else if (line.op == "linear_dgrad") {
    outputs = {"dx"};
    if (line.integer("bias") == 1) outputs.push_back("dbias");
  } else if (line.op == "linear_wgrad") {
    outputs = {"dw"};
    if (line.integer("bias") == 1) outputs.push_back("dbias");
  }
  return outputs;
}

namespace {

// Rows of x, dy and D: those of the groups, those that fill a group up to where the next one may begin, and those beyond.
std::int64_t rows_of_product(const CaseLine& line, const std::vector<std::int64_t>& splits) {
  const bool has_layouts = line.op == "grouped_gemm";
  const std::string layout = has_layouts ? line.text("grouped_layout") : "splits";
  if (layout == "masked") return cost_product({std::ssize(splits), line.integer("max_m")});
  const std::int64_t alignment = layout == "splits" ? 1 : line.integer("alignment");
  std::int64_t rows = line.integer("extra_rows");
  for (const std::int64_t each : splits) rows = cost_sum(rows, cost_product({ceil_div(each, alignment), alignment}));
  return rows;
}

}  // namespace

CaseCost cost_of(const CaseLine& line) {
  CaseCost cost;
  if (line.op == "scenario") {
    for (const ScenarioCall& call : scenario_of(line).calls) {
      const CaseCost each = cost_of(call.line);
      const std::int64_t times = std::int64_t{replay_plan(line).count} + 1;
      cost.macs = cost_sum(cost.macs, cost_product({each.macs, times}));
      cost.elements = cost_sum(cost.elements, cost_product({each.elements, times}));
    }
    return cost;
  }
  if (line.op == "grouped_gemm" || line.op.starts_with("linear_")) {
    const std::int64_t N = line.integer("N"), K = line.integer("K");
    const std::vector<std::int64_t> splits = line.splits();
    cost.macs = cost_product({inputs::sum_of(splits), N, K});
    cost.elements =
        cost_sum(cost_product({rows_of_product(line, splits), cost_sum(N, K)}), cost_product({std::ssize(splits), N, K}));
  } else if (line.op == "delayed_update") {
    cost.elements = cost_product({line.integer("tensors"), line.integer("length")});
  } else if (line.op.starts_with("splits_to_offsets")) {
    cost.elements = static_cast<std::int64_t>(line.splits(line.op == "splits_to_offsets_2d" ? "first" : "splits").size());
  } else if (line.op == "permute" || line.op == "unpermute") {
    const std::int64_t between = cost_product({line.integer("experts"), line.integer("alignment") - 1});
    cost.elements = cost_product({cost_sum(cost_product({line.integer("R"), line.integer("topk")}), between), line.integer("K")});
  } else {
    cost.elements = cost_product({inputs::rows_of(line).total, line.integer("K")});
  }
  return cost;
}

}  // namespace assay::conformance
