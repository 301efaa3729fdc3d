#include "conformance/cases/plan_rules.h"

#include <algorithm>
#include <string>

#include "conformance/cases/former_words.h"
#include "reference/gemm/any_order.h"
#include "reference/gemm/plan.h"
#include "reference/linear/linear_config.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// The product of a line, as far as plans depend on it.
struct PlannedProduct {
  GemmKind kind = GemmKind::bf16;
  std::string layout;
  Format first = Format::bf16, second = Format::bf16;  // operands
  bool vectors = false;                                // scales of rows and columns
};

PlannedProduct of_gemm(const CaseLine& line) {
  PlannedProduct made;
  made.kind = *gemm_kind_named(former_value(line.op, "kind", line.text("kind")));
  made.layout = line.text("layout");
  const auto type_of = [&](const char* key) {
    return made.kind == GemmKind::bf16    ? Format::bf16
           : made.kind == GemmKind::f16   ? Format::f16
           : made.kind == GemmKind::nvfp4 ? Format::e2m1
                                          : *format_named(line.text(key));
  };
  made.first = type_of(made.layout == "TN" ? "x_type" : "dy_type");
  made.second = type_of(made.layout == "NT" ? "x_type" : "w_type");
  made.vectors = line.text("scaling") == "per_row_column";
  return made;
}

PlannedProduct of_layer(const CaseLine& line) {
  PlannedProduct made;
  const bool forward = line.op == "linear_forward", wgrad = line.op == "linear_wgrad";
  made.layout = forward ? "TN" : wgrad ? "NT" : "NN";
  const LinearRecipe recipe = *linear_recipe_named(former_value(line.op, "recipe", line.text("recipe")));
  if (recipe == LinearRecipe::none) {
    made.first = made.second = *format_named(line.text("x_type"));
    made.kind = made.first == Format::bf16 ? GemmKind::bf16 : GemmKind::f16;
    return made;
  }
  made.kind = is_per_tensor(recipe)           ? GemmKind::fp8_per_tensor
              : recipe == LinearRecipe::block ? GemmKind::fp8_block
              : recipe == LinearRecipe::mxfp8 ? GemmKind::mxfp8
                                              : GemmKind::nvfp4;
  made.first = *format_named(line.text(forward ? "otype" : "grad_otype"));
  made.second = *format_named(line.text("otype"));
  return made;
}

std::int64_t depth_of(const CaseLine& line, const std::string& layout) {
  if (layout == "TN") return line.integer("K");
  if (layout == "NN") return line.integer("N");
  const std::vector<std::int64_t> splits = line.splits();
  return splits.empty() ? 0 : *std::max_element(splits.begin(), splits.end());
}

}  // namespace

void require_plan(const CaseLine& line) {
  const bool gemm = line.op == "grouped_gemm";
  if (!gemm && !line.op.starts_with("linear_")) return;
  if (gemm && line.text("scaling") == "per_row_column")
    require(line.text("arch") == "sm90", "arch", line.text("arch"), "sm90 with scaling=per_row_column");
  if (!line.has("plan")) return;
  const AccumulationPlan& plan = *find_accumulation_plan(line.text("plan"));
  const TensorCoreUnit& unit = *find_tensor_core_unit(plan.unit);
  const PlannedProduct product = gemm ? of_gemm(line) : of_layer(line);
  require_serves(plan, unit, product.kind, product.vectors);
  const bool fits = plan.widen || takes(unit, product.kind, product.first, product.second);
  require(fits, "plan", line.text("plan"), "a plan whose unit " + std::string(unit.name) + " takes the types of the operands");
  if (plan.slices > 1) {
    const std::int64_t depth = depth_of(line, product.layout);
    require(depth <= 0 || (depth - 1) / plan.slice_length < plan.slices, "plan", line.text("plan"),
            "slices that cover a contraction of " + show(depth));
  }
  if (plan.epilogue != GemmEpilogue::scaled_alpha_beta) {
    require(gemm, "plan", line.text("plan"), "a plan that does not add in memory, for a step of a layer");
    require(line.text("d_type") == "f32", "d_type", line.text("d_type"), "f32 with a plan that adds in memory");
    require(line.text("beta") == "1", "beta", line.text("beta"), "1 with a plan that adds in memory");
    require(line.integer("bias") == 0, "bias", "1", "0 with a plan that adds in memory");
  }
  require(line.text("data") != "unit_probes", "data", "unit_probes",
          "another pattern with a plan: probes show the backend's own unit");
}

}  // namespace assay::conformance
