#pragma once
// FP8 block scaling with columnwise codes of groups of any rows: columns begin at any byte, or at multiples of 16 (column_layout.h).
//
//   traffic   as in quantize_tiles.cuh
//   ceiling   of the rate of one aligned tensor, on an H100, both directions: 0.90 to 0.93 with 8 to 256 groups, 0.93 to 0.96 with 32
//             rows a group; with dbias 0.75 to 0.85. DRAM moves no more bytes than for one tensor. What is left: blocks that do
//             not end together (5 %; with stacks of equal height 9 %), the leads (1 to 2 %), and a fifth more instructions
//   layout    a block takes the tiles of a stack one below another, small ones several at a time (tile_passes.cuh); the threads of a
//             pass hold its elements as those of a tile in quantize_tiles.cuh. 3 blocks per SM: with 4 (64 registers) the loads of a
//             thread are not all in flight at once
//   loads     of the next pass are issued before the codes of a pass are stored; those of gate and up, which take more registers, are not
//   columns   ring_stores.cuh
//   order     as in quantize_tiles.cuh
//   matches   reference/recipes/fp8_block.h

#include <algorithm>

#include "device/layout/tile_passes.cuh"
#include "device/quantize/fp8_block/quantize_tiles.cuh"
#include "device/quantize/fp8_block/ring_stores.cuh"
#include "device/support/launch.cuh"
#include "device/support/multiprocessors.h"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

constexpr int kStacksPerSm = 3;

// In shared memory, one per block.
template <bool kSquare, unsigned kParts>
struct StackShared {
  // Scales that are kept by tiles of rows need no other sum than the tile's number.
  static constexpr Recipe kRecipe = kSquare ? Recipe::block_128x128 : Recipe::block_1x128;
  using Measure = typename ScaleLayoutOf<kRecipe, kSquare ? Direction::columnwise : Direction::rowwise>::Measure;
  static constexpr bool kSums = kParts & kDbiasPart;
  static constexpr int kTiles = kSums ? 1 : kPassUnits;  // of a pass: sums take the memory of others
  using Passes = TilePasses<Measure, kTiles>;

  alignas(16) unsigned char codes[CodeRing::kBytes];
  alignas(16) unsigned char heads[CodeRing::kHeadBytes];
  alignas(16) unsigned char raw[kSums ? kBlock * kBlock * 2 : 16];
  alignas(16) std::uint16_t maxima[kSquare ? 8 : kPassUnits * kBlock];  // of columns, by units
  alignas(16) float column_scale[kSquare ? 4 : kTiles * kBlock];
  alignas(16) std::uint32_t unit_amax[kPassUnits];
  Passes passes;
};

// Columnwise scales of 1x128 of each tile of a pass, from `maxima`, to `scales` [tiles][128].
template <Format X, class Pass>
__device__ __forceinline__ void find_column_scales(const Fp8BlockTiles& a, const Pass& pass, std::uint32_t column_tile,
                                                   int columns, const std::uint16_t* maxima, float* scales) {
  using Layout = ScaleLayoutOf<Recipe::block_1x128, Direction::columnwise>;
  const unsigned tiles = __popc(pass.starts);
  // The upper half of the threads first: the other sums columns meanwhile.
  for (unsigned i = threadIdx.x ^ kThreads / 2; i < tiles * kBlock; i += kThreads) {
    const unsigned t = i / kBlock, column = i % kBlock, end = t + 1 < tiles ? pass.unit[t + 1] : kPassUnits;
    std::uint32_t amax = 0;
#pragma unroll 4
    for (unsigned unit = pass.unit[t]; unit < end; ++unit) amax = max(amax, std::uint32_t{maxima[unit * kBlock + column]});
    const float scale = scale_from_amax(Element<X>::amax_bits(amax), a.max, a.pow2, a.epsilon, Element<X>::kMaxBits);
    scales[i] = scale;
    if (a.column_scale != nullptr && column < static_cast<unsigned>(columns)) {
      const WindowTile& tile = pass.tile[t];
      a.column_scale[Layout::pitch(tile.rows, a.columns) * tile.number + std::int64_t{column_tile} * kBlock + column] =
          reciprocal(scale);
    }
  }
}

// The largest magnitude of a thread's tile, in units `first` to `end` - 1; has a barrier.
template <Format X>
__device__ __forceinline__ std::uint32_t pass_amax_bits(const Patch<X>& patch, int thread, unsigned first, unsigned end,
                                                        std::uint32_t* unit_amax) {
  std::uint32_t amax = patch_amax_bits(patch);
#pragma unroll
  for (int step = 8; step != 0; step /= 2) amax = max(amax, __shfl_xor_sync(kAllLanes, amax, step));
  if (thread % 16 == 0) unit_amax[thread / 16] = amax;
  __syncthreads();
  amax = 0;
#pragma unroll
  for (unsigned unit = 0; unit < kPassUnits; ++unit) {
    const std::uint32_t of_unit = unit_amax[unit];
    amax = max(amax, unit >= first && unit < end ? of_unit : 0u);
  }
  return amax;
}

// The scale of 128x128 of a thread's tile.
template <Format X, unsigned kParts, class Pass>
__device__ __forceinline__ float find_pass_scale(const Fp8BlockTiles& a, const Pass& pass, unsigned index,
                                                 std::uint32_t column_tile, const Place& place,
                                                 const Requested<kParts>& requested, const Patch<X>& patch,
                                                 std::uint32_t* unit_amax) {
  const unsigned end = pass.starts >> pass.unit[index] >> 1 ? pass.unit[index + 1] : kPassUnits;
  const float scale = scale_from_amax(pass_amax_bits(patch, place.thread, pass.unit[index], end, unit_amax), a.max, a.pow2,
                                      a.epsilon, Element<X>::kMaxBits);
  if (place.row_group == 0 && place.column_group == 0) {
    store_tile_scale(a, pass.tile[index], column_tile, requested, scale);
  }
  return scale;
}

// Columns of codes of a pass to global memory.
template <class Memory>
__device__ __forceinline__ void store_pass(const Fp8BlockTiles& a, const Memory& memory, unsigned char* heads,
                                           const typename Memory::Passes::Pass& pass, std::uint32_t column_tile, int half) {
  const int thread = static_cast<int>(threadIdx.x);
  RingStores stores;
  stores.codes = memory.codes;
  stores.heads = heads;
  stores.columns = static_cast<int>(min(a.columns - std::int64_t{column_tile} * kBlock, std::int64_t{kBlock}));
  const auto take = [&](unsigned t) {
    const WindowTile& tile = pass.tile[t];
    stores.ring_row = half * kBlock + static_cast<int>(pass.unit[t]) * kUnitRows;
    const GroupColumns group = columns_of(a, tile);
    stores.to = column_codes_of(a, tile, column_tile, group);
    stores.pitch = group.pitch;
    // Of aligned columns whole runs of 16 bytes are stored: what lies between columns is undefined.
    stores.rows = static_cast<int>(min(group.pitch - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
  };
  const WindowTile& tile = pass.tile[0];
  if (tile.rows <= kBlock) {
    const unsigned tiles = __popc(pass.starts);
    for (unsigned t = 0; t < tiles; ++t) {
      take(t);
      stores.store_group(thread);
    }
  } else {
    take(0);
    stores.store_tile(thread, tile.tile == 0, tile.rows <= (tile.tile + 1) * kBlock, memory.passes.has_group_of(tile));
  }
}

// Stacks of one column of tiles have numbers column_tiles apart, so that blocks beside one another have tiles beside one another.
template <Format X, Format F, bool kSquare, unsigned kParts>
__global__ void __launch_bounds__(kThreads, kStacksPerSm)
    quantize_stacks(const __grid_constant__ Fp8BlockTiles a, const __grid_constant__ Stacks stacks) {
  using Memory = StackShared<kSquare, kParts>;
  using Pass = typename Memory::Passes::Pass;
  constexpr bool kLoadsAhead = !(kParts & kGatedPart);
  extern __shared__ __align__(16) unsigned char shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);

  if (is_skipped(a.noop)) return;  // all threads of a block return together
  const std::uint32_t stack = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - stack * a.column_tiles;
  if (!memory.passes.begin(a.rows, stack, stacks, a.status) || a.columns == 0) return;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, slot = thread / 16;

  Pass* pass = memory.passes.slot;
  if (warp == 0) memory.passes.plan(a.rows, *pass);
  __syncthreads();
  if (pass->starts == 0) return;
  Patch<X> patch;
  const auto load = [&](const Pass& from) {
    const unsigned index = from.index_of(slot);
    const Place place(a, from.tile[index], column_tile, static_cast<int>(from.unit[index]));
    load_tile<X, kParts, true>(a, place, patch);
  };
  if (kLoadsAhead) load(*pass);

#pragma unroll 1
  for (unsigned k = 0;; ++k) {
    Pass* const next = pass == memory.passes.slot + Memory::Passes::kSlots - 1 ? memory.passes.slot : pass + 1;
    if (warp == 0) memory.passes.plan(a.rows, *next);
    if (!kLoadsAhead) load(*pass);
    const int half = static_cast<int>(k % 2);
    const bool lead = memory.passes.is_lead(pass->tile[0]);
    Requested<kParts> requested(a);
    if (lead) requested.rows = requested.columns = requested.sums = false;
    {
      const unsigned index = pass->index_of(slot);
      const WindowTile& tile = pass->tile[index];
      const Place place(a, tile, column_tile, static_cast<int>(pass->unit[index]));
      if constexpr (Memory::kSums) {
        if (requested.sums) store_raw(patch, place.row_group * 8, place.column_group, reinterpret_cast<uint4*>(memory.raw));
      }

      float scale;
      if constexpr (kSquare) {
        scale = find_pass_scale<X>(a, *pass, index, column_tile, place, requested, patch, memory.unit_amax);
      } else {
        scale = find_row_scale<X>(a, tile, column_tile, place, requested, patch);
        store_unit_maxima(patch, thread, memory.maxima);
        __syncthreads();
        find_column_scales<X>(a, *pass, column_tile, lead ? 0 : place.columns, memory.maxima, memory.column_scale);
      }
      if constexpr (Memory::kSums) {
        if (requested.sums && warp < kWarps / 2) store_sums<X, true>(a, tile, place, memory.raw);
      }

      const bool any_rows = __any_sync(kAllLanes, place.row_group * 8 < place.rows);
      if (requested.rows && a.row_data != nullptr && any_rows) store_row_codes<X, F, kSquare, true>(a, place, patch, scale);

      if constexpr (!kSquare) __syncthreads();  // column scales are complete
      const RingCodes codes{reinterpret_cast<uint2*>(memory.codes), half * kPassUnits + slot};
      put_column_codes<X, F, kSquare>(a, place, patch, scale, memory.column_scale + (kSquare ? 0 : index * kBlock), any_rows,
                                      codes);
    }
    const bool last = next->starts == 0;
    if (kLoadsAhead && !last) load(*next);
    __syncthreads();  // codes are complete
    if (!lead) store_pass(a, memory, memory.heads, *pass, column_tile, half);
    if (last) return;
    pass = next;
  }
}

// Stacks of a launch: tall ones as many as the multiprocessors hold at once.
inline Stacks stacks_of(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  const std::uint32_t windows = tiles.blocks / tiles.column_tiles;
  const std::uint32_t held = static_cast<std::uint32_t>(multiprocessors_of(stream) * kStacksPerSm) / tiles.column_tiles;
  const std::uint32_t tall = std::max(1u, std::min(held, windows));
  return {tall, windows < 8 * tall ? tall : 4 * tall};
}

// For aligned 16-bit x.
template <Format X, Format F, bool kSquare, unsigned kParts>
void launch_stacks(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  const Stacks stacks = stacks_of(tiles, stream);
  constexpr int kBytes = sizeof(StackShared<kSquare, kParts>);
  const auto kernel = quantize_stacks<X, F, kSquare, kParts>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  launch_kernel("quantize_stacks", kernel, stacks.count * tiles.column_tiles, kThreads, kBytes, stream, tiles, stacks);
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
