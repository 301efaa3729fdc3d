#pragma once
// The kernel. A block stays on its multiprocessor and computes one tile of D after another; of its 12 warps
//
//     warp 0       loads A and the scales of its rows: a block of 128 of the contraction, by the copy engine (TMA), kStages ahead;
//                  and says where each tile lies, where contractions are even
//     warp 3       loads B and the scales of its columns in the same way (loads.cuh)
//     warps 1, 2   nothing; with scales that are powers of two they write those of rows and of columns as operands (scale_products.cuh)
//     warps 4-11   multiply: two warpgroups, 64 rows of the tile each
//
// What the loop over the contraction costs, and what it avoids, stands in README.md.
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
// In a cluster of two, a stage is empty when the warpgroups of both blocks have read it. Each tile takes whole rounds of
// the stages: what its last round has too many passes empty, so that one parity serves all stages. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/aligned_copies.cuh"
#include "device/fp8_block_gemm/config.cuh"
#include "device/fp8_block_gemm/epilogue.cuh"
#include "device/fp8_block_gemm/loads.cuh"
#include "device/fp8_block_gemm/scale_products.cuh"
#include "device/fp8_block_gemm/wgmma.cuh"

namespace assay::device::fp8_block {

// Addresses in shared memory of what a thread multiplies, in stage 0.
struct Places {
  std::uint32_t a, b;                       // low words of matrix descriptors
  std::uint32_t full, empty;                // barriers
  std::uint32_t squares;                    // scales
  std::uint32_t rows, columns;              // scales of the thread's first row and of its first column
  std::uint32_t scale_rows, scale_columns;  // low words of descriptors of scales as operands

  // `row`: the thread's first row of the tile.
  template <class C>
  __device__ static Places of(Shared<C>& shared, std::uint32_t row) {
    Places places{uniform(matrix_descriptor(shared_address(shared.a[0] + row / 64 * 64 * kBlockK))),
                  uniform(matrix_descriptor(shared_address(shared.b[0]))),
                  uniform(shared_address(shared.full)),
                  uniform(shared_address(shared.empty)),
                  uniform(shared_address(&shared.squares)),
                  shared_address(&shared.scales[0].rows[row])};
    if constexpr (C::kScaling != Scaling::squares)
      places.columns = shared_address(&shared.scales[0].columns[threadIdx.x % 4 * 2]);
    if constexpr (C::kScaleProducts) {
      ScaleOperands<C>& operands = shared.scale_products.operands[0];
      places.scale_rows = uniform(scale_descriptor(shared_address(operands.rows[row / 64])));
      places.scale_columns = uniform(scale_descriptor(shared_address(operands.columns)));
    }
    return places;
  }
};

// Reports at both blocks of a cluster that the warp has read the stage.
template <class C>
__device__ void release(const Places& places, int stage) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t empty = places.empty + stage * kNextBarrier;
  __syncwarp();
  if constexpr (kArrivalsOfWarp > 1) {
    for (unsigned rank = 0; rank < C::kCluster; ++rank) arrive_at(empty, rank);
  } else if constexpr (C::kCluster == 1) {
    if (lane == 0) arrive(empty);
  } else {
    if (lane < C::kCluster) arrive_at(empty, lane);
  }
}

// The chain of products over a block of 128, which begins at 0.
template <class C, int kColumns>
__device__ void multiply_block(float (&step)[kColumns / 2], std::uint32_t a, std::uint32_t b) {
#pragma unroll
  for (int k = 0; k < kBlockK / 32; ++k) multiply<kColumns, C::kA, C::kB>(step, a + k * kNextK32, b + k * kNextK32, k);
}

// Adds a block of 128 in two halves of the columns; the tensor core makes the products of its scales too. `release` hands the stage back.
// Operands are low words of descriptors.
template <class C, class Release>
__device__ void add_with_scale_products(std::uint32_t a, std::uint32_t b, std::uint32_t scale_rows, std::uint32_t scale_columns,
                                        float (&sums)[C::kColumns / 2], Release release) {
  constexpr int kHalf = C::kColumns / 2, kOfThread = kHalf / 2;
  constexpr std::uint32_t kNextHalf = sizeof(ScaleOperands<C>::columns[0]) / 16;
  float step[kOfThread], scales[kOfThread];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    hold(step);
    hold(scales);
    fence_products();
    multiply_scales(scales, scale_rows, scale_columns + half * kNextHalf);
    multiply_block<C, kHalf>(step, a, b + half * (kHalf * kBlockK / 16));
    commit_products();
    wait_for_products();
    hold(step);
    hold(scales);
    if (half == 1) release();
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) sums[half * kOfThread + i] = __fmaf_rn(scales[i], step[i], sums[half * kOfThread + i]);
  }
}

// The sums of a tile, in the rows of one warpgroup.
template <class C>
__device__ void accumulate(const Places& places, std::uint32_t blocks, std::uint32_t& parity, float (&sums)[C::kColumns / 2]) {
  constexpr bool kSquares = C::kScaling == Scaling::squares, kRowsFirst = C::kScaling == Scaling::vectors_rows_first;
  constexpr std::uint32_t kNextScales = sizeof(BlockScales<C>);
  float step[C::kStep / 2];
  float4 squares[2];  // of a round

  const auto multiply_columns = [&](std::uint32_t a, std::uint32_t b) {
    hold(step);
    fence_products();
    multiply_block<C, C::kStep>(step, a, b);
    commit_products();
  };
  const auto add_block = [&](int stage) {
    wait(places.full + stage * kNextBarrier, parity);
    // Before the products: a wait for these between two products would let the other warpgroup's in.
    if (kSquares && stage == 0) {
      squares[0] = load_four(places.squares);
      squares[1] = load_four(places.squares + sizeof(float4));
    }
    const std::uint32_t a = places.a + stage * (kTileRows * kBlockK / 16), b = places.b + stage * (C::kColumns * kBlockK / 16);
    if constexpr (C::kScaleProducts) {
      const std::uint32_t next = stage * (sizeof(ScaleOperands<C>) / 16);
      return add_with_scale_products<C>(a, b, places.scale_rows + next, places.scale_columns + next, sums,
                                        [&] { release<C>(places, stage); });
    }
    const std::uint32_t rows_at = places.rows + stage * kNextScales;
    const float rows[2] = {load_word(rows_at), load_word(rows_at + 8 * sizeof(float))};
    if constexpr (!kSquares) {
      multiply_columns(a, b);
      VectorPromotion<kRowsFirst, C::kColumns> promote(places.columns + stage * kNextScales);
      wait_for_products();
      hold(step);
      promote(sums, step, rows);
      release<C>(places, stage);
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply_columns(a, b + half * (C::kStep * kBlockK / 16));
        const float square = part_of(squares[half], stage);
        wait_for_products();
        hold(step);
        if (half == 1) release<C>(places, stage);
        promote_square(sums + half * (C::kStep / 2), step, rows, square);
      }
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
      wait(places.full + stage * kNextBarrier, parity);
      release<C>(places, stage);
    }
  }
  parity ^= 1;
}

// The stages of a tile pass by a warpgroup that has no rows in it.
template <class C>
__device__ void pass(const Places& places, std::uint32_t stages, std::uint32_t& parity) {
  for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll 1
    for (int stage = 0; stage < C::kStages; ++stage, ++block) {
      wait(places.full + stage * kNextBarrier, parity);
      release<C>(places, stage);
    }
  }
}

template <class C>
using Sums = float[C::kColumns / 2];

// The sums of a tile. False: the warpgroup has no rows in it.
template <class C>
__device__ bool sum_tile(const Tile& tile, const Places& places, std::uint32_t warpgroup, std::uint32_t& parity, Sums<C>& sums) {
  const std::uint32_t blocks = tile.blocks();
  if (tile.row + 64 * warpgroup >= tile.m) {
    pass<C>(places, stages_of<C>(blocks), parity);
    return false;
  }
#pragma unroll
  for (float& sum : sums) sum = 0;
  if (C::kRagged || blocks != 0) {
    accumulate<C>(places, blocks, parity, sums);
  } else {
    pass<C>(places, C::kStages, parity);
  }
  return true;
}

// Two warpgroups. Even contractions: they find their tiles in shared memory, where a loading thread puts them, and have a short way from one
// to the next. Ragged ones work out where their tiles lie themselves: the other way takes registers that their loop needs.
template <class C>
__device__ void multiply_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t warpgroup = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const std::uint32_t first = 64 * warpgroup + 16 * warp;  // row of the tile that is the warp's first
  const Places places = Places::of(shared, first + lane / 4);
  const auto write = [&](const Tile& tile, const Sums<C>& sums) {
    write_tile<C::kColumns>(problem, tile, first, shared.turned[4 * warpgroup + warp], sums);
  };
  std::uint32_t parity = 0;
  if constexpr (C::kRagged) {
    Walk<C> walk(problem, shared.groups, rank);
    for (Tile tile; walk.next(tile);) {
      Sums<C> sums;
      if (!sum_tile<C>(tile, places, warpgroup, parity, sums)) continue;
      walk.again(tile);
      write(tile, sums);
    }
  } else {
    for (unsigned number = 0;; ++number) {
      wait(places.full, parity);
      const Tile& tile = shared.tiles[number % 2];
      if (tile.group == kNoGroup) return;
      Sums<C> sums;
      if (sum_tile<C>(tile, places, warpgroup, parity, sums)) write(tile, sums);
    }
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
      // The threads that load A and B; the warps that prepare scales.
      init_barrier(shared.full[stage], 2 + (C::kScaleProducts ? 2 * kArrivalsOfWarp : 0));
      if constexpr (C::kScaleProducts) init_barrier(shared.scale_products.landed[stage], 2);
      init_barrier(shared.empty[stage], 4 * kWarpgroups * C::kCluster * kArrivalsOfWarp);
    }
    publish_barriers();
  }
  if (!shared.groups.build(problem.rows, problem.status)) return;  // in every block; ends with a barrier
  if constexpr (C::kRagged) {
    if (!align_groups(problem, shared.groups)) return;
  }
  if constexpr (C::kCluster > 1) cluster_sync();  // the barriers of the other block are there

  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load_tiles<C, Side::a>(problem, shared, rank);
    if (threadIdx.x == 96) load_tiles<C, Side::b>(problem, shared, rank);
    if constexpr (C::kScaleProducts) {
      if (threadIdx.x / 32 == 1) prepare_scales<C, Side::a>(problem, shared, rank);
      if (threadIdx.x / 32 == 2) prepare_scales<C, Side::b>(problem, shared, rank);
    }
  } else {
    take_registers<232>();
    multiply_tiles<C>(problem, shared, rank);
  }
  if constexpr (C::kCluster > 1) {
    __syncwarp();
    cluster_sync();  // no block ends while the other one writes or arrives here
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
  __trap();  // built for 90 instead of 90a, which has the instructions
#endif
}

}  // namespace assay::device::fp8_block
