#pragma once
// Which tile of D a block computes next. Tiles are numbered through all groups; the blocks of the grid take them in turns. In a
// cluster of two blocks a number is two tiles, one above the other, which have their part of B in common. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/problem.h"
#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/tile_order.h"
#include "device/layout/group_table.cuh"

namespace assay::device::fp8_block {

// Sums over the groups before one. Even contractions: tiles of rows, and rows as the scales of A count them. Ragged ones: blocks of the
// contraction, which both scales count, and runs of 16 bytes, which copies have.
template <Contraction kContraction, int kCluster>
struct Groups : GroupTable<Blocks<kCluster * kTileRows>, RoundedUp<4>> {};
template <int kCluster>
struct Groups<Contraction::ragged, kCluster> : GroupTable<Blocks<kBlockK>, Blocks<16>> {};

inline constexpr int kNoGroup = -1;

struct alignas(16) Tile {
  int group;                  // kNoGroup: there is no tile
  std::uint32_t row, column;  // first of the tile in its group
  std::uint32_t m;            // rows of D in the group
  std::uint32_t first_row;    // of the group in D
  std::uint32_t depth;        // the group's contraction
  __device__ std::uint32_t blocks() const { return Blocks<kBlockK>::of(depth); }
};

// Even contractions: two tiles, used in turns. The thread that loads A waits until stage 0 is empty, writes a tile, and arrives at
// stage 0: a tile is overwritten when every warp has read stage 0 of the one after it.
using Tiles = Tile[2];

// The tiles of one block, in order.
template <class C>
class Walk {
 public:
  __device__ Walk(const Problem& problem, const typename C::GroupsOf& groups, unsigned rank)
      : groups_(groups), problem_(problem), rank_(rank), number_(blockIdx.x / C::kCluster) {}

  __device__ bool next(Tile& tile) {
    if (number_ >= across() * tiles_down()) return false;
    place(tile);
    number_ += gridDim.x / C::kCluster;
    return true;
  }

  // Cycles to wait before the first next(), not after it (tile_order.h). A block of 128 of the contraction takes 1152 or more; 1000 are
  // counted, so that a cluster that waits does not end after the others.
  __device__ std::uint32_t delay() const {
    const std::uint32_t tile_cycles = 1000 * Blocks<kBlockK>::of(static_cast<std::uint32_t>(problem_.depth));
    return delay_of_first_tile(number_, gridDim.x / C::kCluster, across() * tiles_down(), tile_cycles);
  }

  // The tile of the last next(), computed anew: what is kept of it in registers while it is multiplied is its number.
  __device__ void again(Tile& tile) {
    number_ = hidden(number_) - gridDim.x / C::kCluster;
    place(tile);
    number_ += gridDim.x / C::kCluster;
  }

 private:
  __device__ std::uint32_t across() const { return (static_cast<std::uint32_t>(problem_.n) + C::kColumns - 1) / C::kColumns; }
  // Of one group of a ragged contraction: all groups have the same.
  __device__ std::uint32_t group_down() const {
    return Blocks<C::kCluster * kTileRows>::of(static_cast<std::uint32_t>(problem_.m));
  }
  __device__ std::uint32_t tiles_down() const {
    const int groups = problem_.rows.groups;
    if constexpr (C::kRagged) return group_down() * static_cast<std::uint32_t>(groups);
    return groups_.total(0, groups);
  }

  __device__ void place(Tile& tile) const {
    TilePlace at;
    if constexpr (C::kRagged) {
      const std::uint32_t of_group = across() * group_down(), group = number_ / of_group;
      tile.group = static_cast<int>(group);
      at = tile_place(number_ - group * of_group, group_down(), across());
      tile.m = static_cast<std::uint32_t>(problem_.m);
      tile.first_row = group * tile.m;
      tile.depth = groups_.rows(tile.group);
    } else {
      tile.group = groups_.find(0, number_ / across(), problem_.rows.groups);
      const std::uint32_t before = groups_.before(0, tile.group), down = groups_.before(0, tile.group + 1) - before;
      at = tile_place(number_ - before * across(), down, across());
      tile.m = groups_.rows(tile.group);
      tile.first_row = groups_.first_row(tile.group);
      tile.depth = static_cast<std::uint32_t>(problem_.depth);
    }
    tile.row = (at.row * C::kCluster + rank_) * kTileRows;
    tile.column = at.column * C::kColumns;
  }

  const typename C::GroupsOf& groups_;
  const Problem& problem_;
  unsigned rank_;
  std::uint32_t number_;
};

}  // namespace assay::device::fp8_block
