// What the host has in place of a device, and of the recipes whose kernels are not in the program (weak: the kernels come first).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "device/quantize/group_amax.h"
#include "device/quantize/quantize.h"
#include "device/support/call_device.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

// max |x| of each group, NaN passed over.
[[gnu::weak]] void accumulate_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                                         std::uint32_t* amax_bits, std::uint32_t*, Stream) {
  if (noop != nullptr && *noop == 1.0f) return;
  const auto value = [&](std::int64_t at) {
    if (x_type == Format::f32) return static_cast<const float*>(x)[at];
    const std::uint16_t code = static_cast<const std::uint16_t*>(x)[at];
    return x_type == Format::bf16 ? scalar::decode_bf16(code) : scalar::decode_f16(code);
  };
  std::int64_t first = 0;
  for (int t = 0; t < rows.groups; ++t) {
    const std::int64_t end = first + (rows.splits == nullptr ? rows.capacity : rows.splits[t]) * columns;
    float amax = 0;
    for (std::int64_t i = first; i < end; ++i) amax = std::isnan(value(i)) ? amax : std::max(amax, std::fabs(value(i)));
    std::memcpy(amax_bits + t, &amax, sizeof amax);
    first = end;
  }
}

namespace {
[[noreturn]] void unknown() { throw std::logic_error("the kernels of this recipe are not here"); }
}  // namespace
[[gnu::weak]] void quantize_per_tensor(const QuantizeCall&, Stream) { unknown(); }
[[gnu::weak]] void quantize_fp8_block(const QuantizeCall&, Stream) { unknown(); }
[[gnu::weak]] void quantize_mxfp8(const QuantizeCall&, Stream) { unknown(); }
[[gnu::weak]] void quantize_nvfp4(const QuantizeCall&, Stream) { unknown(); }
[[gnu::weak]] std::int64_t per_tensor_workspace_bytes(const QuantizeCall&) { unknown(); }
[[gnu::weak]] std::int64_t fp8_block_workspace_bytes(const QuantizeCall&) { unknown(); }
[[gnu::weak]] std::int64_t mxfp8_workspace_bytes(const QuantizeCall&) { unknown(); }
[[gnu::weak]] std::int64_t nvfp4_workspace_bytes(const QuantizeCall&) { unknown(); }

}  // namespace assay::device
