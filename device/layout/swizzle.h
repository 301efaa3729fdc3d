#pragma once
// Block scales between compact and 128x4 order, on the device: reference/layout/swizzle.h over device memory, for one
// tensor or all groups of a ragged one in one launch. Scale buffers are those of reference/layout/scale_shape.h.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/layout/scale_shape.h"

namespace assay::device {

// Padding is written 0.
void swizzle_scales(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, const std::uint8_t* compact,
                    std::uint8_t* swizzled, std::uint32_t* status, Stream stream);
// Compact padding is not written.
void unswizzle_scales(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, const std::uint8_t* swizzled,
                      std::uint8_t* compact, std::uint32_t* status, Stream stream);

}  // namespace assay::device
