#pragma once
// Attribute words that several ops share.

#include <string>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/layout/offsets.h"
#include "reference/layout/scale_shape.h"
#include "reference/recipes/delayed_scaling.h"
#include "reference/recipes/quantize.h"
#include "reference/types/error.h"

namespace assay::conformance {

inline Recipe recipe_of(const Request& request) {
  const std::string name = request.text("recipe");
  const auto recipe = recipe_named(name);
  if (!recipe) {
    throw InvalidArgument("attribute recipe", "'" + name + "'",
                          "tensor_current, tensor_delayed, block_1x128, block_128x128, mxfp8 or nvfp4");
  }
  return *recipe;
}

inline ScaleLayout scale_layout_of(const Request& request) {
  const std::string name = request.text_or("scale_layout", "compact");
  if (name == "compact") return ScaleLayout::compact;
  if (name == "swizzled") return ScaleLayout::swizzled;
  throw InvalidArgument("attribute scale_layout", "'" + name + "'", "compact or swizzled");
}

inline Direction direction_of(const Request& request) {
  const std::string name = request.text_or("direction", "rowwise");
  if (name == "rowwise") return Direction::rowwise;
  if (name == "columnwise") return Direction::columnwise;
  throw InvalidArgument("attribute direction", "'" + name + "'", "rowwise or columnwise");
}

inline const float* floats(const TensorView* tensor) {
  return tensor == nullptr ? nullptr : static_cast<const float*>(tensor->data);
}

// Rows of each group, or all rows as one when there are no splits.
inline std::vector<std::int64_t> group_rows(const Request& request, std::int64_t rows) {
  return request.find_input("splits") == nullptr ? std::vector<std::int64_t>{rows} : request.splits();
}

Activation activation_of(const Request& request);  // of op quantize, or of a layer
// What the attributes determine, for any backend. Reads no tensor's contents.
QuantizeConfig quantize_config_of(const Request& request);  // both directions on
// Columns of the codes of x, which holds two matrices side by side with an activation. Errors (InvalidArgument): no matrix, or an odd
// number of columns for two.
std::int64_t code_columns(const QuantizeConfig& config, const TensorView& x);
// Which kernel's draws, and for which directions it draws: whichever outputs are requested, these words are taken.
QuantizeDraws quantize_draws_of(const Request& request, std::int64_t groups);
DelayedScalingConfig delayed_scaling_config_of(const Request& request);
std::vector<OffsetsOutput> offsets_outputs_of(const Request& request);  // attribute `outputs`; values null

}  // namespace assay::conformance
