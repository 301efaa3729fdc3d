#pragma once
// NT with scales that are powers of two: the tensor core makes the products of a row's scale and a column's, in the registers that match
// the step's elements; otherwise each thread loads 48 scales of columns for a block of 128 and makes 96 products. The exponent of BF16 is
// that of f32, so a power of two is its upper half, and a product of depth 1 is exact (spec tensor-core-1.2 to 1.4, of
// underflow and overflow too). The smallest depth is 16: rows 1 to 7 are zeros, and rows 8 to 15 are rows 0 to 7 once more,
// so the scales of rows are halved.
//
//              row 0 .. 63 of the tile                column 0 .. 95 of the half
//   depth 0   [s/2 s/2 ...      ]                    [t t t ...      ]
//     1-7     [0                ]                    [0              ]
//     8-15    [ the same 8 rows ]                    [ the same      ]             s/2 t + s/2 t = s t
//
// Two warps that load nothing write them: one the rows' scales, one the columns'. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/config.cuh"
#include "device/fp8_block_gemm/loads.cuh"

namespace assay::device::fp8_block {

// The scales of one side as operands: pairs `lane`, `lane` + 32, ... of the tile for each lane of a warp.
template <class C, Side kSide>
struct ScalePairs {
  static constexpr bool kOfRows = kSide == Side::a;
  static constexpr int kOfLane = (kOfRows ? kTileRows : C::kColumns) / 64;
  using Bits = std::uint32_t[kOfLane][2];  // those that were seen in the scales of a lane's places

  __device__ static auto& of(ScaleOperands<C>& operands) {
    if constexpr (kOfRows)
      return operands.rows;
    else
      return operands.columns;
  }
  __device__ static std::uint32_t& word(ScaleOperands<C>& operands, unsigned pair) {
    constexpr unsigned kHalf = C::kColumns / 4;
    if constexpr (kOfRows)
      return operands.rows[pair / 32][0][pair % 32];
    else
      return operands.columns[pair / kHalf][pair % kHalf / 32][0][pair % kHalf % 32];
  }
  // The scale as it is multiplied.
  __device__ static float factor(float scale) { return kOfRows ? scale * 0.5f : scale; }

  __device__ static void clear(ScaleOperands<C>& operands, unsigned lane) {
    auto* const words = reinterpret_cast<std::uint32_t*>(&of(operands));
    constexpr unsigned kWords = sizeof of(operands) / sizeof *words;
    for (unsigned i = lane; i < kWords; i += 32) words[i] = {};
  }
  __device__ static void store(const float* scales, ScaleOperands<C>& operands, unsigned lane, Bits& seen) {
    const float2* from = reinterpret_cast<const float2*>(scales) + lane;
    float2 pairs[kOfLane];
#pragma unroll
    for (float2& pair : pairs) pair = *from, from += 32;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const std::uint32_t first = __float_as_uint(factor(pairs[i].x)), second = __float_as_uint(factor(pairs[i].y));
      word(operands, lane + 32 * i) = __byte_perm(first, second, 0x7632);  // in BF16
      seen[i][0] |= __float_as_uint(pairs[i].x) | first;
      seen[i][1] |= __float_as_uint(pairs[i].y) | second;
    }
  }
  // The bits of the scales inside the group. `left`: rows or columns from the tile's first to the group's end.
  __device__ static std::uint32_t bits(const Bits& seen, unsigned lane, std::uint32_t left) {
    std::uint32_t all = 0, at = 2 * lane;
#pragma unroll
    for (const auto& pair : seen) {
      if (at < left) all |= pair[0];
      if (at + 1 < left) all |= pair[1];
      at += 64;
    }
    return all;
  }
};

// Run by one warp, which reports at the end whether it saw a scale that BF16 cannot hold.
template <class C, Side kSide>
__device__ void prepare_scales(const Problem& problem, Shared<C>& shared, unsigned rank) {
  using Pairs = ScalePairs<C, kSide>;
  const std::uint32_t first_full = shared_address(shared.full), first_landed = shared_address(landed_scales(shared));
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t parity = 0, bits = 0;
#pragma unroll 1
  for (ScaleOperands<C>& stage : shared.scale_products.operands) Pairs::clear(stage, lane);
  __syncwarp();  // another lane stores there next
  Walk<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    typename Pairs::Bits seen = {};
    const std::uint32_t blocks = tile.blocks(), stages = stages_of<C>(blocks);
    for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll
      for (int stage = 0; stage < C::kStages; ++stage, ++block) {
        wait(first_landed + stage * kNextBarrier, parity);
        if (block < blocks) {
          Pairs::store(Part<C, kSide>::scales(shared, stage), shared.scale_products.operands[stage], lane, seen);
          order_with_products();  // the zeros too
        }
        __syncwarp();
        if (lane < kArrivalsOfWarp) arrive(first_full + stage * kNextBarrier);
      }
    }
    const std::uint32_t end = Pairs::kOfRows ? tile.m : static_cast<std::uint32_t>(problem.n);
    const std::uint32_t begin = Pairs::kOfRows ? tile.row : tile.column;
    bits |= Pairs::bits(seen, lane, max(end, begin) - begin);
  }
  if ((bits & 0xFFFF) != 0 && problem.status != nullptr) atomicOr(problem.status, kStatusOtherScales);
}

}  // namespace assay::device::fp8_block
