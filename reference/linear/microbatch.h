#pragma once
// What depends on the position of a microbatch in its step (spec grouped-linear-2.2, grouped-linear-2.3).
// `is_first_microbatch` is empty where the caller does not count microbatches. It has no effect within a graph captured with
// a skip flag: there the flag in device memory decides, replay by replay.

#include <cstdint>
#include <optional>

namespace assay {

// Where a step takes its quantized weights from.
enum class WeightUse : std::uint32_t {
  fresh = 0,    // quantized for this use, not kept
  renewed = 1,  // quantized into the cache, then used
  kept = 2,     // the cache, as it is
  by_flag = 3,  // the cache, renewed unless the skip flag is 1
};
//   flag captured         by_flag
//   not given             fresh
//   true, or false        renewed, or kept
WeightUse weight_use(std::optional<bool> is_first_microbatch, bool skip_flag_captured);

// The skip flag to set before a replay: 0 (renew) for the first microbatch, 1 (skip) for the others.
// Errors (InvalidArgument): not given.
float weight_skip_flag(std::optional<bool> is_first_microbatch);

// Whether wgrad adds to the main gradient: the first microbatch of a step overwrites, the others add; if not given, wgrad
// adds. With a captured flag every microbatch adds, and the caller clears the gradient before a step.
struct MainGradient {
  bool fused = true;       // false: wgrad writes a gradient of its own
  bool overwrite = false;  // an option of the weight: never add
  std::optional<bool> is_first_microbatch = {};
  bool skip_flag_captured = false;
};
bool accumulates(const MainGradient& gradient);

}  // namespace assay
