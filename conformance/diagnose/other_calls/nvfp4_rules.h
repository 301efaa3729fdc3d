#pragma once
// Quantization to NVFP4 with one rule changed: plain loops over the lines of the stored matrix, 16 elements a block.

#include <cstdint>
#include <optional>
#include <span>

#include "conformance/diagnose/other_calls/diagnosis.h"
#include "reference/recipes/quantize.h"

namespace assay::conformance::diagnosis {

enum class FourOrSix { by_error, four, six, four_where_equal };

struct Nvfp4Rules {
  float (*tensor_scale)(float scale) = nullptr;                                       // of the right one; null: as it is
  std::uint8_t (*block_scale)(float amax, float tensor_scale) = nullptr;              // null: the right one
  float (*product)(float x, std::uint8_t block_scale, float tensor_scale) = nullptr;  // null: x * multiplier
  std::uint8_t (*code)(float product) = nullptr;                                      // null: to nearest even, saturating
  FourOrSix four_or_six = FourOrSix::by_error;
  bool amax_before_transform = false;  // the amax of x serves the transformed columns too
  bool transform_along_rows = false;   // 16 columns of a row are transformed, not 16 rows of a column
  bool random_in_order_of_x = false;   // columnwise random bytes are taken in the order of x
};

struct NamedNvfp4Rules {
  const char* text;
  bool (*applies)(const QuantizeConfig& config);
  Nvfp4Rules rules;
};
std::span<const NamedNvfp4Rules> nvfp4_rules();  // the table, the most plausible rows first

// The output of the suspect's call under these rules: a copy of the expected output with every element in use recomputed. Nothing
// for other ops, recipes and outputs. Errors: those of an invalid call.
std::optional<Tensor> quantized_nvfp4_by(const Nvfp4Rules& rules, const Suspect& suspect);

}  // namespace assay::conformance::diagnosis
