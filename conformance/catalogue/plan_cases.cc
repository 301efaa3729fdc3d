// Every row of the table of units, and every plan that has a name, over data on which one field more or less shows.

#include <algorithm>
#include <array>
#include <string>

#include "conformance/catalogue/catalogue_parts.h"
#include "reference/arithmetic/unit_table.h"
#include "reference/arithmetic/unit_text.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"
#include "reference/types/gemm.h"

namespace assay::conformance {
namespace {

// A kind of product, and the words of its line.
struct Product {
  GemmKind kind;
  Format rows, columns;
  bool vectors;  // a scale for each row and each column of D
  const char* words;
};
constexpr std::array<Product, 9> kProducts{{
    {GemmKind::bf16, Format::bf16, Format::bf16, false, "kind=bf16"},
    {GemmKind::f16, Format::f16, Format::f16, false, "kind=f16"},
    {GemmKind::fp8_per_tensor, Format::e4m3, Format::e4m3, false, "kind=fp8_per_tensor"},
    {GemmKind::fp8_per_tensor, Format::e5m2, Format::e4m3, false, "kind=fp8_per_tensor x_type=e5m2"},
    {GemmKind::fp8_per_tensor, Format::e4m3, Format::e4m3, true, "kind=fp8_per_tensor scaling=per_row_column"},
    {GemmKind::fp8_block, Format::e4m3, Format::e4m3, false, "kind=fp8_block"},
    {GemmKind::mxfp8, Format::e4m3, Format::e4m3, false, "kind=mxfp8"},
    {GemmKind::mxfp8, Format::e5m2, Format::e5m2, false, "kind=mxfp8 x_type=e5m2 w_type=e5m2"},
    {GemmKind::nvfp4, Format::e2m1, Format::e2m1, false, "kind=nvfp4"},
}};

bool takes(const TensorCoreUnit& unit, Format format) {
  return std::find(unit.operands.begin(), unit.operands.end(), format) != unit.operands.end();
}

bool serves(const AccumulationPlan& plan, const Product& product) {
  const TensorCoreUnit& unit = *find_tensor_core_unit(plan.unit);
  try {
    require_serves(plan, unit, product.kind, product.vectors);
  } catch (const InvalidArgument&) {
    return false;
  }
  return plan.widen || (takes(unit, product.rows) && takes(unit, product.columns));
}

bool is_scaled(const Product& product) { return product.kind != GemmKind::bf16 && product.kind != GemmKind::f16; }

class PlanLines {
 public:
  explicit PlanLines(int round) : round_(round) {}

  // Lines of round 1 are those of the full profile alone.
  void add(int round, const Product& product, std::string_view plan, const std::string& words) {
    ++seed_;
    if (round != round_) return;
    lines.push_back(parse_case_line("grouped_gemm " + std::string(product.words) + " plan=" + std::string(plan) + " d_type=f32 " +
                                    words + " seed=" + std::to_string(seed_)));
  }

  std::vector<CaseLine> lines;

 private:
  int round_;
  std::int64_t seed_ = 93000;
};

void add_unit(PlanLines& to, const TensorCoreUnit& unit) {
  const std::string line = "unit=" + std::string(unit.name);
  const AccumulationPlan plan = read_plan_line(line);
  bool first = true;
  for (const Product& product : kProducts) {
    if (!serves(plan, product)) continue;
    const bool scaled_step = unit.scaling != StepScaling::none;
    const std::string ones = is_scaled(product) && !scaled_step ? " scales=ones" : "";
    to.add(first ? 0 : 1, product, line, "splits=40,0,24 N=16 K=208 data=step_edges" + ones);
    first = false;
    to.add(1, product, line, "layout=NT splits=208,0,80 N=64 K=16 data=step_edges" + ones);
    to.add(1, product, line, "splits=24,0,17 N=32 K=240 data=clustered");
    to.add(1, product, line, "layout=NN splits=24,0,16 N=208 K=16 data=near_underflow" + ones);
    if (!scaled_step) continue;
    // What lies below the floor or far below the scales of other groups.
    for (int i = 0; i < 2; ++i) to.add(1, product, line, "splits=144,0,48 N=160 K=256 scales=edge data=step_edges");
  }
  // Values between the steps that are subnormal in f32.
  for (const Product& product : kProducts) {
    const std::string rescaled = line + ",widen=f16,promote=128,association=rescale_by_ratio";
    if (product.kind == GemmKind::fp8_block && unit.flush == Flush::f32_values && takes(unit, Format::f16))
      to.add(0, product, rescaled, "splits=40,0,24 N=16 K=304 scales=edge data=step_edges");
  }
}

void add_plan(PlanLines& to, const AccumulationPlan& plan) {
  const bool added = plan.epilogue != GemmEpilogue::scaled_alpha_beta;
  bool first = true;
  for (const Product& product : kProducts) {
    if (!serves(plan, product)) continue;
    const std::string beta = added ? " beta=1" : "", edge = is_scaled(product) ? " scales=edge" : "";
    // Longer than two intervals; the last is short.
    to.add(first ? 0 : 1, product, plan.name, "splits=9,0,8 N=16 K=336 alpha=0.3 beta=1 data=clustered");
    first = false;
    to.add(1, product, plan.name, "splits=24,0,17 N=32 K=528 data=clustered" + beta);
    to.add(1, product, plan.name, "splits=24,0,17 N=144 K=272 data=near_underflow" + edge + beta);
    to.add(1, product, plan.name, "layout=NN splits=24,0,16 N=304 K=32 data=full_exponent" + beta);
    to.add(1, product, plan.name, "layout=NT splits=304,0,48 N=48 K=32 data=clustered alpha=0.3 beta=1");
    to.add(1, product, plan.name, "splits=40,0,24 N=16 K=256 alpha=0.3 data=clustered" + beta);
  }
}

// What one kind of plan alone shows.
void add_rare_plan(PlanLines& to, const AccumulationPlan& plan) {
  for (const Product& product : kProducts) {
    if (!serves(plan, product)) continue;
    // Scales of 0, whose ratio to themselves is NaN.
    if (rescales(plan.promotion)) to.add(1, product, plan.name, "splits=24,0,17 N=144 K=240 scales=specials");
    // Sums of FP4 fit an f32 unless their scales lie far apart.
    if (product.kind == GemmKind::nvfp4) to.add(1, product, plan.name, "splits=48,0,16,32,16 N=32 K=256 scales=edge");
  }
}

// Values that few sums have: infinities, NaN, products past f32, and f32 values around the smallest normal one.
void add_rare_unit(PlanLines& to, const TensorCoreUnit& unit) {
  const std::string line = "unit=" + std::string(unit.name), step = std::to_string(2 * unit.products_per_step + 4);
  const AccumulationPlan plan = read_plan_line(line);
  for (const Product& product : kProducts) {
    if (serves(plan, product)) {
      for (const char* data : {"every_special", "full_exponent"})
        to.add(1, product, line, std::string("splits=24,0,17 N=32 K=80 data=") + data);
      if (!is_scaled(product)) to.add(1, product, line, "splits=312 N=16 K=" + step + " data=step_edges");
    }
    // An accumulator that is multiplied between the steps, and may then be subnormal: for a last step of zeros too, whose sign it is.
    if (product.kind != GemmKind::fp8_block || unit.flush == Flush::none) continue;
    const std::string rescaled =
        line + ",widen=" + (takes(unit, Format::f16) ? "f16" : "bf16") + ",promote=128,association=rescale_by_ratio";
    to.add(1, product, rescaled, "splits=40,0,24 N=144 K=304 scales=edge data=near_underflow");
    to.add(1, product, rescaled, "splits=48 N=144 K=130 scales=edge data=one_hot");
  }
}

}  // namespace

std::vector<CaseLine> plan_lines(int round) {
  PlanLines made(round);
  // Not those of --units: the catalogue is the same for all.
  static const std::vector<TensorCoreUnit> units = parse_units(kUnitText, "reference/arithmetic/units.txt");
  for (const TensorCoreUnit& unit : units) add_unit(made, unit);
  for (const AccumulationPlan& plan : accumulation_plans()) add_plan(made, plan);
  for (const AccumulationPlan& plan : accumulation_plans()) add_rare_plan(made, plan);
  for (const TensorCoreUnit& unit : units) add_rare_unit(made, unit);
  return made.lines;
}

}  // namespace assay::conformance
