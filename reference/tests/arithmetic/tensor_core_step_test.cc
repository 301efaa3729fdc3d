// Every unit against the second route, on data for which the rules matter; and the same data against a second route with one
// changed rule, which they must detect wherever it has an effect (spec tensor-core-4.2).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>

#include "reference/arithmetic/decoded.h"
#include "reference/tests/arithmetic/second_route.h"
#include "reference/tests/arithmetic/unit_vectors.h"

namespace assay {

// The printed parameter is the unit's name.
void PrintTo(const TensorCoreUnit& unit, std::ostream* out) { *out << unit.name; }

namespace {

using second_route::Mutation;
using second_route::Vector;
using unit_vectors::Encoding;
using unit_vectors::encoding_of;
using unit_vectors::kPatterns;
using unit_vectors::vectors_of;

std::uint32_t judged(const TensorCoreUnit& unit, const Vector& v) {
  return tensor_core_step(unit, v.a_type, v.a, v.b_type, v.b, v.c, v.scale_a, v.scale_b);
}

class Unit : public testing::TestWithParam<TensorCoreUnit> {};

TEST_P(Unit, equals_the_second_route) {
  const TensorCoreUnit& unit = GetParam();
  int at = 0, differ = 0;
  for (const Vector& v : vectors_of(unit)) {
    const std::uint32_t got = judged(unit, v), want = second_route::step(unit, v);
    if (got != want && ++differ < 4) {
      ADD_FAILURE() << "vector " << at << " (pattern " << at % kPatterns << "), " << name_of(v.a_type) << " by "
                    << name_of(v.b_type) << std::hex << ": want 0x" << want << ", got 0x" << got;
    }
    ++at;
  }
  EXPECT_EQ(differ, 0);
}

// A step reads only its own part of the line, and no other line.
TEST_P(Unit, equals_the_second_route_of_operands_decoded_beforehand) {
  const TensorCoreUnit& unit = GetParam();
  int differ = 0;
  for (const Vector& v : vectors_of(unit)) {
    constexpr std::size_t kBefore = 3, kAfter = 2;
    DecodedLines a(unit, v.a_type), b(unit, v.b_type);
    for (DecodedLines* lines : {&a, &b}) {
      const std::vector<std::uint32_t>& codes = lines == &a ? v.a : v.b;
      lines->resize(3, kBefore + codes.size() + kAfter);
      for (std::size_t line = 0; line < 3; ++line) {
        for (std::size_t k = 0; k < kBefore + codes.size() + kAfter; ++k) {
          const bool inside = line == 1 && k >= kBefore && k < kBefore + codes.size();
          lines->set(line, k, inside ? codes[k - kBefore] : 5);
        }
      }
    }
    const std::uint32_t got = tensor_core_step(unit, a.line(1).part(kBefore, v.a.size()), b.line(1).part(kBefore, v.b.size()),
                                               v.c, v.scale_a, v.scale_b);
    differ += got != second_route::step(unit, v);
  }
  EXPECT_EQ(differ, 0);
}

// The finest bit that a product of this unit can have, counted as a power of two.
int finest_product(const TensorCoreUnit& unit) {
  if (unit.scaling == StepScaling::e4m3_per_16) return 2 * -1 + 2 * -9;
  int finest = 0;
  for (const Format format : unit.operands) {
    const Encoding e = encoding_of(format);
    const int fraction_bits = format == Format::f32 ? 10 : e.fraction_bits;  // TF32
    finest = std::min(finest, 2 * (1 - e.bias - fraction_bits));
  }
  return unit.scaling == StepScaling::none ? finest : finest - 254;
}

TEST_P(Unit, vectors_expose_each_bent_rule) {
  const TensorCoreUnit& unit = GetParam();
  const bool f16 = unit.accumulator == Accumulator::f16_nearest;
  const bool emulated = unit.execution == Execution::emulated_fp8;
  const bool powers = unit.group == 16 && unit.scaling != StepScaling::e4m3_per_16;  // terms are aligned by powers of two
  // The floor can only cut bits of a product, and only where products have bits below its grid.
  const bool floor_shows = finest_product(unit) < unit.zero_floor - unit.fraction_bits;
  struct Bent {
    Mutation mutation;
    bool shows;
  };
  const Bent bent[] = {
      {{.name = "F - 1", .fraction_bits = -1}, true},
      {{.name = "F + 1", .fraction_bits = +1}, true},
      {{.name = "floor - 1", .floor = -1}, floor_shows},
      {{.name = "floor + 1", .floor = +1}, floor_shows},
      {{.name = "align to nearest", .align = second_route::Direction::nearest_even}, true},
      {{.name = "align downward", .align = second_route::Direction::down}, true},
      {{.name = "products normalised", .normalise_products = true}, !powers},
      {{.name = "subnormals renormalised", .renormalise_subnormals = true}, !powers},
      {{.name = "K split in two", .split_k = true}, true},
      {{.name = "other output precision", .other_output = true}, !f16},
      {{.name = "halves contiguous", .contiguous_halves = true}, emulated},
  };
  const std::vector<Vector> vectors = vectors_of(unit);
  std::vector<std::uint32_t> got;
  for (const Vector& v : vectors) got.push_back(judged(unit, v));
  for (const Bent& each : bent) {
    int exposed = 0;
    for (std::size_t i = 0; i < vectors.size(); ++i) exposed += got[i] != second_route::step(unit, vectors[i], each.mutation);
    if (each.shows)
      EXPECT_GT(exposed, 0) << each.mutation.name;
    else
      EXPECT_EQ(exposed, 0) << each.mutation.name << " was assumed to have no effect";
  }
}

std::string unit_label(const testing::TestParamInfo<TensorCoreUnit>& info) {
  std::string label(info.param.name);
  std::replace(label.begin(), label.end(), '.', '_');
  return label;
}

// Sums that are not fused: other_steps_test.cc and unit_steps_test.py.
std::vector<TensorCoreUnit> fused_units() {
  std::vector<TensorCoreUnit> units;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    if (unit.sum == StepSum::fused) units.push_back(unit);
  }
  return units;
}
INSTANTIATE_TEST_SUITE_P(all, Unit, testing::ValuesIn(fused_units()), unit_label);

// Every code of every format, by value.
TEST(decode_term, gives_the_value_of_every_code) {
  for (const Format format : {Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::e3m2, Format::e2m3, Format::e2m1}) {
    for (std::uint32_t code = 0; code < 1u << bits_of(format); ++code) {
      const Term term = decode_term(format, code);
      const double want = second_route::value_of(format, code);
      if (term.kind == Term::Kind::nan) {
        ASSERT_TRUE(std::isnan(want)) << name_of(format) << " " << code;
        continue;
      }
      double got = term.kind == Term::Kind::infinity ? INFINITY : std::ldexp(term.significand, term.exponent - term.fraction);
      if (term.negative) got = -got;
      ASSERT_EQ(got, want) << name_of(format) << " " << code;
      ASSERT_EQ(term.negative, std::signbit(want)) << name_of(format) << " " << code;
      ASSERT_LT(term.significand, 2u << term.fraction);
      if (want != 0 && term.kind == Term::Kind::finite) {
        ASSERT_EQ(term.exponent, std::max(std::ilogb(want), 1 - second_route::layout_of(format).bias)) << code;
      }
    }
  }
}

TEST(units, are_a_sound_table) {
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    EXPECT_EQ(find_tensor_core_unit(unit.name)->name.data(), unit.name.data()) << unit.name << " is not unique";
    EXPECT_EQ(unit.name.substr(0, unit.name.find('.')), unit.architecture);
    // A row rests on a measurement, a published output or a published model.
    const bool stated =
        std::ranges::any_of(std::array{"on an H200", "published", "MMA-Sim 2.1.1", "arXiv"},
                            [&](const char* source) { return unit.evidence.find(source) != std::string_view::npos; });
    EXPECT_TRUE(stated) << unit.name << ": " << unit.evidence;
    EXPECT_FALSE(unit.operands.empty()) << unit.name;
    // spec tensor-core-1.3: the floor is a function of F and the output, but for FP4 and FP8 on 13 bits.
    if (unit.sum == StepSum::fused && unit.fraction_bits != 13) {
      const bool f16 = unit.accumulator == Accumulator::f16_nearest;
      const int expected = unit.group == 16 ? -139 : (f16 ? 4 : -108) - unit.fraction_bits;
      EXPECT_EQ(unit.zero_floor, expected) << unit.name;
    }
  }
  EXPECT_EQ(find_tensor_core_unit("sm90.wgmma"), nullptr);
}

TEST(units, claim_a_measurement_only_where_there_is_one) {
  std::vector<std::string_view> measured;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    if (unit.measured_by_us) measured.push_back(unit.name);
  }
  EXPECT_EQ(measured, (std::vector<std::string_view>{"sm90.wgmma.f16", "sm90.wgmma.fp8"}));
}

}  // namespace
}  // namespace assay
