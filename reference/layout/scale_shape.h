#pragma once
// Where each recipe keeps its scales: shapes, padding and group offsets (spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1).
// Each group is padded by itself and the groups follow one another without slack (spec layouts-2.1).

#include <cstdint>
#include <span>
#include <vector>

#include "reference/types/format.h"
#include "reference/types/recipe.h"

namespace assay {

// The scale matrix of one tensor or group of `rows` x `columns`, as stored: extents with padding, and the part in use.
// Indices follow the storage: block_1x128 rowwise is [K-block][row], columnwise [row-block][k]; block_128x128 rowwise
// [row-block][K-block], columnwise [K-block][row-block]; mxfp8 rowwise [row][K-block], columnwise [row-block][k];
// nvfp4 rowwise [row][K-block], columnwise [k][row-block]. Per-tensor: 1 x 1. A group of 0 rows has 0 elements where
// the formula gives 0 (spec layouts-2.2).
struct ScaleShape {
  std::int64_t rows = 0, columns = 0;            // stored
  std::int64_t used_rows = 0, used_columns = 0;  // written by quantize
  std::int64_t elements() const { return rows * columns; }
};

// Errors: negative sizes, overflow.
ScaleShape scale_shape(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns);

// First element of each group's scales in the flat buffer, and the total: G+1 values.
std::vector<std::int64_t> scale_offsets(Recipe recipe, Direction direction, std::span<const std::int64_t> splits,
                                        std::int64_t columns);

// Element type of the scales: f32, e8m0 or e4m3.
Format scale_format(Recipe recipe);

}  // namespace assay
