#include <cmath>
#include <vector>

#include "reference/recipes/delayed_scaling.h"

namespace assay::scalar {
namespace {

// Tensor `i` of a state. `reduced` is null where there is no reduction.
void update_tensor(const DelayedScalingConfig& config, const DelayedScalingState& state, std::int64_t i, const float* reduced,
                   bool rolls_unused) {
  const auto history = [&](std::int64_t step) -> float& { return state.history[step * state.count + i]; };
  const float last = reduced != nullptr && *reduced != 0 ? *reduced : history(0);

  float window_max = 0;
  if (last != 0 || rolls_unused) {
    for (std::int64_t step = 0; step < state.length; ++step) {
      const float next = step + 1 < state.length ? history(step + 1) : last;
      if (next > window_max) window_max = next;
      history(step) = step == 0 ? 0 : next;
    }
  }
  const float amax = config.algorithm == AmaxAlgorithm::max ? window_max : last;

  const float power = static_cast<float>(std::ldexp(1.0, -config.margin));
  const float scaled_max = max_finite(config.output) * power;
  float scale = state.scale[i];
  if (std::isfinite(amax) && amax > 0) scale = scaled_max / amax;
  if (std::isinf(scale)) scale = max_finite(Format::f32);
  state.scale[i] = scale;
}

}  // namespace

void update_delayed_scaling(const DelayedScalingConfig& config, const DelayedScalingState& state) {
  check_delayed_scaling(config, {&state, 1}, nullptr);
  for (std::int64_t i = 0; i < state.count; ++i) update_tensor(config, state, i, nullptr, true);
}

void update_delayed_scaling_bulk(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                                 const float* reduced_amax) {
  check_delayed_scaling(config, states, reduced_amax);
  for (const DelayedScalingState& state : states) {
    for (std::int64_t i = 0; i < state.count; ++i) {
      update_tensor(config, state, i, reduced_amax, false);
      if (reduced_amax != nullptr) ++reduced_amax;
    }
  }
}

}  // namespace assay::scalar
