// What the host has in place of a device.

#include "device/layout/swizzle.h"
#include "device/support/call_device.h"
#include "reference/layout/swizzle.h"

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

// One matrix, by the reference.
void unswizzle_scales(Recipe recipe, Direction direction, const Rows& rows, std::int64_t columns, const std::uint8_t* swizzled,
                      std::uint8_t* compact, std::uint32_t*, Stream) {
  const auto bytes = static_cast<std::size_t>(scale_shape(recipe, direction, rows.capacity, columns).elements());
  assay::scalar::unswizzle_scales(recipe, direction, rows.capacity, columns, {swizzled, bytes}, {compact, bytes});
}

}  // namespace assay::device
