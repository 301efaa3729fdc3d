// Steps that are not one fused sum: known answers for each rule (spec tensor-core-5.1 to 5.5), and the multiply-adds against
// those of the processor, with flushing set in its control register. Whole steps by outside sources: unit_steps_test.py.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "reference/tests/arithmetic/second_route.h"

namespace assay {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::uint32_t code_with_value(Format format, double value) {
  if (format == Format::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  for (std::uint32_t code = 0; code < 1u << bits_of(format); ++code) {
    const double here = second_route::value_of(format, code);
    if (here == value && std::signbit(here) == std::signbit(value)) return code;
  }
  ADD_FAILURE() << value << " is no value of " << name_of(format);
  return 0;
}

struct Answer {
  const char* rule;
  const char* unit;
  Format type;
  std::vector<std::pair<double, double>> products;
  double c;
  std::uint32_t expected;
};
void PrintTo(const Answer& answer, std::ostream* out) { *out << answer.unit << ": " << answer.rule; }

constexpr Format kBf16 = Format::bf16, kF16 = Format::f16;

// clang-format off
const Answer kAnswers[] = {
    // 5.1: the products on one grid, cut toward zero; then C, floored.
    {"F = 24 among products", "cdna3.mfma.f16", kBf16, {{1, 1}, {-1, 1}, {0x1p-24, 1}}, 0, 0x33800000},
    {"one below F = 24", "cdna3.mfma.f16", kBf16, {{1, 1}, {-1, 1}, {0x1p-25, 1}}, 0, 0},
    {"products are cut toward zero", "cdna3.mfma.f16", kBf16, {{1, 1}, {-1, 1}, {-0x1p-25, 1}}, 0, 0},
    {"products that cancel set the grid of C", "cdna3.mfma.f16", kBf16, {{1, 1}, {-1, 1}}, 0x1p-25, 0},
    {"the last bit of C", "cdna3.mfma.f16", kBf16, {{1, 1}, {-1, 1}}, 0x1p-24, 0x33800000},
    {"a small negative C is a unit of its grid", "cdna3.mfma.f16", kBf16, {{1, 1}}, -0x1p-60, 0x3F7FFFFF},
    {"a small positive C is nothing", "cdna3.mfma.f16", kBf16, {{1, 1}}, 0x1p-60, 0x3F800000},
    {"a far C is nothing in FP8", "cdna3.mfma.fp8", Format::e4m3_fnuz, {{1, 1}}, -0x1p-60, 0x3F800000},
    {"a near negative C is a unit there too", "cdna3.mfma.fp8", Format::e4m3_fnuz, {{1, 1}}, -0x1p-25, 0x3F7FFFFF},
    {"31 bits of the products stay when C joins", "cdna3.mfma.f16", kBf16, {{1, 1}, {0x1p-10, 0x1p-14}}, 0x1p7, 0x43010000},
    {"the sum goes to nearest, a tie to even", "cdna3.mfma.f16", kBf16, {{1, 1}, {1.5, 0x1p-23}}, 0, 0x3F800002},
    {"a product of 2^128 is infinite", "cdna3.mfma.f16", kBf16, {{0x1p127, 2}, {-0x1p127, 1}}, 0, 0x7F800000},
    {"a chain joins the other with a floor", "cdna3.mfma.fp8", Format::e4m3_fnuz, {{16, 16}, {-0x1p-10, 0x1p-7}}, 0, 0x437FFFFF},
    {"within a chain the cut is toward zero", "cdna3.mfma.fp8", Format::e4m3_fnuz, {{16, 16}, {0, 0}, {-0x1p-10, 0x1p-7}}, 0, 0x43800000},
    // 5.2
    {"nothing is lost before the rounding", "cdna1.mfma.bf16", kBf16, {{0x1p100, 0x1p27}, {-0x1p127, 1}}, 0x1p-149, 1},
    {"one rounding, to nearest", "cdna1.mfma.f16", kF16, {{1, 1}, {0x1p-14, 0x1p-10}}, 0x1p-149, 0x3F800001},
    {"a tie goes to even", "cdna1.mfma.f16", kF16, {{1, 1}, {0x1p-14, 0x1p-10}}, 0, 0x3F800000},
    {"products beyond f32 cancel", "cdna1.mfma.bf16", kBf16, {{0x1p127, 0x1p127}, {-0x1p127, 0x1p127}}, 1, 0x3F800000},
    {"past the largest f32", "cdna1.mfma.bf16", kBf16, {{0x1p127, 2}}, 0, 0x7F800000},
    {"infinities of both signs", "cdna1.mfma.bf16", kBf16, {{kInfinite, 1}, {kInfinite, -1}}, 0, 0x7FFFFFFF},
    // 5.3
    {"additions two and two", "cdna2.mfma.f16", kF16, {{1, 1}, {0x1p-12, 0x1p-12}, {-1, 1}, {0, 0}}, 0, 0},
    {"the other order keeps it", "cdna2.mfma.f16", kF16, {{1, 1}, {-1, 1}, {0x1p-12, 0x1p-12}, {0, 0}}, 0, 0x33800000},
    {"C is added to their sum", "cdna2.mfma.f16", kF16, {{0x1p-12, 0x1p-12}, {0x1p-12, 0x1p-12}}, 1, 0x3F800001},
    {"subnormal operands are zeros", "cdna2.mfma.f16", kF16, {{0x1p-15, 1}}, 0, 0},
    {"subnormal C is zero", "cdna2.mfma.f16", kF16, {}, 0x1p-127, 0},
    {"subnormal products are zeros of their sign", "cdna2.mfma.bf16", kBf16, {{-0x1p-70, 0x1p-70}, {-0x1p-70, 0x1p-70}}, 0, 0},
    // 5.4
    {"a chain begins with C", "cdna1.mfma.f32", Format::f32, {{1 + 0x1p-12, 1 + 0x1p-12}}, -1, 0x3A000400},
    {"-0 stays", "cdna1.mfma.f32", Format::f32, {{-0.0, 1}}, -0.0, 0x80000000},
    {"-0 and +0", "cdna1.mfma.f32", Format::f32, {{-0.0, -1}}, -0.0, 0},
    {"subnormals stay", "cdna1.mfma.f32", Format::f32, {{0x1p-140, 1}}, 0, 0x200},
    {"even and odd k are two chains", "amx.tdpbf16ps", kBf16, {{1, 1}, {0x1p-30, 1}, {-1, 1}}, 0, 0x30800000},
    {"one chain loses it", "amx.tdpbf16ps", kBf16, {{1, 1}, {0, 0}, {0x1p-30, 1}, {0, 0}, {-1, 1}}, 0, 0},
    {"C comes last", "amx.tdpbf16ps", kBf16, {{1, 1}, {-1, 1}}, 0x1p-30, 0x30800000},
    {"subnormal operands are zeros", "amx.tdpbf16ps", kBf16, {{0x1p-127, 0x1p60}}, 0, 0},
    {"subnormal f16 operands are not", "amx.tdpfp16ps", kF16, {{0x1p-24, 1}}, 0, 0x33800000},
    {"subnormal C is zero", "amx.tdpfp16ps", kF16, {{0, 1}}, 0x1p-127, 0},
    {"subnormal results are zeros", "amx.tdpbf16ps", kBf16, {{0x1p-70, 0x1p-60}}, 0, 0},
};
// clang-format on

class OtherStep : public testing::TestWithParam<Answer> {};

TEST_P(OtherStep, has_the_known_answer) {
  const Answer& answer = GetParam();
  const TensorCoreUnit* unit = find_tensor_core_unit(answer.unit);
  ASSERT_NE(unit, nullptr);
  // FNUZ formats: the codes are those of the OCP format with an exponent bias larger by one, and there is no -0.
  const auto code = [&](double value) -> std::uint32_t {
    if (answer.type != Format::e4m3_fnuz) return code_with_value(answer.type, value);
    const double twice = 2 * value;
    return value == 0 ? 0 : twice == 480 || twice == -480 ? (value < 0 ? 0xFFu : 0x7Fu) : code_with_value(Format::e4m3, twice);
  };
  std::vector<std::uint32_t> a, b;
  for (const auto& [x, y] : answer.products) {
    a.push_back(code(x));
    b.push_back(code(y));
  }
  const auto c = std::bit_cast<std::uint32_t>(static_cast<float>(answer.c));
  EXPECT_EQ(tensor_core_step(*unit, answer.type, a, answer.type, b, c), answer.expected);
  EXPECT_EQ(tensor_core_step(*unit, answer.type, b, answer.type, a, c), answer.expected) << "products commute";
}
INSTANTIATE_TEST_SUITE_P(rules, OtherStep, testing::ValuesIn(kAnswers));

#if defined(__x86_64__)
// a * b + c with subnormal operands and results replaced by zeros, as MXCSR can set.
__attribute__((target("fma"))) float flushing_multiply_add(float a, float b, float c) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  volatile float x = a, y = b, z = c;
  volatile float result = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(y), _mm_set_ss(z)));
  _mm_setcsr(before);
  return result;
}

// Tiles of Intel against the processor's flushing multiply-add: two products in one chain, and C = 0.
TEST(other_steps, tiles_flush_as_the_processor_does) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no multiply-add instruction";
  const TensorCoreUnit& unit = *find_tensor_core_unit("amx.tdpbf16ps");
  std::uint64_t state = 20;
  const auto draw = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  int flushed = 0, edges = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    // Products about 2^-126, and small ones that cancel or complete them.
    std::uint32_t codes[4];
    const auto exponent = static_cast<std::uint32_t>(40 + draw() % 24);
    const std::uint32_t fields[] = {exponent, 127 + 1 - exponent + static_cast<std::uint32_t>(draw() % 3), exponent,
                                    127 - exponent - static_cast<std::uint32_t>(draw() % 26) + 2};
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t fraction = draw() % 4 == 0 ? 0x7F : draw() % 3 == 0 ? 0 : draw() & 0x7F;
      codes[i] = (draw() & 1) << 15 | (fields[i] & 0xFF) << 7 | fraction;
    }
    const auto value = [&](int i) { return std::bit_cast<float>(codes[i] << 16); };
    const float first = flushing_multiply_add(value(0), value(1), 0.0f);
    const float want = flushing_multiply_add(value(2), value(3), first);
    const std::uint32_t a[] = {codes[0], 0, codes[2]}, b[] = {codes[1], 0, codes[3]};
    const std::uint32_t got = tensor_core_step(unit, kBf16, a, kBf16, b, 0);
    const auto bits = std::bit_cast<std::uint32_t>(want);
    ASSERT_EQ(got, want == 0 ? 0u : bits) << trial;  // the sums that follow add +0
    flushed += want == 0;
    edges += std::fabs(want) == 0x1p-126f;
  }
  EXPECT_GT(flushed, 1000);
  EXPECT_GT(edges, 10);
}
#endif

}  // namespace
}  // namespace assay
