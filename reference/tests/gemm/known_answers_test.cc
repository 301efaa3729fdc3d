// D of small products worked out by hand (spec tensor-core-4.1): the bits that a unit keeps, where it cuts and rounds, and its
// floor, with both kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"
#include "reference/tests/gemm/gemm_case.h"

// Tables, one row per line.
// clang-format off

namespace assay {
namespace {

using namespace gemm_suite;

struct KnownAnswer {
  const char* what;
  std::string_view unit;
  Format type;
  std::vector<double> a, b;  // powers of two and small sums of them, exact in `type`
  std::uint32_t want;        // bits of D in f32
};
void PrintTo(const KnownAnswer& answer, std::ostream* out) { *out << answer.what << ", " << answer.unit; }

std::uint32_t exact_code(Format type, double value) {
  const Fields f = fields_of(type);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const double magnitude = std::fabs(value);
  const int exponent = std::max(magnitude == 0 ? -bias : std::ilogb(magnitude), 1 - bias);
  const auto units = static_cast<std::uint32_t>(std::ldexp(magnitude, f.mantissa_bits - exponent));
  const std::uint32_t code = units + (static_cast<std::uint32_t>(exponent + bias - 1) << f.mantissa_bits);
  return code | static_cast<std::uint32_t>(std::signbit(value)) << (f.exponent_bits + f.mantissa_bits);
}

class Known : public testing::TestWithParam<KnownAnswer> {};

TEST_P(Known, Answer) {
  const KnownAnswer& answer = GetParam();
  const auto depth = static_cast<std::int64_t>(answer.a.size());
  std::vector<std::uint8_t> x(answer.a.size() * 2), w(answer.a.size() * 2);
  for (std::int64_t k = 0; k < depth; ++k) {
    put(answer.type, x, k, exact_code(answer.type, answer.a[static_cast<std::size_t>(k)]));
    put(answer.type, w, k, exact_code(answer.type, answer.b[static_cast<std::size_t>(k)]));
  }
  const std::int64_t splits[] = {1};
  const float one = 1;
  const AccumulationPlan plan{"test", answer.unit, 0, Promotion::none, 1, 0, SliceMerge::none, GemmEpilogue::scaled_alpha_beta};
  GroupedGemmProblem problem;
  problem.kind = answer.type == Format::bf16 ? GemmKind::bf16 : answer.type == Format::f16 ? GemmKind::f16 : GemmKind::fp8_per_tensor;
  problem.splits = splits;
  problem.rows = problem.N = 1;
  problem.K = depth;
  problem.x = {answer.type, x.data(), &one, false, nullptr};
  problem.w = {answer.type, w.data(), &one, false, nullptr};
  problem.plan = &plan;
  for (const bool narrow : {true, false}) {
    const NarrowKernel kernel(narrow);
    float d = -1;
    grouped_gemm(problem, &d);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(d), answer.want) << std::hex << std::bit_cast<std::uint32_t>(d);
  }
}

const double kAlmostTwo = 1.9921875;  // all eight bits of a bf16 significand
// 16 elements that multiply to 2^-6 of the next 16: C has the exponent of a large product when those are added.
std::vector<double> small_then_large() {
  std::vector<double> values(32, kAlmostTwo);
  std::fill_n(values.begin(), 16, kAlmostTwo / 8);
  return values;
}
const KnownAnswer kAnswers[] = {
    {"14 bits of the largest term", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 2}, {128, -128, 1}, 0x40000000},
    {"and not one more", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 1}, {128, -128, 1}, 0},
    {"26 bits of the largest term", "sm90.wgmma.f16", Format::bf16, {1, 1, 0x1p-25}, {1, -1, 1}, 0x33000000},
    {"and not one more of 26", "sm90.wgmma.f16", Format::bf16, {1, 1, 0x1p-26}, {1, -1, 1}, 0},
    {"25 bits on SM80", "sm80.mma.f16", Format::bf16, {1, 1, 0x1p-25}, {1, -1, 1}, 0},
    {"terms are cut toward zero", "sm90.wgmma.fp8", Format::e4m3, {128, 128, 3}, {128, -128, 1}, 0x40000000},
    {"negative ones too", "sm90.wgmma.fp8", Format::e4m3, {128, 128, -3}, {128, -128, 1}, 0xC0000000},
    {"products are not normalised", "sm90.wgmma.fp8", Format::e4m3, {192, 192, 2}, {192, -192, 1}, 0x40000000},
    {"nor subnormal operands", "sm90.wgmma.fp8", Format::e4m3, {0x1p-9, 0x1p-9, 0x1p-6}, {256, -256, 0x1p-6}, 0},
    {"emulated FP8 pairs bytes", "sm90.mma.fp8", Format::e4m3, {256, 256, 0x1p-6}, {256, -256, 0x1p-6}, 0x39800000},
    {"native FP8 does not", "sm100.tcgen05.f8f6f4", Format::e4m3, {256, 256, 0x1p-6}, {256, -256, 0x1p-6}, 0},
    {"FP22 out: 32 * 1.75^2 needs 7 bits", "sm90.wgmma.fp8", Format::e4m3,
     std::vector<double>(32, 1.75), std::vector<double>(32, 1.75), 0x42C40000},
    {"floor: grid 2^-158", "sm90.wgmma.f16", Format::bf16, {0x1p-23, -0x1p-32}, {0x1p-126, 0x1p-126}, 0},
    {"floor: the next", "sm90.wgmma.f16", Format::bf16, {0x1p-23, -0x1p-33}, {0x1p-126, 0x1p-126}, 0x00000001},
    {"below 2^128: truncated", "sm90.wgmma.f16", Format::bf16,
     {kAlmostTwo * 0x1p64, kAlmostTwo * 0x1p56, kAlmostTwo * 0x1p48, 0x1p40}, {0x1p63, 0x1p63, 0x1p63, 0x1p63}, 0x7F7FFFFF},
    {"2^128: infinity", "sm90.wgmma.f16", Format::bf16,
     {kAlmostTwo * 0x1p64, kAlmostTwo * 0x1p56, kAlmostTwo * 0x1p48, 0x1p41}, {0x1p63, 0x1p63, 0x1p63, 0x1p63}, 0x7F800000},
    {"products beyond f32 cancel", "sm90.wgmma.f16", Format::bf16, {0x1p127, 0x1p127, 1}, {0x1p127, -0x1p127, 1}, 0},
    {"the largest f16", "sm90.wgmma.f16.to_f16", Format::f16, {65504, 15}, {1, 1}, 0x477FE000},
    {"65520 becomes infinity", "sm90.wgmma.f16.to_f16", Format::f16, {65504, 16}, {1, 1}, 0x7F800000},
    {"f16 ties to even, down", "sm90.wgmma.f16.to_f16", Format::f16, {2048, 1}, {1, 1}, 0x45000000},
    {"f16 ties to even, up", "sm90.wgmma.f16.to_f16", Format::f16, {2050, 1}, {1, 1}, 0x45004000},
    {"16 * (255/128)^2 * (1 + 1/64): 32 bits and a sign", "sm90.wgmma.f16", Format::bf16,
     small_then_large(), small_then_large(), 0x4280FC82},
};
INSTANTIATE_TEST_SUITE_P(GroupedGemm, Known, testing::ValuesIn(kAnswers));

// FP4 with scales of 2^16 on one group of 16, and of 2^-18 on the next, whose sum is the only one not 0. The grid is
// 2^(16 - 35) where the first group counts for e_max: where its products cancel, not where they are all 0.
TEST(GroupedGemm, Fp4GroupsThatCancelSetTheGridAndEmptyOnesDoNot) {
  constexpr std::uint8_t kHalf = 1, kOne = 2, kMinusOne = 10, k256 = 0x78, kSmallest = 1;
  struct Fp4Case {
    bool cancels;
    std::uint8_t second;  // times 0.5 * 2^-18
    float want;
  };
  for (const Fp4Case& each : {Fp4Case{false, kHalf, 0x1p-20f}, Fp4Case{true, kHalf, 0}, Fp4Case{true, kOne, 0x1p-19f}}) {
    std::array<std::uint8_t, 16> x{}, w{};  // 32 elements, two a byte
    if (each.cancels) {
      x[0] = kOne | kOne << 4;
      w[0] = kOne | kMinusOne << 4;
    }
    x[8] = each.second;
    w[8] = kHalf;
    std::array<std::uint8_t, 512> scales{};
    scales[0] = k256;
    scales[1] = kSmallest;
    const std::int64_t splits[] = {1};
    const float amax = 2688, alpha = 1;  // 2688^2 / 7225344 is 1, and so is its f32 evaluation
    GroupedGemmProblem problem;
    problem.kind = GemmKind::nvfp4;
    problem.splits = splits;
    problem.rows = problem.N = 1;
    problem.K = 32;
    problem.x = {Format::e2m1, x.data(), scales.data(), false, &amax};
    problem.w = {Format::e2m1, w.data(), scales.data(), false, &amax};
    problem.alpha = std::span(&alpha, 1);
    problem.plan = find_accumulation_plan("sm100.nvfp4.chain");
    float d = -1;
    grouped_gemm(problem, &d);
    EXPECT_EQ(d, each.want) << "cancels=" << each.cancels << " second=" << int{each.second};
  }
}

}  // namespace
}  // namespace assay
