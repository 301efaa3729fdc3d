#pragma once
// Quantization to FP8 with one rule changed: plain loops over blocks, for the recipes whose scale comes from one amax.

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "conformance/diagnose/other_calls/diagnosis.h"
#include "reference/recipes/quantize.h"

namespace assay::conformance::diagnosis {

// The inputs of a rule.
struct QuantizeCall {
  Recipe recipe = Recipe::tensor_current;
  Format output = Format::e4m3, x_type = Format::bf16;
  bool pow2 = false;
  float eps = 0;
};

// The scale of a block: what elements are multiplied by, and what is stored.
struct BlockScale {
  float multiplier = 1;
  std::uint32_t stored = 0;  // f32 bits or the e8m0 code
};

struct QuantizeRules {
  float (*amax)(std::span<const float> block) = nullptr;                // null: the largest |x|, NaN ignored
  BlockScale (*scale)(const QuantizeCall& call, float amax) = nullptr;  // null: right_scale
  float (*product)(float x, const BlockScale& scale) = nullptr;         // null: RN(x * multiplier)
  float (*rounded)(float product) = nullptr;                            // null: as it is
  std::uint8_t (*code)(Format output, float product) = nullptr;         // null: to nearest even, saturating
};
BlockScale right_scale(const QuantizeCall& call, float amax);

struct NamedRules {
  const char* text;
  bool (*applies)(const QuantizeCall& call);
  QuantizeRules rules;
};
std::span<const NamedRules> quantize_rules();  // the table, the most plausible rows first

// The output of the suspect's call under these rules: a copy of the expected output with every element in use recomputed. Nothing
// for other ops, recipes and outputs. Errors: those of an invalid call.
std::optional<Tensor> quantized_by(const QuantizeRules& rules, const Suspect& suspect);
std::optional<QuantizeCall> quantize_call_of(const Suspect& suspect);

}  // namespace assay::conformance::diagnosis
