// The published facts about each unit, as input and expected bits (spec tensor-core-4.1; the numbers are its rows).

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ostream>

#include "reference/arithmetic/tensor_core.h"
#include "reference/tests/arithmetic/second_route.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The code with this value, found by search, so that no encoder is used.
std::uint32_t code_of(Format format, double value) {
  if (format == Format::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  for (std::uint32_t code = 0; code < 1u << bits_of(format); ++code) {
    const double here = second_route::value_of(format, code);
    const bool equal = std::isnan(value) ? std::isnan(here) : here == value && std::signbit(here) == std::signbit(value);
    if (equal) return code;
  }
  ADD_FAILURE() << value << " is no value of " << name_of(format);
  return 0;
}

struct Product {
  int k;
  double a, b;
};

struct Fact {
  const char* what;
  const char* unit;
  Format type;
  std::vector<Product> products;  // the rest are zero
  std::uint32_t c;                // bits
  std::uint32_t expected;         // bits
};
void PrintTo(const Fact& fact, std::ostream* out) { *out << fact.unit << ": " << fact.what; }

constexpr Format e4m3 = Format::e4m3, e5m2 = Format::e5m2, bf16 = Format::bf16, f16 = Format::f16, tf32 = Format::f32;
const double kMost = 255.0 / 128;
const double two14a = 128, two14b = 128;  // a pair whose product is 2^14

const std::vector<Product> kOnes32 = [] {
  std::vector<Product> products;
  for (int k = 0; k < 32; ++k) products.push_back({k, 1.75, 1.75});
  return products;
}();
const std::vector<Product> kLargest32 = [] {
  std::vector<Product> products;
  for (int k = 0; k < 32; ++k) products.push_back({k, 448, -448});
  return products;
}();

const Fact kFacts[] = {
    {"2: one node over 32 products", "sm90.wgmma.fp8", e4m3, {{0, 256, 256}, {1, -256, 256}, {16, 1, 1}}, 0, 0},
    {"3: bytes are not interleaved", "sm90.wgmma.fp8", e4m3, {{0, 256, 256}, {1, -256, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0},
    {"3: bytes are not interleaved", "sm100.tcgen05.f8f6f4", e4m3, {{0, 256, 256}, {1, -256, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0},
    {"3: bytes are not interleaved", "sm120.mma.fp8", e4m3, {{0, 256, 256}, {1, -256, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0},
    {"3: the emulation interleaves", "sm90.mma.fp8", e4m3, {{0, 256, 256}, {1, -256, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0x39800000},
    {"3: the emulation interleaves", "sm100.mma.fp8", e4m3, {{0, 256, 256}, {1, -256, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0x39800000},

    {"4: the last bit of F=13", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, 1, 2}}, 0, 0x40000000},
    {"4: one below F=13", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, 1, 1}}, 0, 0},
    {"4: the last bit of F=13", "sm89.mma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, 1, 2}}, 0, 0x40000000},
    {"4: one below F=13", "sm89.mma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, 1, 1}}, 0, 0},
    {"4: the last bit of F=25", "sm90.wgmma.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-25, 1}}, 0, 0x33000000},
    {"4: one below F=25", "sm90.wgmma.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-26, 1}}, 0, 0},
    {"4: the last bit of F=25", "sm100.tcgen05.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-25, 1}}, 0, 0x33000000},
    {"4: one below F=25", "sm100.tcgen05.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-26, 1}}, 0, 0},
    {"4: the last bit of F=24", "sm80.mma.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-24, 1}}, 0, 0x33800000},
    {"4: one below F=24", "sm80.mma.f16", bf16, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-25, 1}}, 0, 0},
    {"4: the last bit of F=25, TF32", "sm90.wgmma.tf32", tf32, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-25, 1}}, 0, 0x33000000},
    {"4: one below F=24, TF32", "sm80.mma.tf32", tf32, {{0, 1, 1}, {1, -1, 1}, {2, 0x1p-25, 1}}, 0, 0},
    {"4: TF32 drops 13 bits", "sm90.wgmma.tf32", tf32, {{0, 1 + 0x1p-10 + 0x1p-11, 1}}, 0, 0x3F802000},

    {"5: C is aligned with the rest", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}}, 0x40000000, 0x40000000},
    {"5: C is cut like the rest", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}}, 0x3F800000, 0},
    {"5: C is aligned with the rest", "sm90.wgmma.f16", bf16, {{0, 1, 1}, {1, -1, 1}}, 0x33000000, 0x33000000},
    {"5: C is cut like the rest", "sm90.wgmma.f16", bf16, {{0, 1, 1}, {1, -1, 1}}, 0x32800000, 0},
    {"5: the emulation adds C late", "sm90.mma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}}, 0x00000001, 0x00000001},

    {"6: cut toward zero", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, 1.5, 2}}, 0, 0x40000000},
    {"6: cut toward zero", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, -two14a, two14b}, {2, -1.5, 2}}, 0, 0xC0000000},
    {"7: products are not normalised", "sm90.wgmma.fp8", e4m3, {{0, 192, 192}, {1, -192, 192}, {2, 1, 2}}, 0, 0x40000000},
    {"7: products are not normalised", "sm90.wgmma.f16", bf16, {{0, 1.5, 1.5}, {1, -1.5, 1.5}, {2, 0x1p-25, 1}}, 0, 0x33000000},
    {"8: subnormals keep their exponent", "sm90.wgmma.fp8", e4m3, {{0, 0x1p-9, 256}, {1, -0x1p-9, 256}, {2, 0x1p-6, 0x1p-6}}, 0, 0},
    {"8: subnormals keep their exponent", "sm90.wgmma.fp8", e5m2, {{0, 0x1p-16, 256}, {1, -0x1p-16, 256}, {2, 0x1p-14, 0x1p-6}}, 0, 0},
    {"8: subnormals keep their exponent", "sm90.wgmma.f16", f16, {{0, 0x1p-24, 1}, {1, -0x1p-24, 1}, {2, 0x1p-24, 0x1p-16}}, 0, 0},
    {"8: subnormals keep their exponent", "sm90.wgmma.f16", bf16, {{0, 0x1p-133, 0x1p100}, {1, -0x1p-133, 0x1p100}, {2, 0x1p-52, 1}}, 0, 0},

    {"9: FP22 cuts C", "sm90.wgmma.fp8", e4m3, {}, 0x3F8007FF, 0x3F800400},
    {"9: f32 keeps C", "sm100.tcgen05.f8f6f4", e4m3, {}, 0x3F8007FF, 0x3F8007FF},
    {"9: f32 keeps C", "sm90.wgmma.f16", bf16, {}, 0x3F8007FF, 0x3F8007FF},
    {"9: FP22 loses a carried bit", "sm90.wgmma.fp8", e4m3, {{0, two14a, two14b}, {1, two14a, two14b}, {2, 1, 2}}, 0, 0x47000000},
    {"9: f32 keeps it", "sm100.tcgen05.f8f6f4", e4m3, {{0, two14a, two14b}, {1, two14a, two14b}, {2, 1, 2}}, 0, 0x47000200},
    {"9: 32 times 1.75 squared", "sm90.wgmma.fp8", e4m3, kOnes32, 0, 0x42C40000},
    {"9: 32 times 1.75 squared", "sm100.tcgen05.f8f6f4", e4m3, kOnes32, 0, 0x42C40000},
    {"10: 32 largest products", "sm90.wgmma.fp8", e4m3, kLargest32, 0, 0xCAC40000},
    {"10: the largest C", "sm90.wgmma.fp8", e4m3, {}, 0x7F7FFFFF, 0x7F7FFC00},
    {"10: the largest C", "sm90.wgmma.f16", bf16, {}, 0xFF7FFFFF, 0xFF7FFFFF},

    {"11: the floor of f32 output", "sm90.wgmma.f16", bf16, {{0, 0x1p-23, 0x1p-126}, {1, -0x1p-32, 0x1p-126}}, 0, 0},
    {"11: below the floor's grid", "sm90.wgmma.f16", bf16, {{0, 0x1p-23, 0x1p-126}, {1, -0x1p-33, 0x1p-126}}, 0, 1},
    {"11: the floor of f32 output", "sm80.mma.f16", bf16, {{0, 0x1p-23, 0x1p-126}, {1, -0x1p-30, 0x1p-126}}, 0, 0},
    {"11: below the floor's grid", "sm80.mma.f16", bf16, {{0, 0x1p-23, 0x1p-126}, {1, -0x1p-31, 0x1p-126}}, 0, 1},
    {"12: the floor of f16 output", "sm90.wgmma.f16.to_f16", f16, {{0, 0x1p-11, 0x1p-14}, {1, 0x1p-24, 0x1p-22}}, 0, 1},
    {"12: below the floor's grid", "sm90.wgmma.f16.to_f16", f16, {{0, 0x1p-11, 0x1p-14}, {1, 0x1p-24, 0x1p-23}}, 0, 0},
    {"12: the floor of f16 output", "sm80.mma.f16.to_f16", f16, {{0, 0x1p-11, 0x1p-14}, {1, 0x1p-24, 0x1p-20}}, 0, 1},
    {"12: below the floor's grid", "sm80.mma.f16.to_f16", f16, {{0, 0x1p-11, 0x1p-14}, {1, 0x1p-24, 0x1p-21}}, 0, 0},

    {"13: truncated below 2^128", "sm90.wgmma.f16", bf16,
     {{0, 0x1p127 * kMost, 1}, {1, 0x1p119 * kMost, 1}, {2, 0x1p111 * kMost, 1}, {3, 0x1p103, 1}}, 0, 0x7F7FFFFF},
    {"13: 2^128 is infinity", "sm90.wgmma.f16", bf16, {{0, 0x1p127, 1}, {1, 0x1p127, 1}}, 0, 0x7F800000},
    {"13: products do not overflow", "sm90.wgmma.f16", bf16, {{0, 0x1p127, 0x1p127}, {1, -0x1p127, 0x1p127}}, 0x3F800000, 0},
    {"13: 65520 is infinity in f16", "sm90.wgmma.f16.to_f16", f16, {{0, 32768, 1}, {1, 32752, 1}}, 0, 0x7C00},
    {"13: 65519 is not", "sm90.wgmma.f16.to_f16", f16, {{0, 32768, 1}, {1, 32736, 1}, {2, 15, 1}}, 0, 0x7BFF},

    {"14: NaN is canonical", "sm90.wgmma.f16", bf16, {{3, kNan, 1}}, 0, 0x7FFFFFFF},
    {"14: NaN is canonical", "sm90.wgmma.f16.to_f16", f16, {{3, kNan, 1}}, 0, 0x7FFF},
    {"14: NaN of C is canonical", "sm90.wgmma.fp8", e4m3, {}, 0xFF800001, 0x7FFFFFFF},
    {"14: the NaN of e4m3", "sm90.wgmma.fp8", e4m3, {{31, kNan, 0}}, 0, 0x7FFFFFFF},
    {"14: infinity times zero", "sm90.wgmma.fp8", e5m2, {{0, kInf, 0}}, 0, 0x7FFFFFFF},
    {"14: infinities of both signs", "sm90.wgmma.fp8", e5m2, {{0, kInf, 1}, {1, kInf, -1}}, 0, 0x7FFFFFFF},
    {"14: infinity against that of C", "sm90.wgmma.f16", bf16, {{0, kInf, 1}}, 0xFF800000, 0x7FFFFFFF},
    {"14: infinity wins", "sm90.wgmma.f16", bf16, {{0, -kInf, 1}, {1, 0x1p127, 0x1p127}}, 0x7F7FFFFF, 0xFF800000},
    {"14: sums of -0 are +0", "sm90.wgmma.f16", bf16, {{0, -0.0, 1}, {1, 1, -0.0}}, 0x80000000, 0},
    {"14: sums of -0 are +0, emulated", "sm90.mma.fp8", e4m3, {{0, -0.0, 1}}, 0x80000000, 0},
    {"14: a cancelled sum is +0", "sm90.wgmma.fp8", e4m3, {{0, -1, 1}, {1, 1, 1}}, 0, 0},
    {"14: what underflows is +0", "sm90.wgmma.f16", bf16, {{0, -0x1p-126, 0x1p-30}}, 0, 0},
};

class Fingerprint : public testing::TestWithParam<Fact> {};

std::uint32_t run(const TensorCoreUnit& unit, Format type, const std::vector<Product>& products, std::uint32_t c) {
  std::vector<std::uint32_t> a(static_cast<std::size_t>(unit.products_per_step), code_of(type, 0.0)), b = a;
  for (const Product& each : products) {
    a[static_cast<std::size_t>(each.k)] = code_of(type, each.a);
    b[static_cast<std::size_t>(each.k)] = code_of(type, each.b);
  }
  const std::uint32_t swapped = tensor_core_step(unit, type, b, type, a, c);
  const std::uint32_t result = tensor_core_step(unit, type, a, type, b, c);
  EXPECT_EQ(result, swapped) << "products commute";
  return result;
}

TEST_P(Fingerprint, is_as_published) {
  const Fact& fact = GetParam();
  const TensorCoreUnit* unit = find_tensor_core_unit(fact.unit);
  ASSERT_NE(unit, nullptr);
  EXPECT_EQ(run(*unit, fact.type, fact.products, fact.c), fact.expected);
}

INSTANTIATE_TEST_SUITE_P(facts, Fingerprint, testing::ValuesIn(kFacts));

// 1: +U at i, -U at j and T everywhere else, C included. Inside one node every T is lost.
TEST(fingerprint, one_node_loses_every_small_term) {
  const TensorCoreUnit& unit = *find_tensor_core_unit("sm90.wgmma.fp8");
  for (int i = 0; i < 32; ++i) {
    for (int j = i + 1; j < 32; ++j) {
      std::vector<Product> products;
      for (int k = 0; k < 32; ++k) {
        if (k == i) products.push_back({k, 256, 256});
        else if (k == j) products.push_back({k, -256, 256});
        else products.push_back({k, 0x1p-6, 0x1p-6});
      }
      ASSERT_EQ(run(unit, e4m3, products, 0x39800000), 0u) << i << ", " << j;
    }
  }
}

// 1, emulated: the halves k mod 4 in {0,1} and {2,3} are two nodes, and C joins last.
TEST(fingerprint, emulation_is_two_nodes_and_an_addition) {
  const TensorCoreUnit& unit = *find_tensor_core_unit("sm90.mma.fp8");
  const double t = 0x1p-12;
  for (int i = 0; i < 32; ++i) {
    for (int j = i + 1; j < 32; ++j) {
      std::vector<Product> products;
      for (int k = 0; k < 32; ++k) {
        if (k == i) products.push_back({k, 256, 256});
        else if (k == j) products.push_back({k, -256, 256});
        else products.push_back({k, 0x1p-6, 0x1p-6});
      }
      // The half without U keeps its sixteen T, 2^-8, which the grid of U, 2^-9, does not cut.
      const bool one_half = (i % 4 < 2) == (j % 4 < 2);
      const auto expected = static_cast<float>(one_half ? 16 * t + t : t);
      ASSERT_EQ(run(unit, e4m3, products, 0x39800000), std::bit_cast<std::uint32_t>(expected)) << i << ", " << j;
    }
  }
}

// 2, where L is 16: the second step starts from the first one's sum.
TEST(fingerprint, ada_takes_sixteen_products_a_step) {
  const TensorCoreUnit& unit = *find_tensor_core_unit("sm89.mma.fp8");
  const std::uint32_t first = run(unit, e4m3, {{0, 256, 256}, {1, -256, 256}}, 0);
  EXPECT_EQ(run(unit, e4m3, {{0, 1, 1}}, first), 0x3F800000u);
}

// 19: between instructions only the FP22 value is kept.
TEST(fingerprint, chain_keeps_fp22_between_instructions) {
  const std::vector<Product> up = {{0, 128, 128}, {1, 128, 128}, {2, 1, 2}}, down = {{0, -128, 128}, {1, -128, 128}};
  const TensorCoreUnit& hopper = *find_tensor_core_unit("sm90.wgmma.fp8");
  EXPECT_EQ(run(hopper, e4m3, down, run(hopper, e4m3, up, 0)), 0u);
  const TensorCoreUnit& blackwell = *find_tensor_core_unit("sm100.tcgen05.f8f6f4");
  EXPECT_EQ(run(blackwell, e4m3, down, run(blackwell, e4m3, up, 0)), 0x40000000u);
}

// 15 to 17: sixteen FP4 products are one term, aligned by their scales alone.
struct Fp4Fact {
  const char* what;
  std::vector<Product> products;
  double scale_a, scale_b;              // of group 0
  double other_scale_a, other_scale_b;  // of the groups 1 to 3
  std::uint32_t c, expected;
};
void PrintTo(const Fp4Fact& fact, std::ostream* out) { *out << fact.what; }

const Fp4Fact kFp4Facts[] = {
    {"15: the last bit of F=35", {{0, 1, 1}, {1, -1, 1}}, 256, 256, 1, 1, 0x36000000, 0x36000000},
    {"15: a cancelled group sets e_max", {{0, 1, 1}, {1, -1, 1}}, 256, 256, 1, 1, 0x35800000, 0},
    {"15: a group of zeros does not", {}, 256, 256, 1, 1, 0x35800000, 0x35800000},
    {"15: nor one whose scale is zero", {{0, 1, 1}}, 256, 0, 1, 1, 0x35800000, 0x35800000},
    {"16: scale significands multiply in",
     {{0, 6, 6}, {1, 6, 6}, {2, 6, 6}, {3, 6, 6}, {4, 6, 6}, {5, 6, 6}, {6, 6, 6}, {7, 6, 6}, {8, 6, 6}, {9, 6, 6}, {10, 6, 6},
      {11, 6, 6}, {12, 6, 6}, {13, 6, 6}, {14, 6, 6}, {15, 6, 6}}, 1.875, 1.875, 1, 1, 0, 0x44FD2000},
    {"17: a group loses nothing", {{0, 6, 6}, {1, -6, 6}, {2, 0.5, 0.5}}, 448, 448, 1, 1, 0, 0x47440000},
    {"17: the next group does", {{0, 6, 6}, {1, -6, 6}, {16, 0.5, 0.5}}, 256, 256, 0x1p-9, 0x1p-9, 0, 0},
    {"17: alone it does not", {{16, 0.5, 0.5}}, 256, 256, 0x1p-9, 0x1p-9, 0, 0x35800000},
    {"8: a subnormal scale keeps its exponent", {{0, 1, 1}, {1, -1, 1}}, 0x1p-9, 256, 1, 1, 0x2E800000, 0},
};

class Fp4Fingerprint : public testing::TestWithParam<Fp4Fact> {};

TEST_P(Fp4Fingerprint, is_as_published) {
  const Fp4Fact& fact = GetParam();
  std::vector<std::uint32_t> a(64, 0), b(64, 0);
  for (const Product& each : fact.products) {
    a[static_cast<std::size_t>(each.k)] = code_of(Format::e2m1, each.a);
    b[static_cast<std::size_t>(each.k)] = code_of(Format::e2m1, each.b);
  }
  const auto scale = [](double value) { return static_cast<std::uint8_t>(code_of(Format::e4m3, value)); };
  const std::uint8_t scale_a[] = {scale(fact.scale_a), scale(fact.other_scale_a), scale(fact.other_scale_a), scale(fact.other_scale_a)};
  const std::uint8_t scale_b[] = {scale(fact.scale_b), scale(fact.other_scale_b), scale(fact.other_scale_b), scale(fact.other_scale_b)};
  for (const char* name : {"sm100.tcgen05.mxf4nvf4", "sm120.mma.mxf4nvf4"}) {
    const TensorCoreUnit& unit = *find_tensor_core_unit(name);
    EXPECT_EQ(tensor_core_step(unit, Format::e2m1, a, Format::e2m1, b, fact.c, scale_a, scale_b), fact.expected) << name;
    std::uint8_t negative_scale[4];
    for (int g = 0; g < 4; ++g) negative_scale[g] = scale_a[g] | 0x80;
    EXPECT_EQ(tensor_core_step(unit, Format::e2m1, a, Format::e2m1, b, fact.c, negative_scale, scale_b), fact.expected)
        << "the sign of a scale is not read: " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(facts, Fp4Fingerprint, testing::ValuesIn(kFp4Facts));

// 18: e8m0 scales at their ends, on 1*1 and on 1*1 - 1*1.
TEST(fingerprint, e8m0_scales_are_not_clamped) {
  struct {
    const char* what;
    std::uint8_t a, b;
    double second;
    std::uint32_t c, expected;
  } const facts[] = {
      {"2^-254 of 1 is nothing", 0x00, 0x00, 0, 0, 0},
      {"2^-254 takes part in no alignment above it", 0x00, 0x00, 0, 0x00000001, 0x00000001},
      {"2^127 * 2^-127", 0xFE, 0x00, 0, 0, 0x3F800000},
      {"2^254 is infinity", 0xFE, 0xFE, 0, 0, 0x7F800000},
      {"2^254 cancels, C is swamped", 0xFE, 0xFE, -1, 0x3F800000, 0},
      {"0xFF is NaN", 0xFF, 0x7F, 0, 0, 0x7FFFFFFF},
      {"0xFF is NaN", 0x7F, 0xFF, 0, 0, 0x7FFFFFFF},
  };
  const std::uint32_t one = code_of(e4m3, 1), minus = code_of(e4m3, -1);
  for (const auto& fact : facts) {
    for (const char* name : {"sm100.tcgen05.mxf8f6f4", "sm120.mma.mxf8f6f4"}) {
      const std::vector<std::uint32_t> a = {one, one}, b = {one, fact.second == 0 ? 0u : minus};
      const std::uint8_t scale_a[] = {fact.a}, scale_b[] = {fact.b};
      EXPECT_EQ(tensor_core_step(*find_tensor_core_unit(name), e4m3, a, e4m3, b, fact.c, scale_a, scale_b), fact.expected)
          << name << ": " << fact.what;
    }
  }
}

TEST(tensor_core_step, rejects_what_the_unit_does_not_take) {
  const TensorCoreUnit& half = *find_tensor_core_unit("sm90.wgmma.f16");
  const TensorCoreUnit& mx = *find_tensor_core_unit("sm100.tcgen05.mxf8f6f4");
  const std::vector<std::uint32_t> none, one(1, 0), many(17, 0);
  const std::uint8_t scale[] = {127};
  EXPECT_THROW(tensor_core_step(half, e4m3, one, e4m3, one, 0), InvalidArgument);
  EXPECT_THROW(tensor_core_step(half, bf16, one, f16, one, 0), InvalidArgument) << "16-bit types do not mix";
  EXPECT_THROW(tensor_core_step(half, bf16, many, bf16, many, 0), InvalidArgument);
  EXPECT_THROW(tensor_core_step(half, bf16, one, bf16, none, 0), InvalidArgument);
  EXPECT_THROW(tensor_core_step(half, bf16, one, bf16, one, 0, scale, scale), InvalidArgument);
  EXPECT_THROW(tensor_core_step(mx, e4m3, one, e5m2, one, 0), InvalidArgument) << "scales are missing";
  EXPECT_EQ(tensor_core_step(mx, e4m3, one, e5m2, one, 0, scale, scale), 0u) << "FP8 types mix";
  EXPECT_THROW(decode_term(Format::e8m0, 0), InvalidArgument);
  EXPECT_THROW(decode_term(Format::e4m3, 0x100), InvalidArgument);
}

}  // namespace
}  // namespace assay
