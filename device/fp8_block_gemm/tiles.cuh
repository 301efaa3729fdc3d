#pragma once
// Which tile of D a block computes next. Tiles are numbered through all groups; the blocks of the grid take them in turns. In a
// cluster of two blocks a number is two tiles, one above the other, which have their part of B in common. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/problem.h"
#include "device/fp8_block_gemm/tile_order.h"
#include "device/layout/group_table.cuh"

namespace assay::device::fp8_block {

// Sums over the groups before one: tiles of rows, and rows as the scales of A count them.
template <int kCluster>
struct Groups : GroupTable<Blocks<kCluster * kTileRows>, RoundedUp<4>> {};

struct Tile {
  int group;
  std::uint32_t row, column;  // first of the tile in its group
  std::uint32_t m;            // rows of the group
};

// The tiles of one block, in order.
template <int kColumns, int kCluster>
class Walk {
 public:
  __device__ Walk(const Problem& problem, const Groups<kCluster>& groups, unsigned rank)
      : groups_(groups), all_groups_(problem.rows.groups), rank_(rank), number_(blockIdx.x / kCluster) {
    across_ = (static_cast<std::uint32_t>(problem.n) + kColumns - 1) / kColumns;
    count_ = across_ * groups.total(0, all_groups_);
  }

  __device__ bool next(Tile& tile) {
    if (number_ >= count_) return false;
    tile.group = groups_.find(0, number_ / across_, all_groups_);
    const std::uint32_t before = groups_.before(0, tile.group), down = groups_.before(0, tile.group + 1) - before;
    const TilePlace place = tile_place(number_ - before * across_, down, across_);
    tile.row = (place.row * kCluster + rank_) * kTileRows;
    tile.column = place.column * kColumns;
    tile.m = groups_.rows(tile.group);
    number_ += gridDim.x / kCluster;
    return true;
  }

 private:
  const Groups<kCluster>& groups_;
  int all_groups_;
  unsigned rank_;
  std::uint32_t number_, across_, count_;
};

}  // namespace assay::device::fp8_block
