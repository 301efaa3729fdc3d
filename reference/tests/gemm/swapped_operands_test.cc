// A product computed as D^T = B^T A^T has the bits of D, under the plan whose terms have rows and columns exchanged (spec plans-1.8).

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/tests/gemm/logical_problem.h"

namespace assay {
namespace {

using logical::Setting;

// Finite codes of mixed sign and size.
std::uint32_t code_of(Format type, std::uint64_t random) {
  const auto low = static_cast<std::uint32_t>(random);
  switch (type) {
    case Format::bf16: return (low & 0x8000) | (0x3E00 + (low & 0x1FF));
    case Format::f16: return (low & 0x8000) | (0x3000 + (low & 0xFFF));
    case Format::e4m3: return (low & 0x80) | (0x28 + (low & 0x1F));
    case Format::e5m2: return (low & 0x80) | (0x34 + (low & 0xF));
    default: return low & 0xF;
  }
}

std::uint32_t scale_of(GemmKind kind, std::uint64_t random) {
  const auto low = static_cast<std::uint32_t>(random);
  if (kind == GemmKind::mxfp8) return 124 + (low & 7);
  if (kind == GemmKind::nvfp4) return 0x30 + (low & 0x1F);
  return 0x3E80'0000 + (low & 0xFF'FFFF);
}

struct Swapped {
  const char* what;
  GemmKind kind;
  Format a, b;
  const char *plan, *other;  // the plan of D, and that of the transposed product
  bool vectors;
  float alpha;
  bool same;  // false: other bits, in some element
};
void PrintTo(const Swapped& each, std::ostream* out) { *out << each.what; }

// One group of x [m, K] by w [n, K]; `turned` exchanges the two.
std::vector<float> product(const Swapped& each, bool turned, const char* plan) {
  const std::int64_t m = 19, n = 23, K = 272;
  Setting s;
  s.kind = each.kind;
  s.rows_type = turned ? each.b : each.a, s.columns_type = turned ? each.a : each.b;
  s.splits = {turned ? n : m};
  s.N = turned ? m : n, s.K = K;
  s.weight_block = WeightBlock::b1x128;
  s.row_and_column_scales = each.vectors;
  if (each.kind == GemmKind::mxfp8 || each.kind == GemmKind::nvfp4) s.architecture = "sm100";
  logical::Problem p(s);
  const auto which_of = [&](int which) { return static_cast<std::uint64_t>(turned ? 1 - which : which); };
  p.fill_codes([&](int which, std::int64_t, std::int64_t i, std::int64_t k) {
    const std::uint64_t at = which_of(which) << 40 | static_cast<std::uint64_t>(i << 20 | k);
    return code_of(which_of(which) == 0 ? each.a : each.b, logical::mixed(at));
  });
  p.fill_scales([&](int which, std::int64_t, std::int64_t at) {
    return scale_of(each.kind, logical::mixed(which_of(which) << 50 | static_cast<std::uint64_t>(at)));
  });
  (turned ? p.columns : p.rows).groups[0].amax = 3.3f;
  (turned ? p.rows : p.columns).groups[0].amax = 0.7f;
  GroupedGemmProblem& problem = p.stored();
  problem.alpha = std::span(&each.alpha, 1);
  problem.plan = find_accumulation_plan(plan);
  std::vector<float> d(static_cast<std::size_t>(m * n));
  grouped_gemm(problem, d.data());
  if (!turned) return d;
  std::vector<float> straight(d.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) straight[static_cast<std::size_t>(i * n + j)] = d[static_cast<std::size_t>(j * m + i)];
  }
  return straight;
}

constexpr Format bf16 = Format::bf16, f16 = Format::f16, e4m3 = Format::e4m3, e5m2 = Format::e5m2, e2m1 = Format::e2m1;
constexpr const char* kFp8 = "unit=sm90.wgmma.fp8";
#define ASSAY_FP8(rest) "unit=sm90.wgmma.fp8," rest
const Swapped kCases[] = {
    // clang-format off
    {"bf16", GemmKind::bf16, bf16, bf16, "unit=sm90.wgmma.f16", "unit=sm90.wgmma.f16", false, 1.7f, true},
    {"f16", GemmKind::f16, f16, f16, "unit=sm90.wgmma.f16", "unit=sm90.wgmma.f16", false, 1, true},
    {"mixed types", GemmKind::fp8_per_tensor, e4m3, e5m2, kFp8, kFp8, false, 1, true},
    {"mixed types, promoted", GemmKind::fp8_per_tensor, e5m2, e4m3, ASSAY_FP8("promote=128"), ASSAY_FP8("promote=128"), false, 0.5f, true},
    {"alpha beside two scales", GemmKind::fp8_per_tensor, e4m3, e4m3, kFp8, kFp8, false, 1.1f, false},
    {"vectors, rows first", GemmKind::fp8_per_tensor, e4m3, e4m3, ASSAY_FP8("scale_vectors=rows_first"), ASSAY_FP8("scale_vectors=cols_first"), true, 1.7f, true},
    {"vectors, scales first", GemmKind::fp8_per_tensor, e4m3, e4m3, ASSAY_FP8("scale_vectors=scales_first"), ASSAY_FP8("scale_vectors=scales_first"), true, 1.7f, true},
    {"vectors, not exchanged", GemmKind::fp8_per_tensor, e4m3, e4m3, ASSAY_FP8("scale_vectors=rows_first"), ASSAY_FP8("scale_vectors=rows_first"), true, 1, false},
    {"blocks, scales first", GemmKind::fp8_block, e4m3, e4m3, ASSAY_FP8("promote=128,association=scales_first"), ASSAY_FP8("promote=128,association=scales_first"), false, 1, true},
    {"blocks, rows first", GemmKind::fp8_block, e4m3, e5m2, ASSAY_FP8("promote=128,association=rows_first"), ASSAY_FP8("promote=128,association=cols_first"), false, 1.7f, true},
    {"blocks, columns first", GemmKind::fp8_block, e4m3, e4m3, ASSAY_FP8("promote=64,association=cols_first"), ASSAY_FP8("promote=64,association=rows_first"), false, 1, true},
    {"blocks, rescaled", GemmKind::fp8_block, e4m3, e4m3, ASSAY_FP8("promote=128,association=rescale_by_ratio"), ASSAY_FP8("promote=128,association=rescale_by_ratio"), false, 1, true},
    {"blocks, not exchanged", GemmKind::fp8_block, e4m3, e4m3, ASSAY_FP8("promote=128,association=rows_first"), ASSAY_FP8("promote=128,association=rows_first"), false, 1, false},
    {"mxfp8", GemmKind::mxfp8, e4m3, e5m2, "sm100.mxfp8.chain", "sm100.mxfp8.chain", false, 1.7f, true},
    {"nvfp4", GemmKind::nvfp4, e2m1, e2m1, "sm100.nvfp4.chain", "sm100.nvfp4.chain", false, 0.25f, true},
    {"nvfp4, alpha beside two amaxes", GemmKind::nvfp4, e2m1, e2m1, "sm100.nvfp4.chain", "sm100.nvfp4.chain", false, 1.1f, false},
    // clang-format on
};
#undef ASSAY_FP8

class SwappedOperands : public testing::TestWithParam<Swapped> {};

TEST_P(SwappedOperands, GiveTheSameBitsUnderTheExchangedPlan) {
  const Swapped& each = GetParam();
  const std::vector<float> straight = product(each, false, each.plan), turned = product(each, true, each.other);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < straight.size(); ++i) differ += std::memcmp(&straight[i], &turned[i], 4) != 0;
  EXPECT_EQ(differ == 0, each.same) << differ << " of " << straight.size();
}

INSTANTIATE_TEST_SUITE_P(Plans, SwappedOperands, testing::ValuesIn(kCases));

}  // namespace
}  // namespace assay
