#pragma once
// The checks of both layers of dequantize.

#include <cstdint>
#include <vector>

#include "reference/recipes/dequantize.h"

namespace assay {

// Errors: those of dequantize(). Returns the rows of each group.
std::vector<std::int64_t> check_dequantize(const DequantizeProblem& problem, const void* output);

}  // namespace assay
