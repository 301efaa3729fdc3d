#pragma once

#include <cstddef>

namespace assay::conformance {

inline constexpr std::size_t kLastUlpBucket = 17;  // of UlpHistogram: distances above 2^16 are counted together

}  // namespace assay::conformance
