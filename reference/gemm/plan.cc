// The plans that are known, and the keys under which they were found (spec plans-2.1, plans-2.2).

#include "reference/gemm/plan.h"

#include <iterator>

namespace assay {
namespace {

constexpr auto kEpilogue = GemmEpilogue::scaled_alpha_beta;

// One chain of steps over all of K.
constexpr AccumulationPlan chain(std::string_view name, std::string_view unit) {
  return {name, unit, 0, Promotion::none, 1, 0, SliceMerge::none, kEpilogue};
}

// A chain over each 128 products, then `promotion` into an f32 value.
constexpr AccumulationPlan promoted(std::string_view name, std::string_view unit, Promotion promotion) {
  return {name, unit, 128, promotion, 1, 0, SliceMerge::none, kEpilogue};
}

constexpr AccumulationPlan kPlans[] = {
    chain("cublaslt.sm90.bf16", "sm90.wgmma.f16"),
    chain("cublaslt.sm90.f16", "sm90.wgmma.f16"),
    chain("cublaslt.sm90.fp8_tensor.fast", "sm90.wgmma.fp8"),
    promoted("cublaslt.sm90.fp8_tensor.split", "sm90.wgmma.fp8", Promotion::add),
    promoted("cublaslt.sm90.fp8_block.scales_first", "sm90.wgmma.fp8", Promotion::fma_scales_first),
    promoted("cublaslt.sm90.fp8_block.rows_first", "sm90.wgmma.fp8", Promotion::fma_rows_first),

    chain("sm100.bf16.chain", "sm100.tcgen05.f16"),
    chain("sm100.f16.chain", "sm100.tcgen05.f16"),
    chain("sm100.fp8_tensor.chain", "sm100.tcgen05.f8f6f4"),
    chain("sm100.mxfp8.chain", "sm100.tcgen05.mxf8f6f4"),
    chain("sm100.nvfp4.chain", "sm100.tcgen05.mxf4nvf4"),

    chain("sm120.bf16.chain", "sm120.mma.f16"),
    chain("sm120.f16.chain", "sm120.mma.f16"),
    chain("sm120.fp8_tensor.chain", "sm120.mma.fp8"),
    chain("sm120.mxfp8.chain", "sm120.mma.mxf8f6f4"),
    chain("sm120.nvfp4.chain", "sm120.mma.mxf4nvf4"),

    chain("sm89.bf16.chain", "sm89.mma.f16"),
    chain("sm89.f16.chain", "sm89.mma.f16"),
    chain("sm89.fp8_tensor.chain", "sm89.mma.fp8"),

    chain("sm80.bf16.chain", "sm80.mma.f16"),
    chain("sm80.f16.chain", "sm80.mma.f16"),
};

constexpr const AccumulationPlan* plan(std::string_view name) {
  for (const AccumulationPlan& each : kPlans) {
    if (each.name == name) return &each;
  }
  return nullptr;  // a table row with this is rejected below, at compile time
}

// cuBLASLt on an H200. Its heuristic offers only algorithm 66 with K undivided. Tiles, stages, clusters, workspace, average
// sizes and the number of SMs were varied; no bit changed.
constexpr PlanKey measured(GemmKind kind) {
  return {.library = "cublaslt",
          .version_from = 130400,
          .version_to = 131099,
          .architecture = "sm90",
          .algorithm = 66,
          .split_k = 1,
          .kind = kind};
}
constexpr PlanKey measured_tensor(bool split_accumulator) {
  PlanKey key = measured(GemmKind::fp8_per_tensor);
  key.split_accumulator = split_accumulator;
  return key;
}
constexpr PlanKey measured_block(WeightBlock weight_block) {
  PlanKey key = measured(GemmKind::fp8_block);
  key.weight_block = weight_block;
  return key;
}
constexpr PlanKey assumed(std::string_view architecture, GemmKind kind) { return {.architecture = architecture, .kind = kind}; }

constexpr std::string_view kMeasured = "measured: cuBLASLt 13.4 to 13.10 on an H200 predicted in every element";
constexpr std::string_view kEmulated = "unmeasured: one chain of the unit's steps over K (reference/spec/plans.md)";
constexpr std::string_view kEmulatedFp8 = "unmeasured: one chain of the unit's steps over K, as with fast accumulation on Hopper";

constexpr PlanEntry kTable[] = {
    {measured(GemmKind::bf16), plan("cublaslt.sm90.bf16"), kMeasured},
    {measured(GemmKind::f16), plan("cublaslt.sm90.f16"), kMeasured},
    {measured_tensor(false), plan("cublaslt.sm90.fp8_tensor.fast"), kMeasured},
    {measured_tensor(true), plan("cublaslt.sm90.fp8_tensor.split"), kMeasured},
    {measured_block(WeightBlock::b128x128), plan("cublaslt.sm90.fp8_block.scales_first"), kMeasured},
    {measured_block(WeightBlock::b1x128), plan("cublaslt.sm90.fp8_block.rows_first"), kMeasured},

    {assumed("sm100", GemmKind::bf16), plan("sm100.bf16.chain"), kEmulated},
    {assumed("sm100", GemmKind::f16), plan("sm100.f16.chain"), kEmulated},
    {assumed("sm100", GemmKind::fp8_per_tensor), plan("sm100.fp8_tensor.chain"), kEmulated},
    {assumed("sm100", GemmKind::mxfp8), plan("sm100.mxfp8.chain"), kEmulated},
    {assumed("sm100", GemmKind::nvfp4), plan("sm100.nvfp4.chain"), kEmulated},

    {assumed("sm120", GemmKind::bf16), plan("sm120.bf16.chain"), kEmulated},
    {assumed("sm120", GemmKind::f16), plan("sm120.f16.chain"), kEmulated},
    {assumed("sm120", GemmKind::fp8_per_tensor), plan("sm120.fp8_tensor.chain"), kEmulated},
    {assumed("sm120", GemmKind::mxfp8), plan("sm120.mxfp8.chain"), kEmulated},
    {assumed("sm120", GemmKind::nvfp4), plan("sm120.nvfp4.chain"), kEmulated},

    {assumed("sm89", GemmKind::bf16), plan("sm89.bf16.chain"), kEmulated},
    {assumed("sm89", GemmKind::f16), plan("sm89.f16.chain"), kEmulated},
    {assumed("sm89", GemmKind::fp8_per_tensor), plan("sm89.fp8_tensor.chain"), kEmulatedFp8},

    {assumed("sm80", GemmKind::bf16), plan("sm80.bf16.chain"), kEmulated},
    {assumed("sm80", GemmKind::f16), plan("sm80.f16.chain"), kEmulated},
};
static_assert([] {
  for (const PlanEntry& entry : kTable) {
    if (entry.plan == nullptr) return false;
  }
  return true;
}());

// Compares one field of a key. Either side may be open; a field that both state must agree, and then counts.
struct Comparison {
  bool agrees = true;
  int stated = 0;

  void field(bool entry_states, bool request_states, bool equal) {
    if (!entry_states || !request_states) return;
    agrees = agrees && equal;
    ++stated;
  }
};

Comparison compare(const PlanKey& entry, const PlanKey& request) {
  Comparison result;
  result.field(true, true, entry.kind == request.kind);
  result.field(!entry.library.empty(), !request.library.empty(), entry.library == request.library);
  result.field(entry.version_from != 0, request.version_from != 0, entry.version_from <= request.version_from);
  result.field(entry.version_to != 0, request.version_to != 0, request.version_to <= entry.version_to);
  result.field(!entry.architecture.empty(), !request.architecture.empty(), entry.architecture == request.architecture);
  result.field(entry.sm_count != 0, request.sm_count != 0, entry.sm_count == request.sm_count);
  result.field(entry.algorithm >= 0, request.algorithm >= 0, entry.algorithm == request.algorithm);
  result.field(entry.tile >= 0, request.tile >= 0, entry.tile == request.tile);
  result.field(entry.split_k >= 0, request.split_k >= 0, entry.split_k == request.split_k);
  result.field(entry.workspace >= 0, request.workspace >= 0, entry.workspace == request.workspace);
  result.field(entry.layout.has_value(), request.layout.has_value(), entry.layout == request.layout);
  result.field(entry.split_accumulator.has_value(), request.split_accumulator.has_value(),
               entry.split_accumulator == request.split_accumulator);
  result.field(entry.weight_block.has_value(), request.weight_block.has_value(), entry.weight_block == request.weight_block);
  result.field(entry.d_type.has_value(), request.d_type.has_value(), entry.d_type == request.d_type);
  return result;
}

}  // namespace

std::span<const AccumulationPlan> accumulation_plans() { return kPlans; }

const AccumulationPlan* find_accumulation_plan(std::string_view name) { return plan(name); }

std::span<const PlanEntry> plan_table() { return kTable; }

const AccumulationPlan* plan_for(const PlanKey& request) {
  const AccumulationPlan* best = nullptr;
  int best_stated = -1;
  for (const PlanEntry& entry : kTable) {
    const Comparison comparison = compare(entry.key, request);
    if (comparison.agrees && comparison.stated > best_stated) {
      best = entry.plan;
      best_stated = comparison.stated;
    }
  }
  return best;
}

}  // namespace assay
