#pragma once
// Internal to nvfp4.h: the tensor amax G of each group (spec nvfp4-1.3).

#include <cstdint>
#include <span>
#include <vector>

#include "reference/recipes/quantize.h"

namespace assay::nvfp4 {

// max |x| of each group; NaN counts as 0.
std::vector<float> amax_of_groups(const QuantizeProblem& problem, std::span<const std::int64_t> groups);

// The same of the Hadamard transform of x, which is bf16 (hadamard.h).
std::vector<float> amax_of_transformed_groups(const QuantizeProblem& problem, std::span<const std::int64_t> groups);

}  // namespace assay::nvfp4
