#include "reference/types/recipe.h"

#include <iterator>

#include "reference/types/error.h"
#include "reference/types/named.h"

namespace assay {
namespace {

constexpr std::string_view kRecipeNames[] = {"tensor_current", "tensor_delayed", "block_1x128",
                                             "block_128x128",  "mxfp8",          "nvfp4"};

constexpr std::string_view kActivationNames[] = {"off", "swiglu"};

}  // namespace

std::string_view name_of(Recipe recipe) {
  const auto index = static_cast<std::uint32_t>(recipe);
  require(index < std::size(kRecipeNames), "recipe", index, "one of the recipes of reference/types/recipe.h (0 to 5)");
  return kRecipeNames[index];
}

std::optional<Recipe> recipe_named(std::string_view name) { return named<Recipe>(kRecipeNames, name); }

std::string_view name_of(Activation activation) {
  const auto index = static_cast<std::uint32_t>(activation);
  require(index < std::size(kActivationNames), "activation", index, "off (0) or swiglu (1)");
  return kActivationNames[index];
}

std::optional<Activation> activation_named(std::string_view name) { return named<Activation>(kActivationNames, name); }

}  // namespace assay
