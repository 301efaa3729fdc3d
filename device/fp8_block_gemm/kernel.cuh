#pragma once
// The kernel. A block stays on its multiprocessor and computes one tile of D after another; its 12 warps have four kinds of work:
//
//     warp 0       A         a block of 128 of the contraction, by TMA, kStages ahead
//     warp 3       B         the same
//     warp 2       scales    of the same block, word by word
//     warps 4-11   products  two warpgroups, 64 rows of the tile each
//
//     stage            0         1         2         3         0
//     loads        [A0 B0]   [A1 B1]   [A2 B2]   [A3 B3]   [A4 B4] waits until stage 0 is empty
//                      | full    |         |
//     warpgroup 0       [4 wgmma][sums += scales * step][4 wgmma][sums ...
//     warpgroup 1           .    [4 wgmma][sums += scales * step][4 wgmma]
//                                 | empty, as soon as both have read the stage
//
// While one warpgroup adds its step to the sums, the other one has the tensor core. A step is the chain of four products over 128
// of the contraction; it begins at 0, so that the order of all additions is that of the plan, whatever the tile, the stages,
// the cluster, the order of tiles or the number of multiprocessors.
//
// In a cluster of two, each block loads its own A and half of B, the latter for both. A stage is empty when the warpgroups of both
// blocks have read it. A tile takes whole rounds of the stages: those that its last round has too many pass with nothing in them, so
// that one parity serves all stages. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/epilogue.cuh"
#include "device/fp8_block_gemm/problem.h"
#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/scales.cuh"
#include "device/fp8_block_gemm/tiles.cuh"
#include "device/fp8_block_gemm/wgmma.cuh"

namespace assay::device::fp8_block {

template <Format kAType, Format kBType, Scaling kScalingOf, int kClusterOf>
struct Config {
  static constexpr Format kA = kAType, kB = kBType;
  static constexpr Scaling kScaling = kScalingOf;
  static constexpr int kColumns = tile_columns(kScaling), kCluster = kClusterOf, kStages = kColumns == 192 ? 4 : 5;
};

template <class C>
struct Shared {
  alignas(1024) std::uint8_t a[C::kStages][kTileRows * kBlockK];  // rows of 128 bytes, swizzled by TMA
  alignas(1024) std::uint8_t b[C::kStages][C::kColumns * kBlockK];
  BlockScales<C::kScaling> scales[C::kStages];
  alignas(16) Turned turned[4 * kWarpgroups];
  Barrier full[C::kStages], empty[C::kStages];
  Groups<C::kCluster> groups;
};

template <class C>
using WalkOf = Walk<C::kColumns, C::kCluster>;

// Stages that a tile passes through.
template <class C>
__device__ std::uint32_t stages_of(std::uint32_t blocks) {
  return (blocks + C::kStages - 1) / C::kStages * C::kStages;
}

// One thread: A, or B.
template <class C, bool kOfB>
__device__ void load(const Problem& problem, Shared<C>& shared, unsigned rank) {
  constexpr int kRows = kOfB ? C::kColumns : kTileRows, kPart = kOfB ? kRows / C::kCluster : kRows;
  const std::uint32_t part = kOfB ? rank * kPart : 0;  // the rows of B that this block loads
  const std::uint32_t blocks = blocks_of_depth(problem), stages = stages_of<C>(blocks);
  std::uint32_t parity = 1;  // nothing has filled the stages of the first round
  WalkOf<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    const std::uint32_t first = kOfB
                                    ? static_cast<std::uint32_t>(tile.group) * static_cast<std::uint32_t>(problem.n) + tile.column
                                    : shared.groups.first_row(tile.group) + tile.row;
    const auto row = static_cast<std::int32_t>(first + part);
    for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll
      for (int stage = 0; stage < C::kStages; ++stage, ++block) {
        Barrier& full = shared.full[stage];
        wait(shared.empty[stage], parity);
        if (block >= blocks) {
          arrive(full);
          continue;
        }
        arrive_and_expect(full, kRows * kBlockK);
        const auto column = static_cast<std::int32_t>(block * kBlockK);
        if constexpr (kOfB && C::kCluster > 1) {
          load_box_to((1u << C::kCluster) - 1, shared.b[stage] + part * kBlockK, &problem.b_map, column, row, full);
        } else {
          load_box(kOfB ? shared.b[stage] : shared.a[stage], kOfB ? &problem.b_map : &problem.a_map, column, row, full);
        }
      }
    }
  }
}

// One warp.
template <class C>
__device__ void copy_scales(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t blocks = blocks_of_depth(problem), stages = stages_of<C>(blocks);
  std::uint32_t parity = 1;
  WalkOf<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    const ScaleCopies<C::kScaling> copies(problem, shared.groups, tile);
    for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll 1
      for (int stage = 0; stage < C::kStages; ++stage, ++block) {
        wait(shared.empty[stage], parity);
        if (block < blocks) copies.copy(block, shared.scales[stage]);
        arrive_after_copies(shared.full[stage]);
      }
    }
  }
}

// One lane reports for its warp, at both blocks of a cluster.
template <class C>
__device__ void arrive_everywhere(Barrier& barrier) {
  const unsigned lane = threadIdx.x % 32;
  __syncwarp();
  if constexpr (C::kCluster == 1) {
    if (lane == 0) arrive(barrier);
  } else {
    if (lane < C::kCluster) arrive_at(barrier, lane);
  }
}

// The sums of a tile, in the rows of one warpgroup. `row`: this thread's first row of the tile.
template <class C>
__device__ void accumulate(Shared<C>& shared, std::uint32_t blocks, bool half_first, std::uint32_t row, std::uint32_t& parity,
                           float (&sums)[C::kColumns / 2]) {
  const std::uint32_t warpgroup = threadIdx.x / 128 - 1, q = threadIdx.x % 4;
  const std::uint32_t a_of_stage_0 = uniform(matrix_descriptor(shared_address(shared.a[0]) + warpgroup * 64 * kBlockK));
  const std::uint32_t b_of_stage_0 = uniform(matrix_descriptor(shared_address(shared.b[0])));
  float step[C::kColumns / 2];

  const auto add_block = [&](int stage) {
    wait(shared.full[stage], parity);
    hold(step);
    fence_products();
    const std::uint32_t a = a_of_stage_0 + stage * (kTileRows * kBlockK / 16);
    const std::uint32_t b = b_of_stage_0 + stage * (C::kColumns * kBlockK / 16);
#pragma unroll
    for (int k = 0; k < kBlockK / 32; ++k) multiply<C::kColumns, C::kA, C::kB>(step, a + k * kNextK32, b + k * kNextK32, k);
    commit_products();
    const BlockScales<C::kScaling>& scales = shared.scales[stage];
    const float rows[2] = {scales.rows[row], scales.rows[row + 8]};
    if constexpr (C::kScaling != Scaling::squares) {
      float2 columns[C::kColumns / 8];
#pragma unroll
      for (int i = 0; i < C::kColumns / 8; ++i) columns[i] = *reinterpret_cast<const float2*>(&scales.columns[8 * i + 2 * q]);
      wait_for_products();
      hold(step);
      arrive_everywhere<C>(shared.empty[stage]);
      promote_vectors<C::kScaling == Scaling::vectors_rows_first, C::kColumns>(sums, step, rows, columns);
    } else {
      const float squares[2] = {scales.columns[0], scales.columns[1]};
      wait_for_products();
      hold(step);
      arrive_everywhere<C>(shared.empty[stage]);
      promote_squares<C::kColumns>(sums, step, rows, squares, half_first);
    }
  };

  const std::uint32_t rest = blocks % C::kStages;
  for (std::uint32_t round = 0; round < blocks / C::kStages; ++round, parity ^= 1) {
#pragma unroll
    for (int stage = 0; stage < C::kStages; ++stage) add_block(stage);
  }
  if (rest == 0) return;
#pragma unroll
  for (int stage = 0; stage < C::kStages; ++stage) {
    if (stage < static_cast<int>(rest)) {
      add_block(stage);
    } else {
      wait(shared.full[stage], parity);
      arrive_everywhere<C>(shared.empty[stage]);
    }
  }
  parity ^= 1;
}

// The stages of a tile pass by a warpgroup that has no rows in it.
template <class C>
__device__ void pass(Shared<C>& shared, std::uint32_t stages, std::uint32_t& parity) {
  for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll 1
    for (int stage = 0; stage < C::kStages; ++stage, ++block) {
      wait(shared.full[stage], parity);
      arrive_everywhere<C>(shared.empty[stage]);
    }
  }
}

// Two warpgroups.
template <class C>
__device__ void multiply_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t warpgroup = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const std::uint32_t first = 64 * warpgroup + 16 * warp, blocks = blocks_of_depth(problem);
  std::uint32_t parity = 0;
  WalkOf<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    if (tile.row + 64 * warpgroup >= tile.m) {
      pass<C>(shared, stages_of<C>(blocks), parity);
      continue;
    }
    float sums[C::kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0;
    accumulate<C>(shared, blocks, tile.column % 128 != 0, first + lane / 4, parity, sums);
    write_rows<C::kColumns>(problem, tile, shared.groups.first_row(tile.group), first, shared.turned[4 * warpgroup + warp], sums);
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads, 1) multiply_groups(const __grid_constant__ Problem problem) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) std::uint8_t memory[];
  Shared<C>& shared = *reinterpret_cast<Shared<C>*>(memory);
  const unsigned rank = C::kCluster == 1 ? 0 : cluster_rank();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < C::kStages; ++stage) {
      init_barrier(shared.full[stage], 2 + 32);  // A, B, and each lane's copies of scales
      init_barrier(shared.empty[stage], 4 * kWarpgroups * C::kCluster);
    }
    publish_barriers();
  }
  if (!shared.groups.build(problem.rows, problem.status)) return;  // in every block; ends with a barrier
  if constexpr (C::kCluster > 1) cluster_sync();                   // the barriers of the other block are there

  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load<C, false>(problem, shared, rank);
    if (threadIdx.x / 32 == 2) copy_scales<C>(problem, shared, rank);
    if (threadIdx.x == 96) load<C, true>(problem, shared, rank);
  } else {
    take_registers<232>();
    multiply_tiles<C>(problem, shared, rank);
  }
  if constexpr (C::kCluster > 1) {
    __syncwarp();
    cluster_sync();  // no block ends while the other one writes or arrives here
  }
#endif
}

}  // namespace assay::device::fp8_block
