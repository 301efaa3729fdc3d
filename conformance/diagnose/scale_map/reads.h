#pragma once
// Decodes D: which scale each quarter of a tile read in each block of the contraction.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "conformance/diagnose/scale_map/product.h"
#include "conformance/diagnose/scale_map/scale_map.h"

namespace assay::conformance {

// Rows or columns [begin, end) of a group's matrix.
struct Range {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

inline Range half(std::int64_t tile, int which, std::int64_t extent) {
  const std::int64_t begin = tile * kTile + which * kHalf;
  return {begin, std::min(begin + kHalf, extent)};
}

// Reads of the four quarters of each tile, block by block; a quarter without a wrong element has none.
class ScaleReads {
 public:
  ScaleReads(const MappedProduct& product, const ScaleArray& array)
      : product_(product), array_(array), quarters_(static_cast<std::size_t>(product.tiles) * 4) {
    for (std::size_t g = 0; g < product.groups.size(); ++g) {
      const MappedGroup& group = product.groups[g];
      group_of_.insert(group_of_.end(), static_cast<std::size_t>(group.tile_rows * group.tile_columns),
                       static_cast<std::int32_t>(g));
    }
  }

  // D of the call for this block.
  void look(std::int64_t block, const float* d);

  // Of the tile's quarter, in rows of two.
  const std::vector<ScaleRead>& quarter(std::int64_t tile, int q) const {
    return quarters_[static_cast<std::size_t>(tile * 4 + q)];
  }
  // The group of a tile, and its number.
  const MappedGroup& group_at(std::int64_t tile) const { return product_.groups[static_cast<std::size_t>(group_of(tile))]; }
  std::int64_t group_of(std::int64_t tile) const { return group_of_[static_cast<std::size_t>(tile)]; }
  std::int64_t pairs() const { return pairs_; }  // of tile and block that were examined
  const MappedProduct& product() const { return product_; }
  const ScaleArray& array() const { return array_; }

 private:
  void look_at_tile(std::int64_t tile, std::int64_t block, const float* d);
  std::int64_t count_wrong(const float* first, Range rows, Range columns, std::int64_t pitch, const float* want) const;
  // The place that an element encodes, or nothing.
  ScaleRead decode(float word, float count) const;
  ScaleRead read_of(const float* first, Range rows, Range columns, std::int64_t pitch, const float* want, std::int64_t g,
                    std::int64_t block, float count) const;

  const MappedProduct& product_;
  const ScaleArray& array_;
  std::vector<std::vector<ScaleRead>> quarters_;
  std::vector<std::int32_t> group_of_;  // of each tile
  std::int64_t pairs_ = 0;
};

}  // namespace assay::conformance
