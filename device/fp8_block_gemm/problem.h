#pragma once
// What the kernel is given: a grouped product as D[m, n] = A[m, depth] . B[n, depth]^T for every group. Internal to this folder.
//
//        A     B                                                        m      n   depth
//   TN   x     w                                                        rows   N   K
//   NN   dy    w^T, which columnwise storage is (spec layouts-1.1)      rows   K   N
//
// Both operands have the contraction innermost. Groups follow one another in A, B and D.

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
};

// Columns of a tile. With a scale for each column, half the registers of a tile of 192 would hold scales.
constexpr int tile_columns(Scaling scaling) { return scaling == Scaling::squares ? 192 : 128; }

struct Problem {
  CUtensorMap a_map, b_map;  // [rows of all groups, depth], in boxes of the rows that one load takes
  Rows rows;
  std::int64_t n, depth;
  const float *a_scales, *b_scales;
  void* d;
  const void* c;     // as d; null: d itself
  const void* bias;  // [groups, n], or null
  const float *alpha, *beta;
  bool scalars_per_group;
  Format d_type;  // f32, bf16, f16; of c and bias too
  std::uint32_t* status;
};

}  // namespace assay::device::fp8_block
