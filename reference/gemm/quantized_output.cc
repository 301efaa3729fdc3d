#include "reference/gemm/quantized_output.h"

#include "reference/formats/encode.h"
#include "reference/recipes/element_scalar.h"
#include "reference/support/parallel.h"

namespace assay {

GroupedGemmProblem with_f32_output(const GroupedGemmProblem& problem, const GroupedGemmView& view) {
  GroupedGemmProblem wide = problem;
  wide.d_type = Format::f32;
  wide.d_scale = nullptr;
  wide.plan = view.plan;
  return wide;
}

void quantize_output(const GroupedGemmView& view, const float* values, void* d) {
  auto* codes = static_cast<std::uint8_t*>(d);
  for (const GroupView& group : view.groups) {
    const auto width = static_cast<std::size_t>(group.n);
    parallel_for(group.m, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = group.d_offset + i * group.n;
        encode_scaled(view.d_type, {values + at, width}, group.d_scale, {codes + at, width});
      }
    });
  }
}

namespace scalar {

void quantize_output(const GroupedGemmView& view, const float* values, void* d) {
  for (const GroupView& group : view.groups) {
    for (std::int64_t i = 0; i < group.m * group.n; ++i) {
      const float scaled = values[group.d_offset + i] * group.d_scale;
      static_cast<std::uint8_t*>(d)[group.d_offset + i] = encode_fp8(view.d_type, scaled);
    }
  }
}

}  // namespace scalar
}  // namespace assay
