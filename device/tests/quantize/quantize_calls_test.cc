// Calls of quantize() and dequantize() that are refused before anything is launched.

#include <gtest/gtest.h>

#include <string>

#include "device/dequantize/dequantize.h"
#include "device/quantize/quantize.h"

namespace assay::device {
namespace {

alignas(256) std::int64_t memory[512];  // stands for device memory, which is not read

// NVFP4 of 32 x 32 elements by draws of te_2d, in both directions; all that it needs is given.
QuantizeCall drawn_call() {
  QuantizeCall call;
  call.config.recipe = Recipe::nvfp4;
  call.config.output = Format::e2m1;
  call.config.columnwise = true;
  call.config.two_dimensional = true;
  call.config.stochastic_rounding = true;
  call.x = memory;
  call.rows.capacity = 32;
  call.columns = 32;
  call.draws = {RandomDraws::te_2d, true, true, memory};
  call.output.rowwise_data = call.output.columnwise_data = memory;
  return call;
}

// What a call is refused with; "" where it is refused for its workspace, the last thing that is checked.
std::string refusal(const QuantizeCall& call) {
  try {
    quantize(call, nullptr);
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    return what.starts_with("workspace_bytes is 0") ? "" : what;
  }
  return "taken";
}

TEST(QuantizeCall, WithDrawsIsChecked) {
  EXPECT_EQ(refusal(drawn_call()), "");
  const struct {
    void (*change)(QuantizeCall&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {[](QuantizeCall& call) { call.draws.assignment = static_cast<RandomDraws>(4); }, "draws is 4: expected one of RandomDraws (0 to 3)"},
      {[](QuantizeCall& call) { call.config.stochastic_rounding = false; }, "draws is te_2d: expected given without stochastic_rounding"},
      {[](QuantizeCall& call) { call.config.two_dimensional = false; }, "two_dimensional is false: expected true with draws te_2d"},
      {[](QuantizeCall& call) { call.draws.assignment = RandomDraws::te_tuned_1d; }, "two_dimensional is true: expected false with draws te_tuned_1d"},
      {[](QuantizeCall& call) { call.x_type = Format::f32; }, "x_type is f32: expected bf16 with draws te_2d"},
      {[](QuantizeCall& call) { call.config.hadamard = true, call.config.two_dimensional = false; }, "hadamard is true: expected false with draws te_2d"},
      {[](QuantizeCall& call) { call.draws.rowwise = false; }, "rowwise is true: expected false where nothing is drawn for it"},
      {[](QuantizeCall& call) { call.draws.columnwise = false; }, "columnwise is true: expected false where nothing is drawn for it"},
      {[](QuantizeCall& call) {
         call.draws = {RandomDraws::te_tuned_1d, false, true, memory};
         call.config.two_dimensional = call.config.rowwise = false;
       }, "draws.rowwise is false: expected true with draws te_tuned_1d"},
      {[](QuantizeCall& call) { call.draws.state = nullptr; }, "draws.state is null"},
      {[](QuantizeCall& call) { call.draws.state = reinterpret_cast<const std::int64_t*>(reinterpret_cast<char*>(memory) + 4); }, "draws.state is misaligned"},
      {[](QuantizeCall& call) { call.draws = {}; }, "rowwise_random is null"},
  };
  // clang-format on
  for (const auto& row : rows) {
    QuantizeCall call = drawn_call();
    row.change(call);
    EXPECT_TRUE(refusal(call).starts_with(row.reported)) << refusal(call);
  }
}

// The state is not read where there are no elements or no groups.
TEST(QuantizeCall, WithoutElementsNeedsNoState) {
  for (const bool grouped : {false, true}) {
    QuantizeCall call = drawn_call();
    call.draws.state = nullptr;
    grouped ? (void)(call.rows.splits = memory, call.rows.groups = 0) : (void)(call.rows.capacity = 0);
    EXPECT_EQ(refusal(call), "");
  }
}

TEST(QuantizeCall, HasColumnAlignmentsOfBlocksAlone) {
  QuantizeCall call = drawn_call();
  call.column_alignment = 16;
  EXPECT_EQ(refusal(call), "column_alignment is 16: expected 1, but for recipes of FP8 blocks");
  QuantizeCall blocks;
  blocks.config.columnwise = true;
  blocks.x = memory;
  blocks.rows.capacity = 32, blocks.columns = 32;
  blocks.output.columnwise_data = reinterpret_cast<char*>(memory) + 8;
  for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
    blocks.config.recipe = recipe;
    for (const std::int64_t wrong : {0, -16, 2, 8, 32}) {
      blocks.column_alignment = wrong;
      EXPECT_EQ(refusal(blocks), "column_alignment is " + std::to_string(wrong) + ": expected 1 or 16");
    }
    blocks.column_alignment = 16;
    EXPECT_TRUE(refusal(blocks).starts_with("output.columnwise_data is misaligned")) << refusal(blocks);
  }
}

// The reference may have recipes for which no kernel was written.
TEST(Calls, OfARecipeWithoutKernelsAreNotSupported) {
  QuantizeCall call = drawn_call();
  call.config.recipe = static_cast<Recipe>(6);
  EXPECT_THROW(quantize(call, nullptr), NotSupported);
  EXPECT_THROW(quantize_workspace_bytes(call), NotSupported);
  DequantizeCall back;
  back.recipe = static_cast<Recipe>(6);
  EXPECT_THROW(dequantize(back, nullptr), NotSupported);
  try {
    quantize(call, nullptr);
  } catch (const NotSupported& error) {
    EXPECT_EQ(error.what(), std::string("recipe is 6: the device has kernels for tensor_current to nvfp4 (0 to 5)"));
  }
}

}  // namespace
}  // namespace assay::device
