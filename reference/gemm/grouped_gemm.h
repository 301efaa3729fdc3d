#pragma once
// Grouped GEMM, every bit of it (spec grouped-gemm-1.1). For group t with m_t = splits[t] rows:
//
//   TN (fprop)  D_t [m_t, N] = x_t [m_t, K]  . w_t [N, K]^T
//   NN (dgrad)  D_t [m_t, K] = dy_t [m_t, N] . w_t [N, K]
//   NT (wgrad)  D_t [N, K]   = dy_t [m_t, N]^T . x_t [m_t, K]
//
// x [R,K], dy [R,N] hold the groups one after another, or as `group_rows` says; w [G*N,K]; D is [R,N], [R,K] or [G*N,K].
// D = alpha * product + beta * C, then the bias of the group (TN only) added to the rounded result and rounded again.
// A group without rows writes nothing in TN and NN; in NT its product is +0 (plan.h: beta * C, or 0 when beta is 0, except for
// -0 and for an alpha or scale that is not finite). Rows of D that belong to no group are not written. C is not read when
// beta is 0; it may be D itself.
//
// The product is accumulated as `plan` says: plan.h.

#include <cstdint>
#include <span>

#include "reference/gemm/group_rows.h"
#include "reference/gemm/plan.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay {

// One operand in one of its two storages. Rowwise storage is the matrix as named. Columnwise storage is transposed
// group by group (w: each [N,K] becomes [K,N]), but for mxfp8, where it is the matrix as named with scales along the rows.
struct GemmOperand {
  Format type = Format::bf16;
  const void* data = nullptr;
  const void* scale_inv = nullptr;  // as quantize() writes it for a grouped tensor; null for bf16 and f16
  bool columnwise = false;
  const float* amax = nullptr;  // nvfp4: [G] tensor amax of this storage
};

struct GroupedGemmProblem {
  GemmKind kind = GemmKind::bf16;
  GemmLayout layout = GemmLayout::TN;
  std::span<const std::int64_t> splits;
  const GroupRows* group_rows = nullptr;  // null: groups follow one another; else `splits` and `rows` are its own
  std::int64_t rows = 0;                  // R
  std::int64_t N = 0;
  std::int64_t K = 0;
  GemmOperand x, w, dy;                              // the two that the layout names
  WeightBlock weight_block = WeightBlock::b128x128;  // block kind, TN and NN: how w is scaled
  ScaleLayout scale_layout = ScaleLayout::compact;   // mxfp8, nvfp4
  std::span<const float> alpha;                      // 1 or G values (spec grouped-gemm-2.5); empty: 1
  std::span<const float> beta;                       // 1 or G values; empty: 0
  bool split_accumulator = false;
  bool row_and_column_scales = false;      // fp8_per_tensor: a scale for each row and column of D (spec grouped-gemm-1.3)
  Format d_type = Format::f32;             // f32, bf16, f16; e4m3, e5m2 with d_scale
  const float* d_scale = nullptr;          // [G] scales of a D in FP8 (spec grouped-gemm-2.7)
  const void* c = nullptr;                 // in d_type; read where beta is not 0
  const void* bias = nullptr;              // [G,N] in d_type, TN only; null: none
  const AccumulationPlan* plan = nullptr;  // null: the table's plan for `architecture`
  std::string_view architecture = "sm90";
};

// Rows and columns of D for the whole problem.
struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};
MatrixShape grouped_gemm_shape(const GroupedGemmProblem& problem);

// Errors (InvalidArgument, before anything is written): as quantize(), and: an operand in a storage or type that the kind
// and layout do not take, a missing scale, a plan whose unit does not take these operands. NotSupported: no plan is known.
void grouped_gemm(const GroupedGemmProblem& problem, void* d);

namespace scalar {
// One element at a time through tensor_core_step().
void grouped_gemm(const GroupedGemmProblem& problem, void* d);
}  // namespace scalar

}  // namespace assay
