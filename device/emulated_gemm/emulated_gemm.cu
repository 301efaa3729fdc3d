// The call: checked, converted to the form of problem.h, set up on the device, and passed to the fastest kernel that
// computes its arithmetic.

#include "device/emulated_gemm/emulated_gemm.h"

#include <algorithm>
#include <limits>
#include <string>

#include "device/emulated_gemm/group_operand.cuh"
#include "device/emulated_gemm/group_spans.cuh"
#include "device/emulated_gemm/merge_program.h"
#include "device/emulated_gemm/problem.h"
#include "device/layout/check_columns.h"
#include "device/layout/check_rows.h"
#include "device/layout/swizzle.h"
#include "device/support/call_device.h"
#include "device/support/format_name.h"
#include "reference/arithmetic/unit_table.h"
#include "reference/types/error.h"

namespace assay::device {
namespace emulated {
namespace {

Scales scales_of(const GroupedGemmCall& call, bool weight) {
  switch (call.kind) {
    case GemmKind::bf16:
    case GemmKind::f16: return Scales::none;
    case GemmKind::fp8_per_tensor: return call.row_and_column_scales ? Scales::per_line : Scales::one;
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
  source.scale_layout = call.scale_layout;
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
  setup.places = call.places;
  setup.spans = span_count(call.places, call.rows);
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
  setup.alpha = call.alpha;
  setup.beta = call.beta;
  setup.scalars_per_group = call.scalars_per_group;
  setup.d_type = call.d_type;
  setup.d_scale = call.d_scale;
  setup.beta_rule = call.d_scale != nullptr ? BetaRule::zero : BetaRule::any;
  setup.d = call.d;
  setup.d_listed = call.d_list != nullptr;
  setup.c = call.c;
  setup.bias = call.bias;
  setup.max_depth = std::numeric_limits<std::int64_t>::max();
  setup.status = call.status;
  return setup;
}

// Swizzled scales that one matrix holds for the rows of all groups: those of a span start anywhere in a tile of it, so they are
// copied to compact order, which has an address for each row. Bytes; 0 where the scales are read as they are.
std::int64_t unswizzled_bytes(const GroupedGemmCall& call) {
  const bool tiled = call.scale_layout == ScaleLayout::swizzled && (call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4);
  const bool anywhere = call.places.layout == GroupedLayout::m_indices || call.places.layout == GroupedLayout::psum;
  if (!tiled || !anywhere || call.layout == GemmLayout::NT || call.rows.capacity <= 0) return 0;
  const bool forward = call.layout == GemmLayout::TN;
  const OperandSource source = source_of(call, forward ? call.x : call.dy, false, false, forward ? call.K : call.N);
  return scale_extent(source, call.rows.capacity).count;
}

// Enqueues the copy, and has `source` read it.
void unswizzle(const GroupedGemmCall& call, std::int64_t bytes, std::uint8_t* copy, OperandSource& source, Stream stream) {
  if (bytes == 0) return;
  const Rows one_matrix{call.rows.capacity, nullptr, 1};
  unswizzle_scales(call.kind == GemmKind::mxfp8 ? Recipe::mxfp8 : Recipe::nvfp4, Direction::rowwise, one_matrix, source.columns,
                   static_cast<const std::uint8_t*>(source.scale_inv), copy, nullptr, stream);
  source.scale_inv = copy;
  source.scale_layout = ScaleLayout::compact;
}

WorkspaceLayout workspace_of(const GroupedGemmCall& call) {
  const std::int64_t groups = call.rows.groups < 0 ? 0 : call.rows.groups;
  const bool counted = call.places.alignment >= 1 && call.rows.capacity >= 0;  // otherwise the call is refused
  return WorkspaceLayout(counted ? span_count(call.places, call.rows) : groups, groups, unswizzled_bytes(call));
}

// Checks of the reference: of its tables, not of its arithmetic. Errors: InvalidArgument of this library, in the same words.
template <class Check>
void require_by_reference(Check&& check) {
  try {
    check();
  } catch (const assay::InvalidArgument& error) {
    throw InvalidArgument(error.what());
  }
}

void require_operand(Format type, const AccumulationPlan& plan, const TensorCoreUnit& unit, const char* operand) {
  if (plan.widen) return;  // FP8 codes, converted to a type of the unit
  const bool taken = std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
  require(taken, std::string("type of the operand that supplies the ") + operand, format_name(type),
          "an operand type of " + std::string(unit.name));
}

// What the plan asks of D, C and the bias (spec grouped-gemm-2.6, 2.7). The values of beta are on the device.
void require_output(const GroupedGemmCall& call, const AccumulationPlan& plan) {
  if (call.d_scale != nullptr) {
    require(plan.merge != SliceMerge::sequential_output, "plan.merge", "sequential_output", "another merge with a D in FP8");
  }
  if (plan.epilogue == GemmEpilogue::scaled_alpha_beta) return;
  require(call.d_type == Format::f32, "d_type", format_name(call.d_type), "f32 where the plan adds onto C in memory");
  require(call.beta != nullptr, "beta", "null, which is 0", "1 where the plan adds onto C in memory");
  require(call.bias == nullptr, "bias", "given", "null where the plan adds onto C in memory");
}

// Checks that the unit takes these operands, and that plan, unit and call fit one another.
void check_arithmetic(const GroupedGemmCall& call, const AccumulationPlan& plan, const TensorCoreUnit& unit,
                      const SetupCall& setup) {
  if (const std::string columns = aligned_columns_missing("the emulated GEMM", call.column_alignment); !columns.empty())
    throw NotSupported(columns);
  require(plan.unit == unit.name, "plan.unit", std::string(plan.unit), "the unit given with it, " + std::string(unit.name));
  if (const std::string missing = emulation_missing(unit); !missing.empty()) throw NotSupported(missing);
  const int products = unit.products_per_step;
  require(unit.scaling == StepScaling::e8m0_per_32 ? products == 32 : products >= 1 && products <= 64, "unit.products_per_step",
          products, "1 to 64, or 32 with a scale for 32 products");
  require(unit.fraction_bits >= 1 && unit.fraction_bits <= 40, "unit.fraction_bits", unit.fraction_bits, "1 to 40");
  require_by_reference([&] {
    require_sound(plan, unit);
    require_serves(plan, unit, call.kind, call.row_and_column_scales);
  });
  require_operand(setup.row_operand.type, plan, unit, "rows");
  require_operand(setup.column_operand.type, plan, unit, "columns");
  require_output(call, plan);
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

GenericTerms terms_of(const AccumulationPlan& plan, std::size_t merge_steps, std::int64_t merge_program) {
  GenericTerms terms{};
  terms.widen = plan.widen.value_or(Format::f32);
  terms.scale_vectors = plan.scale_vectors;
  terms.flushes = plan.subnormals == Subnormals::flushed;
  terms.epilogue = plan.epilogue;
  terms.merge_steps = static_cast<std::int32_t>(merge_steps);
  terms.merge_program = merge_program;
  return terms;
}

// Whether the fast kernels, which know nothing of GenericTerms, would compute something else.
bool needs_generic(const GemmCall& call) {
  const GenericTerms& terms = call.terms;
  return rescales(call.arithmetic.promotion) || terms.widen != Format::f32 || terms.scale_vectors != ScaleVectors::none ||
         terms.flushes || terms.epilogue != GemmEpilogue::scaled_alpha_beta || terms.merge_steps > 0 ||
         call.d_type == Format::e4m3 || call.d_type == Format::e5m2;
}

struct Prepared {
  SetupCall setup;
  GemmCall gemm;
  std::vector<std::int16_t> merge_steps;
};

Prepared prepare(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic) {
  require(arithmetic.plan != nullptr, "arithmetic.plan", "null", "a plan");
  require(arithmetic.unit != nullptr, "arithmetic.unit", "null", "the unit that the plan names");
  Prepared prepared{setup_of(call), {}, {}};
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
  if (plan.epilogue != GemmEpilogue::scaled_alpha_beta) prepared.setup.beta_rule = BetaRule::one;
  prepared.merge_steps = merge_program(plan);
  prepared.gemm.row_type = prepared.setup.row_operand.type;
  prepared.gemm.column_type = prepared.setup.column_operand.type;
  prepared.gemm.d_type = call.d_type;
  prepared.gemm.arithmetic = arithmetic_of(plan, *arithmetic.unit);
  prepared.gemm.groups = static_cast<std::int32_t>(prepared.setup.spans);
  prepared.gemm.terms = terms_of(plan, prepared.merge_steps.size(), workspace_of(call).end);
  return prepared;
}

}  // namespace

const Kernel& kernel_for(const GemmCall& call, Route route) {
  if (route == Route::fastest && !needs_generic(call)) {
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
  unswizzle(call, unswizzled_bytes(call), setup.workspace + workspace_of(call).scales, setup.row_operand, stream);
  launch_setup(setup, call, stream);  // also without tiles: it checks the splits
  launch_store(prepared.merge_steps, setup.workspace + prepared.gemm.terms.merge_program, stream);
  if (tiles > 0) kernel.launch(prepared.gemm, tiles, stream);
}

}  // namespace emulated

std::string emulation_missing(const TensorCoreUnit& unit) {
  // A sum is a 64-bit number of units of 2^(exponent - fraction_bits), and is shifted by less than 64 bits to the last of the
  // accumulator.
  const int last = unit.accumulator == Accumulator::f16_nearest       ? -24
                   : unit.accumulator == Accumulator::e8m13_truncated ? -139
                                                                      : -149;
  const std::string name = "the emulated GEMM has no unit with ";
  const std::string of = " (plan.unit " + std::string(unit.name) + ")";
  if (unit.sum != StepSum::fused) return name + "sum=" + std::string(name_of(unit.sum)) + of;
  if (unit.scaling == StepScaling::e8m0_per_16) return name + "scaling=e8m0_per_16" + of;
  if (unit.group != (unit.scaling == StepScaling::e4m3_per_16 ? 16 : 1)) return name + "group=" + std::to_string(unit.group) + of;
  if (unit.zero_floor - unit.fraction_bits < last - 63) return name + "zero_floor=" + std::to_string(unit.zero_floor) + of;
  return "";
}

void check_emulated_gemm(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic) {
  check_grouped_gemm(call);
  static_cast<void>(emulated::prepare(call, arithmetic));
}

std::int64_t emulated_gemm_workspace_bytes(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic) {
  const std::int64_t steps = arithmetic.plan == nullptr ? 0 : emulated::merge_steps(*arithmetic.plan);
  const std::int64_t bytes = emulated::workspace_of(call).end + steps * static_cast<std::int64_t>(sizeof(std::int16_t));
  return (bytes + 255) / 256 * 256;
}

void emulated_grouped_gemm(const GroupedGemmCall& call, const EmulatedArithmetic& arithmetic, Stream stream) {
  const CallDevice device(stream, {{"workspace", call.workspace},
                                   {"x.data", call.x.data},
                                   {"w.data", call.w.data},
                                   {"dy.data", call.dy.data},
                                   {"d", call.d},
                                   {"d_scale", call.d_scale},
                                   {"rows.splits", call.rows.splits},
                                   {"places.index", call.places.index}});
  emulated::grouped_gemm_by(emulated::Route::fastest, call, arithmetic, stream);
}

}  // namespace assay::device
