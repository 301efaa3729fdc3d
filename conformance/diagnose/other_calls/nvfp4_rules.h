#pragma once
// Quantization to NVFP4 with one rule changed: plain loops over the lines of the stored matrix, 16 elements a block.

#include <cstdint>
#include <optional>
#include <span>

#include "conformance/diagnose/other_calls/diagnosis.h"
#include "reference/recipes/quantize.h"

namespace assay::conformance::diagnosis {

// Whose amax G a group takes.
enum class AmaxFrom { own, tensor, group_before, first_group };
// Whose block scale a block takes: `blocks` further along its line, or `lines` further; and where it is taken.
struct OtherBlock {
  int blocks = 0, lines = 0;
  bool for_codes = true, for_storage = true;
};

enum class FourOrSix { by_error, four, six, four_where_equal };

struct Nvfp4Rules {
  float (*tensor_scale)(float scale) = nullptr;                                       // of the right one; null: as it is
  std::uint8_t (*block_scale)(float amax, float tensor_scale) = nullptr;              // null: the right one
  float (*product)(float x, std::uint8_t block_scale, float tensor_scale) = nullptr;  // null: x * multiplier
  std::uint8_t (*code)(float product) = nullptr;                                      // null: to nearest even, saturating
  FourOrSix four_or_six = FourOrSix::by_error;
  float largest = 0;                  // M of 6M / G; 0: the right one
  bool codes_by_exact_scale = false;  // codes are made with the block scale before it is rounded
  AmaxFrom amax_from = AmaxFrom::own;
  OtherBlock other = {};
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
