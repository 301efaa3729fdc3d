#pragma once
// The accumulation plan: everything that decides the last bit of one GEMM element, as data (spec plans-1.1).
//
//   for each slice of K, in order:
//     partial = +0
//     for each interval of `promotion_interval` products (the whole slice when 0):
//       t = chain of unit steps over the interval, k upward, the accumulator carried from step to step
//       how t enters partial: `promotion` and `scale_association`
//   slices are merged as `merge` says
//   D = epilogue(acc): spec grouped-gemm-2.1
//
// An interval or slice that ends inside a step is filled with zero terms. A slice past the end of K has no products: its
// partial is +0 and is merged like the others. RN rounds to f32, to nearest even.
//
// A plan is a line of text (spec plans-1.5): unit=sm90.wgmma.fp8,promote=128,association=rows_first

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/arithmetic/tensor_core.h"
#include "reference/types/gemm.h"

namespace assay {

// How the chain's value t_j of one promotion interval enters the running f32 value acc (spec plans-1.2).
enum class Promotion : std::uint32_t {
  none,              // one chain: acc is the chain's accumulator
  add,               // acc = RN(acc + t_j)
  fma_scales_first,  // acc = FMA(RN(s_rows * s_cols), t_j, acc)
  fma_rows_first,    // acc = FMA(RN(t_j * s_rows), s_cols, acc)
  fma_cols_first,    // acc = FMA(RN(t_j * s_cols), s_rows, acc)
  // One chain over the slice. After interval j, with S_j = RN(s_rows * s_cols) of its first k, the accumulator is multiplied:
  rescale_by_ratio,  // acc = RN(acc * RN(S_j / S_j+1)), and RN(acc * S_j) after the last
  rescale_in_turn,   // acc = RN(RN(acc * S_j) / S_j+1), and RN(acc * S_j) after the last
};

// Whether the scales of blocks along k enter between the steps.
constexpr bool has_scales_inside(Promotion promotion) { return promotion >= Promotion::fma_scales_first; }
// Whether the chain goes on after an interval, multiplied by a ratio of scales.
constexpr bool rescales(Promotion promotion) { return promotion >= Promotion::rescale_by_ratio; }

// How the f32 values of several K slices become one (a single slice needs none; spec plans-1.3).
enum class SliceMerge : std::uint32_t {
  none,
  sequential_f32,     // RN(RN(p_0 + p_1) + p_2) ...
  sequential_output,  // the same with each partial, and each sum after its RN, rounded to the type of D
  tree_f32,           // neighbours in pairs, again and again; an odd last one goes up as it is: ((0+1)+(2+3))+4
  shape_f32,          // RN of every sum of AccumulationPlan::merge_shape
};

// In which order the scales of a row and of a column of D enter the sum (spec grouped-gemm-2.2).
enum class ScaleVectors : std::uint32_t {
  none,          // the operands have no such scales
  rows_first,    // RN(RN(acc * s_row) * s_column)
  cols_first,    // RN(RN(acc * s_column) * s_row)
  scales_first,  // RN(acc * RN(s_row * s_column))
};

// What follows the accumulation; every form ends with one rounding to nearest even to the type of D.
enum class GemmEpilogue : std::uint32_t {
  //   beta != 0                 FMA(acc, factor, RN(beta * C))
  //   beta == 0, factor != 1    FMA(acc, factor, +0)   a product of -0 becomes +0
  //   beta == 0, factor == 1    acc                    -0 stays -0
  //
  // factor is RN(RN(alpha * s_cols) * s_rows) with one scale per group, else alpha; for nvfp4
  // RN(RN(RN(alpha * amax_columns) * amax_rows) * RN(1 / 7225344)), the amax of the operands that supply the columns and
  // the rows of D (spec grouped-gemm-2.2). C is not read when beta is 0. NaN is stored as 0x7FFFFFFF (f32) or 0x7FFF (bf16, f16).
  //
  // Without any product (spec grouped-gemm-2.3) acc is +0 and factor is alpha, for any scales of the group: C of -0 becomes +0
  // under a positive alpha, an alpha that is not finite gives NaN, a scale that is not finite does not.
  //
  // Measured (spec measured-1.3): kinds bf16, f16, tensor and block, alpha and scales among 1, -1, 0.5, 0, infinity and NaN. Only
  // where scales enter between the steps (Promotion::fma_*) can acc be -0, by a negative product that underflows: the chain of
  // a unit gives +0 for every zero, RN(acc + t) is -0 for none but two -0, and so is a sum of f32 slices. (sequential_output
  // may round a slice to -0; no library is known to do so.) The third line does not concern the other kinds.
  scaled_alpha_beta,
  // Added onto C in memory: v = acc, or FMA(acc, factor, +0) where factor is not 1; D = RN(C + v). D is f32, beta is 1, there is no
  // bias. Without any product D is C.
  reduce_add,
  reduce_add_ftz,  // the same with a subnormal C, v or sum taken as a zero of its sign
};

// What the f32 operations between the unit's steps and the epilogue make of a value below 2^-126: those of the promotion and of
// scale vectors (spec plans-1.9). Such a value counts as it is (kept), or as a zero of its sign wherever an operation reads or
// returns it (flushed), as kernels that are built with fast math have it.
enum class Subnormals : std::uint32_t { kept, flushed };

struct AccumulationPlan {
  std::string_view name;            // "cublaslt.sm90.fp8_block.scales_first"
  std::string_view unit;            // row of the tensor-core table
  std::int64_t promotion_interval;  // products; 0: the whole slice
  Promotion promotion;
  std::int64_t slices;        // K is cut into this many ordered slices of `slice_length` (the last may be short)
  std::int64_t slice_length;  // products; 0 with one slice
  SliceMerge merge;
  GemmEpilogue epilogue;
  std::optional<Format> widen = {};  // f16, bf16 (spec plans-1.7): FP8 elements are converted to it, exactly, before the unit
  ScaleVectors scale_vectors = ScaleVectors::none;
  std::string_view merge_shape = {};  // shape_f32: "((0+1)+(2+3))", each slice once
  Subnormals subnormals = Subnormals::kept;
};

// What selects a plan (spec plans-1.4). Empty text and 0 mean "any".
struct PlanKey {
  std::string_view library = {};         // "cublaslt"
  int version_from = 0, version_to = 0;  // 130400 ...; inclusive
  std::string_view architecture = {};    // "sm90"
  int sm_count = 0;
  int algorithm = -1;
  int tile = -1;
  int split_k = -1;
  std::int64_t workspace = -1;
  GemmKind kind{};
  std::optional<GemmLayout> layout = {};
  std::optional<bool> split_accumulator = {};
  std::optional<WeightBlock> weight_block = {};
  std::optional<Format> d_type = {};
  bool row_and_column_scales = false;  // fp8_per_tensor with a scale for each row and each column of D; stated by both sides
};

struct PlanEntry {
  PlanKey key;
  const AccumulationPlan* plan;
  std::string_view evidence;
};

// The plans that have names.
std::span<const AccumulationPlan> accumulation_plans();
// How a plan that has a name is known; "measured ..." or "unmeasured ...".
std::string_view evidence_of(const AccumulationPlan& plan);
std::span<const PlanEntry> plan_table();

// The plan with this name, or the plan that this line describes, whose name is then its line in canonical form. It lives as long
// as the program. Null: no plan has this name. Errors (InvalidArgument, naming the field): a text with a '=' that is no plan.
const AccumulationPlan* find_accumulation_plan(std::string_view name_or_line);

// The plan that this line describes, without a name; a merge shape points into `line`. Errors: those of find_accumulation_plan().
AccumulationPlan read_plan_line(std::string_view line);

// The plan as a line: fields in the order of spec plans-1.5, those of plain value left out. The name is not part of it, so that
// plans which compute the same have the same line.
std::string plan_line(const AccumulationPlan& plan);

// What must hold of a plan for any problem. Errors (InvalidArgument): the field ("plan.promote"), its value, what was expected.
void require_sound(const AccumulationPlan& plan, const TensorCoreUnit& unit);

// What must hold besides for this kind of product. Errors: as require_sound().
void require_serves(const AccumulationPlan& plan, const TensorCoreUnit& unit, GemmKind kind, bool row_and_column_scales);

// The plan for this request (library, version, ... as far as known; one version: version_from == version_to), or null
// where none is known. An entry matches when every field that both it and the request give is equal. Of the entries that
// match, the one with the most equal fields is chosen, and the first of those with as many.
const AccumulationPlan* plan_for(const PlanKey& request);

}  // namespace assay
