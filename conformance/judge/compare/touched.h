#pragma once
// Where the differing elements lie: groups, rows, columns and tiles of 128 x 128. Internal to compare().

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/ops/output_map.h"

namespace assay::conformance {

inline constexpr std::int64_t kTouchedTile = 128;

// A set of whole numbers that lie close together, for millions of insertions.
class Indices {
 public:
  void add(std::int64_t value) {
    if (value == last_ && !flags_.empty()) return;
    last_ = value;
    if (flags_.empty()) first_ = value;
    if (value < first_) {
      flags_.insert(flags_.begin(), static_cast<std::size_t>(first_ - value), std::uint8_t{0});
      first_ = value;
    }
    const auto at = static_cast<std::size_t>(value - first_);
    if (at >= flags_.size()) flags_.resize(at + 1);
    flags_[at] = 1;
  }
  void move_into(std::set<std::int64_t>& values) const {
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (flags_[i] != 0) values.insert(first_ + static_cast<std::int64_t>(i));
    }
  }

 private:
  std::int64_t first_ = 0, last_ = 0;
  std::vector<std::uint8_t> flags_;
};

// Groups, rows, columns and tiles with mismatches.
struct Touched {
  std::set<std::int64_t> groups, rows, columns;
  std::set<std::pair<std::int64_t, std::int64_t>> tiles;
  bool has_tiles = false;

  // "groups 1,3; rows 0-127; columns 128-255; tiles 128x128 (0,1)": as `map` names rows and columns.
  std::string text(const OutputMap& map) const;
};

// The same for one piece of one segment.
struct TouchedPiece {
  Indices rows, columns;
  std::set<std::pair<std::int64_t, std::int64_t>> tiles;
  std::pair<std::int64_t, std::int64_t> last_tile{-1, -1};

  void add(Coordinates at) {
    rows.add(at.row);
    columns.add(at.column);
    const std::pair tile{at.row / kTouchedTile, at.column / kTouchedTile};
    if (tile != last_tile) tiles.insert(last_tile = tile);
  }
  void move_into(Touched& touched, const Segment& segment) const {
    if (tiles.empty()) return;
    touched.groups.insert(segment.group);
    rows.move_into(touched.rows);
    columns.move_into(touched.columns);
    touched.tiles.insert(tiles.begin(), tiles.end());
    if (segment.rows > kTouchedTile || segment.columns > kTouchedTile) touched.has_tiles = true;
  }
};

// "group 1, row 5, column 60".
std::string place_text(const OutputMap& map, const Segment& segment, Coordinates at);

}  // namespace assay::conformance
