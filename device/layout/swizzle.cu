// Block scales between compact and 128x4 order, for all groups in one launch.
//
//   traffic   1 B read and 1 B written per scale
//   layout    a warp moves one tile of 512 bytes: lane l holds rows l, l+32, l+64, l+96 of the tile, 4 scales each, which
//             are 16 consecutive bytes of swizzled order. A block moves the tiles of one tile of rows, so that it finds
//             its group once, and neighbouring warps share the sectors of compact order
//   matches   reference/layout/swizzle.h

#include "device/layout/check_rows.h"
#include "device/layout/scale_layout.cuh"
#include "device/layout/swizzle.h"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"

namespace assay::device {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kTilesPerBlock = 4 * kWarps;

// The coordinates of a scale matrix: i along the unblocked dimension, j counts blocks of kBlock. One tile of rows is 128 rows,
// or 4 blocks of them.
template <Recipe kRecipe, Direction kDirection>
struct View {
  static constexpr bool kRowwise = kDirection == Direction::rowwise;
  static constexpr int kBlock = kRecipe == Recipe::mxfp8 ? 32 : 16;
  static constexpr int kTileRows = kRowwise ? 128 : 4 * kBlock;
  static constexpr bool kBlocksAdjacent = kRowwise || kRecipe == Recipe::nvfp4;  // j is the faster index of compact order
  using Layout = ScaleLayoutOf<kRecipe, kDirection>;

  std::int64_t tiles_j, pitch;
  std::int64_t used_i, used_j;

  __device__ View(std::int64_t rows, std::int64_t columns) {
    tiles_j = Layout::tiles_j(rows, columns);
    pitch = Layout::pitch(rows, columns);
    used_i = kRowwise ? rows : columns;
    used_j = ceil_div(kRowwise ? columns : rows, kBlock);
  }
  __device__ std::int64_t compact_index(std::int64_t i, std::int64_t j) const {
    return kBlocksAdjacent ? i * pitch + j : j * pitch + i;
  }
};

// Tiles across: those of one tile of rows.
template <Recipe kRecipe, Direction kDirection>
std::int64_t tiles_across(std::int64_t columns) {
  return kDirection == Direction::rowwise ? ScaleLayoutOf<kRecipe, kDirection>::factor(columns) / 4 : ceil_div(columns, 128);
}

template <Recipe kRecipe, Direction kDirection, bool kToSwizzled>
__global__ void __launch_bounds__(kThreads) move_scales(const Rows rows, const std::int64_t columns, const std::int64_t across,
                                                        std::uint8_t* compact, std::uint8_t* swizzled, std::uint32_t* status) {
  using Matrix = View<kRecipe, kDirection>;
  using Layout = typename Matrix::Layout;
  __shared__ LocateTile<Matrix::kTileRows, typename Layout::Measure> shared;
  GroupTile<1> at;
  if (!locate_tile(rows, blockIdx.x, shared, status, at)) return;
  const Matrix matrix(at.rows, columns);
  const std::int64_t group_begin = at.before[0] * Layout::factor(columns);
  compact += group_begin;
  swizzled += group_begin;

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t end = min(across, (static_cast<std::int64_t>(blockIdx.y) + 1) * kTilesPerBlock);
#pragma unroll 2
  for (std::int64_t other = static_cast<std::int64_t>(blockIdx.y) * kTilesPerBlock + warp; other < end; other += kWarps) {
    const std::int64_t tile_i = Matrix::kRowwise ? at.tile : other, tile_j = Matrix::kRowwise ? other : at.tile;
    auto* tile = reinterpret_cast<uint4*>(swizzled + (tile_i * matrix.tiles_j + tile_j) * 512) + lane;
    const std::int64_t i = tile_i * 128 + lane, j = tile_j * 4;
    const int in_use = static_cast<int>(min(std::int64_t{4}, matrix.used_j - j));  // of the 4 blocks; 1 or more

    std::uint32_t word[4];
    if constexpr (kToSwizzled) {
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        const std::int64_t row = i + 32 * quarter;
        word[quarter] = 0;
        if (row >= matrix.used_i) continue;
        if constexpr (Matrix::kBlocksAdjacent) {  // the pitch is a multiple of 4, padding included
          word[quarter] = *reinterpret_cast<const std::uint32_t*>(compact + matrix.compact_index(row, j));
          if (in_use < 4) word[quarter] &= (1u << 8 * in_use) - 1;
        } else {
#pragma unroll
          for (int b = 0; b < 4; ++b) {
            if (b < in_use) word[quarter] |= static_cast<std::uint32_t>(compact[matrix.compact_index(row, j + b)]) << 8 * b;
          }
        }
      }
      *tile = make_uint4(word[0], word[1], word[2], word[3]);
    } else {
      const uint4 all = *tile;
      word[0] = all.x, word[1] = all.y, word[2] = all.z, word[3] = all.w;
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        const std::int64_t row = i + 32 * quarter;
        if (row >= matrix.used_i) continue;
        if (Matrix::kBlocksAdjacent && in_use == 4) {
          *reinterpret_cast<std::uint32_t*>(compact + matrix.compact_index(row, j)) = word[quarter];
        } else {
#pragma unroll
          for (int b = 0; b < 4; ++b) {
            if (b < in_use) compact[matrix.compact_index(row, j + b)] = static_cast<std::uint8_t>(word[quarter] >> 8 * b);
          }
        }
      }
    }
  }
}

template <bool kToSwizzled, Recipe kRecipe, Direction kDirection>
void launch(const Rows& rows, std::int64_t columns, std::uint8_t* compact, std::uint8_t* swizzled, std::uint32_t* status,
            Stream stream) {
  const std::int64_t tiles = max_tiles(rows, View<kRecipe, kDirection>::kTileRows);
  if (tiles == 0) return;
  const std::int64_t across = tiles_across<kRecipe, kDirection>(columns);
  const std::int64_t blocks_across = across == 0 ? 1 : ceil_div(across, kTilesPerBlock);
  if (blocks_across > 65535) throw NotSupported("columns is " + std::to_string(columns) + ": too many for one launch");
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(blocks_across));
  launch_kernel("move_scales", move_scales<kRecipe, kDirection, kToSwizzled>, grid, kThreads, 0, stream, rows, columns, across,
                compact, swizzled, status);
}

template <bool kToSwizzled>
void move(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, std::uint8_t* compact,
          std::uint8_t* swizzled, std::uint32_t* status, Stream stream) {
  require(recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4, "recipe", static_cast<std::int64_t>(recipe),
          "mxfp8 (4) or nvfp4 (5), whose scales can be swizzled");
  require(direction <= Direction::columnwise, "direction", static_cast<std::int64_t>(direction), "rowwise (0) or columnwise (1)");
  require(columns >= 0, "columns", columns, "a value of at least 0");
  check_rows(rows);
  if (columns > 0 && rows.capacity > 0) {
    require_pointer(compact, "compact", 4);
    require_pointer(swizzled, "swizzled", 16);
  }
  const CallDevice device(stream,
                          {{"compact", compact}, {"swizzled", swizzled}, {"rows.splits", rows.splits}, {"status", status}});
  const bool rowwise = direction == Direction::rowwise;
  if (recipe == Recipe::mxfp8) {
    rowwise ? launch<kToSwizzled, Recipe::mxfp8, Direction::rowwise>(rows, columns, compact, swizzled, status, stream)
            : launch<kToSwizzled, Recipe::mxfp8, Direction::columnwise>(rows, columns, compact, swizzled, status, stream);
  } else {
    rowwise ? launch<kToSwizzled, Recipe::nvfp4, Direction::rowwise>(rows, columns, compact, swizzled, status, stream)
            : launch<kToSwizzled, Recipe::nvfp4, Direction::columnwise>(rows, columns, compact, swizzled, status, stream);
  }
}

}  // namespace

void swizzle_scales(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, const std::uint8_t* compact,
                    std::uint8_t* swizzled, std::uint32_t* status, Stream stream) {
  move<true>(recipe, direction, rows, columns, const_cast<std::uint8_t*>(compact), swizzled, status, stream);
}

void unswizzle_scales(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, const std::uint8_t* swizzled,
                      std::uint8_t* compact, std::uint32_t* status, Stream stream) {
  move<false>(recipe, direction, rows, columns, compact, const_cast<std::uint8_t*>(swizzled), status, stream);
}

}  // namespace assay::device
