#pragma once
// The arguments that every step of a grouped linear layer has: the recipe with its options, and the shape.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/types/format.h"
#include "reference/types/recipe.h"

namespace assay {

enum class LinearRecipe : std::uint32_t { none = 0, tensor_current = 1, tensor_delayed = 2, block = 3, mxfp8 = 4, nvfp4 = 5 };

// Whether one scale serves a whole tensor or group.
constexpr bool is_per_tensor(LinearRecipe recipe) {
  return recipe == LinearRecipe::tensor_current || recipe == LinearRecipe::tensor_delayed;
}

// "none", "tensor_current", ... Errors: a value that is not a recipe.
std::string_view name_of(LinearRecipe recipe);
std::optional<LinearRecipe> linear_recipe_named(std::string_view name);

// Options of another recipe are ignored: mxfp8 does not use powers of two or epsilon (spec grouped-linear-1.2).
struct LinearConfig {
  LinearRecipe recipe = LinearRecipe::none;
  Format type = Format::bf16;              // of x, w, bias, y, dy, dx, dbias: bf16 or f16
  Format forward_code = Format::e4m3;      // of q(x) and q(w): e4m3 or e5m2 (nvfp4: always e2m1)
  Format backward_code = Format::e4m3;     // of q(dy)
  std::optional<bool> force_pow_2_scales;  // tensor_current, block; not set: powers_of_two()
  float amax_epsilon = 0;                  // tensor_current, block: 0 or more
  std::uint16_t hadamard_sign_mask = 0;    // nvfp4: bit i set, element i of 16 is negated before the transform
  // block: x of forward and wgrad is what it makes of gate and up, which are given (spec grouped-linear-1.5).
  Activation activation = Activation::off;
  std::string_view architecture = "sm90";  // whose arithmetic; mxfp8 and nvfp4 need one that has them, such as "sm100"

  // If not set, the default of the frameworks: true for block scaling, false for current scaling (spec per-tensor-1.1).
  bool powers_of_two() const { return force_pow_2_scales.value_or(recipe == LinearRecipe::block); }
};

struct LinearShape {
  std::span<const std::int64_t> splits;  // [G] rows of each group
  std::int64_t rows = 0;                 // R, at least the sum of the splits
  std::int64_t N = 0;                    // output features
  std::int64_t K = 0;                    // input features
};

}  // namespace assay
