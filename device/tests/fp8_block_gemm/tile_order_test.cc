// Every tile of a group has one number, and the order is that of the drawing.

#include "device/fp8_block_gemm/tile_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace assay::device::fp8_block {
namespace {

TEST(TileOrder, NumbersEveryTileOnce) {
  for (std::uint32_t down = 1; down <= 26; ++down) {
    for (std::uint32_t across = 1; across <= 11; ++across) {
      std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
      for (std::uint32_t number = 0; number < down * across; ++number) {
        const TilePlace place = tile_place(number, down, across);
        EXPECT_LT(place.row, down);
        EXPECT_LT(place.column, across);
        seen.insert({place.row, place.column});
      }
      EXPECT_EQ(seen.size(), std::size_t{down} * across) << down << " by " << across;
    }
  }
}

TEST(TileOrder, IsThatOfTheDrawing) {
  const auto is_at = [](std::uint32_t number, std::uint32_t row, std::uint32_t column) {
    const TilePlace place = tile_place(number, 11, 4);
    EXPECT_EQ(place.row, row) << number;
    EXPECT_EQ(place.column, column) << number;
  };
  is_at(0, 0, 0), is_at(7, 7, 0), is_at(8, 0, 1), is_at(31, 7, 3);
  is_at(32, 8, 0), is_at(34, 10, 0), is_at(35, 8, 1), is_at(43, 10, 3);  // the last band has 3 rows
}

// What the blocks of a wave read: tiles of a band that follow one another are in one column or in the next.
TEST(TileOrder, NeighboursShareAColumn) {
  for (std::uint32_t number = 1; number < 40 * 22; ++number) {
    const TilePlace before = tile_place(number - 1, 40, 22), place = tile_place(number, 40, 22);
    if (place.row / kBand == before.row / kBand) EXPECT_LE(place.column - before.column, 1u) << number;
  }
}

// The drawing: of 4 clusters the first has a tile more than the others.
TEST(TileOrder, ClustersWithATileLessBeginInTheTimeOfOne) {
  for (std::uint32_t cluster = 0; cluster < 4; ++cluster)
    EXPECT_EQ(delay_of_first_tile(cluster, 4, 4 * 20 + 1, 300), cluster == 0 ? 0u : 100 * (cluster - 1)) << cluster;
}

// No cluster ends after the one that has most to do where tiles take equal time, and none waits where all have as many tiles or few.
TEST(TileOrder, ADelayMakesNoClusterTheLastOne) {
  constexpr std::uint32_t kTileCycles = 56000;
  bool any = false;
  for (std::uint32_t clusters : {1u, 2u, 66u}) {
    for (std::uint32_t tiles = 0; tiles <= 20 * clusters; ++tiles) {
      const std::uint32_t turns = tiles / clusters, most = turns + (tiles % clusters != 0 ? 1 : 0);
      std::uint32_t before = 0;
      for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
        const std::uint32_t own = turns + (cluster < tiles % clusters ? 1 : 0);
        const std::uint32_t delay = delay_of_first_tile(cluster, clusters, tiles, kTileCycles);
        EXPECT_LE(delay + own * kTileCycles, std::max(most, 1u) * kTileCycles) << cluster << " of " << clusters << ", " << tiles;
        EXPECT_GE(delay, before);
        if (own == most || turns < 16) EXPECT_EQ(delay, 0u) << cluster << " of " << clusters << ", " << tiles;
        before = delay;
        any = any || (turns == 16 && delay != 0);
      }
    }
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace assay::device::fp8_block
