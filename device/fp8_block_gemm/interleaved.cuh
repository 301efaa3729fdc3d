#pragma once
// How the copy engine loads rows of any length. It wants rows 16 bytes apart or a multiple of that; the transposed operands of wgrad have
// rows of as many bytes as the group has tokens. Every sixteenth row does begin at a multiple of 16 bytes after the first one: a matrix of
// `depth` bytes a row is, to the engine, one of 16 * depth bytes a row, and row i of the group lies in its row i / 16, from byte
// (i % 16) * depth on. A box reads 128 bytes from rows i, i + 16, i + 32, ... So a tile comes in 16 boxes, and its rows lie in
// shared memory in another order:
//
//   in memory (depth 20)                            in shared memory, a tile of 128 rows
//   |row 0        |row 1        |row 2   ...        place 0   row 0      place 8   row 1      ...   place 120   row 15
//   |row 16       |row 17       |row 18  ...              1   row 16           9   row 17               121   row 31
//   |row 32       |row 33                                 ...                 ...                        ...
//                 [box 1: column 20    ]                  7   row 112         15   row 113              127   row 127
//
// Which place of a tile has which row matters to scales and to D alone. Two things remain, and a warp of its own does them between
// the arrival of a stage and its use: it puts the scales of columns into the order of their places, and in the group's last block of
// the contraction it clears what the boxes have read of the rows that follow.
//
// Groups with a multiple of 16 rows need none of this. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/config.cuh"

namespace assay::device::fp8_block {

__device__ inline bool is_interleaved(const Tile& tile) { return tile.depth % 16 != 0; }

// The row of a tile of `kRows` rows that lies in place `place`.
template <int kRows>
__device__ std::uint32_t row_in_place(std::uint32_t place) {
  constexpr std::uint32_t kEach = kRows / kInterleave;
  return place / kEach + kInterleave * (place % kEach);
}

// One warp: bytes `first` to 127 of all rows, as the swizzle of 128 bytes has placed them.
__device__ inline void clear_ends(std::uint8_t* rows, int count, std::uint32_t first) {
  for (int row = static_cast<int>(threadIdx.x % 32); row < count; row += 32) {
    for (std::uint32_t chunk = first / 16; chunk < kBlockK / 16; ++chunk) {
      uint4& codes = *reinterpret_cast<uint4*>(rows + row * kBlockK + (chunk ^ (row % 8)) * 16);
      std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t begin = chunk * 16 + 4 * i;
        const std::uint32_t kept = first > begin ? min(first - begin, 4u) : 0;  // bytes
        words[i] = kept == 4 ? words[i] : words[i] & ((1u << 8 * kept) - 1);
      }
      codes = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

// One warp.
template <class C>
__device__ void prepare_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t first_landed = shared_address(shared.arrivals.landed), first_full = shared_address(shared.full);
  std::uint32_t parities = 0;  // a bit for each stage
  Walk<C> walk(problem, shared.groups, rank);
  for (Tile tile; walk.next(tile);) {
    if (!is_interleaved(tile)) continue;
    const std::uint32_t blocks = tile.blocks();
    for (std::uint32_t block = 0; block < blocks; ++block) {
      const std::uint32_t stage = block % C::kStages;
      wait(first_landed + stage * kNextBarrier, parities >> stage & 1);
      parities ^= 1u << stage;
      const float* const arrived = shared.arrivals.columns[stage];
#pragma unroll
      for (int i = 0; i < C::kColumns / 32; ++i)
        shared.scales[stage].columns[lane + 32 * i] = arrived[row_in_place<C::kColumns>(lane + 32 * i)];
      if (block + 1 == blocks) {
        clear_ends(shared.a[stage], kTileRows, tile.depth % kBlockK);
        clear_ends(shared.b[stage], C::kColumns, tile.depth % kBlockK);
        publish_to_engines();
      }
      __syncwarp();
      if (lane == 0) arrive(first_full + stage * kNextBarrier, 2);  // in place of the threads that load
    }
  }
}

}  // namespace assay::device::fp8_block
