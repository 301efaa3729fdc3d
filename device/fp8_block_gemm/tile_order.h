#pragma once
// In which order the tiles of a group are computed, and when the blocks begin. The order: in bands of kBand tiles of rows, so that what
// the blocks read at one time is a few rows of A and of B. Internal to this folder.
//
//             columns 0   1   2   3
//   rows 0        0   8  16  24        band 0
//        ...      .   .   .   .
//        7        7  15  23  31
//        8       32  ...               band 1

#include <cstdint>

#include "device/support/host_device.h"

namespace assay::device::fp8_block {

inline constexpr std::uint32_t kBand = 8;

struct TilePlace {
  std::uint32_t row, column;  // in tiles
};

// Place of tile `number` in a group of `down` by `across` tiles.
ASSAY_HD constexpr TilePlace tile_place(std::uint32_t number, std::uint32_t down, std::uint32_t across) {
  const std::uint32_t band = number / (kBand * across), in_band = number - band * kBand * across;
  const std::uint32_t left = down - band * kBand, height = left < kBand ? left : kBand;
  const std::uint32_t column = in_band / height;
  return {band * kBand + in_band - column * height, column};
}

// Cycles that a cluster waits before the first of its tiles, each of at least `tile_cycles`. Clusters that have a tile less than others
// would be idle at the end; they wait at the start instead, each for another time. If all began together, the card's power would rise
// and fall with their products. Where clusters have few tiles, those may differ in time by more than this is worth (kTurnsToWait).
//
//   tiles of cluster 0   [   0   ][   4   ][   8   ]       (of the last turns)
//                    1   [   1   ][   5   ]
//                    2     .[   2   ][   6   ]
//                    3       .  .[   3   ][   7   ]
inline constexpr std::uint32_t kTurnsToWait = 16;

ASSAY_HD constexpr std::uint32_t delay_of_first_tile(std::uint32_t cluster, std::uint32_t clusters, std::uint32_t tiles,
                                                     std::uint32_t tile_cycles) {
  const std::uint32_t with_one_more = tiles % clusters;  // the first ones
  if (tiles / clusters < kTurnsToWait || with_one_more == 0 || cluster < with_one_more) return 0;
  return tile_cycles / (clusters - with_one_more) * (cluster - with_one_more);
}

}  // namespace assay::device::fp8_block
