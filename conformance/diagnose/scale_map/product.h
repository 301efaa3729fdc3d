#pragma once
// The product of a scale map: its groups and tiles, and the scales of its two operands.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/diagnose/scale_map/scale_array.h"
#include "golden/io/fixture.h"
#include "reference/types/format.h"
#include "reference/types/sizes.h"

namespace assay::conformance {

// D is reported in tiles of kTile x kTile or their halves and quarters; a scale serves kBlock elements of the contraction.
constexpr std::int64_t kTile = 128, kHalf = 64, kBlock = 128;
// Scales in the memory before and behind an array that are distinguished. Before: a multiple of 256 bytes, as addresses are.
constexpr std::int64_t kBefore = 1024, kBehind = 65536;

struct MappedGroup {
  std::int64_t m = 0, n = 0, depth = 0;  // D_t is m x n
  std::int64_t d_offset = 0;             // element of D where it begins
  std::int64_t data_offset = 0;          // element of the operand of the rows where the group's begins
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::int64_t first_tile = 0;
  std::int64_t blocks() const { return ceil_div(depth, kBlock); }
};

struct MappedProduct {
  std::map<std::string, Attribute> attributes;
  std::vector<std::int64_t> splits;
  std::vector<MappedGroup> groups;
  std::string rows_data, columns_data;  // names of the operands' codes
  Format rows_type = Format::e4m3, columns_type = Format::e4m3;
  std::vector<std::int64_t> rows_shape, columns_shape;
  ScaleArray rows, columns;
  std::int64_t d_rows = 0, d_columns = 0;
  std::int64_t tiles = 0, blocks = 0;  // blocks of the deepest group
};

// Errors: as map_scales().
MappedProduct product_of(const CaseLine& line);

// Products of 1 (not 0) of one element of D in block `block` of the contraction. A power of two keeps D exact.
std::int64_t products_in(const MappedGroup& group, std::int64_t block);

// The scale that encodes this place, from kBefore places before the array to kBehind behind it: exact in f32.
inline float value_of(std::int64_t place) { return static_cast<float>(kBefore + place + 1); }

}  // namespace assay::conformance
