#include "reference/layout/swizzle.h"

#include <algorithm>
#include <cstring>

#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"

// A tile of 512 bytes holds 32 lines of 4 words of 4 bytes: word (r, q) is row 32 q + r of the tile, byte b its block b.
// Tiles lie one after another in the swizzled buffer, so a range of tiles is one thread's work.

namespace assay {
namespace {

constexpr std::int64_t kTilesPerRange = 512;

// `compact` points to the tile's first element. Blocks lie along the stored row: whole words are copied.
void swizzle_rows(const std::uint8_t* compact, std::int64_t stride, std::uint8_t* tile) {
  for (int q = 0; q < 4; ++q) {
    for (int r = 0; r < 32; ++r) std::memcpy(tile + r * 16 + q * 4, compact + (q * 32 + r) * stride, 4);
  }
}

void unswizzle_rows(const std::uint8_t* tile, std::uint8_t* compact, std::int64_t stride) {
  for (int q = 0; q < 4; ++q) {
    for (int r = 0; r < 32; ++r) std::memcpy(compact + (q * 32 + r) * stride, tile + r * 16 + q * 4, 4);
  }
}

// Blocks lie `stride` apart: four stored rows are interleaved into words (by `words`, which the compiler vectorises).
ASSAY_CLONES void swizzle_blocks(const std::uint8_t* __restrict compact, std::int64_t stride, std::uint8_t* __restrict tile) {
  std::uint8_t words[128][4];
  for (int i = 0; i < 128; ++i) {
    for (int b = 0; b < 4; ++b) words[i][b] = compact[b * stride + i];
  }
  swizzle_rows(&words[0][0], 4, tile);
}

ASSAY_CLONES void unswizzle_blocks(const std::uint8_t* __restrict tile, std::uint8_t* __restrict compact, std::int64_t stride) {
  std::uint8_t words[128][4];
  unswizzle_rows(tile, &words[0][0], 4);
  for (int b = 0; b < 4; ++b) {
    for (int i = 0; i < 128; ++i) compact[b * stride + i] = words[i][b];
  }
}

// Calls tile(number, first_i, first_j, rows in use, blocks in use) for every tile, on all threads.
template <class Body>
void for_each_tile(const SwizzleView& view, const Body& tile) {
  parallel_for(view.tiles_i * view.tiles_j, kTilesPerRange, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number) {
      const std::int64_t i = number / view.tiles_j * 128, j = number % view.tiles_j * 4;
      tile(number, i, j, std::clamp<std::int64_t>(view.used_i - i, 0, 128), std::clamp<std::int64_t>(view.used_j - j, 0, 4));
    }
  });
}

}  // namespace

void swizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                    std::span<const std::uint8_t> compact, std::span<std::uint8_t> swizzled) {
  const SwizzleView view = swizzle_view(recipe, direction, rows, columns);
  check_swizzle_buffers(view, compact, swizzled);
  for_each_tile(view, [&](std::int64_t number, std::int64_t i, std::int64_t j, std::int64_t used_i, std::int64_t used_j) {
    const std::uint8_t* from = compact.data() + i * view.stride_i + j * view.stride_j;
    std::uint8_t* tile = swizzled.data() + number * 512;
    if (used_i == 128 && used_j == 4) {
      view.stride_j == 1 ? swizzle_rows(from, view.stride_i, tile) : swizzle_blocks(from, view.stride_j, tile);
      return;
    }
    std::memset(tile, 0, 512);
    for (std::int64_t row = 0; row < used_i; ++row) {
      for (std::int64_t block = 0; block < used_j; ++block) {
        tile[row % 32 * 16 + row / 32 * 4 + block] = from[row * view.stride_i + block * view.stride_j];
      }
    }
  });
}

void unswizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                      std::span<const std::uint8_t> swizzled, std::span<std::uint8_t> compact) {
  const SwizzleView view = swizzle_view(recipe, direction, rows, columns);
  check_swizzle_buffers(view, compact, swizzled);
  for_each_tile(view, [&](std::int64_t number, std::int64_t i, std::int64_t j, std::int64_t used_i, std::int64_t used_j) {
    const std::uint8_t* tile = swizzled.data() + number * 512;
    std::uint8_t* to = compact.data() + i * view.stride_i + j * view.stride_j;
    if (used_i == 128 && used_j == 4) {
      view.stride_j == 1 ? unswizzle_rows(tile, to, view.stride_i) : unswizzle_blocks(tile, to, view.stride_j);
      return;
    }
    for (std::int64_t row = 0; row < used_i; ++row) {
      for (std::int64_t block = 0; block < used_j; ++block) {
        to[row * view.stride_i + block * view.stride_j] = tile[row % 32 * 16 + row / 32 * 4 + block];
      }
    }
  });
}

}  // namespace assay
