// What device_call() of a room has of the ops whose kernels are not in the program (weak: kernels come first).

#include <stdexcept>

#include "conformance/backends/device/rule_call.h"
#include "conformance/backends/device/token_call.h"
#include "device/dequantize/dequantize.h"
#include "device/layout/offsets.h"
#include "device/layout/swizzle.h"

namespace assay {
namespace {
[[noreturn]] void unknown() { throw std::logic_error("the kernels of this op are not here"); }
}  // namespace

namespace device {

[[gnu::weak]] void dequantize(const DequantizeCall&, Stream) { unknown(); }
[[gnu::weak]] void swizzle_scales(Recipe, Direction, const Rows&, std::int64_t, const std::uint8_t*, std::uint8_t*,
                                  std::uint32_t*, Stream) {
  unknown();
}
[[gnu::weak]] void unswizzle_scales(Recipe, Direction, const Rows&, std::int64_t, const std::uint8_t*, std::uint8_t*,
                                    std::uint32_t*, Stream) {
  unknown();
}
[[gnu::weak]] void splits_to_offsets(const std::int64_t*, int, std::int64_t, std::int64_t*, std::uint32_t*, Stream) { unknown(); }
[[gnu::weak]] void splits_to_offsets_multi(const void*, bool, int, std::span<const OffsetsOutput>, std::uint32_t*, Stream) {
  unknown();
}
[[gnu::weak]] void splits_to_offsets_2d(const void*, const void*, bool, int, void*, std::uint32_t*, Stream) { unknown(); }

}  // namespace device

namespace conformance {

[[gnu::weak]] DeviceCall rule_call(const Request&) { unknown(); }
[[gnu::weak]] DeviceCall permute_call(const Request&) { unknown(); }
[[gnu::weak]] DeviceCall unpermute_call(const Request&) { unknown(); }

}  // namespace conformance
}  // namespace assay
