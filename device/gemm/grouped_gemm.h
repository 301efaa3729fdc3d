#pragma once
// Grouped GEMM on the device: the call of reference/gemm/grouped_gemm.h over device memory. For group t with m_t = splits[t]:
//
//   TN (fprop)  D_t [m_t, N] = x_t [m_t, K]  . w_t [N, K]^T
//   NN (dgrad)  D_t [m_t, K] = dy_t [m_t, N] . w_t [N, K]
//   NT (wgrad)  D_t [N, K]   = dy_t [m_t, N]^T . x_t [m_t, K]
//
// x [R,K], dy [R,N] hold the groups one after another; w [G*N,K]; D is [R,N], [R,K] or [G*N,K], R = rows.capacity.
// D = alpha * product + beta * C, then (TN only) the bias of the group added to the rounded result and rounded again.
// A group without rows writes nothing in TN and NN; in NT its product is +0 (plan.h: beta * C, or 0 when beta is 0, but for
// -0 and for an alpha that is not finite; its scales are not read). Rows of D past the sum of the splits are not touched. C is
// not read when beta is 0. A D in FP8 has no bias and no beta but 0.
//
// Three paths compute it, with the same meaning and each with its own arithmetic:
//   cublaslt_grouped_gemm()  the vendor library, where its version and the architecture have the path: cublaslt_gemm.h
//   fp8_block_grouped_gemm() our own kernel, for FP8 blocks on SM90: fp8_block_gemm/fp8_block_gemm.h
//   emulated_grouped_gemm()  the arithmetic of any row of the tensor-core table, in integers, anywhere: emulated_gemm/emulated_gemm.h
// All read splits, scales, alpha and beta on the device only, allocate nothing, do not synchronise, and may be captured.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/gemm/group_rows.h"
#include "reference/gemm/plan.h"
#include "reference/layout/scale_shape.h"
#include "reference/types/format.h"

namespace assay::device {

// One operand in one of its two storages, which are those of reference/gemm/grouped_gemm.h: what quantize() writes for a
// grouped tensor. Its groups lie one after another in `data`, or, for w, each in a buffer of its own.
struct GemmOperand {
  Format type = Format::bf16;
  const void* data = nullptr;                   // device, 16-byte aligned
  const void* const* data_list = nullptr;       // w, in place of data: host array [G] of device pointers, read during the call
  const void* scale_inv = nullptr;              // device; null for bf16 and f16
  const void* const* scale_inv_list = nullptr;  // with data_list
  bool columnwise = false;
  const float* amax = nullptr;  // device [G]: nvfp4, tensor amax of this storage
};

// Where the rows of the groups of x, dy, C and D lie, if they do not follow one another (spec grouped-gemm-1.4):
// emulated_grouped_gemm() alone has that. Rows of no group are neither read nor written. NT: psum alone, with operands that are
// not transposed.
struct GroupPlaces {
  GroupedLayout layout = GroupedLayout::splits;
  const std::int32_t* index = nullptr;  // device: m_indices [rows.capacity] or psum [rows.groups], in place of rows.splits
  std::int64_t alignment = 1;           // m_indices: rows of a block; psum: groups start at multiples of it
  std::int64_t max_m = 0;               // masked: rows.capacity is groups * max_m, and rows.splits has the rows of each group
};

struct GroupedGemmCall {
  GemmKind kind = GemmKind::bf16;
  GemmLayout layout = GemmLayout::TN;
  Rows rows;  // of x and dy; splits on the device
  GroupPlaces places;
  std::int64_t rows_multiple = 1;  // promised: every group's rows are a multiple of this. Saves cublaslt_grouped_gemm() and
                                   // fp8_block_grouped_gemm() copies of groups in NT; both check the promise
  bool pow2_scales =
      false;  // promised: block scales are powers of two, 2^-127 or more. fp8_block_grouped_gemm() is then faster in
              // NT with scales_first. It reports a scale that BF16 cannot hold (kStatusOtherScales), after it has
              // written D, in which elements of that scale are wrong. Other paths ignore the promise
  // Of x and dy in NT of FP8 blocks: 1, or 16 (device/layout/column_layout.h), which fp8_block_grouped_gemm() takes: it then copies nothing.
  std::int64_t column_alignment = 1;
  std::int64_t N = 0;
  std::int64_t K = 0;
  GemmOperand x, w, dy;                              // the two that the layout names
  WeightBlock weight_block = WeightBlock::b128x128;  // block kind, TN and NN: how w is scaled
  ScaleLayout scale_layout = ScaleLayout::compact;   // mxfp8, nvfp4
  const float* alpha = nullptr;                      // device; null: 1
  const float* beta = nullptr;                       // device; null: 0
  bool scalars_per_group = false;                    // alpha and beta hold one value per group; otherwise one for the call
  bool split_accumulator = false;                    // tensor kind; block scaling always has it (spec grouped-linear-1.3)
  bool row_and_column_scales = false;                // tensor kind: a scale for each row and column of D (spec grouped-gemm-1.3)
  Format d_type = Format::f32;                       // f32, bf16, f16; e4m3, e5m2 with d_scale
  const float* d_scale = nullptr;                    // device [G], for a D in FP8 (spec grouped-gemm-2.7); null otherwise
  void* d = nullptr;                                 // device
  void* const* d_list = nullptr;                     // NT, in place of d: host array [G] of device pointers, each [N,K]
  const void* c = nullptr;                           // device, as d; null: d itself is C
  const void* bias = nullptr;                        // device [G,N] in d_type, TN only; null: none
  void* workspace = nullptr;  // device, 256-byte aligned, the path's ..._workspace_bytes(); contents undefined
  std::int64_t workspace_bytes = 0;
  std::uint32_t* status = nullptr;  // device [1], or null
};

// The checks of both paths: types of the kind, storages of the layout, sizes, pointers, lists.
// Errors: InvalidArgument, naming the member; nothing is launched.
void check_grouped_gemm(const GroupedGemmCall& call);

}  // namespace assay::device
