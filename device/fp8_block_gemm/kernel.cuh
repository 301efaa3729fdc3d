#pragma once
// The kernel. A block stays on its multiprocessor and computes one tile of D after another; of its 12 warps
//
//     warp 0       loads A and the scales of its rows: a block of 128 of the contraction, by the copy engine (TMA), kStages ahead
//     warp 3       loads B and the scales of its columns in the same way
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
// In a cluster of two, each block loads its own A and half of B, the latter for both. A stage is empty when the warpgroups of both
// blocks have read it. A tile takes whole rounds of the stages: those that its last round has too many pass with nothing in them, so
// that one parity serves all stages. Internal to this folder.

#include <cstdint>
#include <type_traits>

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
  static_assert(kScaling != Scaling::squares || kStages == 4, "a round of the stages is the run of SquareScales");
};

template <class C>
struct Shared {
  alignas(1024) std::uint8_t a[C::kStages][kTileRows * kBlockK];  // rows of 128 bytes, swizzled by TMA
  alignas(1024) std::uint8_t b[C::kStages][C::kColumns * kBlockK];
  BlockScales<C::kScaling> scales[C::kStages];
  SquareScales squares;
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

// One thread: A and the scales of its rows.
template <class C>
class LoadsOfA {
 public:
  __device__ LoadsOfA(const Problem& problem, Shared<C>& shared, const Tile& tile, unsigned)
      : problem_(problem), shared_(shared), scales_(scales_of_rows(problem, shared.groups, tile)) {
    row_ = static_cast<std::int32_t>(shared.groups.first_row(tile.group) + tile.row);
  }
  __device__ std::uint32_t bytes(int) const { return sizeof shared_.a[0] + scales_.bytes(); }
  __device__ void load(std::uint32_t block, int stage, std::uint32_t full) const {
    load_box(shared_.a[stage], &problem_.a_map, static_cast<std::int32_t>(block * kBlockK), row_, full);
    if (scales_.count != 0) scales_.load(block, shared_.scales[stage].rows, full);
  }

 private:
  const Problem& problem_;
  Shared<C>& shared_;
  ScaleRuns scales_;
  std::int32_t row_;
};

// Another thread: B and the scales of its columns. In a cluster each block loads its part of B, for both.
template <class C>
class LoadsOfB {
 public:
  static constexpr bool kSquares = C::kScaling == Scaling::squares;
  static constexpr int kRows = C::kColumns / C::kCluster;

  __device__ LoadsOfB(const Problem& problem, Shared<C>& shared, const Tile& tile, unsigned rank)
      : problem_(problem), shared_(shared), scales_(scales_of(problem, tile)), first_(rank * kRows) {
    row_ = static_cast<std::int32_t>(static_cast<std::uint32_t>(tile.group) * static_cast<std::uint32_t>(problem.n) +
                                     tile.column + first_);
  }
  __device__ std::uint32_t bytes(int stage) const {
    if constexpr (kSquares)
      return sizeof shared_.b[0] + (stage == 0 ? SquareRuns::kBytes : 0);
    else
      return sizeof shared_.b[0] + scales_.bytes();
  }
  __device__ void load(std::uint32_t block, int stage, std::uint32_t full) const {
    const auto column = static_cast<std::int32_t>(block * kBlockK);
    if constexpr (C::kCluster > 1) {
      load_box_to((1u << C::kCluster) - 1, shared_.b[stage] + first_ * kBlockK, &problem_.b_map, column, row_, full);
    } else {
      load_box(shared_.b[stage], &problem_.b_map, column, row_, full);
    }
    if constexpr (!kSquares)
      scales_.load(block, shared_.scales[stage].columns, full);
    else if (stage == 0)
      scales_.load(block, shared_.squares, full);
  }

 private:
  static __device__ auto scales_of(const Problem& problem, const Tile& tile) {
    if constexpr (kSquares)
      return SquareRuns(problem, tile, C::kColumns);
    else
      return scales_of_columns(problem, tile, C::kColumns);
  }

  const Problem& problem_;
  Shared<C>& shared_;
  std::conditional_t<kSquares, SquareRuns, ScaleRuns> scales_;
  std::uint32_t first_;  // row of the tile's part of B that is loaded here
  std::int32_t row_;
};

template <class C, template <class> class Loads>
__device__ void load_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t blocks = blocks_of_depth(problem), stages = stages_of<C>(blocks);
  const std::uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  std::uint32_t parity = 1;  // nothing has filled the stages of the first round
  WalkOf<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    const Loads<C> loads(problem, shared, tile, rank);
    for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll
      for (int stage = 0; stage < C::kStages; ++stage, ++block) {
        const std::uint32_t full = first_full + stage * kNextBarrier;
        wait(first_empty + stage * kNextBarrier, parity);
        if (block >= blocks) {
          arrive(full);
          continue;
        }
        arrive_and_expect(full, loads.bytes(stage));
        loads.load(block, stage, full);
      }
    }
  }
}

// Addresses in shared memory of what a thread multiplies, which are the same for all tiles.
struct Places {
  std::uint32_t a, b;           // of stage 0, low words of matrix descriptors
  std::uint32_t full, empty;    // barriers of stage 0
  std::uint32_t squares, rows;  // scales; of the thread's first row, in stage 0

  // `row`: the thread's first row of the tile.
  template <class C>
  __device__ static Places of(Shared<C>& shared, std::uint32_t row) {
    return {uniform(matrix_descriptor(shared_address(shared.a[0] + row / 64 * 64 * kBlockK))),
            uniform(matrix_descriptor(shared_address(shared.b[0]))),
            uniform(shared_address(shared.full)),
            uniform(shared_address(shared.empty)),
            uniform(shared_address(&shared.squares)),
            shared_address(&shared.scales[0].rows[row])};
  }
};

// One lane reports for its warp, at both blocks of a cluster, that the stage has been read.
template <class C>
__device__ void release(const Places& places, int stage) {
  const unsigned lane = threadIdx.x % 32;
  __syncwarp();
  if constexpr (C::kCluster == 1) {
    if (lane == 0) arrive(places.empty + stage * kNextBarrier);
  } else {
    if (lane < C::kCluster) arrive_at(places.empty + stage * kNextBarrier, lane);
  }
}

// The sums of a tile, in the rows of one warpgroup.
template <class C>
__device__ void accumulate(const Shared<C>& shared, const Places& places, std::uint32_t blocks, bool half_first,
                           std::uint32_t& parity, float (&sums)[C::kColumns / 2]) {
  constexpr bool kSquares = C::kScaling == Scaling::squares;
  constexpr std::uint32_t kNextScales = sizeof(BlockScales<C::kScaling>);
  float step[C::kColumns / 2];
  float4 squares[2];  // of a round

  const auto add_block = [&](int stage) {
    wait(places.full + stage * kNextBarrier, parity);
    // Before the products: a wait for these between two products would let the other warpgroup's in.
    if (kSquares && stage == 0) {
      squares[0] = load_four(places.squares);
      squares[1] = load_four(places.squares + sizeof(float4));
    }
    const std::uint32_t rows_at = places.rows + stage * kNextScales;
    const float rows[2] = {load_word(rows_at), load_word(rows_at + 8 * sizeof(float))};
    hold(step);
    fence_products();
    const std::uint32_t a = places.a + stage * (kTileRows * kBlockK / 16), b = places.b + stage * (C::kColumns * kBlockK / 16);
#pragma unroll
    for (int k = 0; k < kBlockK / 32; ++k) multiply<C::kColumns, C::kA, C::kB>(step, a + k * kNextK32, b + k * kNextK32, k);
    commit_products();
    if constexpr (!kSquares) {
      const float* const of_columns = shared.scales[stage].columns + threadIdx.x % 4 * 2;
      float2 columns[C::kColumns / 8];
#pragma unroll
      for (int i = 0; i < C::kColumns / 8; ++i) columns[i] = *reinterpret_cast<const float2*>(of_columns + 8 * i);
      wait_for_products();
      hold(step);
      release<C>(places, stage);
      promote_vectors<C::kScaling == Scaling::vectors_rows_first, C::kColumns>(sums, step, rows, columns);
    } else {
      const float of_columns[2] = {part_of(squares[0], stage), part_of(squares[1], stage)};
      wait_for_products();
      hold(step);
      release<C>(places, stage);
      promote_squares<C::kColumns>(sums, step, rows, of_columns, half_first);
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

// Two warpgroups.
template <class C>
__device__ void multiply_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t warpgroup = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const std::uint32_t first = 64 * warpgroup + 16 * warp, blocks = blocks_of_depth(problem);
  const Places places = Places::of(shared, first + lane / 4);
  std::uint32_t parity = 0;
  WalkOf<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    if (tile.row + 64 * warpgroup >= tile.m) {
      pass<C>(places, stages_of<C>(blocks), parity);
      continue;
    }
    float sums[C::kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 0;
    accumulate<C>(shared, places, blocks, tile.column % 128 != 0, parity, sums);
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
      init_barrier(shared.full[stage], 2);  // the threads that load A and B
      init_barrier(shared.empty[stage], 4 * kWarpgroups * C::kCluster);
    }
    publish_barriers();
  }
  if (!shared.groups.build(problem.rows, problem.status)) return;  // in every block; ends with a barrier
  if constexpr (C::kCluster > 1) cluster_sync();                   // the barriers of the other block are there

  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load_tiles<C, LoadsOfA>(problem, shared, rank);
    if (threadIdx.x == 96) load_tiles<C, LoadsOfB>(problem, shared, rank);
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
