#pragma once
// What the position of a microbatch in its step decides (spec grouped-linear-2.2, grouped-linear-2.3). `is_first_microbatch` is
// nothing where the caller does not count microbatches. Under a captured skip flag it plays no part within the graph: the
// flag in device memory tells, replay by replay.

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
//   nothing said          fresh
//   first, or another     renewed, or kept
WeightUse weight_use(std::optional<bool> is_first_microbatch, bool skip_flag_captured);

// The skip flag to set before a replay: 0 (renew) for the first microbatch, 1 (skip) for the others.
// Errors (InvalidArgument): nothing said.
float weight_skip_flag(std::optional<bool> is_first_microbatch);

// Whether wgrad adds to the main gradient: the first microbatch of a step overwrites, the others add, and nothing said
// means add. Under a captured flag every microbatch adds, and the caller clears the gradient before a step.
struct MainGradient {
  bool fused = true;           // false: wgrad writes a gradient of its own
  bool overwrite = false;      // the weight asks for it: never add
  std::optional<bool> is_first_microbatch = {};
  bool skip_flag_captured = false;
};
bool accumulates(const MainGradient& gradient);

}  // namespace assay
