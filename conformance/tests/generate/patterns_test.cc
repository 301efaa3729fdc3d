// Data patterns: the property of each, checked in double arithmetic on the values of its bits. Patterns of ties, thresholds,
// orders and widths of sums: adversarial_patterns_test.cc, step_edges_test.cc, thresholds_test.cc.

#include "conformance/generate/patterns.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "conformance/generate/compose.h"
#include "conformance/tests/generate/format_values.h"
#include "conformance/tests/generate/pattern_request.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr Format kTypes[] = {Format::f32, Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::e2m1};

TEST(Compose, IsExactOrCutTowardZero) {
  for (const Format type : kTypes) {
    const FormatFields f = fields_of(type);
    const double largest = value_of(type, f.top), smallest = value_of(type, 1);
    for (const std::uint32_t significand : {0u, 1u, 2u, 3u, 5u, 127u, 128u, 255u, 0x801u, 0xffffffu, 0x800001u, 0xffffffffu}) {
      for (int exponent = -160; exponent <= 130; ++exponent) {
        const double exact = std::ldexp(static_cast<double>(significand), exponent);
        const std::uint32_t code = compose(f, false, significand, exponent);
        ASSERT_LE(code, f.top);
        const double value = value_of(type, code);
        ASSERT_LE(value, exact) << name_of(type) << " " << significand << " * 2^" << exponent;
        if (exact >= largest) {
          ASSERT_EQ(value, largest);
        } else {
          ASSERT_GT(value_of(type, code + 1), exact);  // code < top, so the next is finite
        }
        if (exact < smallest) {
          ASSERT_EQ(code, 0u);
        }
        ASSERT_EQ(compose(f, true, significand, exponent), code | sign_bit(f));
      }
    }
  }
}

TEST(Patterns, AreFunctionsOfTheElementAlone) {
  for (const PatternInfo& info : patterns()) {
    for (const Format type : kTypes) {
      for (const Role role : {Role::value, Role::first, Role::second}) {
        PatternRequest request = request_of(info.name, type, 64, 160);
        request.role = role;
        const std::vector<std::uint32_t> all = fill(request);
        request.rows = 37;  // fewer rows, other cuts between threads
        const std::vector<std::uint32_t> fewer = fill(request);
        ASSERT_TRUE(std::equal(fewer.begin(), fewer.end(), all.begin())) << info.name << " " << name_of(type);
        for (const std::uint32_t code : all) ASSERT_LT(std::uint64_t{code}, std::uint64_t{1} << width(type)) << info.name;
      }
    }
  }
}

// Bits of each pattern in every type and role, so that no compiler, machine or edit changes inputs unnoticed.
struct PinnedPattern {
  std::string_view pattern;
  std::uint64_t digest;
};
void PrintTo(const PinnedPattern& p, std::ostream* out) { *out << p.pattern; }
class PatternDigests : public testing::TestWithParam<PinnedPattern> {};
TEST_P(PatternDigests, AreTheSameEverywhere) {
  std::uint64_t digest = 0;
  for (const Format type : kTypes) {
    for (const Role role : {Role::value, Role::first, Role::second}) {
      PatternRequest request = request_of(GetParam().pattern, type, 70, 300);
      request.role = role;
      request.amplitude = 4;
      for (const std::uint32_t code : fill(request)) digest = (digest ^ code) * 0x100000001b3;
    }
  }
  EXPECT_EQ(digest, GetParam().digest) << std::hex << "0x" << digest;
}
const PinnedPattern kPinnedPatterns[] = {
    {"uniform", 0x1540ca932f3cc6dc},
    {"normal", 0x5133812613244412},
    {"full_exponent", 0xca0a1d9de69f7f14},
    {"near_underflow", 0x643ad62444fe01a6},
    {"specials", 0x4c94a4131e485c90},
    {"nans", 0xdfa23a0615c9e51e},
    {"ties", 0x3ab9eab1140d81a2},
    {"sparse", 0x4eb62af0b1a4ad08},
    {"one_hot", 0xd8b1f9b9079b260c},
    {"clustered", 0x47fed29145e556c},
    {"every_code", 0xd8494e7771144301},
    {"integers", 0x3ed311bb91e54ba0},
    {"wide_sums", 0xf4d3404f90a2b3ba},
    {"block_scales", 0xb33299629e3485e6},
    {"zeros", 0x0},
    {"every_special", 0x5926b1ade8bb32a9},
    {"subnormals", 0x8b8fc6002af4d99a},
    {"adversarial_infinities", 0x995cd5e07200c3f8},
    {"adversarial_transform", 0x71ee83273c8eeadb},
    {"adversarial_gates", 0x124e3e400369bb55},
    {"adversarial_cancelling", 0xb5c63fb167c99df8},
    {"adversarial_midpoints", 0x371878353aefe8e6},
    {"adversarial_amax", 0x6887f14a98f9db01},
    {"adversarial_eps", 0xb031677d8761c5c},
    {"adversarial_four_over_six", 0x56c54fbf1ec8d5cb},
    {"adversarial_dbias", 0x5aac3e54ef6b035b},
    {"adversarial_output_ties", 0x8540f1aa2facea43},
    {"adversarial_alignment", 0xa2ccdbb6ba27e431},
    {"adversarial_promotion", 0x509b3f5db7dc5c30},
    {"unit_probes", 0xfbd12a57710d2080},
    {"step_edges", 0x5ac6045b216cd508},
    {"adversarial_thresholds", 0xe35481a13404cc47},
};
INSTANTIATE_TEST_SUITE_P(All, PatternDigests, testing::ValuesIn(kPinnedPatterns));

TEST(Patterns, AreAllPinned) { EXPECT_EQ(std::size(kPinnedPatterns), patterns().size()); }

TEST(Patterns, DependOnSeedAndTensor) {
  for (const PatternInfo& info : patterns()) {
    if (info.name == "zeros" || info.name == "every_code" || info.name == "unit_probes") continue;  // the same for all
    for (const Format type : {Format::f32, Format::bf16}) {
      PatternRequest request = request_of(info.name, type, 64, 256);
      request.role = Role::second;
      const auto base = fill(request);
      request.seed = 12;
      EXPECT_NE(fill(request), base) << info.name << ": seed";
      request.seed = 11;
      request.tensor = "y";
      EXPECT_NE(fill(request), base) << info.name << ": tensor";
    }
  }
}

// Only patterns that say so contain NaN or infinity.
TEST(Patterns, AreFiniteUnlessTheySayOtherwise) {
  for (const PatternInfo& info : patterns()) {
    for (const Format type : kTypes) {
      int nan = 0, infinite = 0;
      for (const std::uint32_t code : fill(request_of(info.name, type, 256, 512))) {
        nan += std::isnan(value_of(type, code));
        infinite += std::isinf(value_of(type, code));
      }
      const bool has_infinity = kLayouts.at(type).ieee, has_nan = type != Format::e2m1;
      const bool codes = info.name == "every_code";
      // f32 has its infinities only where the random half of the word is 0.
      if (!codes || type != Format::f32) {
        EXPECT_EQ(infinite > 0,
                  has_infinity && (info.name == "specials" || info.name == "every_special" ||
                                   info.name == "adversarial_infinities" || info.name == "adversarial_gates" || codes))
            << info.name << " " << name_of(type);
      }
      EXPECT_EQ(nan > 0, has_nan && (info.name == "specials" || info.name == "every_special" || info.name == "nans" ||
                                     info.name == "adversarial_gates" || codes))
          << info.name << " " << name_of(type);
    }
  }
}

TEST(Patterns, UniformAndNormalHaveTheirMoments) {
  for (const Format type : {Format::f32, Format::f16}) {
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
    constexpr int kCount = 256 * 256;
    for (const std::uint32_t code : fill(request_of("uniform", type, 256, 256))) {
      const double v = value_of(type, code);
      ASSERT_LT(std::fabs(v), 1);
      sum += v, squares += v * v;
    }
    for (const std::uint32_t code : fill(request_of("normal", type, 256, 256))) {
      const double v = value_of(type, code);
      normal_sum += v, normal_squares += v * v;
    }
    EXPECT_NEAR(sum / kCount, 0, 0.01);
    EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
    EXPECT_NEAR(normal_sum / kCount, 0, 0.02);
    EXPECT_NEAR(normal_squares / kCount, 8.0 / 12, 0.02);
  }
}

TEST(Patterns, FullExponentReachesEveryExponent) {
  for (const Format type : kTypes) {
    const int mantissa = kLayouts.at(type).mantissa, bits = width(type);
    std::set<std::uint32_t> fields;
    for (const std::uint32_t code : fill(request_of("full_exponent", type, 128, 256))) {
      fields.insert((code & ((1u << (bits - 1)) - 1)) >> mantissa);
    }
    const std::size_t all = std::size_t{1} << (bits - 1 - mantissa);
    EXPECT_EQ(fields.size(), kLayouts.at(type).ieee ? all - 1 : all) << name_of(type);
  }
}

TEST(Patterns, NearUnderflowHasSubnormalBlocksAndBlocksThatStraddle) {
  PatternRequest request = request_of("near_underflow", Format::bf16, 512, 1024);
  const auto bits = fill(request);
  int only_subnormal = 0, straddling = 0, small_scale = 0;
  for (std::int64_t row = 0; row < request.rows; ++row) {
    for (std::int64_t block = 0; block < request.columns / 128; ++block) {
      double amax = 0, least = 1;
      for (std::int64_t c = 0; c < 128; ++c) {
        const double v =
            std::fabs(value_of(Format::bf16, bits[static_cast<std::size_t>(row * request.columns + block * 128 + c)]));
        amax = std::max(amax, v), least = std::min(least, v);
      }
      only_subnormal += amax < 0x1p-126;
      straddling += amax >= 0x1p-126 && least < 0x1p-126;
      small_scale += amax > 0 && amax <= 1.75 * 0x1p-120;  // 448 / amax overflows f32
    }
  }
  EXPECT_GT(only_subnormal, 5);
  EXPECT_GT(straddling, 100);
  EXPECT_GT(small_scale, 100);
}

TEST(Patterns, PairsOfClusteredOperandsCancelExactly) {
  for (const Format type : {Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::e2m1}) {
    const int step = bits_of(type) == 8 ? 32 : 16;
    PatternRequest x = request_of("clustered", type, 24, 128), w = x;
    x.role = Role::first, x.step = step;
    w.role = Role::second, w.step = step, w.tensor = "w";
    PatternRequest transposed = w;  // the same operand with its rows summed over
    transposed.contract_rows = true, transposed.rows = 128, transposed.columns = 24;
    const auto xs = fill(x);
    for (const PatternRequest& other : {w, transposed}) {
      const auto ws = fill(other);
      int pairs = 0;
      for (std::int64_t row = 0; row < 24; ++row) {
        const auto product = [&](std::int64_t k) {
          const auto at = static_cast<std::size_t>(other.contract_rows ? k * other.columns + row : row * other.columns + k);
          return value_of(type, xs[static_cast<std::size_t>(row * x.columns + k)]) * value_of(type, ws[at]);
        };
        for (std::int64_t block = 0; block < 128 / step; ++block) {
          double largest = 0;
          for (std::int64_t k = 0; k < step; ++k) largest = std::max(largest, std::fabs(product(block * step + k)));
          bool cancels = false;
          for (std::int64_t i = 0; i < step; ++i) {
            for (std::int64_t j = i + 1; j < step; ++j) {
              const double a = product(block * step + i), b = product(block * step + j);
              cancels |= a + b == 0 && std::fabs(a) * 4 >= largest;
            }
          }
          pairs += cancels;
        }
      }
      EXPECT_EQ(pairs, 24 * 128 / step) << name_of(type) << (other.contract_rows ? " columnwise" : "");
    }
  }
}

TEST(Patterns, EveryCodeHasEveryCode) {
  for (const Format type : {Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::e2m1}) {
    const auto count = [&](Role role) {
      PatternRequest request = request_of("every_code", type, 128, 512);
      request.role = role;
      std::set<std::uint32_t> codes;
      for (const std::uint32_t code : fill(request)) codes.insert(code);
      return codes.size();
    };
    EXPECT_EQ(count(Role::value), std::size_t{1} << width(type)) << name_of(type);
    EXPECT_EQ(count(Role::first), 2 * (std::size_t{fields_of(type).top} + 1)) << name_of(type);  // the finite ones
  }
}

// Pairs of gate and up at the same place of both halves of a row.
TEST(Patterns, GatesMeetEverySpecialUpTheEndsOfTheExponentialAndTies) {
  for (const Format type : {Format::bf16, Format::f16}) {
    const PatternRequest request = request_of("adversarial_gates", type, 256, 1040);
    const auto bits = fill(request);
    const FormatFields f = fields_of(type);
    const auto kind_of = [&](std::uint32_t code) {
      const std::uint32_t magnitude = code & (sign_bit(f) - 1);
      if (magnitude > f.infinity) return 'n';
      if (magnitude == f.infinity) return 'i';
      if (magnitude == f.top) return 'l';
      if (magnitude == 0) return code == 0 ? '+' : '-';
      return magnitude < 1u << f.mantissa ? 's' : '.';
    };
    std::set<std::pair<char, char>> special;
    std::set<double> edges;
    int ties = 0, others = 0;
    for (std::int64_t r = 0; r < request.rows; ++r) {
      for (std::int64_t c = 0; c < 520; ++c) {
        const std::uint32_t gate = bits[static_cast<std::size_t>(r * 1040 + c)],
                            up = bits[static_cast<std::size_t>(r * 1040 + 520 + c)];
        const double a = value_of(type, gate), b = value_of(type, up);
        const std::int64_t tile = (r / 128 + c / 128) % 4;
        if (tile == 0 && kind_of(gate) != '.' && kind_of(up) != '.') special.insert({kind_of(gate), kind_of(up)});
        if (tile == 1) edges.insert(a);
        if (tile != 2) continue;
        // In the middle of two neighbours: twice as fine it is a value, and no value as it is.
        const double product = std::fabs(a * b), unit = std::ldexp(1.0, std::ilogb(product) - f.mantissa);
        (std::fmod(product, unit) == unit / 2 ? ties : others) += 1;
      }
    }
    EXPECT_EQ(special.size(), 36u) << name_of(type);
    EXPECT_EQ(*edges.begin(), type == Format::bf16 ? -89.5 : -15.875);
    EXPECT_EQ(*edges.rbegin(), type == Format::bf16 ? -86.5 : -8.0);
    EXPECT_GT(ties, 10000);
    EXPECT_EQ(others, 0);
  }
}

// The transform without its signs, which change only which sums are large.
TEST(Patterns, TransformsEndAtTiesAndAtTheLastPlaceThatIsKept) {
  const PatternRequest request = request_of("adversarial_transform", Format::bf16, 48, 64);
  const auto bits = fill(request);
  const auto sums_of = [&](std::int64_t block, std::int64_t column) {
    std::map<double, int> count;  // by magnitude
    for (unsigned j = 0; j < 16; ++j) {
      double sum = 0;
      for (unsigned i = 0; i < 16; ++i) {
        const double x = value_of(Format::bf16, bits[static_cast<std::size_t>((16 * block + i) * request.columns + column)]);
        sum += std::popcount(i & j) % 2 == 0 ? x : -x;
      }
      ++count[std::fabs(sum / 4)];
    }
    return count;
  };
  using Counts = std::map<double, int>;
  const double above = 0.1875 + 0x1p-11, below = 0.1875 - 0x1p-11;
  for (std::int64_t block = 0; block < 3; ++block) {
    for (std::int64_t column = 0; column < request.columns; column += 4) {
      EXPECT_EQ(sums_of(block, column), (Counts{{0, 8}, {10.5, 8}}));
      const Counts ties = sums_of(block, column + 1);
      EXPECT_EQ(ties.at(above), 4);
      EXPECT_EQ(ties.at(below), 4);
      EXPECT_EQ(sums_of(block, column + 2).at(0x1p-24), 8);
      EXPECT_EQ(sums_of(block, column + 3).at(0x1p-25), 8);
    }
  }
}

TEST(Patterns, OneHotAndSparse) {
  PatternRequest request = request_of("one_hot", Format::bf16, 300, 256);
  request.role = Role::first;
  const auto hot = fill(request);
  for (std::int64_t row = 0; row < request.rows; ++row) {
    int set = 0;
    for (std::int64_t c = 0; c < request.columns; ++c) set += hot[static_cast<std::size_t>(row * request.columns + c)] != 0;
    ASSERT_EQ(set, 1) << "row " << row;
  }
  int zeros = 0;
  for (const std::uint32_t code : fill(request_of("sparse", Format::bf16, 256, 512))) zeros += code == 0;
  EXPECT_GT(zeros, 256 * 512 * 9 / 10);
  EXPECT_LT(zeros, 256 * 512);
}

TEST(Patterns, BlockScalesDifferBetweenNeighbours) {
  PatternRequest request = request_of("block_scales", Format::bf16, 384, 640);
  const auto bits = fill(request);
  const auto amax = [&](std::int64_t i, std::int64_t j) {
    double largest = 0;
    for (std::int64_t r = 0; r < 128; ++r) {
      for (std::int64_t c = 0; c < 128; ++c) {
        largest = std::max(largest,
                           std::fabs(value_of(Format::bf16, bits[static_cast<std::size_t>((i * 128 + r) * 640 + j * 128 + c)])));
      }
    }
    return largest;
  };
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      for (const auto& [di, dj] : {std::pair{1, 0}, std::pair{0, 1}}) {
        if (i + di > 2 || j + dj > 4) continue;
        const double ratio = amax(i, j) / amax(i + di, j + dj);
        EXPECT_TRUE(ratio > 3 || ratio < 1.0 / 3) << i << " " << j << ": " << ratio;
      }
    }
  }
}

TEST(Patterns, RefusesAnUnknownName) {
  EXPECT_THROW(fill(request_of("unifrom", Format::bf16, 1, 1)), InvalidArgument);
  PatternRequest request = request_of("uniform", Format::bf16, 2, 2);
  std::vector<std::uint32_t> bits(3);
  EXPECT_THROW(fill_pattern(request, bits), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance
