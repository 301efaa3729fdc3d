#include "reference/recipes/delayed_scaling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "reference/recipes/checks.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

// Tensors side by side in one pass over the history: what the loop below keeps of each stays in the nearest cache.
constexpr std::int64_t kStrip = 512;

struct Update {
  float scaled_max;
  bool most_recent;
  bool rolls_unused;  // the plain form
};

// 2^-margin to f32: 0 from 2^-150 downward, infinity from 2^128 upward.
float power_of_two(int exponent) {
  if (exponent > 127) return std::bit_cast<float>(0x7f80'0000u);
  if (exponent >= -126) return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  if (exponent >= -149) return std::bit_cast<float>(1u << (exponent + 149));
  return 0;
}

// `count` tensors of a state, row by row of the history. A tensor that is left out of the roll has its rows written
// back as they were.
ASSAY_CLONES void update_strip(const Update& update, float* history, std::int64_t length, std::int64_t stride, std::int64_t count,
                               const float* reduced, float* scale) {
  float last[kStrip], largest[kStrip];
  bool rolls[kStrip];
  for (std::int64_t i = 0; i < count; ++i) {
    last[i] = reduced != nullptr && reduced[i] != 0 ? reduced[i] : history[i];
    rolls[i] = update.rolls_unused || last[i] != 0;
    largest[i] = 0;
  }
  for (std::int64_t step = 0; step < length; ++step) {
    float* const row = history + step * stride;
    const float* const next_row = step + 1 < length ? row + stride : last;
    for (std::int64_t i = 0; i < count; ++i) {
      const float next = next_row[i];
      largest[i] = rolls[i] && next > largest[i] ? next : largest[i];
      row[i] = !rolls[i] ? row[i] : step == 0 ? 0.0f : next;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float amax = update.most_recent ? last[i] : largest[i];
    const bool usable = amax > 0 && amax < std::bit_cast<float>(0x7f80'0000u);
    const float chosen = usable ? update.scaled_max / amax : scale[i];
    const bool infinite = (std::bit_cast<std::uint32_t>(chosen) & 0x7fff'ffff) == 0x7f80'0000;
    scale[i] = infinite ? std::bit_cast<float>(0x7f7f'ffffu) : chosen;
  }
}

void update_state(const DelayedScalingConfig& config, const DelayedScalingState& state, const float* reduced, bool rolls_unused) {
  const Update update = {max_finite(config.output) * power_of_two(-config.margin), config.algorithm == AmaxAlgorithm::most_recent,
                         rolls_unused};
  for (std::int64_t i = 0; i < state.count; i += kStrip) {
    update_strip(update, state.history + i, state.length, state.count, std::min(kStrip, state.count - i),
                 reduced == nullptr ? nullptr : reduced + i, state.scale + i);
  }
}

}  // namespace

void check_delayed_scaling(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                           const float* reduced_amax) {
  require(config.output == Format::e4m3 || config.output == Format::e5m2, "output", name_of(config.output), "e4m3 or e5m2");
  require(config.algorithm <= AmaxAlgorithm::most_recent, "algorithm", static_cast<std::uint32_t>(config.algorithm),
          "max (0) or most_recent (1)");
  require(config.margin >= -1000 && config.margin <= 1000, "margin", config.margin, "a value from -1000 to 1000");
  std::int64_t tensors = 0;
  for (std::size_t s = 0; s < states.size(); ++s) {
    const DelayedScalingState& state = states[s];
    const std::string name = "states[" + show(s) + "]";
    require(state.length >= 1, name + ".length", state.length, "a value of at least 1");
    require(state.count >= 0, name + ".count", state.count, "a value of at least 0");
    const std::int64_t entries = checked_product(state.length, state.count, name + ".length", state.length);
    checked_product(entries, sizeof(float), name + ".length", state.length);
    require_buffer(state.history, entries, sizeof(float), name + ".history");
    require_buffer(state.scale, state.count, sizeof(float), name + ".scale");
    tensors = checked_sum(tensors, state.count, name + ".count", state.count);
  }
  require_aligned(reduced_amax, tensors, sizeof(float), "reduced_amax");
}

void update_delayed_scaling(const DelayedScalingConfig& config, const DelayedScalingState& state) {
  check_delayed_scaling(config, {&state, 1}, nullptr);
  update_state(config, state, nullptr, true);
}

void update_delayed_scaling_bulk(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                                 const float* reduced_amax) {
  check_delayed_scaling(config, states, reduced_amax);
  for (const DelayedScalingState& state : states) {
    update_state(config, state, reduced_amax, false);
    if (reduced_amax != nullptr) reduced_amax += state.count;
  }
}

}  // namespace assay
