#pragma once
// The 128x4 layout of block scales that matrix instructions read (spec layouts-3.1). A scale matrix is addressed as
// (i, j), i along the unblocked dimension and j counting blocks, and stored as tiles of 128 x 4 of 512 bytes each.

#include <cstdint>
#include <span>

#include "reference/layout/scale_shape.h"

namespace assay {

// Byte of (i, j) when a row of tiles holds `tiles_j` tiles.
constexpr std::int64_t swizzled_index(std::int64_t i, std::int64_t j, std::int64_t tiles_j) {
  return ((i / 128) * tiles_j + j / 4) * 512 + (i % 32) * 16 + ((i % 128) / 32) * 4 + j % 4;
}

// The extents of a scale matrix in the coordinates of the swizzle (spec layouts-3.2): (i, j) with i along the unblocked
// dimension and j counting blocks; and the compact index of (i, j). Errors: as swizzle_scales.
struct SwizzleView {
  std::int64_t used_i = 0, used_j = 0;      // extents in use
  std::int64_t tiles_i = 0, tiles_j = 0;    // tiles of 128 x 4
  std::int64_t stride_i = 0, stride_j = 0;  // compact element of (i, j): i * stride_i + j * stride_j; one of them is 1
};
SwizzleView swizzle_view(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns);

// Errors: buffers of another size than the tiles, null, or overlapping.
void check_swizzle_buffers(const SwizzleView& view, std::span<const std::uint8_t> compact,
                           std::span<const std::uint8_t> swizzled);

// Swizzles the compact scales of one tensor or group of `rows` x `columns` (recipe mxfp8 or nvfp4), padding written 0.
// Buffers hold scale_shape(...).elements() bytes each. Errors: another recipe, wrong sizes, overlapping buffers.
void swizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                    std::span<const std::uint8_t> compact, std::span<std::uint8_t> swizzled);

// The inverse (spec layouts-3.3): only the part in use is written; compact padding keeps what it held.
void unswizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                      std::span<const std::uint8_t> swizzled, std::span<std::uint8_t> compact);

namespace scalar {
// The same, one byte at a time.
void swizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                    std::span<const std::uint8_t> compact, std::span<std::uint8_t> swizzled);
void unswizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                      std::span<const std::uint8_t> swizzled, std::span<std::uint8_t> compact);
}  // namespace scalar

}  // namespace assay
