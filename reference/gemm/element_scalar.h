#pragma once
// Layer (a): one element of a grouped product, for callers that need only a few elements.

#include <cstdint>

#include "reference/gemm/problem.h"

namespace assay::scalar {

// The running value of D_t[i][j] after all products of the plan, before the epilogue; +0 without products. `view` and `group`
// come from view_of() and may have been changed since: only tensor_core_step() checks its arguments.
float accumulated(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j);

// The factor of the running value: alpha times the scales of the whole sum.
float sum_factor(const GroupedGemmView& view, const GroupView& group);

// The bits of D_t[i][j].
std::uint32_t element_of_d(const GroupedGemmView& view, const GroupView& group, std::int64_t i, std::int64_t j);

}  // namespace assay::scalar
