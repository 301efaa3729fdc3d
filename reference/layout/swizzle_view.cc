#include "reference/layout/swizzle.h"

#include <string>

#include "reference/types/error.h"

namespace assay {

SwizzleView swizzle_view(Recipe recipe, Direction direction, std::int64_t rows, std::int64_t columns) {
  const ScaleShape shape = scale_shape(recipe, direction, rows, columns);
  require(recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4, "recipe", static_cast<std::uint32_t>(recipe),
          "mxfp8 (4) or nvfp4 (5), whose scales can be swizzled");
  // MXFP8 keeps columnwise scales as [block][k]; everything else has the blocks along the stored row.
  if (recipe == Recipe::mxfp8 && direction == Direction::columnwise) {
    return {shape.used_columns, shape.used_rows, shape.columns / 128, shape.rows / 4, 1, shape.columns};
  }
  return {shape.used_rows, shape.used_columns, shape.rows / 128, shape.columns / 4, shape.columns, 1};
}

void check_swizzle_buffers(const SwizzleView& view, std::span<const std::uint8_t> compact,
                           std::span<const std::uint8_t> swizzled) {
  const auto bytes = static_cast<std::size_t>(view.tiles_i * view.tiles_j * 512);
  const std::string expected = show(bytes) + ", the padded scales";
  require(compact.size() == bytes, "compact.size()", compact.size(), expected);
  require(swizzled.size() == bytes, "swizzled.size()", swizzled.size(), expected);
  if (bytes == 0) return;
  require(compact.data() != nullptr, "compact", compact.data(), "a buffer");
  require(swizzled.data() != nullptr, "swizzled", swizzled.data(), "a buffer");
  const auto a = reinterpret_cast<std::uintptr_t>(compact.data());
  const auto b = reinterpret_cast<std::uintptr_t>(swizzled.data());
  require(a + bytes <= b || b + bytes <= a, "swizzled", static_cast<const void*>(swizzled.data()), "a buffer apart from compact");
}

}  // namespace assay
