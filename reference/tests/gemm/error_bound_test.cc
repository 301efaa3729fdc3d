// The certified bound contains every element of every unit under random plans, is nearly reached by data made for it, and
// excludes the result of a wrong scale.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "reference/gemm/error_bound.h"
#include "reference/tests/arithmetic/second_route.h"
#include "reference/tests/gemm/logical_problem.h"
#include "reference/types/error.h"

namespace assay {

// The printed parameter is the unit's name.
void PrintTo(const TensorCoreUnit& unit, std::ostream* out) { *out << unit.name; }

namespace {

using logical::Setting;

struct Random {
  std::uint64_t state;
  std::uint64_t next() { return logical::mixed(state++); }
  std::int64_t from_to(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(last - first + 1));
  }
};

GemmKind kind_for(const TensorCoreUnit& unit, Random& random) {
  if (unit.scaling == StepScaling::e8m0_per_32) return GemmKind::mxfp8;
  if (unit.scaling == StepScaling::e4m3_per_16) return GemmKind::nvfp4;
  switch (unit.operands.front()) {
    case Format::bf16: return unit.operands.size() == 1 || random.from_to(0, 1) == 0 ? GemmKind::bf16 : GemmKind::f16;
    case Format::f16: return GemmKind::f16;
    default: return random.from_to(0, 1) == 0 ? GemmKind::fp8_per_tensor : GemmKind::fp8_block;
  }
}

// Elements whose exponents spread over some binades, with one in eight subnormal or zero; f16 outputs stay in range.
std::uint32_t element(Format type, std::uint64_t bits) {
  const bool small = bits >> 60 == 0;
  const auto at = static_cast<std::uint32_t>(bits >> 32);
  switch (type) {
    case Format::bf16:
      return small ? static_cast<std::uint32_t>(bits & 0x807F) : static_cast<std::uint32_t>(bits & 0x807F) | (120 + at % 9) << 7;
    case Format::f16:
      return small ? static_cast<std::uint32_t>(bits & 0x83FF) : static_cast<std::uint32_t>(bits & 0x83FF) | (8 + at % 9) << 10;
    case Format::e4m3:
      return small ? static_cast<std::uint32_t>(bits & 0x87) : static_cast<std::uint32_t>(bits & 0x87) | (1 + at % 10) << 3;
    case Format::e5m2:
      return small ? static_cast<std::uint32_t>(bits & 0x83) : static_cast<std::uint32_t>(bits & 0x83) | (8 + at % 10) << 2;
    default: return static_cast<std::uint32_t>(bits & 0xF);
  }
}

struct Drawn {
  Setting setting;
  AccumulationPlan plan;
  AnyOrder hardware;
};

Drawn draw(const TensorCoreUnit& unit, Random& random) {
  Drawn drawn;
  Setting& s = drawn.setting;
  s.kind = kind_for(unit, random);
  s.layout = static_cast<GemmLayout>(random.from_to(0, 2));
  s.architecture = s.kind == GemmKind::mxfp8 || s.kind == GemmKind::nvfp4 ? "sm100" : "sm90";
  const auto fp8 = [&] { return random.from_to(0, 1) == 0 ? Format::e4m3 : Format::e5m2; };
  s.rows_type = s.kind == GemmKind::bf16    ? Format::bf16
                : s.kind == GemmKind::f16   ? Format::f16
                : s.kind == GemmKind::nvfp4 ? Format::e2m1
                                            : fp8();
  s.columns_type = s.rows_type == Format::e4m3 || s.rows_type == Format::e5m2 ? fp8() : s.rows_type;
  s.N = 2 * random.from_to(1, 6), s.K = 2 * random.from_to(1, 6);
  s.splits = {2 * random.from_to(0, 3)};
  (s.layout == GemmLayout::TN ? s.K : s.layout == GemmLayout::NN ? s.N : s.splits[0]) = 2 * random.from_to(1, 220);
  s.weight_block = static_cast<WeightBlock>(random.from_to(0, 1));
  s.d_type = random.from_to(0, 2) == 0 ? Format::bf16 : Format::f32;

  const std::int64_t step = unit.products_per_step, depth = 440;
  AccumulationPlan& plan = drawn.plan;
  plan = {"drawn", unit.name, 0, Promotion::none, 1, 0, SliceMerge::none, GemmEpilogue::scaled_alpha_beta};
  if (s.kind == GemmKind::fp8_block) {
    plan.promotion_interval = std::int64_t{32} << random.from_to(0, 2);
    plan.promotion = static_cast<Promotion>(random.from_to(2, 4));
  } else if (random.from_to(0, 1) == 0) {
    plan.promotion_interval = unit.scaling == StepScaling::none ? random.from_to(5, 130) : step * random.from_to(1, 3);
    plan.promotion = Promotion::add;
  }
  if (random.from_to(0, 1) == 0) {
    const std::int64_t unit_length = s.kind == GemmKind::fp8_block       ? plan.promotion_interval
                                     : unit.scaling == StepScaling::none ? 1
                                                                         : step;
    plan.slice_length = unit_length * random.from_to(1 + 40 / unit_length, 1 + 200 / unit_length);
    plan.slices = std::max<std::int64_t>(2, (depth + plan.slice_length - 1) / plan.slice_length);
    plan.merge = random.from_to(0, 2) == 0 ? SliceMerge::sequential_output : SliceMerge::sequential_f32;
  }
  drawn.hardware = any_order(unit);
  drawn.hardware.short_step_interval = 0;
  // Every part of every slice may end in a short step; in an emulated instruction both halves may be short.
  const std::int64_t intervals =
      plan.promotion_interval == 0 ? 1 : (depth + plan.promotion_interval - 1) / plan.promotion_interval + 1;
  drawn.hardware.short_steps = 4 * (plan.slices + 1) * intervals;
  if (plan.merge == SliceMerge::sequential_output) drawn.hardware.output_merges = 2 * plan.slices;
  return drawn;
}

double number(Format type, const std::vector<std::uint8_t>& d, std::size_t at) {
  const std::size_t size = static_cast<std::size_t>(bits_of(type)) / 8;
  std::uint32_t code = 0;
  std::memcpy(&code, &d[at * size], size);
  return second_route::value_of(type, code);
}

class BoundOfUnit : public testing::TestWithParam<TensorCoreUnit> {};

TEST_P(BoundOfUnit, stays_within_the_bound_under_any_plan) {
  const TensorCoreUnit& unit = GetParam();
  Random random{unit.name.size() * 1000003u};
  int finite = 0, all = 0;
  for (int trial = 0; trial < 24; ++trial) {
    const Drawn drawn = draw(unit, random);
    logical::Problem p(drawn.setting);
    const std::uint64_t seed = random.next();
    p.fill_codes([&](int which, std::int64_t t, std::int64_t i, std::int64_t k) {
      const std::uint64_t bits = logical::mixed(logical::mixed(seed + static_cast<std::uint64_t>(which + 2 * t)) +
                                                static_cast<std::uint64_t>(1009 * i + k));
      const std::uint32_t code = element(which == 0 ? drawn.setting.rows_type : drawn.setting.columns_type, bits);
      return trial % 3 == 0 ? code & ~(1u << (bits_of(which == 0 ? drawn.setting.rows_type : drawn.setting.columns_type) - 1))
                            : code;
    });
    p.fill_scales([&](int which, std::int64_t, std::int64_t at) -> std::uint32_t {
      const std::uint64_t bits = logical::mixed(seed ^ static_cast<std::uint64_t>(which + 2 * at));
      switch (drawn.setting.kind) {
        case GemmKind::mxfp8: return static_cast<std::uint32_t>(124 + bits % 7);
        case GemmKind::nvfp4: return static_cast<std::uint32_t>(bits % 0x7F);
        default: return static_cast<std::uint32_t>(0x3C000000 + bits % 0x3000000);
      }
    });
    GroupedGemmProblem& problem = p.stored();
    problem.plan = &drawn.plan;
    const float alpha[] = {1.7f}, beta[] = {trial % 2 == 0 ? 0.0f : -0.6f};
    const MatrixShape shape = grouped_gemm_shape(problem);
    std::vector<std::uint8_t> c(static_cast<std::size_t>(shape.rows * shape.columns) * 4 + 4, 0x3F);
    problem.alpha = alpha;
    problem.beta = beta;
    problem.c = c.data();

    std::vector<std::uint8_t> d(c.size());
    scalar::grouped_gemm(problem, d.data());
    const std::vector<CertifiedBound> bounds = error_bounds(problem, drawn.hardware);
    ASSERT_EQ(bounds.size(), static_cast<std::size_t>(shape.rows * shape.columns));
    for (std::size_t at = 0; at < bounds.size(); ++at) {
      const double value = number(drawn.setting.d_type, d, at);
      ASSERT_TRUE(bounds[at].contains(value)) << "trial " << trial << " " << name_of(drawn.setting.kind) << ", element " << at
                                              << ": " << value << " is not " << bounds[at].exact << " +- " << bounds[at].radius;
      ++all;
      finite += bounds[at].is_bounded();
    }
  }
  EXPECT_GT(all, 200);
  // With f16 accumulators magnitudes may pass 65504 / 2, and then no bound is given.
  EXPECT_GT(finite, unit.accumulator == Accumulator::f16_nearest ? 20 : all * 9 / 10);
}

std::vector<TensorCoreUnit> grouped_gemm_units() {
  std::vector<TensorCoreUnit> units;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    const Format type = unit.operands.front();
    const bool has_kind = takes(unit, GemmKind::bf16, type, type) || takes(unit, GemmKind::mxfp8, type, Format::e4m3) ||
                          takes(unit, GemmKind::nvfp4, type, type);
    // No kind has TF32, f32 or FNUZ operands, and no bound is known where subnormal operands are zeros.
    const bool flushes = unit.flush == Flush::operands_and_results || (unit.flush == Flush::f32_values && type == Format::bf16);
    if (has_kind && !flushes && type != Format::f32 && type != Format::e4m3_fnuz) units.push_back(unit);
  }
  return units;
}
std::string unit_label(const testing::TestParamInfo<TensorCoreUnit>& info) {
  std::string label(info.param.name);
  std::replace(label.begin(), label.end(), '.', '_');
  return label;
}
INSTANTIATE_TEST_SUITE_P(units, BoundOfUnit, testing::ValuesIn(grouped_gemm_units()), unit_label);

Setting small(GemmKind kind, Format type, std::int64_t K) {
  Setting s;
  s.kind = kind;
  s.rows_type = s.columns_type = type;
  s.splits = {1};
  s.N = 1, s.K = K;
  if (kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4) s.architecture = "sm100";
  return s;
}

// One large product and 31 that lie just below its grid: all of them are cut.
TEST(error_bound, is_nearly_reached) {
  logical::Problem p(small(GemmKind::fp8_per_tensor, Format::e4m3, 32));
  p.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) -> std::uint32_t {
    return k == 0 ? 0x70 : which == 0 ? 0x3E : 0x38;  // 128 * 128, and 1.75 * 1
  });
  const GroupedGemmProblem& problem = p.stored();
  float d = 0;
  scalar::grouped_gemm(problem, &d);
  EXPECT_EQ(d, 16384);
  AnyOrder hardware = any_order(*find_tensor_core_unit("sm90.wgmma.fp8"));
  hardware.short_step_interval = 0;  // 32 products are one step
  const CertifiedBound bound = error_bounds(problem, hardware).front();
  EXPECT_EQ(bound.exact, 16384 + 31 * 1.75);
  EXPECT_TRUE(bound.contains(d));
  EXPECT_GT(std::fabs(d - bound.exact), 0.8 * bound.radius) << bound.radius;
}

// Subnormal factors set a grid four binades above their products, and thirty small products are lost whole.
TEST(error_bound, knows_that_subnormals_are_not_normalised) {
  logical::Problem p(small(GemmKind::fp8_per_tensor, Format::e4m3, 32));
  p.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) -> std::uint32_t {
    if (k < 2) return which == 0 ? (k == 0 ? 0x01 : 0x81) : 0x78;  // +-2^-9 * 2^8
    return 0x08;                                                   // 2^-6 * 2^-6
  });
  float d = 1;
  scalar::grouped_gemm(p.stored(), &d);
  EXPECT_EQ(d, 0);
  const CertifiedBound bound = error_bounds(p.problem, any_order(*find_tensor_core_unit("sm90.wgmma.fp8"))).front();
  EXPECT_EQ(bound.exact, 30 * 0x1p-12);
  EXPECT_TRUE(bound.contains(d));
}

// A unit that keeps fewer bits than it states is detected.
TEST(error_bound, rejects_a_unit_with_fewer_fraction_bits) {
  logical::Problem p(small(GemmKind::bf16, Format::bf16, 16));
  p.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) -> std::uint32_t {
    return k == 0 ? 0x3F80 : which == 0 ? 0x3F80 - 14 * 128 : 0x3F80;  // 1, and fifteen times 2^-14
  });
  GroupedGemmProblem problem = p.stored();
  const std::vector<CertifiedBound> bounds = error_bounds(problem, any_order(*find_tensor_core_unit("sm90.wgmma.f16")));
  EXPECT_TRUE(bounds.front().contains(1 + 15 * 0x1p-14));
  EXPECT_FALSE(bounds.front().contains(1));  // the result with F = 13
}

struct WrongScale {
  GemmKind kind;
  Format type;
  std::uint32_t right, wrong;
};

// Positive data, a scale of one block replaced: the value leaves the interval of the right problem.
TEST(error_bound, does_not_hold_what_a_wrong_scale_makes) {
  const WrongScale rows[] = {
      {GemmKind::fp8_per_tensor, Format::e4m3, 0x3F800000, 0x3FA00000},
      {GemmKind::fp8_block, Format::e4m3, 0x3F800000, 0x3FC00000},
      {GemmKind::mxfp8, Format::e4m3, 127, 128},
      {GemmKind::nvfp4, Format::e2m1, 0x38, 0x40},
  };
  for (const WrongScale& row : rows) {
    logical::Problem p(small(row.kind, row.type, 256));
    p.fill_codes([&](int, std::int64_t, std::int64_t, std::int64_t k) {
      return row.type == Format::e2m1 ? 2u + static_cast<std::uint32_t>(k % 3) : 0x38u + static_cast<std::uint32_t>(k * 7 % 13);
    });
    p.fill_scales([&](int, std::int64_t, std::int64_t) { return row.right; });
    const std::vector<CertifiedBound> bounds =
        error_bounds(p.stored(), any_order(*find_tensor_core_unit(row.kind == GemmKind::mxfp8   ? "sm100.tcgen05.mxf8f6f4"
                                                                  : row.kind == GemmKind::nvfp4 ? "sm100.tcgen05.mxf4nvf4"
                                                                                                : "sm90.wgmma.fp8")));
    float d = 0;
    scalar::grouped_gemm(p.problem, &d);
    EXPECT_TRUE(bounds.front().contains(d)) << name_of(row.kind);
    p.columns.groups[0].scales.back() = row.wrong;
    scalar::grouped_gemm(p.stored(), &d);
    EXPECT_FALSE(bounds.front().contains(d))
        << name_of(row.kind) << ": " << d << " against " << bounds.front().exact << " +- " << bounds.front().radius;
  }
}

TEST(error_bound, says_what_is_not_finite_and_where_nothing_can_be_said) {
  Setting s = small(GemmKind::bf16, Format::bf16, 16);
  s.splits = {1, 1, 1};
  s.spare_rows = 1;
  logical::Problem p(s);
  p.rows.groups[0].code(0, 3) = 0x7FC0;                                   // NaN
  p.rows.groups[1].code(0, 3) = p.columns.groups[1].code(0, 3) = 0x7F00;  // 2^127 squared
  const std::vector<CertifiedBound> bounds = error_bounds(p.stored());
  ASSERT_EQ(bounds.size(), 4u);
  EXPECT_TRUE(std::isnan(bounds[0].lowest) && std::isnan(bounds[0].highest));
  EXPECT_TRUE(bounds[0].is_bounded() && bounds[0].is_exact());
  EXPECT_FALSE(bounds[1].is_bounded());
  EXPECT_EQ(bounds[2].radius, 0);  // all zero
  EXPECT_TRUE(bounds[2].is_exact());
  EXPECT_FALSE(bounds[3].is_bounded()) << "not written";
  EXPECT_TRUE(bounds[0].contains(NAN));
  EXPECT_FALSE(bounds[0].contains(1));
  EXPECT_TRUE(bounds[1].contains(NAN) && bounds[1].contains(1));
  EXPECT_FALSE(bounds[2].contains(NAN));
  EXPECT_TRUE(bounds[2].contains(0));
  EXPECT_FALSE(bounds[2].contains(1));
}

TEST(error_bound, rejects_nonsense_about_the_hardware) {
  logical::Problem p(small(GemmKind::bf16, Format::bf16, 16));
  const GroupedGemmProblem& problem = p.stored();
  for (const auto& change : {+[](AnyOrder& h) { h.fraction_bits = 0; }, +[](AnyOrder& h) { h.step_fraction_bits = 99; },
                             +[](AnyOrder& h) { h.products_per_step = 0; }, +[](AnyOrder& h) { h.short_steps = -1; },
                             +[](AnyOrder& h) { h.output_merges = -1; }, +[](AnyOrder& h) { h.step_exponent_max = 1000; }}) {
    AnyOrder hardware;
    change(hardware);
    EXPECT_THROW(error_bounds(problem, hardware), InvalidArgument);
  }
}

}  // namespace
}  // namespace assay
