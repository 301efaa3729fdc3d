#pragma once
// The recipes of quantization by name, and the choices that go with them. The header NAME.h in reference/recipes/ states the
// numbers of each recipe.

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

enum class Recipe : std::uint32_t {
  tensor_current = 0,  // one scale per tensor or group, from its own amax
  tensor_delayed = 1,  // one scale per tensor or group, given
  block_1x128 = 2,     // FP8, f32 scale for 128 elements along K (rowwise) or along the rows (columnwise)
  block_128x128 = 3,   // FP8, f32 scale for a tile of 128 x 128
  mxfp8 = 4,           // FP8, E8M0 scale for 32 elements
  nvfp4 = 5,           // E2M1, E4M3 scale for 16 elements, f32 scale for the tensor
};

// Whether one scale serves a whole tensor or group.
constexpr bool is_per_tensor(Recipe recipe) { return recipe == Recipe::tensor_current || recipe == Recipe::tensor_delayed; }

// The name used in fixtures and case lines: "block_1x128". Errors (InvalidArgument): a value that is none of these.
std::string_view name_of(Recipe recipe);
std::optional<Recipe> recipe_named(std::string_view name);

enum class ScaleLayout : std::uint32_t { compact = 0, swizzled = 1 };  // swizzled: 128x4 tiles, recipes mxfp8 and nvfp4

// What happens to an exact -0 (x is -0, or a rule makes the product -0).
enum class ZeroSign : std::uint32_t {
  kept = 0,      // -0 becomes the code of -0: a plain multiply
  positive = 1,  // -0 becomes +0: kernels that use fma(x, scale, +0); see spec formats-1.8
};

// NVFP4 4over6: each block is quantized for a largest code of 6 and of 4, and the smaller error wins.
enum class FourOverSix : std::uint32_t { off = 0, mean_absolute_error = 1, mean_squared_error = 2 };

// What a quantization computes before it: of a matrix that holds gate and up side by side, x = silu(gate) * up.
enum class Activation : std::uint32_t { off = 0, swiglu = 1 };

// "off", "swiglu". Errors (InvalidArgument): a value that is none of these.
std::string_view name_of(Activation activation);
std::optional<Activation> activation_named(std::string_view name);

// Matrices that lie side by side in what is given for x.
constexpr int matrices_in_x(Activation activation) { return activation == Activation::off ? 1 : 2; }

// Along which direction elements share a scale, and in which order codes are stored: rowwise along K, columnwise along the rows.
enum class Direction : std::uint32_t { rowwise = 0, columnwise = 1 };

}  // namespace assay
