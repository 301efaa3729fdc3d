// Plans that flush subnormals (spec plans-1.9): promotions and scale vectors written out in exact arithmetic, over scales among which
// some are subnormal, and some have a subnormal product with one another or with a sum.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/tests/gemm/expected_gemm.h"

namespace assay {
namespace {

using logical::Expected;
using logical::Matrix;

// What is flushed; all three, as the clause says, or without one of them.
struct Flushes {
  bool scales = true, products = true, results = true;
};

float zeroed(bool flushes, float value) {
  return flushes && std::fpclassify(value) == FP_SUBNORMAL ? (std::signbit(value) ? -0.0f : 0.0f) : value;
}

// RN(a * b): a double holds the product of two floats of these sizes exactly, but for those below 2^-1074, of which there are none.
float times(const Flushes& flush, float a, float b) {
  return zeroed(flush.products, static_cast<float>(static_cast<double>(a) * b));
}

float element(const AccumulationPlan& plan, const logical::Problem& p, const Flushes& flush, std::int64_t i, std::int64_t j) {
  const Expected exact{plan, p};
  const Matrix& a = p.rows.groups[0];
  const Matrix& b = p.columns.groups[0];
  const TensorCoreUnit& unit = *find_tensor_core_unit(plan.unit);
  const auto scale = [&](const Matrix& m, std::int64_t line, std::int64_t k) {
    return zeroed(flush.scales, Expected::number32(m.scale(line, k)));
  };
  if (plan.scale_vectors != ScaleVectors::none) {
    const float sum = exact.slice(unit, a, i, b, j, 0, a.depth);  // no subnormal is among the sums of FP8
    const float row = scale(a, i, 0), column = scale(b, j, 0);
    if (plan.scale_vectors == ScaleVectors::scales_first)
      return zeroed(flush.results, static_cast<float>(static_cast<double>(sum) * times(flush, row, column)));
    const bool rows_first = plan.scale_vectors == ScaleVectors::rows_first;
    const float first = times(flush, sum, rows_first ? row : column);
    return zeroed(flush.results, static_cast<float>(static_cast<double>(first) * (rows_first ? column : row)));
  }
  float acc = 0;
  for (std::int64_t k = 0; k < a.depth; k += 128) {
    const float t = exact.chain(unit, a, i, b, j, k, std::min<std::int64_t>(k + 128, a.depth));
    const float row = scale(a, i, k), column = scale(b, j, k);
    float first = 0, second = 0;
    switch (plan.promotion) {
      case Promotion::fma_scales_first: first = times(flush, row, column), second = t; break;
      case Promotion::fma_rows_first: first = times(flush, t, row), second = column; break;
      default: first = times(flush, t, column), second = row; break;
    }
    acc = zeroed(flush.results, Expected::fma_exact(first, second, acc));
  }
  return acc;
}

// Scales from 2^-140 to 2^9, of either sign: two of them meet 2^-126 from both sides.
std::uint32_t scale_of(std::uint64_t random) {
  constexpr int kExponents[] = {-140, -128, -126, -125, -70, -64, -62, -56, 0, 9};
  const auto value = std::ldexp(1.0f + static_cast<float>(random >> 20 & 0xFFF) / 4096, kExponents[random % 10]);
  return std::bit_cast<std::uint32_t>((random >> 40 & 3) == 0 ? -value : value);
}

struct Flushing {
  const char* line;
  GemmKind kind;
};

class FlushedSubnormals : public testing::TestWithParam<Flushing> {};

TEST_P(FlushedSubnormals, BothLayersHaveTheBitsOfTheClause) {
  logical::Setting s;
  s.kind = GetParam().kind;
  s.rows_type = s.columns_type = Format::e4m3;
  s.splits = {37};
  s.N = 80, s.K = 400;
  s.weight_block = WeightBlock::b1x128;
  s.row_and_column_scales = s.kind == GemmKind::fp8_per_tensor;
  s.d_type = Format::f32;
  logical::Problem p(s);
  p.fill_codes([](int which, std::int64_t, std::int64_t i, std::int64_t k) {
    const std::uint64_t random =
        logical::mixed(static_cast<std::uint64_t>(which) << 40 | static_cast<std::uint64_t>(i << 20 | k));
    return static_cast<std::uint32_t>((random & 0x80) | (random & (i % 2 == 0 ? 0x0F : 0x77)));  // small sums and large ones
  });
  p.fill_scales([](int which, std::int64_t, std::int64_t at) {
    return scale_of(logical::mixed(static_cast<std::uint64_t>(which) << 50 | static_cast<std::uint64_t>(at)));
  });
  GroupedGemmProblem& problem = p.stored();
  const AccumulationPlan* plan = find_accumulation_plan(GetParam().line);
  ASSERT_NE(plan, nullptr);
  problem.plan = plan;
  std::vector<float> fast(37 * 80), scalar(37 * 80);
  grouped_gemm(problem, fast.data());
  scalar::grouped_gemm(problem, scalar.data());
  int without_scales = 0, without_products = 0, without_results = 0, zeros = 0;
  for (std::int64_t i = 0; i < 37; ++i) {
    for (std::int64_t j = 0; j < 80; ++j) {
      const auto at = static_cast<std::size_t>(i * 80 + j);
      const auto differs = [&](const Flushes& flush) {
        return std::bit_cast<std::uint32_t>(element(*plan, p, flush, i, j)) != std::bit_cast<std::uint32_t>(scalar[at]);
      };
      EXPECT_FALSE(differs({})) << i << ", " << j << ": " << scalar[at] << ", expected " << element(*plan, p, {}, i, j);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(fast[at]), std::bit_cast<std::uint32_t>(scalar[at])) << i << ", " << j;
      without_scales += differs({false, true, true});
      without_products += differs({true, false, true});
      without_results += differs({true, true, false});
      zeros += scalar[at] == 0;
    }
  }
  EXPECT_GT(without_scales, 5) << "the data do not show whether scales are flushed";
  EXPECT_GT(without_products, 5) << "the data do not show whether products are flushed";
  EXPECT_GT(without_results, 5) << "the data do not show whether results are flushed";
  EXPECT_LT(zeros, 37 * 80 * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, FlushedSubnormals,
    testing::Values(Flushing{"unit=sm90.wgmma.fp8,promote=128,association=scales_first,subnormals=flushed", GemmKind::fp8_block},
                    Flushing{"unit=sm90.wgmma.fp8,promote=128,association=rows_first,subnormals=flushed", GemmKind::fp8_block},
                    Flushing{"unit=sm90.wgmma.fp8,promote=128,association=cols_first,subnormals=flushed", GemmKind::fp8_block},
                    Flushing{"unit=sm90.wgmma.fp8,scale_vectors=rows_first,subnormals=flushed", GemmKind::fp8_per_tensor},
                    Flushing{"unit=sm90.wgmma.fp8,scale_vectors=cols_first,subnormals=flushed", GemmKind::fp8_per_tensor},
                    Flushing{"unit=sm90.wgmma.fp8,promote=128,scale_vectors=scales_first,subnormals=flushed",
                             GemmKind::fp8_per_tensor}));

}  // namespace
}  // namespace assay
