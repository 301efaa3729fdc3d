// SwiGLU in front of block scaling (spec fp8-block-1.3): values that are known, one layer against the other for every gate, groups, and
// what is refused. reference/tests/rules/swiglu_rules_test.cc compares with the formulas of other libraries.

#include "reference/recipes/swiglu.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/recipes/quantize.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using scalar::decode_bf16;
using scalar::decode_f16;
using scalar::encode_bf16;
using scalar::encode_f16;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Swiglu, KnownValues) {
  const auto of = [](float gate, float up) { return scalar::swiglu(Format::bf16, gate, up); };
  EXPECT_EQ(bits_of(of(0.0f, 1.0f)), bits_of(0.0f));
  EXPECT_EQ(bits_of(of(-0.0f, 1.0f)), bits_of(-0.0f));
  EXPECT_EQ(bits_of(of(0.0f, -2.0f)), bits_of(-0.0f));
  EXPECT_EQ(of(64.0f, 3.0f), 192.0f);          // 1 + e^-64 is 1
  EXPECT_EQ(of(1.0f, 1.0f), 0x1.76p-1f);       // 0.7310586 to 8 bits
  EXPECT_EQ(of(-1.0f, 1.0f), -0x1.14p-2f);     // -0.2689414
  EXPECT_EQ(of(48.0f, 0x1.02p0f), 0x1.84p5f);  // 48.375, in the middle of 48.25 and 48.5: to even
  EXPECT_EQ(of(-200.0f, 1.0f), 0.0f);          // e^200 is infinite
  EXPECT_TRUE(std::signbit(of(-200.0f, 1.0f)));
  EXPECT_EQ(of(kInfinity, 2.0f), kInfinity);
  EXPECT_TRUE(std::isnan(of(-kInfinity, 1.0f)));
  EXPECT_TRUE(std::isnan(of(kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(of(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(of(0.0f, kInfinity)));
  EXPECT_TRUE(std::isnan(of(-200.0f, kInfinity)));
  EXPECT_EQ(scalar::swiglu(Format::f16, 65504.0f, 2.0f), kInfinity);
  EXPECT_EQ(scalar::swiglu(Format::f16, -20.0f, 1.0f), -0x1p-24f);  // -4.1e-8: the smallest of f16
}

// silu is rounded before the product: some of these gates show it.
TEST(Swiglu, IsRoundedTwice) {
  int different = 0;
  for (std::uint32_t code = 0x3F00; code < 0x4100; ++code) {
    const float gate = decode_bf16(static_cast<std::uint16_t>(code));
    const double once = static_cast<double>(gate) / (1 + std::exp(-static_cast<double>(gate))) * 1.2578125;
    different += scalar::swiglu(Format::bf16, gate, 1.2578125f) != decode_bf16(encode_bf16(static_cast<float>(once)));
  }
  EXPECT_GT(different, 50);
  EXPECT_LT(different, 400);
}

// Within an ulp and a half of the exact value, wherever that is normal.
TEST(Swiglu, IsNearTheExactValue) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float gate = decode_bf16(static_cast<std::uint16_t>(code));
    const double exact = static_cast<double>(gate) / (1 + std::exp(-static_cast<double>(gate)));
    if (!std::isfinite(exact) || std::fabs(exact) < 0x1p-120) continue;
    EXPECT_NEAR(scalar::swiglu(Format::bf16, gate, 1.0f) / exact, 1.0, 0.006) << gate;
  }
}

// Every gate of both types beside every kind of up, so that the fast layer's table has each entry compared.
TEST(Swiglu, LayersAgreeForEveryGate) {
  const float ups[] = {1, -1.0078125f, 1.99f, 3.0e-3f, 0, -0.0f, kInfinity, kNan, 0x1p-120f, 3.0e4f};
  for (const Format type : {Format::bf16, Format::f16}) {
    std::vector<std::uint16_t> given(2 * fast::kTile);
    fast::SwigluTile memory;
    for (const float up : ups) {
      for (std::uint32_t first = 0; first < 0x10000; first += fast::kTile) {
        for (std::uint32_t c = 0; c < fast::kTile; ++c) {
          given[c] = static_cast<std::uint16_t>(first + c);
          given[fast::kTile + c] = type == Format::bf16 ? encode_bf16(up) : encode_f16(up);
        }
        const fast::Tile tile = fast::swiglu_tile(type, given.data(), 0, fast::kTile, 1, fast::kTile, memory);
        for (std::uint32_t c = 0; c < fast::kTile; ++c) {
          const auto wide = [&](std::uint16_t code) { return type == Format::bf16 ? decode_bf16(code) : decode_f16(code); };
          const float want = scalar::swiglu(type, wide(given[c]), wide(given[fast::kTile + c]));
          const float got = wide(static_cast<const std::uint16_t*>(tile.x)[c]);
          if (std::isnan(want) && std::isnan(got)) continue;
          ASSERT_EQ(bits_of(got), bits_of(want)) << name_of(type) << " gate " << wide(given[c]) << " up " << up;
        }
      }
    }
  }
}

struct Codes {
  std::vector<std::uint8_t> rows, columns;
  std::vector<float> row_scales, column_scales;
  bool operator==(const Codes&) const = default;
};

Codes quantized(QuantizeProblem problem, const std::vector<std::uint16_t>& x, bool is_fast) {
  problem.x = x.data();
  problem.config.columnwise = true;
  const QuantizeShapes shapes = quantize_outputs(problem);
  Codes codes{std::vector<std::uint8_t>(static_cast<std::size_t>(shapes.rowwise_data.bytes()), 0xA5),
              std::vector<std::uint8_t>(static_cast<std::size_t>(shapes.columnwise_data.bytes()), 0xA5),
              std::vector<float>(static_cast<std::size_t>(shapes.rowwise_scale_inv.elements()), -7),
              std::vector<float>(static_cast<std::size_t>(shapes.columnwise_scale_inv.elements()), -7)};
  const QuantizeOutput output{codes.rows.data(), codes.columns.data(), codes.row_scales.data(), codes.column_scales.data()};
  is_fast ? quantize(problem, output) : scalar::quantize(problem, output);
  return codes;
}

// The activation of each element by itself, and then the recipe without one.
TEST(Swiglu, IsTheSameAsQuantizingItsResult) {
  const std::vector<std::int64_t> splits{3, 0, 140, 128};
  constexpr std::int64_t kRows = 273, kColumns = 300;  // two rows belong to no group
  std::vector<std::uint16_t> given(kRows * 2 * kColumns), x(kRows * kColumns);
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::uint16_t>(i * 40503u + i / 600 * 77u);
  for (const Format type : {Format::bf16, Format::f16}) {
    const auto wide = [&](std::uint16_t code) { return type == Format::bf16 ? decode_bf16(code) : decode_f16(code); };
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const auto gate = static_cast<std::size_t>(r * 2 * kColumns + c);
        const float value = scalar::swiglu(type, wide(given[gate]), wide(given[gate + kColumns]));
        x[static_cast<std::size_t>(r * kColumns + c)] = type == Format::bf16 ? encode_bf16(value) : encode_f16(value);
      }
    }
    for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
      QuantizeProblem problem;
      problem.config.recipe = recipe;
      problem.config.amax_epsilon = 0.01f;
      problem.config.zero_sign = ZeroSign::positive;
      problem.x_type = type;
      problem.rows = kRows, problem.columns = kColumns, problem.grouped = true, problem.splits = splits;
      const Codes want = quantized(problem, x, false);
      problem.config.activation = Activation::swiglu;
      EXPECT_EQ(quantized(problem, given, false), want) << name_of(type) << " " << name_of(recipe) << " scalar";
      EXPECT_EQ(quantized(problem, given, true), want) << name_of(type) << " " << name_of(recipe) << " fast";
    }
  }
}

void expect_refusal(const QuantizeProblem& problem, const std::string& argument) {
  try {
    quantize_outputs(problem);
    FAIL() << argument;
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), argument) << error.what();
  }
}

TEST(Swiglu, RefusesWhatItDoesNotGoWith) {
  QuantizeProblem problem;
  problem.rows = 4, problem.columns = 8;
  problem.config.recipe = Recipe::block_1x128;
  problem.config.activation = Activation::swiglu;
  EXPECT_NO_THROW(quantize_outputs(problem));
  for (const Recipe recipe : {Recipe::tensor_current, Recipe::tensor_delayed, Recipe::mxfp8}) {
    problem.config.recipe = recipe;
    expect_refusal(problem, "activation");
  }
  problem.config.recipe = Recipe::block_128x128;
  problem.x_type = Format::f32;
  expect_refusal(problem, "activation");
  problem.x_type = Format::f16;
  problem.config.dbias = true;
  expect_refusal(problem, "dbias");
  problem.config.dbias = false;
  problem.config.activation = static_cast<Activation>(2);
  expect_refusal(problem, "activation");
  problem.config.activation = Activation::swiglu;
  problem.rows = std::int64_t{1} << 49, problem.columns = 1 << 10;
  expect_refusal(problem, "rows");
  problem.config.activation = Activation::off;
  EXPECT_NO_THROW(quantize_outputs(problem));
}

}  // namespace
}  // namespace assay
