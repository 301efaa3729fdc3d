#include <algorithm>

#include "reference/layout/swizzle.h"

namespace assay::scalar {

void swizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                    std::span<const std::uint8_t> compact, std::span<std::uint8_t> swizzled) {
  const SwizzleView view = swizzle_view(recipe, direction, rows, columns);
  check_swizzle_buffers(view, compact, swizzled);
  std::fill(swizzled.begin(), swizzled.end(), std::uint8_t{0});
  for (std::int64_t i = 0; i < view.used_i; ++i) {
    for (std::int64_t j = 0; j < view.used_j; ++j) {
      swizzled[swizzled_index(i, j, view.tiles_j)] = compact[i * view.stride_i + j * view.stride_j];
    }
  }
}

void unswizzle_scales(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns,
                      std::span<const std::uint8_t> swizzled, std::span<std::uint8_t> compact) {
  const SwizzleView view = swizzle_view(recipe, direction, rows, columns);
  check_swizzle_buffers(view, compact, swizzled);
  for (std::int64_t i = 0; i < view.used_i; ++i) {
    for (std::int64_t j = 0; j < view.used_j; ++j) {
      compact[i * view.stride_i + j * view.stride_j] = swizzled[swizzled_index(i, j, view.tiles_j)];
    }
  }
}

}  // namespace assay::scalar
