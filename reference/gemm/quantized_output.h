#pragma once
// D in FP8 (spec grouped-gemm-2.7): the value that an f32 D has, times the scale of its group, rounded and saturated.

#include "reference/gemm/problem.h"

namespace assay {

inline bool is_quantized_output(Format d_type) { return d_type == Format::e4m3 || d_type == Format::e5m2; }

// The same problem with D in f32, under the plan of `view`.
GroupedGemmProblem with_f32_output(const GroupedGemmProblem& problem, const GroupedGemmView& view);

// D of `problem` from the D in f32 of the same shape, in the elements of groups; the others keep what they hold.
void quantize_output(const GroupedGemmView& view, const float* values, void* d);
namespace scalar {
void quantize_output(const GroupedGemmView& view, const float* values, void* d);
}  // namespace scalar

}  // namespace assay
