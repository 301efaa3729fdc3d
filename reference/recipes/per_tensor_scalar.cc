#include <vector>

#include "reference/recipes/element_scalar.h"
#include "reference/recipes/per_tensor.h"

namespace assay::scalar {

float scale_from_amax(float amax, float max, bool pow2, float epsilon, float overflow) {
  if (amax < epsilon) amax = epsilon;
  if (amax == 0 || std::isinf(amax) || std::isnan(amax)) return 1;
  float scale = max / amax;
  if (std::isinf(scale)) scale = overflow;
  const std::uint32_t kept = pow2 ? 0xff80'0000 : 0xffff'ffff;  // clears the mantissa
  scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & kept);
  return scale;
}

void quantize_per_tensor(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeConfig& config = problem.config;
  const std::int64_t columns = problem.columns;
  const float max = max_finite(config.output), overflow = max_finite(Format::f32);
  const std::vector<std::int64_t> groups = group_rows(problem);

  std::int64_t base = 0;  // first element of the group
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const std::int64_t rows = groups[t];
    float amax = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i) amax = accumulate_absmax(amax, load(problem.x_type, problem.x, base + i));
    const float scale = config.recipe == Recipe::tensor_delayed
                            ? problem.scale[t]
                            : scale_from_amax(amax, max, config.force_pow_2_scales, config.amax_epsilon, overflow);

    if (output.amax != nullptr) output.amax[t] = amax;
    if (output.scale != nullptr && config.recipe == Recipe::tensor_current) output.scale[t] = scale;
    if (output.rowwise_scale_inv != nullptr) {
      static_cast<float*>(output.rowwise_scale_inv)[t] = canonical(1 / scale);
    }
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float x = load(problem.x_type, problem.x, base + i);
      const std::uint8_t code = quantize_element(config.output, x, scale, config.zero_sign);
      const std::int64_t r = i / columns, c = i % columns;
      if (config.rowwise) static_cast<std::uint8_t*>(output.rowwise_data)[base + i] = code;
      if (config.columnwise) static_cast<std::uint8_t*>(output.columnwise_data)[base + c * rows + r] = code;
    }
    base += rows * columns;
  }
}

}  // namespace assay::scalar
