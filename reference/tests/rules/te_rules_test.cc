// The rules of TransformerEngine as formulas against the recipes, which share no code with them: every code and scale.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "reference/recipes/quantize.h"
#include "reference/tests/rules/rule_case.h"

namespace assay {
namespace {

using namespace rules_suite;

struct Pair {
  const char* preset;
  Recipe recipe;
  bool pow2;
  BlockShape block;
  ScaleStorage storage;
};

// Storages in which the scales of a single tensor of 4 n rows and 4 n blocks lie as those of the recipe do.
constexpr ScaleStorage kRows{ScaleStorage::Order::k_major, false}, kColumnsFirst{ScaleStorage::Order::tma_aligned, false};
const Pair kPairs[] = {
    {"te", Recipe::block_1x128, false, {1, 128}, kColumnsFirst},
    {"te.pow2", Recipe::block_1x128, true, {1, 128}, kColumnsFirst},
    {"te", Recipe::block_128x128, false, {128, 128}, kRows},
    {"te.pow2", Recipe::block_128x128, true, {128, 128}, kRows},
    {"te.per_tensor", Recipe::tensor_current, false, {0, 0}, kRows},
    {"te.mx", Recipe::mxfp8, false, {1, 32}, kRows},
    {"nvfp4.te", Recipe::nvfp4, false, {1, 16}, kRows},
};

class TransformerEngineRules : public testing::TestWithParam<Pair> {};

TEST_P(TransformerEngineRules, GiveTheBitsOfTheRecipe) {
  const Pair& pair = GetParam();
  const ScaleRule* rule = find_scale_rule(pair.preset);
  ASSERT_NE(rule, nullptr);
  for (const Format x_type : {Format::bf16, Format::f16, Format::f32}) {
    for (const Format output : rule->outputs) {
      for (const Data data : {Data::spread, Data::specials, Data::tiny, Data::zeros, Data::bits}) {
        Case c{.rule = rule, .output = output, .block = pair.block, .storage = pair.storage, .x_type = x_type};
        c.splits = {128};
        c.columns = 512;
        c.grouped = false;
        c.data = data;
        c.seed = 77;
        const std::vector<std::uint8_t> x = make_x(c, 128);

        QuantizeProblem problem;
        problem.config.recipe = pair.recipe;
        problem.config.output = output;
        problem.config.force_pow_2_scales = pair.pow2;
        problem.x_type = x_type;
        problem.x = x.data();
        problem.rows = 128;
        problem.columns = c.columns;
        const QuantizeShapes shapes = quantize_outputs(problem);
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(shapes.rowwise_data.bytes()), 0xA5);
        std::vector<std::uint8_t> scales(static_cast<std::size_t>(shapes.rowwise_scale_inv.bytes()), 0xA5);
        QuantizeOutput output_of_recipe;
        output_of_recipe.rowwise_data = codes.data();
        output_of_recipe.rowwise_scale_inv = scales.data();
        quantize(problem, output_of_recipe);

        for (const Layer layer : {Layer::scalar, Layer::fast}) {
          Outputs got = run(c, layer, 0xA5, x);
          got.data.resize(got.data.size() - 16);
          got.scale.resize(got.scale.size() - 16);
          EXPECT_EQ(got.data, codes) << testing::PrintToString(c);
          EXPECT_EQ(got.scale, scales) << testing::PrintToString(c);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, TransformerEngineRules, testing::ValuesIn(kPairs), [](const auto& info) {
  std::string name = std::string(info.param.preset) + "_" + std::string(name_of(info.param.recipe));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace assay
