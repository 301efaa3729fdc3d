// The steps after the accumulation (plan.h, spec grouped-gemm-2.1), both layers against elements worked out by hand: an acc of
// -0, which only promotion by FMA can give, and groups without products.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "reference/tests/gemm/logical_problem.h"

namespace assay {
namespace {

using logical::Setting;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallest = 0x1p-149f;

// Words of D; a NaN in `want` stands for the stored one.
std::uint32_t code_of(Format type, float value) {
  if (std::isnan(value)) return type == Format::f32 ? 0x7FFFFFFF : 0x7FFF;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (type == Format::f32) return bits;
  if (type == Format::bf16) return bits >> 16;  // the values of this file are exact in bf16
  if (std::isinf(value)) return (bits >> 16 & 0x8000) | 0x7C00;
  const std::uint32_t magnitude = value == 0 ? 0 : (bits >> 13 & 0x3FFFF) - (112u << 10);
  return (bits >> 16 & 0x8000) | magnitude;
}

struct Layer {
  const char* name;
  void (*run)(const GroupedGemmProblem&, void*);
};
constexpr Layer kLayers[] = {{"scalar", scalar::grouped_gemm}, {"fast", grouped_gemm}};

struct Line {
  float alpha, beta, c;
  float want;
};

// Every element of D has the line's `want`, in both layers; D is filled with C first, which is D itself.
void expect_line(logical::Problem& problem, const Line& line, const std::string& what) {
  GroupedGemmProblem& p = problem.problem;
  const Format type = p.d_type;
  const std::size_t size = static_cast<std::size_t>(bits_of(type)) / 8;
  const MatrixShape shape = grouped_gemm_shape(p);
  const std::int64_t count = shape.rows * shape.columns;
  ASSERT_GT(count, 0);
  p.alpha = std::span(&line.alpha, 1);
  p.beta = std::span(&line.beta, 1);
  for (const Layer& layer : kLayers) {
    std::vector<std::uint8_t> d;
    for (std::int64_t at = 0; at < count; ++at) logical::put(type, d, at, code_of(type, line.c));
    p.c = line.beta == 0 ? nullptr : d.data();
    layer.run(p, d.data());
    for (std::int64_t at = 0; at < count; ++at) {
      std::uint32_t got = 0;
      std::memcpy(&got, &d[static_cast<std::size_t>(at) * size], size);
      ASSERT_EQ(got, code_of(type, line.want))
          << layer.name << ", " << what << ", " << name_of(type) << ": alpha " << line.alpha << " beta " << line.beta << " C "
          << line.c << ", element " << at << ", got 0x" << std::hex << got;
    }
  }
}

constexpr Format kTypes[] = {Format::f32, Format::bf16, Format::f16};

// ---- acc = -0 -----------------------------------------------------------------------------------------------------

// A block's t is -2^-18 and its scales multiply to 2^-140: the product is 2^-158 and rounds to -0 on +0, in every association.
logical::Problem minus_zero(GemmLayout layout, WeightBlock weight_block, Format d_type, std::int64_t depth) {
  Setting s;
  s.kind = GemmKind::fp8_block;
  s.layout = layout;
  s.rows_type = s.columns_type = Format::e4m3;
  s.d_type = d_type;
  s.weight_block = weight_block;
  s.splits = {layout == GemmLayout::NT ? depth : 3};
  s.N = layout == GemmLayout::NN ? depth : 5;
  s.K = layout == GemmLayout::TN ? depth : 6;
  logical::Problem problem(s);
  problem.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) {
    return k % 128 != 7 ? 0u : which == 0 ? 0x81u : 0x01u;  // -2^-9 by 2^-9
  });
  problem.fill_scales([](int, std::int64_t, std::int64_t) { return (127u - 70u) << 23; });
  problem.stored();
  return problem;
}

// clang-format off
constexpr Line kOfMinusZero[] = {
    {1, 0, 9, -0.0f},       // as it is
    {2, 0, 9, 0},           // FMA(-0, 2, +0)
    {0.5f, 0, 9, 0},
    {-1, 0, 9, 0},
    {0, 0, 9, 0},
    {kInf, 0, 9, kNan},
    {-kInf, 0, 9, kNan},
    {kNan, 0, 9, kNan},
    {1, 1, 0, 0},           // -0 + +0
    {1, 1, -0.0f, -0.0f},
    {-1, 1, -0.0f, 0},      // +0 + -0
    {0, 1, -0.0f, -0.0f},
    {1, -1, 0, -0.0f},
    {1, -1, -0.0f, 0},
    {1, 0.5f, -3, -1.5f},
    {-2, 2, kInf, kInf},
    {kInf, 1, 1, kNan},
};
// clang-format on

TEST(epilogue, acc_of_minus_zero) {
  for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
    for (const WeightBlock weight_block : {WeightBlock::b128x128, WeightBlock::b1x128}) {
      for (const std::int64_t depth : {8, 128, 144, 300}) {
        for (const Format type : kTypes) {
          logical::Problem problem = minus_zero(layout, weight_block, type, depth);
          for (const Line& line : kOfMinusZero) {
            expect_line(problem, line, std::string(name_of(layout)) + " over " + std::to_string(depth));
          }
        }
      }
    }
  }
}

// A later block whose t is +0 turns -0 into +0.
TEST(epilogue, block_of_zeros_ends_minus_zero) {
  logical::Problem problem = minus_zero(GemmLayout::TN, WeightBlock::b128x128, Format::f32, 256);
  problem.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) {
    return k != 7 ? 0u : which == 0 ? 0x81u : 0x01u;
  });
  problem.stored();
  expect_line(problem, {1, 0, 9, 0}, "a block of zeros");
}

// A chain that is negative and too small for its output is +0, and so is the sum of such chains.
TEST(epilogue, chains_and_their_sums_are_never_minus_zero) {
  struct Case {
    GemmKind kind;
    Format type;
    std::uint32_t minus, plus;  // codes whose product is as small as can be
    bool split;
  };
  const Case cases[] = {
      {GemmKind::bf16, Format::bf16, 0x8001, 0x0001, false},
      {GemmKind::fp8_per_tensor, Format::e5m2, 0x81, 0x01, false},
      {GemmKind::fp8_per_tensor, Format::e5m2, 0x80, 0x01, true},
      {GemmKind::f16, Format::f16, 0x8000, 0x0001, false},
  };
  for (const Case& each : cases) {
    Setting s;
    s.kind = each.kind;
    s.rows_type = s.columns_type = each.type;
    s.split_accumulator = each.split;
    s.splits = {2};
    s.N = 3;
    s.K = 260;
    logical::Problem problem(s);
    problem.fill_codes([&](int which, std::int64_t, std::int64_t, std::int64_t) { return which == 0 ? each.minus : each.plus; });
    problem.stored();
    const bool vanishes = each.type == Format::bf16 || (each.minus & 1) == 0;
    const float sum = vanishes ? 0.0f : -260 * 0x1p-32f;
    expect_line(problem, {1, 0, 9, sum}, std::string(name_of(each.kind)));
  }
}

// ---- acc = +0, without products -----------------------------------------------------------------------------------

// clang-format off
constexpr Line kWithoutProducts[] = {
    {1, 0, 9, 0},
    {-1, 0, 9, 0},
    {0, 0, 9, 0},
    {kInf, 0, 9, kNan},  // +0 times infinity
    {-kInf, 0, 9, kNan},
    {kNan, 0, 9, kNan},
    {1, 1, -0.0f, 0},
    {0.5f, 1, -0.0f, 0},
    {0, 1, -0.0f, 0},
    {-0.0f, 1, -0.0f, -0.0f},
    {-1, 1, -0.0f, -0.0f},
    {-1, 1, 0, 0},
    {1, -1, 0, 0},
    {-1, -1, 0, -0.0f},
    {1, 0.5f, -3, -1.5f},
    {-7, -2, 3, -6},
    {1, 1, kInf, kInf},
    {1, 1, kNan, kNan},
    {kInf, 1, 1, kNan},
    {kNan, 0.5f, 1, kNan},
};
// clang-format on

TEST(epilogue, without_products) {
  struct Shape {
    GemmLayout layout;
    std::vector<std::int64_t> splits;
    std::int64_t N, K;
  };
  const Shape shapes[] = {
      {GemmLayout::TN, {3, 0, 2}, 70, 0}, {GemmLayout::NN, {3, 0, 2}, 0, 70}, {GemmLayout::NT, {0, 0}, 9, 70}};
  const std::pair<GemmKind, Format> kinds[] = {{GemmKind::bf16, Format::bf16},
                                               {GemmKind::f16, Format::f16},
                                               {GemmKind::fp8_per_tensor, Format::e4m3},
                                               {GemmKind::fp8_block, Format::e5m2},
                                               {GemmKind::mxfp8, Format::e4m3}};
  for (const Shape& shape : shapes) {
    for (const auto& [kind, operand] : kinds) {
      for (const Format type : kTypes) {
        Setting s;
        s.kind = kind, s.layout = shape.layout, s.splits = shape.splits, s.N = shape.N, s.K = shape.K;
        s.rows_type = s.columns_type = operand, s.d_type = type;
        s.architecture = kind == GemmKind::mxfp8 ? "sm100" : "sm90";
        logical::Problem problem(s);
        problem.stored();
        const std::string what = std::string(name_of(kind)) + " " + std::string(name_of(shape.layout));
        for (const Line& line : kWithoutProducts) expect_line(problem, line, what);
        if (type == Format::f32) {
          expect_line(problem, {1, 0.5f, kSmallest, 0}, what);   // ties to even
          expect_line(problem, {1, 0.5f, -kSmallest, 0}, what);  // RN(beta * C) is -0
          expect_line(problem, {-1, 0.5f, -kSmallest, -0.0f}, what);
        }
        if (kind == GemmKind::bf16) continue;
        // There may be no operand to read.
        GroupedGemmProblem& p = problem.problem;
        for (GemmOperand* each : {&p.x, &p.w, &p.dy}) each->data = each->scale_inv = nullptr;
        expect_line(problem, {-1, 1, -0.0f, -0.0f}, what + ", no pointers");
        expect_line(problem, {1, 0, 9, 0}, what + ", no pointers");
      }
    }
  }
}

// A sum of no products is multiplied by alpha but by no scale, whatever the scale is.
TEST(epilogue, whole_scales_without_products) {
  struct Case {
    float s_rows, s_columns;
    Line line;
  };
  // clang-format off
  const Case cases[] = {
      {3, 5, {1, 1, -0.0f, 0}},
      {-3, 5, {1, 1, -0.0f, 0}},
      {-3, 5, {-1, 1, -0.0f, -0.0f}},
      {0, 5, {-1, 1, -0.0f, -0.0f}},
      {kInf, 1, {1, 1, 2, 2}},
      {1, kInf, {1, 0, 9, 0}},
      {kNan, 1, {1, 1, -0.0f, 0}},
      {1, kNan, {-1, 1, -0.0f, -0.0f}},
      {kNan, kInf, {kInf, 1, 2, kNan}},
      {0x1p-100f, 0x1p100f, {0x1p100f, 1, 2, 2}},
  };
  // clang-format on
  for (const Case& each : cases) {
    Setting s;
    s.kind = GemmKind::fp8_per_tensor, s.layout = GemmLayout::NT, s.splits = {0, 0}, s.N = 9, s.K = 70;
    s.rows_type = s.columns_type = Format::e4m3;
    logical::Problem problem(s);
    problem.fill_scales([&](int which, std::int64_t, std::int64_t) {
      return std::bit_cast<std::uint32_t>(which == 0 ? each.s_rows : each.s_columns);
    });
    problem.stored();
    expect_line(problem, each.line, "scales " + std::to_string(each.s_rows) + " and " + std::to_string(each.s_columns));
  }
}

// nvfp4: nor by an amax.
TEST(epilogue, amax_without_products) {
  struct Case {
    float rows, columns;
    bool given;
    Line line;
  };
  const Case cases[] = {
      {3, 5, true, {-1, 1, -0.0f, -0.0f}}, {3, 5, true, {1, 1, -0.0f, 0}},     {0, 0, true, {-1, 1, -0.0f, -0.0f}},
      {kInf, 1, true, {1, 1, 2, 2}},       {1, kNan, true, {1, 0, 9, 0}},      {kNan, kInf, true, {-1, 1, -0.0f, -0.0f}},
      {3, 5, false, {1, 1, -3, -3}},       {3, 5, false, {kInf, 1, -3, kNan}}, {3, 5, false, {1, 0, 9, 0}},
  };
  for (const Case& each : cases) {
    Setting s;
    s.kind = GemmKind::nvfp4, s.layout = GemmLayout::NT, s.splits = {0, 0}, s.N = 8, s.K = 70, s.architecture = "sm100";
    s.rows_type = s.columns_type = Format::e2m1;
    logical::Problem problem(s);
    for (logical::Matrix& m : problem.rows.groups) m.amax = each.rows;
    for (logical::Matrix& m : problem.columns.groups) m.amax = each.columns;
    GroupedGemmProblem& p = problem.stored();
    if (!each.given) p.x.amax = p.dy.amax = nullptr;
    expect_line(problem, each.line, "amax " + std::to_string(each.rows) + " and " + std::to_string(each.columns));
  }
}

}  // namespace
}  // namespace assay
