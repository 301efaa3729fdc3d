// The call: checked, converted to the form of problem.h, set up on the device, and passed to the fastest kernel that
// computes its arithmetic.

#include "device/emulated_gemm/emulated_gemm.h"

#include <limits>
#include <string>

#include "device/emulated_gemm/problem.h"
#include "device/layout/check_rows.h"
#include "device/support/call_device.h"

namespace assay::device {
namespace emulated {
namespace {

Scales scales_of(const GroupedGemmCall& call, bool weight) {
  switch (call.kind) {
    case GemmKind::bf16:
    case GemmKind::f16: return Scales::none;
    case GemmKind::fp8_per_tensor: return Scales::one;
    case GemmKind::mxfp8: return Scales::e8m0;
    case GemmKind::nvfp4: return Scales::e4m3;
    case GemmKind::fp8_block: break;
  }
  return weight && call.weight_block == WeightBlock::b128x128 ? Scales::f32_128x128 : Scales::f32_1x128;
}

OperandSource source_of(const GroupedGemmCall& call, const GemmOperand& operand, bool weight, bool along_rows,
                        std::int64_t columns) {
  OperandSource source;
  source.type = operand.type;
  source.scales = scales_of(call, weight);
  source.weight = weight;
  source.along_rows = along_rows;
  source.columnwise = operand.columnwise;
  source.listed = operand.data_list != nullptr;
  source.columns = columns;
  source.data = operand.data;
  source.scale_inv = operand.scale_inv;
  source.amax = operand.amax;
  return source;
}

SetupCall setup_of(const GroupedGemmCall& call) {
  SetupCall setup{};
  setup.kind = call.kind;
  setup.layout = call.layout;
  setup.rows = call.rows;
  setup.N = call.N;
  setup.K = call.K;
  switch (call.layout) {
    case GemmLayout::TN:
      setup.row_operand = source_of(call, call.x, false, false, call.K);
      setup.column_operand = source_of(call, call.w, true, false, call.K);
      break;
    case GemmLayout::NN:
      setup.row_operand = source_of(call, call.dy, false, false, call.N);
      setup.column_operand = source_of(call, call.w, true, true, call.K);
      break;
    case GemmLayout::NT:
      setup.row_operand = source_of(call, call.dy, false, true, call.N);
      setup.column_operand = source_of(call, call.x, false, true, call.K);
      break;
  }
  setup.scale_layout = call.scale_layout;
  setup.alpha = call.alpha;
  setup.beta = call.beta;
  setup.scalars_per_group = call.scalars_per_group;
  setup.d_type = call.d_type;
  setup.d = call.d;
  setup.d_listed = call.d_list != nullptr;
  setup.c = call.c;
  setup.bias = call.bias;
  setup.max_depth = std::numeric_limits<std::int64_t>::max();
  setup.status = call.status;
  return setup;
}

// Checks that the unit takes these operands, and that the plan fits the unit.
void check_arithmetic(const GroupedGemmCall& call, const AccumulationPlan& plan, const TensorCoreUnit& unit,
                      const SetupCall& setup) {
  const auto name = [](std::string_view text) { return std::string(text); };
  require(plan.unit == unit.name, "plan.unit", name(plan.unit), "the unit given with it, " + name(unit.name));
  const auto takes = [&](Format type) {
    for (const Format each : unit.operands) {
      if (each == type) return true;
    }
    return false;
  };
  require(takes(setup.row_operand.type), "type of the operand that supplies the rows",
          static_cast<std::int64_t>(setup.row_operand.type), "an operand type of " + name(unit.name));
  require(takes(setup.column_operand.type), "type of the operand that supplies the columns",
          static_cast<std::int64_t>(setup.column_operand.type), "an operand type of " + name(unit.name));
  const StepScaling scaling = call.kind == GemmKind::mxfp8   ? StepScaling::e8m0_per_32
                              : call.kind == GemmKind::nvfp4 ? StepScaling::e4m3_per_16
                                                             : StepScaling::none;
  require(unit.scaling == scaling, "plan.unit", name(plan.unit), "a unit that scales its operands as the kind does");
  require(unit.sum == StepSum::fused && unit.group == (scaling == StepScaling::e4m3_per_16 ? 16 : 1), "plan.unit",
          name(plan.unit), "a unit of fused steps, which the emulation has");
  require(unit.products_per_step >= 1 && unit.products_per_step <= 64, "unit.products_per_step", unit.products_per_step,
          "1 to 64");
  require(unit.fraction_bits >= 1 && unit.fraction_bits <= 35, "unit.fraction_bits", unit.fraction_bits, "1 to 35");

  if (const std::string missing = emulation_missing(plan); !missing.empty()) throw NotSupported(missing);
  require(plan.promotion <= Promotion::fma_cols_first, "plan.promotion", static_cast<std::int64_t>(plan.promotion),
          "a Promotion");
  require(plan.merge <= SliceMerge::sequential_output, "plan.merge", static_cast<std::int64_t>(plan.merge), "a SliceMerge");
  require(plan.epilogue == GemmEpilogue::scaled_alpha_beta, "plan.epilogue", static_cast<std::int64_t>(plan.epilogue),
          "a GemmEpilogue");
  require(plan.promotion_interval >= 0, "plan.promotion_interval", plan.promotion_interval, "a value of at least 0");
  require(plan.promotion != Promotion::none || plan.promotion_interval == 0, "plan.promotion_interval", plan.promotion_interval,
          "0 without promotion");
  require(plan.slices >= 1, "plan.slices", plan.slices, "a value of at least 1");
  if (plan.slices == 1) {
    require(plan.slice_length == 0, "plan.slice_length", plan.slice_length, "0 with one slice");
  } else {
    require(plan.slice_length > 0, "plan.slice_length", plan.slice_length, "a value of at least 1 with several slices");
    require(plan.merge != SliceMerge::none, "plan.merge", "none", "a way to merge several slices");
  }
  const bool scales_inside = plan.promotion >= Promotion::fma_scales_first;
  require(scales_inside == (call.kind == GemmKind::fp8_block), "plan.promotion", static_cast<std::int64_t>(plan.promotion),
          "an fma promotion for kind block, and for no other");
  std::int64_t unit_of_k = 1;  // promotion intervals and slices start on multiples of it
  if (call.kind == GemmKind::fp8_block) {
    require(plan.promotion_interval > 0 && 128 % plan.promotion_interval == 0, "plan.promotion_interval", plan.promotion_interval,
            "a divisor of 128 for kind block");
    unit_of_k = plan.promotion_interval;
  }
  if (unit.scaling != StepScaling::none) unit_of_k = unit.products_per_step;
  const std::string multiple = "a multiple of " + std::to_string(unit_of_k);
  require(plan.promotion_interval % unit_of_k == 0, "plan.promotion_interval", plan.promotion_interval, multiple);
  require(plan.slice_length % unit_of_k == 0, "plan.slice_length", plan.slice_length, multiple);
}

Arithmetic arithmetic_of(const AccumulationPlan& plan, const TensorCoreUnit& unit) {
  Arithmetic result{};
  result.products = unit.products_per_step;
  result.fraction_bits = unit.fraction_bits;
  result.zero_floor = unit.zero_floor;
  result.accumulator = unit.accumulator;
  result.scaling = unit.scaling;
  result.emulated = unit.execution == Execution::emulated_fp8;
  result.interval = plan.promotion_interval;
  result.promotion = plan.promotion;
  result.slices = plan.slices;
  result.slice_length = plan.slice_length;
  result.merge = plan.merge;
  return result;
}

struct Prepared {
  SetupCall setup;
  GemmCall gemm;
};

Prepared prepare(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic) {
  require(arithmetic.plan != nullptr, "arithmetic.plan", "null", "a plan");
  require(arithmetic.unit != nullptr, "arithmetic.unit", "null", "the unit that the plan names");
  Prepared prepared{setup_of(call), {}};
  const AccumulationPlan& plan = *arithmetic.plan;
  check_arithmetic(call, plan, *arithmetic.unit, prepared.setup);
  if (plan.slices > 1) {
    std::int64_t covered = 0;
    if (__builtin_mul_overflow(plan.slices, plan.slice_length, &covered)) covered = std::numeric_limits<std::int64_t>::max();
    prepared.setup.max_depth = covered;
    if (call.layout != GemmLayout::NT) {
      const std::int64_t depth = call.layout == GemmLayout::TN ? call.K : call.N;
      require(depth <= covered, "plan.slices", plan.slices,
              "slices of slice_length that cover a contraction of " + std::to_string(depth));
    }
  }
  prepared.gemm.row_type = prepared.setup.row_operand.type;
  prepared.gemm.column_type = prepared.setup.column_operand.type;
  prepared.gemm.d_type = call.d_type;
  prepared.gemm.arithmetic = arithmetic_of(plan, *arithmetic.unit);
  prepared.gemm.groups = call.rows.groups;
  return prepared;
}

}  // namespace

const Kernel& kernel_for(const GemmCall& call, Route route) {
  if (route == Route::fastest) {
    for (const Kernel* kernel : {&kFp8Kernel, &kWideSumKernel, &kFp4Kernel}) {
      if (kernel->takes(call)) return *kernel;
    }
  }
  return kGenericKernel;
}

const char* kernel_name(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic) {
  return kernel_for(prepare(call, arithmetic).gemm, Route::fastest).name;
}

void grouped_gemm_by(Route route, const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic, Stream stream) {
  check_grouped_gemm(call);
  Prepared prepared = prepare(call, arithmetic);
  if (call.rows.groups == 0) return;
  const std::int64_t needed = emulated_gemm_workspace_bytes(call, arithmetic);
  require_pointer(call.workspace, "workspace", 256);
  require(call.workspace_bytes >= needed, "workspace_bytes", call.workspace_bytes,
          "at least " + std::to_string(needed) + ", as emulated_gemm_workspace_bytes() says");

  const Kernel& kernel = kernel_for(prepared.gemm, route);
  SetupCall& setup = prepared.setup;
  setup.tile_rows = kernel.tile_rows;
  setup.tile_columns = kernel.tile_columns;
  setup.workspace = static_cast<std::uint8_t*>(call.workspace);
  prepared.gemm.workspace = setup.workspace;
  const std::int64_t tiles = max_tiles_of(setup);
  launch_setup(setup, call, stream);  // also without tiles: it checks the splits
  if (tiles > 0) kernel.launch(prepared.gemm, tiles, stream);
}

}  // namespace emulated

std::string emulation_missing(const AccumulationPlan& plan) {
  const char* const what = rescales(plan.promotion)                                                    ? "a rescaled chain"
                           : plan.merge == SliceMerge::tree_f32 || plan.merge == SliceMerge::shape_f32 ? "slices merged as a tree"
                           : plan.widen                                                                ? "widened operands"
                           : plan.scale_vectors != ScaleVectors::none         ? "scales of rows and columns"
                           : plan.epilogue != GemmEpilogue::scaled_alpha_beta ? "addition in memory"
                                                                              : nullptr;
  return what == nullptr ? "" : "the emulated GEMM has no plan with " + std::string(what) + ": " + std::string(plan.name);
}

std::int64_t emulated_gemm_workspace_bytes(const GroupedGemmCall& call, const EmulatedArithmetic&) {
  const std::int64_t groups = call.rows.groups < 0 ? 0 : call.rows.groups;
  return (emulated::WorkspaceLayout(groups).end + 255) / 256 * 256;
}

void emulated_grouped_gemm(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic, Stream stream) {
  const CallDevice device(stream, {{"workspace", call.workspace},
                                   {"x.data", call.x.data},
                                   {"w.data", call.w.data},
                                   {"dy.data", call.dy.data},
                                   {"d", call.d},
                                   {"rows.splits", call.rows.splits}});
  emulated::grouped_gemm_by(emulated::Route::fastest, call, arithmetic, stream);
}

}  // namespace assay::device
