#pragma once
// What the kernel is given: a grouped product as D[m, n] = A[m, depth] . B[n, depth]^T for every group. Internal to this folder.
//
//        A      B                                                       m      n   depth
//   TN   x      w                                                       rows   N   K
//   NN   dy     w^T, which columnwise storage is (spec layouts-1.1)     rows   K   N
//   NT   dy^T   x^T, columnwise storage too                             N      K   rows
//
// Both operands have the contraction innermost. Groups follow one another in A, B and D. `rows` are those of the group: even
// contractions (TN, NN) are as long in every group, ragged ones (NT) are not.

#include <cuda.h>

#include <cstdint>

#include "device/layout/groups.h"
#include "reference/types/format.h"

namespace assay::device::fp8_block {

inline constexpr int kTileRows = 128, kBlockK = 128, kWarpgroups = 2, kThreads = 128 * (1 + kWarpgroups);

// How scales enter the sum after each block of 128 of the contraction (reference/gemm/plan.h, Promotion).
enum class Scaling {
  squares,             // fma_scales_first, one scale of B for 128 columns
  vectors,             // fma_scales_first, one scale of B for each column
  vectors_rows_first,  // fma_rows_first, the same scales
  pow2_vectors,        // as vectors, and each scale is a power of two
};

enum class Contraction { even, ragged };

// Columns of a tile. By squares a step of 128 columns is added before the next 128 are multiplied; scales for each column leave registers for
// that only where the tensor core multiplies them (pow2_vectors, 96 columns at a time). rows_first needs a register more for each element
// that is being added, which 192 columns do not leave. Even contractions with a scale for each column (w scaled 1x128) are rare: they
// have what rows_first has.
constexpr int tile_columns(Scaling scaling, Contraction contraction) {
  if (scaling == Scaling::squares) return 256;
  return scaling != Scaling::vectors_rows_first && contraction == Contraction::ragged ? 192 : 128;
}

inline constexpr int kMapsOfSide = 2, kMapsOfBlock = 2 * kMapsOfSide;

// The matrices of all groups, and where those groups are copied that the copy engine cannot read in place (aligned_copies.cuh); null:
// no group can need it, by the promise of rows_multiple or the alignment of columns.
struct RaggedOperand {
  const std::uint8_t* data;
  std::uint8_t* copies;
  bool aligned;  // column_layout.h
};

struct Problem {
  // [rows of all groups, depth], in boxes of the rows that one load takes; where blocks make maps: of no group yet
  CUtensorMap a_map, b_map;
  RaggedOperand a, b;  // ragged
  CUtensorMap* maps;   // ragged, or with b_list: [blocks of the grid][kMapsOfBlock], where blocks make maps of groups
  Rows rows;
  std::uint32_t rows_multiple;  // ragged: promised of every group
  std::int64_t m, n, depth;     // those that are the same in every group
  const float *a_scales, *b_scales;
  const std::uint8_t* const* b_list;  // even, B of each group in place of one matrix: [groups] in device memory; null: none
  const float* const* b_scale_list;   // with b_list
  void* d;
  void* const* d_list;  // ragged, in place of d: [groups] in device memory; null: none
  const void* c;        // as d; null: d itself
  const void* bias;     // [groups, n], or null
  const float *alpha, *beta;
  bool scalars_per_group;
  Format d_type;  // f32, bf16, f16; of c and bias too
  std::uint32_t* status;
};

}  // namespace assay::device::fp8_block
