#pragma once
// Layer (a): one element of a grouped product, for those who need no more than a few.

#include <cstdint>

#include "reference/gemm/problem.h"

namespace assay::scalar {

// The running value of D_t[i][j] after all products of the plan, before the epilogue; +0 without products. `view` and `group`
// are as view_of() makes them, or changed: nothing is checked but what tensor_core_step() checks.
float accumulated(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j);

// What multiplies it: alpha, and the scales of the whole sum.
float sum_factor(const GroupedGemmView& view, const GroupView& group);

// The bits of D_t[i][j].
std::uint32_t element_of_d(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j);

}  // namespace assay::scalar
