#pragma once
// Delayed scaling: next step's scale from the amax of the steps before (spec per-tensor-2.1). The cast itself is
// tensor_delayed in quantize.h. An amax history is a matrix [length, count] of f32, newest first: history[0] is the
// amax of this step, which the cast raised. For each of the `count` tensors by itself, with MAX = 448 (e4m3) or 57344
// (e5m2):
//
//   scaled_max = fl(MAX * fl(2^-margin))
//   last       = history[0], or the reduced amax if there is one and it is not 0 (NaN is not 0)
//   window     = history[1], ..., history[length-1], last
//   history    = 0, history[2], ..., history[length-1], last      rolled by one, slot 0 cleared
//   amax       = max: the largest of the window and 0, NaN passed over;   most_recent: last
//   scale      = fl(scaled_max / amax)       if amax is finite and above 0, else the old scale
//   scale      = FLT_MAX                     if that is infinite, the old scale included
//
// The bulk form (spec per-tensor-2.2) leaves the history of a tensor with last = 0 (not used in this step) as it is, and its
// scale but for the last line; the plain form always rolls. Neither writes scale_inv: the next cast does.

#include <cstdint>
#include <span>

#include "reference/types/format.h"

namespace assay {

enum class AmaxAlgorithm : std::uint32_t { max = 0, most_recent = 1 };

struct DelayedScalingConfig {
  Format output = Format::e4m3;  // e4m3 or e5m2: whose MAX
  AmaxAlgorithm algorithm = AmaxAlgorithm::max;
  int margin = 0;
};

// What belongs to one recipe state: `count` tensors with a history of the same length. Both buffers are updated in
// place.
struct DelayedScalingState {
  float* history = nullptr;  // [length, count]
  float* scale = nullptr;    // [count]
  std::int64_t length = 0;   // 1 or more
  std::int64_t count = 0;
};

// The plain form. Errors (InvalidArgument, before anything is written): another type or algorithm, length below 1, a
// negative count, sizes past int64, null or misaligned buffers where there are elements.
void update_delayed_scaling(const DelayedScalingConfig& config, const DelayedScalingState& state);

// The bulk form, for any number of states. `reduced_amax` is null, or holds the amax of this step after a reduction
// over devices: the tensors of the first state, then those of the second, and so on.
void update_delayed_scaling_bulk(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                                 const float* reduced_amax);

// The checks that both make.
void check_delayed_scaling(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                           const float* reduced_amax);

namespace scalar {
void update_delayed_scaling(const DelayedScalingConfig& config, const DelayedScalingState& state);
void update_delayed_scaling_bulk(const DelayedScalingConfig& config, std::span<const DelayedScalingState> states,
                                 const float* reduced_amax);
}  // namespace scalar

}  // namespace assay
