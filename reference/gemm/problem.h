#pragma once
// A grouped GEMM problem, checked and in one form: every operand of every group as rows along the contraction
// index, for any recipe, storage and layout. Both layers compute from this view; it holds addresses and shapes, and
// no rule of arithmetic. Which storage a layout reads: spec grouped-gemm-1.2; where scales lie: spec grouped-gemm-1.3.
//
//   D_t[i][j] = sum over k < depth of  rows.element(i, k) * columns.element(j, k)
//
//        D_t        `rows` operand    `columns` operand   depth
//   TN   [m_t, N]   x   (i = token)   w   (j = n)         K
//   NN   [m_t, K]   dy  (i = token)   w   (j = k)         N
//   NT   [N, K]     dy  (i = n)       x   (j = k)         m_t

#include <cstdint>
#include <cstring>
#include <vector>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/layout/swizzle.h"

namespace assay {

// Scales of one operand of one group, addressed by (i, k) of the operand:
//
//   no scales           data is null
//   per tensor          f32, one value: i_block = k_block = 0
//   per row of D        f32, i_block = 1, k_block = 0
//   1x128               f32, i_block = 1, k_block = 128
//   128x128             f32, i_block = 128, k_block = 128
//   mxfp8               e8m0, i_block = 1, k_block = 32, compact or swizzled
//   nvfp4               e4m3, i_block = 1, k_block = 16, compact or swizzled
struct ScaleView {
  Format type = Format::f32;
  const void* data = nullptr;  // first scale of the group's matrix
  std::int64_t first_i = 0;    // row of the matrix that belongs to i = 0
  std::int64_t i_block = 0;    // rows that share a scale; 0: all
  std::int64_t k_block = 0;    // elements along k that share a scale; 0: all
  std::int64_t i_stride = 0;   // scales from one row block to the next (compact)
  std::int64_t k_stride = 0;   // scales from one k block to the next (compact)
  bool swizzled = false;
  std::int64_t tiles = 0;  // swizzled: tiles of 4 blocks along k

  // Index of the scale of (i, k), counted from `data`.
  std::int64_t index(std::int64_t i, std::int64_t k) const {
    const std::int64_t row = i_block == 0 ? 0 : (first_i + i) / i_block;
    const std::int64_t block = k_block == 0 ? 0 : k / k_block;
    return swizzled ? swizzled_index(row, block, tiles) : row * i_stride + block * k_stride;
  }
  float value(std::int64_t i, std::int64_t k) const { return static_cast<const float*>(data)[index(i, k)]; }
  std::uint8_t code(std::int64_t i, std::int64_t k) const { return static_cast<const std::uint8_t*>(data)[index(i, k)]; }
};

// One operand of one group: `extent` rows of `depth` elements. Element (i, k) has the index i * row_stride + k * k_stride,
// counted in elements from `data`; for e2m1 index 2b is the low and 2b+1 the high nibble of byte b, and rows start on bytes.
// k_stride is 1 where the storage is K-major; otherwise row_stride is 1.
struct OperandView {
  Format type = Format::bf16;
  const void* data = nullptr;
  std::int64_t extent = 0;
  std::int64_t depth = 0;
  std::int64_t row_stride = 0;
  std::int64_t k_stride = 0;
  ScaleView scale;
  float amax = 0;  // nvfp4: amax of this group's tensor

  // The code of element (i, k), right-aligned.
  std::uint32_t element(std::int64_t i, std::int64_t k) const {
    const std::int64_t at = i * row_stride + k * k_stride;
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    switch (type) {
      case Format::bf16:
      case Format::f16: {
        std::uint16_t code;
        std::memcpy(&code, bytes + 2 * at, sizeof code);
        return code;
      }
      case Format::e2m1: return (bytes[at / 2] >> (at % 2 * 4)) & 0xFu;
      default: return bytes[at];
    }
  }
};

struct GroupView {
  std::int64_t m = 0;      // rows of D_t
  std::int64_t n = 0;      // columns of D_t
  std::int64_t depth = 0;  // products of one element of D_t; 0 for a group without rows in NT
  OperandView rows;        // extent m
  OperandView columns;     // extent n
  float alpha = 1;         // as the caller gave it. nvfp4: the layers multiply the amax of both operands in
  float beta = 0;
  std::int64_t d_offset = 0;   // element of D (and C) where D_t starts; its rows follow one another, n apart
  const void* bias = nullptr;  // n values in the type of D, or null
  float d_scale = 1;           // D in FP8: D = RN_D(RN(value * d_scale))
};

struct GroupedGemmView {
  GemmKind kind = GemmKind::bf16;
  Format d_type = Format::f32;
  const void* c = nullptr;  // null when beta is 0 in all groups
  const AccumulationPlan* plan = nullptr;
  const TensorCoreUnit* unit = nullptr;
  std::vector<GroupView> groups;  // ranges of rows of a group, without those whose D_t has no element

  // D[i][j] of a group is element group.d_offset + i * group.n + j.
};

// Checks everything and finds plan and unit. The returned view can be computed without a further check:
//  - block kind: every promotion interval lies within one block of 128 along k;
//  - mxfp8, nvfp4: every step starts on a multiple of the unit's products_per_step, counted from k = 0;
//  - the plan's slices cover `depth`; a slice past the end of k has no products and contributes +0.
// Errors: those of grouped_gemm(), naming the member of `problem` (or `d`) at fault.
GroupedGemmView view_of(const GroupedGemmProblem& problem, const void* d);

}  // namespace assay
