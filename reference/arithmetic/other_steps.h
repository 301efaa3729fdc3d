#pragma once
// Steps of units that are not one fused sum (spec tensor-core-5.1 to 5.5): AMD's matrix cores and Intel's tiles.

#include <cstdint>

#include "reference/arithmetic/decoded.h"

namespace assay {

// One step of a unit whose `sum` is not StepSum::fused. C and the result are f32 bits; NaN is 0x7FFFFFFF.
std::uint32_t other_step(const TensorCoreUnit& unit, const DecodedElements& a, const DecodedElements& b, std::uint32_t c);

}  // namespace assay
