// What the host has in place of a device.

#include "device/emulated_gemm/problem.h"
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

namespace emulated {
namespace {

bool takes_any(const GemmCall&) { return true; }
bool takes_none(const GemmCall&) { return false; }

}  // namespace

// The fast kernels need tensor cores. The first one in the order of choice takes every call: so kernel_name() says which calls are
// kept from it. None is launched.
const Kernel kFp8Kernel = {"fast", 128, 64, takes_any, nullptr};
const Kernel kWideSumKernel = {"wide_sum", 128, 64, takes_none, nullptr};
const Kernel kFp4Kernel = {"fp4", 128, 64, takes_none, nullptr};

}  // namespace emulated
}  // namespace assay::device
