// The common call: shapes of the outputs of every recipe, refused calls, the skip flag, outputs left out.

#include "reference/recipes/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reference/types/error.h"

namespace assay {
namespace {

constexpr Recipe kRecipes[] = {Recipe::tensor_current, Recipe::tensor_delayed, Recipe::block_1x128,
                               Recipe::block_128x128,  Recipe::mxfp8,          Recipe::nvfp4};

struct QuantizeLayer {
  const char* name;
  void (*quantize)(const QuantizeProblem&, const QuantizeOutput&);
};
constexpr QuantizeLayer kLayers[] = {{"scalar", scalar::quantize}, {"fast", quantize}};

// A problem of 160 x 144 bf16 with every input that a recipe can need, and memory for every output.
class Call {
 public:
  explicit Call(Recipe recipe, bool grouped = true, std::uint8_t poison = 0xa5) : poison_(poison) {
    for (std::size_t i = 0; i < x_.size(); ++i)
      x_[i] = static_cast<std::uint16_t>(0x3f00 + i * 37 % 256 + (i % 3 == 0 ? 0x8000 : 0));
    problem.config.recipe = recipe;
    problem.config.output = recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e4m3;
    problem.config.columnwise = true;
    problem.config.dbias = true;
    problem.x = x_.data();
    problem.rows = 160;
    problem.columns = 144;
    problem.grouped = grouped;
    problem.splits = splits_;
    problem.scale = scale_;
    for (std::size_t i = 0; i < std::size(kPointers); ++i) output.*kPointers[i] = buffer(i);
    output.amax = reinterpret_cast<float*>(buffer(5));
    output.columnwise_amax = reinterpret_cast<float*>(buffer(6));
    output.scale = reinterpret_cast<float*>(buffer(7));
  }

  bool untouched() const {
    return std::all_of(memory_.begin(), memory_.end(), [this](std::uint8_t byte) { return byte == poison_; });
  }
  const std::vector<std::uint8_t>& memory() const { return memory_; }
  // Bytes of output i of the order below.
  std::vector<std::uint8_t> bytes(std::size_t i) const {
    return {memory_.begin() + static_cast<std::ptrdiff_t>(i * kRoom),
            memory_.begin() + static_cast<std::ptrdiff_t>((i + 1) * kRoom)};
  }

  QuantizeProblem problem;
  QuantizeOutput output;

 private:
  static constexpr void* QuantizeOutput::*kPointers[] = {&QuantizeOutput::rowwise_data, &QuantizeOutput::columnwise_data,
                                                         &QuantizeOutput::rowwise_scale_inv,
                                                         &QuantizeOutput::columnwise_scale_inv, &QuantizeOutput::dbias};
  static constexpr std::size_t kRoom = 1 << 17;
  std::uint8_t* buffer(std::size_t i) { return memory_.data() + i * kRoom; }

  std::uint8_t poison_;
  std::vector<std::uint16_t> x_ = std::vector<std::uint16_t>(160 * 144);
  std::vector<std::int64_t> splits_ = {32, 0, 96, 16};  // 144 of the 160 rows
  float scale_[4] = {1, 2, 0.5f, 3};
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(8 * kRoom, poison_);
};

// ---- Names and shapes
// -------------------------------------------------------------------------------------------------

TEST(RecipeNames, GoBothWays) {
  for (const Recipe recipe : kRecipes) EXPECT_EQ(recipe_named(name_of(recipe)), recipe);
  EXPECT_EQ(recipe_named("block_1d"), std::nullopt);
  EXPECT_EQ(recipe_named(""), std::nullopt);
  EXPECT_THROW(name_of(static_cast<Recipe>(6)), InvalidArgument);
}

std::string text(const OutputShape& shape) {
  if (shape.rank == 0) return "-";
  std::string out = std::string(name_of(shape.type)) + "[" + std::to_string(shape.shape[0]);
  if (shape.rank == 2) out += "," + std::to_string(shape.shape[1]);
  return out + "]";
}
std::string text(const QuantizeShapes& s) {
  return text(s.rowwise_data) + " " + text(s.columnwise_data) + " " + text(s.rowwise_scale_inv) + " " +
         text(s.columnwise_scale_inv) + " " + text(s.amax) + " " + text(s.columnwise_amax) + " " + text(s.scale) + " " +
         text(s.dbias);
}

struct ShapeCase {
  Recipe recipe;
  bool grouped;
  const char* want;  // rowwise and columnwise data, their scales, amax, columnwise amax, scale, dbias
};
void PrintTo(const ShapeCase& c, std::ostream* out) { *out << name_of(c.recipe) << (c.grouped ? " grouped" : " single"); }

class Shapes : public ::testing::TestWithParam<ShapeCase> {};
TEST_P(Shapes, AsFixturesStoreThem) {
  const Call call(GetParam().recipe, GetParam().grouped);
  EXPECT_EQ(text(quantize_outputs(call.problem)), GetParam().want);
}
// 160 x 144; groups of 32, 0, 96 and 16 rows. Scales by hand from spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1.
const ShapeCase kShapes[] = {
    {Recipe::tensor_current, false, "e4m3[160,144] e4m3[144,160] f32[1] - f32[1] - f32[1] bf16[1,144]"},
    {Recipe::tensor_delayed, false, "e4m3[160,144] e4m3[144,160] f32[1] - f32[1] - - bf16[1,144]"},
    {Recipe::block_1x128, false, "e4m3[160,144] e4m3[144,160] f32[2,160] f32[2,144] - - - bf16[1,144]"},
    {Recipe::block_128x128, false, "e4m3[160,144] e4m3[144,160] f32[2,4] f32[2,4] - - - bf16[1,144]"},
    {Recipe::mxfp8, false, "e4m3[160,144] e4m3[160,144] e8m0[256,8] e8m0[8,256] - - - bf16[1,144]"},
    {Recipe::nvfp4, false, "e2m1[160,72] e2m1[144,80] e4m3[256,12] e4m3[256,12] f32[1] f32[1] - bf16[1,144]"},
    {Recipe::tensor_current, true, "e4m3[160,144] e4m3[23040] f32[4] - f32[4] - f32[4] bf16[4,144]"},
    {Recipe::tensor_delayed, true, "e4m3[160,144] e4m3[23040] f32[4] - f32[4] - - bf16[4,144]"},
    {Recipe::block_1x128, true, "e4m3[160,144] e4m3[23040] f32[288] f32[432] - - - bf16[4,144]"},
    {Recipe::block_128x128, true, "e4m3[160,144] e4m3[23040] f32[12] f32[24] - - - bf16[4,144]"},
    {Recipe::mxfp8, true, "e4m3[160,144] e4m3[160,144] e8m0[3072] e8m0[3072] - - - bf16[4,144]"},
    {Recipe::nvfp4, true, "e2m1[160,72] e2m1[11520] e4m3[4608] e4m3[4096] f32[4] f32[4] - bf16[4,144]"},
};
INSTANTIATE_TEST_SUITE_P(Recipes, Shapes, ::testing::ValuesIn(kShapes));

TEST(ShapesOfADirection, FollowTheConfiguration) {
  for (const Recipe recipe : kRecipes) {
    Call call(recipe);
    call.problem.config.columnwise = call.problem.config.dbias = false;
    const QuantizeShapes rowwise = quantize_outputs(call.problem);
    EXPECT_EQ(
        rowwise.columnwise_data.rank + rowwise.columnwise_scale_inv.rank + rowwise.columnwise_amax.rank + rowwise.dbias.rank, 0);
    EXPECT_EQ(rowwise.rowwise_data.rank, 2);
    call.problem.config.columnwise = true;
    call.problem.config.rowwise = false;
    const QuantizeShapes columnwise = quantize_outputs(call.problem);
    EXPECT_EQ(columnwise.rowwise_data.rank, 0);
    EXPECT_NE(columnwise.columnwise_data.rank, 0);
    EXPECT_EQ(columnwise.rowwise_scale_inv.rank, recipe <= Recipe::tensor_delayed ? 1 : 0) << "the one scale_inv serves both";
  }
}

// ---- The flag -------------------------------------------------------------------------------------------------------

TEST(Noop, ExactlyOneMeansThatNothingIsWritten) {
  for (const QuantizeLayer& layer : kLayers) {
    for (const Recipe recipe : kRecipes) {
      Call plain(recipe);
      layer.quantize(plain.problem, plain.output);
      ASSERT_FALSE(plain.untouched());
      for (const float flag : {1.0f, 0.0f, -1.0f, 2.0f, 0.99999994f, 1.0000001f, NAN, INFINITY}) {
        Call call(recipe);
        call.problem.noop = &flag;
        layer.quantize(call.problem, call.output);
        if (flag == 1.0f) {
          EXPECT_TRUE(call.untouched()) << layer.name << " " << name_of(recipe);
        } else {
          EXPECT_EQ(call.memory(), plain.memory()) << layer.name << " " << name_of(recipe) << " flag " << flag;
        }
      }
    }
  }
}

// ---- Outputs that are not requested
// --------------------------------------------------------------------------------------

// Any output may be left out; the others are unchanged by that.
TEST(OptionalOutputs, LeavingOneOutChangesNoOther) {
  const std::function<void(QuantizeOutput&)> leave_out[] = {[](auto& o) { o.rowwise_data = nullptr; },
                                                            [](auto& o) { o.columnwise_data = nullptr; },
                                                            [](auto& o) { o.rowwise_scale_inv = nullptr; },
                                                            [](auto& o) { o.columnwise_scale_inv = nullptr; },
                                                            [](auto& o) { o.dbias = nullptr; },
                                                            [](auto& o) { o.amax = nullptr; },
                                                            [](auto& o) { o.columnwise_amax = nullptr; },
                                                            [](auto& o) { o.scale = nullptr; }};
  for (const QuantizeLayer& layer : kLayers) {
    for (const Recipe recipe : kRecipes) {
      Call all(recipe);
      layer.quantize(all.problem, all.output);
      const std::vector<std::uint8_t> poison(all.bytes(0).size(), 0xa5);
      for (std::size_t skipped = 0; skipped < std::size(leave_out); ++skipped) {
        Call call(recipe), alone(recipe);
        leave_out[skipped](call.output);
        layer.quantize(call.problem, call.output);
        for (std::size_t i = 0; i < std::size(leave_out); ++i) {
          EXPECT_EQ(call.bytes(i) == (i == skipped ? poison : all.bytes(i)), true)
              << layer.name << " " << name_of(recipe) << ": output " << i << " without output " << skipped;
          if (i != skipped) leave_out[i](alone.output);
        }
        layer.quantize(alone.problem, alone.output);
        EXPECT_EQ(alone.bytes(skipped) == all.bytes(skipped), true)
            << layer.name << " " << name_of(recipe) << ": output " << skipped << " alone";
      }
    }
  }
}

TEST(OptionalOutputs, ADirectionThatIsOffIsNotWritten) {
  for (const QuantizeLayer& layer : kLayers) {
    for (const Recipe recipe : kRecipes) {
      Call all(recipe), rowwise(recipe), neither(recipe);
      layer.quantize(all.problem, all.output);
      rowwise.problem.config.columnwise = false;
      layer.quantize(rowwise.problem, rowwise.output);
      const std::vector<std::uint8_t> poison(all.bytes(0).size(), 0xa5);
      EXPECT_EQ(rowwise.bytes(0), all.bytes(0));
      EXPECT_EQ(rowwise.bytes(1), poison);
      EXPECT_EQ(rowwise.bytes(2), all.bytes(2));
      EXPECT_EQ(rowwise.bytes(3), poison);
      neither.problem.config.rowwise = neither.problem.config.columnwise = false;
      layer.quantize(neither.problem, neither.output);
      for (const std::size_t data_or_block_scale : {0, 1, 3}) EXPECT_EQ(neither.bytes(data_or_block_scale), poison);
      EXPECT_EQ(neither.bytes(4), all.bytes(4)) << "dbias needs no direction";
    }
  }
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

struct Bad {
  const char* why;
  const char* argument;
  Recipe recipe;
  void (*spoil)(Call&);
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << name_of(bad.recipe) << ": " << bad.why; }

template <class Pointer>
Pointer shifted(Pointer pointer) {
  return reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

const std::int64_t kNegative[] = {32, -1, 96}, kTooMany[] = {32, 96, 33}, kOverflow[] = {160, INT64_MAX}, kOdd[] = {31, 33};
const float kBelowZero[] = {1, -0x1p-149f, 2};

class Refused : public ::testing::TestWithParam<Bad> {};

TEST_P(Refused, NamesTheArgumentAndWritesNothing) {
  for (const QuantizeLayer& layer : kLayers) {
    Call call(GetParam().recipe);
    GetParam().spoil(call);
    try {
      layer.quantize(call.problem, call.output);
      FAIL() << layer.name << ": no error";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), GetParam().argument) << layer.name << ": " << error.what();
    }
    EXPECT_TRUE(call.untouched()) << layer.name;
  }
}

constexpr Recipe kBlock = Recipe::block_1x128, kTensor = Recipe::tensor_current, kDelayed = Recipe::tensor_delayed;
constexpr Recipe kMxfp8 = Recipe::mxfp8, kNvfp4 = Recipe::nvfp4;
// clang-format off
const Bad kBad[] = {
    {"unknown recipe", "recipe", kBlock, [](Call& c) { c.problem.config.recipe = static_cast<Recipe>(9); }},
    {"x of 8 bits", "x_type", kBlock, [](Call& c) { c.problem.x_type = Format::e4m3; }},
    {"x of integers", "x_type", kTensor, [](Call& c) { c.problem.x_type = Format::i32; }},
    {"unknown x type", "format", kTensor, [](Call& c) { c.problem.x_type = static_cast<Format>(77); }},
    {"codes of 4 bits", "output", kBlock, [](Call& c) { c.problem.config.output = Format::e2m1; }},
    {"codes of 16 bits", "output", kTensor, [](Call& c) { c.problem.config.output = Format::bf16; }},
    {"codes of 8 bits", "output", kNvfp4, [](Call& c) { c.problem.config.output = Format::e4m3; }},
    {"unknown sign of zero", "zero_sign", kBlock,
     [](Call& c) { c.problem.config.zero_sign = static_cast<ZeroSign>(2); }},
    {"unknown layout", "scale_layout", kMxfp8,
     [](Call& c) { c.problem.config.scale_layout = static_cast<ScaleLayout>(2); }},
    {"swizzled block scales", "scale_layout", kBlock,
     [](Call& c) { c.problem.config.scale_layout = ScaleLayout::swizzled; }},
    {"swizzled scale", "scale_layout", kTensor, [](Call& c) { c.problem.config.scale_layout = ScaleLayout::swizzled; }},
    {"tiles by another option", "two_dimensional", kBlock, [](Call& c) { c.problem.config.two_dimensional = true; }},
    {"powers of two are given", "force_pow_2_scales", kMxfp8,
     [](Call& c) { c.problem.config.force_pow_2_scales = true; }},
    {"no floor", "amax_epsilon", kNvfp4, [](Call& c) { c.problem.config.amax_epsilon = 1; }},
    {"negative floor", "amax_epsilon", kBlock, [](Call& c) { c.problem.config.amax_epsilon = -1; }},
    {"NaN floor", "amax_epsilon", kBlock, [](Call& c) { c.problem.config.amax_epsilon = NAN; }},
    {"transform", "hadamard", kBlock, [](Call& c) { c.problem.config.hadamard = true; }},
    {"transform of f32", "hadamard", kNvfp4,
     [](Call& c) { c.problem.config.hadamard = true, c.problem.x_type = Format::f32; }},
    {"transform of tiles", "hadamard", kNvfp4,
     [](Call& c) { c.problem.config.hadamard = c.problem.config.two_dimensional = true; }},
    {"random rounding", "stochastic_rounding", kMxfp8, [](Call& c) { c.problem.config.stochastic_rounding = true; }},
    {"random rounding without draws", "rowwise_random", kNvfp4,
     [](Call& c) { c.problem.config.stochastic_rounding = true; }},
    {"4 over 6", "four_over_six", kMxfp8,
     [](Call& c) { c.problem.config.four_over_six = FourOverSix::mean_squared_error; }},
    {"unknown 4 over 6", "four_over_six", kNvfp4,
     [](Call& c) { c.problem.config.four_over_six = static_cast<FourOverSix>(3); }},
    {"scale maximum of another recipe", "nvfp4_e4m3_max", kMxfp8,
     [](Call& c) { c.problem.config.nvfp4_e4m3_max = 256; }},
    {"scale maximum without 4 over 6", "nvfp4_e4m3_max", kNvfp4,
     [](Call& c) { c.problem.config.nvfp4_e4m3_max = 256; }},
    {"negative rows", "rows", kBlock, [](Call& c) { c.problem.rows = -1; }},
    {"negative columns", "columns", kTensor, [](Call& c) { c.problem.columns = -1; }},
    {"more elements than int64 counts", "rows", kBlock,
     [](Call& c) { c.problem.rows = c.problem.columns = std::int64_t{1} << 40; }},
    {"bytes past int64", "rows", kTensor,
     [](Call& c) { c.problem.rows = std::int64_t{1} << 61, c.problem.columns = 1; }},
    {"padding past int64", "columns", kBlock,
     [](Call& c) { c.problem.rows = 0, c.problem.columns = INT64_MAX, c.problem.grouped = false; }},
    {"negative split", "splits[1]", kBlock, [](Call& c) { c.problem.splits = kNegative; }},
    {"more rows than x has", "splits[2]", kTensor, [](Call& c) { c.problem.splits = kTooMany; }},
    {"splits whose sum wraps", "splits[1]", kBlock, [](Call& c) { c.problem.splits = kOverflow; }},
    {"codes that straddle rows", "columns", kNvfp4, [](Call& c) { c.problem.columns = 143; }},
    {"codes that straddle columns", "splits[0]", kNvfp4, [](Call& c) { c.problem.splits = kOdd; }},
    {"null x", "x", kBlock, [](Call& c) { c.problem.x = nullptr; }},
    {"misaligned x", "x", kTensor, [](Call& c) { c.problem.x = shifted(c.problem.x); }},
    {"null scale", "scale", kDelayed, [](Call& c) { c.problem.scale = nullptr; }},
    {"misaligned scale", "scale", kDelayed, [](Call& c) { c.problem.scale = shifted(c.problem.scale); }},
    {"misaligned flag", "noop", kBlock, [](Call& c) { c.problem.noop = shifted(c.problem.scale); }},
    {"misaligned amax", "amax", kNvfp4, [](Call& c) { c.problem.amax = shifted(c.problem.scale); }},
    {"negative amax", "amax[1]", kNvfp4, [](Call& c) { c.problem.amax = kBelowZero; }},
    {"negative amax", "columnwise_amax[1]", kNvfp4, [](Call& c) { c.problem.columnwise_amax = kBelowZero; }},
    {"misaligned scales", "output.rowwise_scale_inv", kBlock,
     [](Call& c) { c.output.rowwise_scale_inv = shifted(c.output.rowwise_scale_inv); }},
    {"misaligned scales", "output.columnwise_scale_inv", kBlock,
     [](Call& c) { c.output.columnwise_scale_inv = shifted(c.output.columnwise_scale_inv); }},
    {"misaligned amax", "output.amax", kTensor, [](Call& c) { c.output.amax = shifted(c.output.amax); }},
    {"misaligned scale", "output.scale", kTensor, [](Call& c) { c.output.scale = shifted(c.output.scale); }},
    {"misaligned dbias", "output.dbias", kMxfp8, [](Call& c) { c.output.dbias = shifted(c.output.dbias); }},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Calls, Refused, ::testing::ValuesIn(kBad));

// ---- Nothing to do
// ----------------------------------------------------------------------------------------------------

TEST(Empty, NoElementsNeedNoPointers) {
  for (const QuantizeLayer& layer : kLayers) {
    for (const Recipe recipe : kRecipes) {
      for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 144}, {160, 0}}) {
        QuantizeProblem problem;
        problem.config.recipe = recipe;
        problem.config.output = recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e5m2;
        problem.config.columnwise = true;
        const float scale = 3;
        problem.scale = &scale;
        problem.rows = rows;
        problem.columns = columns;
        float scale_inv = -1, amax = -1;
        QuantizeOutput output;
        output.amax = &amax;
        if (recipe <= Recipe::tensor_delayed) output.rowwise_scale_inv = &scale_inv;
        layer.quantize(problem, output);
        if (recipe > Recipe::tensor_delayed) continue;
        EXPECT_EQ(scale_inv, recipe == Recipe::tensor_current ? 1.0f : 1.0f / 3.0f) << "amax 0 gives scale 1";
        EXPECT_EQ(amax, 0.0f);
      }
    }
  }
}

// A matrix without columns may have any number of rows: no loop may run over them.
TEST(Empty, RowsWithoutColumnsCostNothing) {
  for (const QuantizeLayer& layer : kLayers) {
    for (const Recipe recipe : {Recipe::tensor_current, Recipe::block_1x128, Recipe::block_128x128}) {
      QuantizeProblem problem;
      problem.config.recipe = recipe;
      problem.config.columnwise = true;
      problem.rows = std::int64_t{1} << 61;
      problem.columns = 0;
      std::uint8_t code = 0xa5;
      float scale = 0;
      QuantizeOutput output;
      output.rowwise_data = output.columnwise_data = &code;
      output.rowwise_scale_inv = output.columnwise_scale_inv = &scale;
      layer.quantize(problem, output);
      EXPECT_EQ(code, 0xa5);
    }
  }
}

}  // namespace
}  // namespace assay
