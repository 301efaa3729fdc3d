#pragma once
// The scales of a tile, and how a block of 128 of the contraction enters the sums with them (spec plans-1.2). They lie as quantize()
// writes them (spec fp8-block-2.1). Internal to this folder.
//
//   A, and B by vectors   [block of depth][row], rows padded to a multiple of 4; groups follow one another
//   B by squares          [block of 128 columns][block of depth], blocks padded to a multiple of 4

#include <cstdint>

#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/tiles.cuh"
#include "device/layout/group_table.cuh"

namespace assay::device::fp8_block {

using By4 = RoundedUp<4>;

// The scales of one block of the contraction, in shared memory: of the tile's rows, and by vectors of its columns. What the group does
// not have keeps what lay there before.
template <class C, bool kSquares = C::kScaling == Scaling::squares>
struct BlockScales {
  alignas(16) float rows[kTileRows];
  alignas(16) float columns[C::kColumns];
};
template <class C>
struct BlockScales<C, true> {
  alignas(16) float rows[kTileRows];
};

// The same in BF16 as operands of a product (scale_products.cuh): rows of 64 scales, and seven rows of zeros below each. Columns are
// multiplied in halves of 96: 64 scales in the first row, 32 in the second.
template <class C>
struct ScaleOperands {
  using Rows = std::uint32_t[8][32];  // of pairs
  alignas(1024) Rows rows[kTileRows / 64];
  alignas(1024) Rows columns[2][(C::kColumns / 2 + 63) / 64];
};

// By squares: of the two blocks of 128 columns of a tile, and of the four blocks of the contraction that are a round of
// the stages. They come with the first stage of a round.
struct SquareScales {
  alignas(16) float of[2][4];
};

// A run of scales for each block of the contraction. Runs begin at multiples of 16 bytes and have multiples of 16 bytes, as the copy
// engine wants them: rows of scales are padded to four.
struct ScaleRuns {
  const float* first = nullptr;
  std::uint32_t pitch = 0, count = 0;  // floats
  __device__ std::uint32_t bytes() const { return count * static_cast<std::uint32_t>(sizeof(float)); }
  __device__ void load(std::uint32_t block, float* to, std::uint32_t barrier) const {
    load_run(to, first + std::int64_t{block} * pitch, bytes(), barrier);
  }
};

// Blocks of the contraction in the groups before one.
template <class C>
__device__ std::int64_t blocks_before(const typename C::GroupsOf& groups, const Tile& tile) {
  if constexpr (C::kContraction == Contraction::ragged) return groups.before(0, tile.group);
  return std::int64_t{tile.group} * tile.blocks();
}

template <class C>
__device__ ScaleRuns scales_of_rows(const Problem& problem, const typename C::GroupsOf& groups, const Tile& tile) {
  const std::uint32_t pitch = By4::of(tile.m);
  std::int64_t group = 0;  // floats before it
  if constexpr (C::kContraction == Contraction::ragged) {
    group = blocks_before<C>(groups, tile) * pitch;
  } else {
    group = std::int64_t{tile.blocks()} * groups.before(1, tile.group);
  }
  // In a cluster, the tile can lie below the rows of the group: it has no scales then.
  const std::uint32_t count = pitch > tile.row ? min(pitch - tile.row, std::uint32_t{kTileRows}) : 0;
  return {problem.a_scales + group + tile.row, pitch, count};
}

template <class C>
__device__ ScaleRuns scales_of_columns(const Problem& problem, const typename C::GroupsOf& groups, const Tile& tile) {
  const std::uint32_t pitch = By4::of(static_cast<std::uint32_t>(problem.n));
  const float* group = problem.b_scales + blocks_before<C>(groups, tile) * pitch;
  if constexpr (C::kContraction == Contraction::even) {
    if (problem.b_scale_list != nullptr) group = problem.b_scale_list[tile.group];
  }
  return {group + tile.column, pitch, min(pitch - tile.column, std::uint32_t{C::kColumns})};
}

class SquareRuns {
 public:
  static constexpr std::uint32_t kBytes = sizeof(SquareScales);
  SquareRuns() = default;
  __device__ SquareRuns(const Problem& problem, const Tile& tile, std::uint32_t columns) {
    const std::uint32_t n = static_cast<std::uint32_t>(problem.n), pitch = By4::of(tile.blocks());
    const float* const group = problem.b_scale_list != nullptr
                                   ? problem.b_scale_list[tile.group]
                                   : problem.b_scales + std::int64_t{tile.group} * Blocks<128>::of(n) * pitch;
    const std::uint32_t last = min(tile.column + columns, n) - 1;
    first_ = group + std::int64_t{tile.column / 128} * pitch;
    second_ = group + std::int64_t{last / 128} * pitch;
  }
  // Of block `block`, a multiple of four, and the three after it.
  __device__ void load(std::uint32_t block, SquareScales& to, std::uint32_t barrier) const {
    load_run(to.of[0], first_ + block, sizeof to.of[0], barrier);
    load_run(to.of[1], second_ + block, sizeof to.of[1], barrier);
  }

 private:
  const float *first_ = nullptr, *second_ = nullptr;
};

__device__ inline float part_of(const float4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// sums += scales * step in 128 columns, which have one scale of B.
__device__ inline void promote_square(float* sums, const float (&step)[64], const float (&rows)[2], float square) {
  const float first = __fmul_rn(rows[0], square), second = __fmul_rn(rows[1], square);
#pragma unroll
  for (int i = 0; i < 64; i += 4) {
    sums[i] = __fmaf_rn(first, step[i], sums[i]);
    sums[i + 1] = __fmaf_rn(first, step[i + 1], sums[i + 1]);
    sums[i + 2] = __fmaf_rn(second, step[i + 2], sums[i + 2]);
    sums[i + 3] = __fmaf_rn(second, step[i + 3], sums[i + 3]);
  }
}

template <bool kRowsFirst>
__device__ float promoted(float sum, float step, float row, float column) {
  if constexpr (kRowsFirst) return __fmaf_rn(__fmul_rn(step, row), column, sum);
  return __fmaf_rn(__fmul_rn(row, column), step, sum);
}

// The same with a scale of B for each column: pairs of them, in the order of sums, 32 bytes apart in shared memory from `at` on. The
// first kAhead are loaded beside the products, each of the others kAhead before its use: a thread has no registers for all.
template <bool kRowsFirst, int kColumns>
class VectorPromotion {
 public:
  static constexpr int kPairs = kColumns / 8, kAhead = kColumns == 192 ? 4 : kPairs;
  __device__ explicit VectorPromotion(std::uint32_t at) : at_(at) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead_[i] = load_two(at_ + 32 * i);
  }
  __device__ void operator()(float (&sums)[kColumns / 2], const float (&step)[kColumns / 2], const float (&rows)[2]) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float2 column = ahead_[i % kAhead];
      if (i + kAhead < kPairs) ahead_[i % kAhead] = load_two(at_ + 32 * (i + kAhead));
      sums[4 * i] = promoted<kRowsFirst>(sums[4 * i], step[4 * i], rows[0], column.x);
      sums[4 * i + 1] = promoted<kRowsFirst>(sums[4 * i + 1], step[4 * i + 1], rows[0], column.y);
      sums[4 * i + 2] = promoted<kRowsFirst>(sums[4 * i + 2], step[4 * i + 2], rows[1], column.x);
      sums[4 * i + 3] = promoted<kRowsFirst>(sums[4 * i + 3], step[4 * i + 3], rows[1], column.y);
    }
  }

 private:
  std::uint32_t at_;
  float2 ahead_[kAhead];
};

}  // namespace assay::device::fp8_block
