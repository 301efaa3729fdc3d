#pragma once
// Whether block scales keep the promise of device::GroupedGemmCall::pow2_scales.

#include <cstdint>
#include <span>

namespace assay::conformance {

// Columnwise 1x128 scales of groups of splits[g] rows: whether each one in use is a power of two from 2^-127 to 2^127, the range of
// quantization. False where sizes are negative, or `scales` has another size than they say.
bool are_pow2_scales(std::span<const float> scales, std::span<const std::int64_t> splits, std::int64_t columns);

}  // namespace assay::conformance
