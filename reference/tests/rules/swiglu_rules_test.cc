// SwiGLU in front of block scaling against the formulas of a kernel that fuses it: its preset's activation, which equals what that
// kernel gave on a GPU, with the rule of TransformerEngine behind it. The recipes share no code with formulas.

#include <gtest/gtest.h>

#include <cstring>

#include "reference/recipes/quantize.h"
#include "reference/tests/rules/rule_case.h"

namespace assay {
namespace {

using namespace rules_suite;

struct Direction128 {
  Recipe recipe;
  bool rowwise;
  BlockShape block;
  ScaleStorage storage;  // in which the scales of 4 n rows and 4 n blocks lie as those of the recipe do
};
constexpr ScaleStorage kRows{ScaleStorage::Order::k_major, false}, kColumnsFirst{ScaleStorage::Order::tma_aligned, false};
constexpr Direction128 kDirections[] = {{Recipe::block_1x128, true, {1, 128}, kColumnsFirst},
                                        {Recipe::block_1x128, false, {128, 1}, kRows},
                                        {Recipe::block_128x128, true, {128, 128}, kRows},
                                        {Recipe::block_128x128, false, {128, 128}, kColumnsFirst}};

std::string row_of(const char* activation, const char* rule) {
  return "name=both blocks=1x128,128x1,128x128 outputs=e4m3,e5m2 activation=\"" + find_scale_rule(activation)->activation_text +
         "\" rule=\"" + find_scale_rule(rule)->text + "\" source=\"this test\"";
}

void expect_bits_of_recipe(const Case& c, const Direction128& direction, bool pow2, const std::vector<std::uint8_t>& x) {
  const Outputs want = run(c, rules_suite::Layer::scalar, 0xA5, x);
  QuantizeProblem problem;
  problem.config.recipe = direction.recipe;
  problem.config.output = c.output;
  problem.config.rowwise = direction.rowwise;
  problem.config.columnwise = !direction.rowwise;
  problem.config.force_pow_2_scales = pow2;
  problem.config.activation = Activation::swiglu;
  problem.x_type = c.x_type;
  problem.x = x.data();
  problem.rows = c.splits[0];
  problem.columns = c.columns;
  for (const bool fast : {false, true}) {
    std::vector<std::uint8_t> codes(want.data.size(), 0xA5), scales(want.scale.size(), 0xA5);
    QuantizeOutput output;
    (direction.rowwise ? output.rowwise_data : output.columnwise_data) = codes.data();
    (direction.rowwise ? output.rowwise_scale_inv : output.columnwise_scale_inv) = scales.data();
    fast ? quantize(problem, output) : scalar::quantize(problem, output);
    EXPECT_EQ(codes, want.data) << testing::PrintToString(c) << (fast ? " fast" : " scalar");
    EXPECT_EQ(scales, want.scale) << testing::PrintToString(c) << (fast ? " fast" : " scalar");
  }
}

TEST(SwigluRules, TheRecipeHasTheActivationOfSglangAndVllm) {
  for (const bool pow2 : {false, true}) {
    const auto rules = parse_scale_rules(row_of("sglang.swiglu.triton", pow2 ? "te.pow2" : "te"), "rows");
    for (const Direction128& direction : kDirections) {
      for (const Format x_type : {Format::bf16, Format::f16}) {
        for (const Data data : {Data::spread, Data::specials, Data::tiny, Data::zeros, Data::bits}) {
          Case c{.rule = &rules[0], .output = pow2 ? Format::e5m2 : Format::e4m3, .block = direction.block};
          c.storage = direction.storage;
          c.transposed = !direction.rowwise;
          c.x_type = x_type;
          c.splits = {128};
          c.grouped = false;
          c.columns = 512;
          c.data = data;
          c.seed = 91;
          expect_bits_of_recipe(c, direction, pow2, make_x(c, 128));
        }
      }
    }
  }
}

// An exact quotient, as vLLM's masked kernel has it, rounds to the same bf16 for every gate.
TEST(SwigluRules, OfBf16ItIsAlsoThatOfAnExactQuotient) {
  const auto rules = parse_scale_rules(row_of("vllm.swiglu.masked", "te"), "rows");
  Case c{.rule = &rules[0], .block = {1, 128}, .storage = kColumnsFirst, .splits = {512}, .grouped = false, .columns = 128};
  std::vector<std::uint8_t> x(512 * 256 * 2);
  for (std::uint32_t gate = 0; gate < 0x10000; ++gate) {
    const auto code = static_cast<std::uint16_t>(gate);
    const std::uint16_t ups[] = {0x3F80, 0xBF81, 0x4000, 0x3FC1};
    std::memcpy(&x[(gate / 128 * 256 + gate % 128) * 2], &code, 2);
    std::memcpy(&x[(gate / 128 * 256 + 128 + gate % 128) * 2], &ups[gate % 4], 2);
  }
  expect_bits_of_recipe(c, kDirections[0], false, x);
}

}  // namespace
}  // namespace assay
