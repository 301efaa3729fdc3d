#pragma once
// The scale updates on the device: reference/recipes/delayed_scaling.h, and amax and scale of current scaling separately.

#include <cstdint>

#include "device/layout/groups.h"
#include "device/support/error.h"
#include "device/support/stream.h"
#include "reference/recipes/delayed_scaling.h"

namespace assay::device {

// From (history [length, count], scale [count]) to (new_history, new_scale), which may be the same memory. `reduced` [count]
// or null: bulk form only. All device pointers.
struct DelayedUpdateCall {
  DelayedScalingConfig config;
  bool bulk = false;
  std::int64_t length = 0, count = 0;
  const float* history = nullptr;
  const float* scale = nullptr;
  const float* reduced = nullptr;
  float* new_history = nullptr;
  float* new_scale = nullptr;
};
void update_delayed_scaling(const DelayedUpdateCall& call, Stream stream);

// amax [G] = max |x| of each group, NaN passed over, 0 for an empty group. `noop` as in quantize(). Writes amax only.
void grouped_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop, float* amax,
                  std::uint32_t* status, Stream stream);

// scale [G] and scale_inv [G] of spec per-tensor-1.1 from amax [G], with the overflow value FLT_MAX; either may be null.
void scale_from_amax(const float* amax, int groups, Format output, bool pow2, float epsilon, const float* noop, float* scale,
                     float* scale_inv, Stream stream);

}  // namespace assay::device
