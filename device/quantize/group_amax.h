#pragma once
// max |x| of each group on the device, for current scaling and for grouped_amax(): host calls of per_tensor.cu.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/stream.h"
#include "reference/types/format.h"

namespace assay::device {

// amax_bits [groups]: the bits of an f32, written by two launches. The checks of the call have been made; with `noop` or invalid
// splits nothing is written.
void launch_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                       std::uint32_t* amax_bits, std::uint32_t* status, Stream stream);

// The same into amaxes that are 0 already, or below those of x: one launch.
void accumulate_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                           std::uint32_t* amax_bits, std::uint32_t* status, Stream stream);

}  // namespace assay::device
