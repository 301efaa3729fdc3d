#include "reference/linear/microbatch.h"

#include "reference/types/error.h"

namespace assay {

WeightUse weight_use(std::optional<bool> is_first_microbatch, bool skip_flag_captured) {
  if (skip_flag_captured) return WeightUse::by_flag;
  if (!is_first_microbatch.has_value()) return WeightUse::fresh;
  return *is_first_microbatch ? WeightUse::renewed : WeightUse::kept;
}

float weight_skip_flag(std::optional<bool> is_first_microbatch) {
  require(is_first_microbatch.has_value(), "is_first_microbatch", "not given",
          "true or false where weights are cached under a flag");
  return *is_first_microbatch ? 0.0f : 1.0f;
}

bool accumulates(const MainGradient& gradient) {
  if (!gradient.fused || gradient.overwrite) return false;
  return gradient.skip_flag_captured || !gradient.is_first_microbatch.value_or(false);
}

}  // namespace assay
