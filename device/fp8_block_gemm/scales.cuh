#pragma once
// The scales of a tile, and how a block of 128 of the contraction enters the sums with them (spec plans-1.2). They lie as quantize()
// writes them (spec fp8-block-2.1). Internal to this folder.
//
//   A, and B by vectors   [block of depth][row], rows padded to a multiple of 4
//   B by squares          [block of 128 columns][block of depth], blocks padded to a multiple of 4

#include <cstdint>

#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/tiles.cuh"
#include "device/layout/group_table.cuh"

namespace assay::device::fp8_block {

using By4 = RoundedUp<4>;
__device__ inline std::uint32_t blocks_of_depth(const Problem& problem) {
  return Blocks<kBlockK>::of(static_cast<std::uint32_t>(problem.depth));
}

// The scales of one block of the contraction, in shared memory: of the tile's rows; by vectors of its columns, by squares of the two
// blocks of 128 columns that it can touch.
template <Scaling kScaling>
struct BlockScales {
  alignas(16) float rows[kTileRows];
  alignas(16) float columns[kScaling == Scaling::squares ? 4 : tile_columns(kScaling)];
};

// Copies the scales of a tile, block by block, without waiting: a warp, each lane every 32nd scale. Rows and columns that the group
// does not have get the last one's scale.
template <Scaling kScaling>
class ScaleCopies {
 public:
  static constexpr bool kVectors = kScaling != Scaling::squares;
  static constexpr int kColumns = tile_columns(kScaling);

  template <int kCluster>
  __device__ ScaleCopies(const Problem& problem, const Groups<kCluster>& groups, const Tile& tile) {
    const std::uint32_t lane = threadIdx.x % 32, n = static_cast<std::uint32_t>(problem.n), blocks = blocks_of_depth(problem);
    const float* const a = problem.a_scales + std::int64_t{blocks} * groups.before(1, tile.group);
    a_pitch_ = By4::of(tile.m);
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) a_[i] = a + min(tile.row + lane + 32 * i, tile.m - 1);
    if constexpr (kVectors) {
      b_pitch_ = By4::of(n);
      const float* const b = problem.b_scales + std::int64_t{tile.group} * blocks * b_pitch_;
#pragma unroll
      for (int i = 0; i < kColumnsOfLane; ++i) b_[i] = b + min(tile.column + lane + 32 * i, n - 1);
    } else {
      b_pitch_ = 1;
      const float* const b = problem.b_scales + std::int64_t{tile.group} * Blocks<128>::of(n) * By4::of(blocks);
      const std::uint32_t column = lane == 0 ? tile.column : min(tile.column + kColumns, n) - 1;
      b_[0] = b + std::int64_t{column / 128} * By4::of(blocks);
    }
  }

  __device__ void copy(std::uint32_t block, BlockScales<kScaling>& to) const {
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) copy_word(&to.rows[lane + 32 * i], a_[i] + std::int64_t{block} * a_pitch_);
    if (!kVectors && lane >= 2) return;
#pragma unroll
    for (int i = 0; i < kColumnsOfLane; ++i) copy_word(&to.columns[lane + 32 * i], b_[i] + std::int64_t{block} * b_pitch_);
  }

 private:
  static constexpr int kRowsOfLane = kTileRows / 32, kColumnsOfLane = kVectors ? kColumns / 32 : 1;
  const float* a_[kRowsOfLane];
  const float* b_[kColumnsOfLane];
  std::uint32_t a_pitch_, b_pitch_;
};

// sums += scales * step, one scale of B for 128 columns. `half_first`: the tile begins in the middle of 128 columns.
template <int kColumns>
__device__ void promote_squares(float (&sums)[kColumns / 2], const float (&step)[kColumns / 2], const float (&rows)[2],
                                const float (&squares)[2], bool half_first) {
#pragma unroll
  for (int part = 0; part < kColumns / 64; ++part) {  // 64 columns have one scale
    const bool next = part >= 2 || (part == 1 && half_first);
    const float square = next ? squares[1] : squares[0];
    const float first = __fmul_rn(rows[0], square), second = __fmul_rn(rows[1], square);
#pragma unroll
    for (int i = 32 * part; i < 32 * (part + 1); i += 4) {
      sums[i] = __fmaf_rn(first, step[i], sums[i]);
      sums[i + 1] = __fmaf_rn(first, step[i + 1], sums[i + 1]);
      sums[i + 2] = __fmaf_rn(second, step[i + 2], sums[i + 2]);
      sums[i + 3] = __fmaf_rn(second, step[i + 3], sums[i + 3]);
    }
  }
}

template <bool kRowsFirst>
__device__ float promoted(float sum, float step, float row, float column) {
  if constexpr (kRowsFirst) return __fmaf_rn(__fmul_rn(step, row), column, sum);
  return __fmaf_rn(__fmul_rn(row, column), step, sum);
}

// sums += scales * step, a scale of B for each column: `columns` in the order of sums.
template <bool kRowsFirst, int kColumns>
__device__ void promote_vectors(float (&sums)[kColumns / 2], const float (&step)[kColumns / 2], const float (&rows)[2],
                                const float2 (&columns)[kColumns / 8]) {
#pragma unroll
  for (int i = 0; i < kColumns / 8; ++i) {
    const float2 column = columns[i];
    sums[4 * i] = promoted<kRowsFirst>(sums[4 * i], step[4 * i], rows[0], column.x);
    sums[4 * i + 1] = promoted<kRowsFirst>(sums[4 * i + 1], step[4 * i + 1], rows[0], column.y);
    sums[4 * i + 2] = promoted<kRowsFirst>(sums[4 * i + 2], step[4 * i + 2], rows[1], column.x);
    sums[4 * i + 3] = promoted<kRowsFirst>(sums[4 * i + 3], step[4 * i + 3], rows[1], column.y);
  }
}

}  // namespace assay::device::fp8_block
