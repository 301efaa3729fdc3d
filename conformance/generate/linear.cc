#include "conformance/generate/ops.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/operands.h"
#include "reference/types/error.h"

namespace assay::conformance::inputs {

namespace {

// The weight cache of a forward step. It holds other weights than `w`, so that using it shows.
void add_weight_cache(const CaseLine& line, std::int64_t groups, Case& result) {
  const std::string recipe = line.text("recipe");
  const std::int64_t N = line.integer("N");
  const auto seed = static_cast<std::uint64_t>(line.integer("seed")) + 1;
  OperandRequest cached;
  cached.name = "w";
  cached.type = format_of(line.text("otype"));
  cached.scaled = true;
  cached.recipe = recipe == "fp8_block" ? Recipe::block_128x128 : *recipe_named(recipe);
  cached.splits.assign(static_cast<std::size_t>(groups), N);
  cached.columns = line.integer("K");
  cached.total_rows = groups * N;
  cached.pattern.pattern = "uniform";
  cached.pattern.seed = seed;
  cached.pattern.role = Role::second;
  cached.scale.seed = seed;
  if (recipe == "mxfp8" || recipe == "nvfp4") {  // the order in which the layer keeps them
    cached.scale_layout = ScaleLayout::swizzled;
    result.attributes["scale_layout"] = std::string("swizzled");
  }
  add_operand(result, cached);
}

}  // namespace

void generate_linear(const CaseLine& line, Case& result) {
  const std::string recipe = line.text("recipe"), data = line.text("data");
  const bool forward = line.op == "linear_forward", wgrad = line.op == "linear_wgrad";
  const Rows rows = rows_of(line);
  const auto groups = static_cast<std::int64_t>(rows.splits.size());
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  auto& attributes = result.attributes;
  set_text_attribute(line, "recipe", result);
  attributes["N"] = N;
  attributes["K"] = K;
  attributes["arch"] = line.text("arch");
  if (line.has("plan")) attributes["plan"] = line.text("plan");
  attributes["bias"] = line.integer("bias");
  set_text_attribute(line, "x_type", result);
  if (recipe != "none") {
    attributes["otype"] = line.text("otype");
    if (!forward) attributes["grad_otype"] = line.text("grad_otype");
  }
  if (recipe == "nvfp4") attributes["sign_mask"] = line.integer("sign_mask");
  if (recipe == "tensor_current" || recipe == "fp8_block") {
    attributes["pow2"] = line.integer("pow2");
    attributes["eps"] = line.real("eps");
  }

  std::int64_t x_columns = K;
  if ((forward || wgrad) && line.text("activation") != "off") {
    attributes["activation"] = line.text("activation");
    x_columns = matrices_in_x(activation_named(line.text("activation")).value()) * K;
  }

  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = format_of(line.text("x_type"));
  pattern.seed = seed;
  pattern.amplitude = amplitude_for(wgrad ? rows.total : std::max(N, K), 1);
  const auto add = [&](std::string name, std::int64_t total, std::int64_t active, std::int64_t columns, Role role) {
    pattern.tensor = name;
    pattern.rows = total;
    pattern.columns = columns;
    pattern.role = role;
    result.in[name] = matrix(pattern, active);
  };
  const auto add_scale = [&](std::string name) {
    if (recipe != "tensor_delayed") return;
    result.in[name + "_scale"] =
        group_floats({.kind = ScaleKind::plain, .seed = seed, .tensor = name + "_scale", .centre = 6}, rows.splits.size());
  };
  if (!forward) {
    add("dy", rows.total, rows.active, N, Role::first);
    add_scale("dy");
  }
  if (forward || wgrad) {
    add("x", rows.total, rows.active, x_columns, forward ? Role::first : Role::second);
    add_scale("x");
  }
  if (!wgrad) {
    add("w", groups * N, groups * N, K, Role::second);
    add_scale("w");
  }
  if (forward && line.integer("bias") == 1) add("bias", groups, groups, N, Role::value);
  if (wgrad) {
    set_text_attribute(line, "d_type", result);
    attributes["accumulate"] = line.integer("accumulate");
    attributes["deferred"] = line.integer("deferred");
    if (line.integer("accumulate") == 1) {
      pattern.type = format_of(line.text("d_type"));
      add("main_grad", groups * N, groups * N, K, Role::value);
    }
  }
  if (forward && line.has("noop")) {
    require(recipe != "none", "noop", line.text("noop"), "to be given only with a recipe that quantizes weights");
    result.in["noop"] = floats_tensor({line.real("noop")});
    add_weight_cache(line, groups, result);
  }
}

}  // namespace assay::conformance::inputs
