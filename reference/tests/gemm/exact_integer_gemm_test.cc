// Order-free data: both layers must give the exact integer sums under every plan.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <ostream>

#include "reference/gemm/exact_integer_gemm.h"
#include "reference/tests/arithmetic/second_route.h"
#include "reference/tests/gemm/logical_problem.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using logical::Setting;

TEST(exact_integer_gemm, is_the_sum_of_products) {
  for (const auto& [m, n, depth] : {std::tuple{1, 1, 1}, {3, 5, 17}, {16, 33, 64}, {2, 3, 0}}) {
    std::vector<std::int64_t> a(static_cast<std::size_t>(m * depth)), b(static_cast<std::size_t>(n * depth));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int64_t>(logical::mixed(i) % 2000001) - 1000000;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int64_t>(logical::mixed(~i) % 2000001) - 1000000;
    std::vector<std::int64_t> got(static_cast<std::size_t>(m * n), -1);
    exact_integer_gemm(m, n, depth, a, b, got);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        std::int64_t want = 0;
        for (int k = 0; k < depth; ++k)
          want += a[static_cast<std::size_t>(i * depth + k)] * b[static_cast<std::size_t>(j * depth + k)];
        ASSERT_EQ(got[static_cast<std::size_t>(i * n + j)], want);
      }
    }
  }
}

TEST(exact_integer_gemm, rejects_sizes_and_overflow) {
  std::int64_t one[] = {1}, out[] = {0, 0};
  const std::int64_t large[] = {std::int64_t{1} << 32}, lowest[] = {INT64_MIN};
  EXPECT_THROW(exact_integer_gemm(1, 1, 2, one, one, {out, 1}), InvalidArgument);
  EXPECT_THROW(exact_integer_gemm(1, 1, 1, one, one, out), InvalidArgument);
  EXPECT_THROW(exact_integer_gemm(-1, -1, -1, one, one, {out, 1}), InvalidArgument);
  EXPECT_THROW(exact_integer_gemm(1, 1, 1, large, large, {out, 1}), InvalidArgument);
  EXPECT_THROW(exact_integer_gemm(1, 1, 1, lowest, one, {out, 1}), InvalidArgument);
}

std::uint32_t code_of(Format format, double value) {
  if (format == Format::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  static std::map<std::pair<Format, double>, std::uint32_t> found;
  const auto [entry, missing] = found.try_emplace({format, value}, 0);
  if (!missing) return entry->second;
  for (std::uint32_t code = 0; code < 1u << bits_of(format); ++code) {
    if (second_route::value_of(format, code) == value) return entry->second = code;
  }
  ADD_FAILURE() << value;
  return 0;
}

// Integers of [-2, 2] times powers of two: at most 140 products of at most 4, scales of 1 and 2, half units for FP4.
struct OrderFree {
  explicit OrderFree(const Setting& s) : problem(s) {
    std::uint32_t rows_codes[5], columns_codes[5];
    for (int value = -2; value <= 2; ++value) {
      rows_codes[value + 2] = code_of(s.rows_type, value);
      columns_codes[value + 2] = code_of(s.columns_type, value);
    }
    problem.fill_codes([&](int which, std::int64_t t, std::int64_t i, std::int64_t k) {
      const auto value =
          logical::mixed(logical::mixed(static_cast<std::uint64_t>(which + 2 * t)) + static_cast<std::uint64_t>(i * 4001 + k)) %
          5;
      return (which == 0 ? rows_codes : columns_codes)[value];
    });
    problem.fill_scales([&](int which, std::int64_t t, std::int64_t at) -> std::uint32_t {
      const auto twice = static_cast<std::uint32_t>(logical::mixed(static_cast<std::uint64_t>(which + 2 * t + 64 * at)) % 2);
      switch (s.kind) {
        case GemmKind::mxfp8: return 127 + twice;
        case GemmKind::nvfp4: return 0x38 + 8 * twice;
        default: return 0x3F800000 + (twice << 23);
      }
    });
    for (std::size_t t = 0; t < s.splits.size(); ++t) problem.rows.groups[t].amax = problem.columns.groups[t].amax = 2688;
    problem.stored();
  }

  // The sums, from the logical matrices.
  std::vector<double> sums() const {
    const GemmKind kind = problem.setting().kind;
    const auto scale = [&](const logical::Matrix& m, std::int64_t i, std::int64_t k) {
      if (kind == GemmKind::bf16 || kind == GemmKind::f16) return 1.0;
      const std::uint32_t code = m.scale(i, k);
      if (kind == GemmKind::mxfp8) return std::ldexp(1.0, static_cast<int>(code) - 127);
      return second_route::value_of(kind == GemmKind::nvfp4 ? Format::e4m3 : Format::f32, code);
    };
    std::vector<double> result;
    for (std::size_t t = 0; t < problem.rows.groups.size(); ++t) {
      const logical::Matrix &a = problem.rows.groups[t], &b = problem.columns.groups[t];
      for (std::int64_t i = 0; i < a.extent; ++i) {
        for (std::int64_t j = 0; j < b.extent; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < a.depth; ++k) {
            sum += second_route::value_of(problem.rows.type, a.code(i, k)) * scale(a, i, k) *
                   second_route::value_of(problem.columns.type, b.code(j, k)) * scale(b, j, k);
          }
          result.push_back(sum);
        }
      }
    }
    return result;
  }

  logical::Problem problem;
};

Setting make(GemmKind kind, GemmLayout layout, std::string architecture = "sm90") {
  Setting s;
  s.kind = kind;
  s.layout = layout;
  s.architecture = std::move(architecture);
  s.splits = {4, 0, 130};
  s.N = 132, s.K = 140;
  s.rows_type = s.columns_type = kind == GemmKind::bf16    ? Format::bf16
                                 : kind == GemmKind::f16   ? Format::f16
                                 : kind == GemmKind::nvfp4 ? Format::e2m1
                                                           : Format::e4m3;
  return s;
}

template <class Type>
std::vector<Type> run(void (*call)(const GroupedGemmProblem&, void*), const GroupedGemmProblem& problem) {
  const MatrixShape shape = grouped_gemm_shape(problem);
  std::vector<Type> d(static_cast<std::size_t>(shape.rows * shape.columns), Type{77});
  call(problem, d.data());
  return d;
}

constexpr auto kEpilogue = GemmEpilogue::scaled_alpha_beta;

// Plans of every shape for a unit that leaves FP22 or f32.
std::vector<AccumulationPlan> plans_for(const TensorCoreUnit& unit, GemmKind kind) {
  const std::string_view name = unit.name;
  if (kind == GemmKind::fp8_block) {
    return {{"a", name, 128, Promotion::fma_scales_first, 1, 0, SliceMerge::none, kEpilogue},
            {"b", name, 64, Promotion::fma_rows_first, 1, 0, SliceMerge::none, kEpilogue},
            {"c", name, 32, Promotion::fma_cols_first, 3, 96, SliceMerge::sequential_f32, kEpilogue}};
  }
  const std::int64_t step = unit.products_per_step;
  return {{"a", name, 0, Promotion::none, 1, 0, SliceMerge::none, kEpilogue},
          {"b", name, 2 * step, Promotion::add, 1, 0, SliceMerge::none, kEpilogue},
          {"c", name, 0, Promotion::none, 140 / step + 1, step, SliceMerge::sequential_f32, kEpilogue}};
}

TEST(order_free, data_have_one_answer_under_every_plan) {
  int plans = 0;
  for (const GemmKind kind :
       {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor, GemmKind::fp8_block, GemmKind::mxfp8, GemmKind::nvfp4}) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      const bool blackwell = kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4;
      OrderFree data(make(kind, layout, blackwell ? "sm100" : "sm90"));
      GroupedGemmProblem& problem = data.problem.problem;
      const std::vector<float> want = run<float>(exact_integer_gemm, problem);
      const std::vector<double> sums = data.sums();
      for (std::size_t at = 0; at < sums.size(); ++at)
        ASSERT_EQ(want[at], sums[at]) << name_of(kind) << " " << name_of(layout) << " " << at;
      for (std::size_t at = sums.size(); at < want.size(); ++at) ASSERT_EQ(want[at], 77);

      for (const TensorCoreUnit& unit : tensor_core_units()) {
        const StepScaling scaling = kind == GemmKind::mxfp8   ? StepScaling::e8m0_per_32
                                    : kind == GemmKind::nvfp4 ? StepScaling::e4m3_per_16
                                                              : StepScaling::none;
        const Format type = data.problem.rows.type;
        const bool takes = std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
        if (!takes || unit.scaling != scaling || unit.accumulator == Accumulator::f16_nearest) continue;
        for (const AccumulationPlan& plan : plans_for(unit, kind)) {
          problem.plan = &plan;
          EXPECT_EQ(run<float>(grouped_gemm, problem), want)
              << name_of(kind) << " " << name_of(layout) << " " << unit.name << " " << plan.name;
          if (plans++ % 9 == 3 * static_cast<int>(layout)) {  // the scalar layer is slow
            EXPECT_EQ(run<float>(scalar::grouped_gemm, problem), want)
                << "scalar " << name_of(kind) << " " << unit.name << " " << plan.name;
          }
          problem.plan = nullptr;
        }
      }
    }
  }
  EXPECT_GT(plans, 100);
}

TEST(order_free, epilogue_has_one_answer_too) {
  for (const Format d_type : {Format::f32, Format::bf16, Format::f16}) {
    Setting s = make(GemmKind::fp8_per_tensor, GemmLayout::TN);
    s.d_type = d_type;
    OrderFree data(s);
    GroupedGemmProblem& problem = data.problem.problem;
    const float alpha[] = {-0.5f, 1, 2}, beta[] = {1, 1, -2};
    std::vector<std::uint8_t> c, bias;
    for (std::int64_t at = 0; at < problem.rows * s.N; ++at)
      logical::put(d_type, c, at, code_of(d_type, static_cast<double>(at % 61 - 30) / 4));
    for (std::int64_t at = 0; at < 3 * s.N; ++at)
      logical::put(d_type, bias, at, code_of(d_type, static_cast<double>(at % 5) - 1.5));
    c.resize(c.size() + 8);
    problem.alpha = alpha;
    problem.beta = beta;
    problem.c = c.data();
    problem.bias = bias.data();
    if (d_type == Format::f32) {
      EXPECT_EQ(run<float>(exact_integer_gemm, problem), run<float>(scalar::grouped_gemm, problem));
    } else {
      EXPECT_EQ(run<std::uint16_t>(exact_integer_gemm, problem), run<std::uint16_t>(scalar::grouped_gemm, problem))
          << name_of(d_type);
    }
  }
}

struct Fault {
  const char* what;
  const char* argument;
  GemmKind kind;
  std::function<void(logical::Problem&)> spoil;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.what; }

const float kThird[] = {1.0f / 3}, kOnes[] = {1};
const std::vector<float> kRagged(4096 * 16, 0.1f);

// clang-format off
const Fault kFaults[] = {
    {"a NaN element", "rows operand", GemmKind::fp8_per_tensor, [](auto& p) { p.rows.groups[2].code(3, 4) = 0x7F; }},
    {"an infinite element", "columns operand", GemmKind::bf16, [](auto& p) { p.columns.groups[2].code(3, 4) = 0x7F80; }},
    {"elements too far apart", "rows operand", GemmKind::bf16, [](auto& p) { p.rows.groups[2].code(3, 4) = 0x3000; }},
    {"a large element", "rows operand", GemmKind::bf16, [](auto& p) { p.rows.groups[2].code(3, 4) = 0x4580; }},
    {"a subnormal element", "rows operand", GemmKind::fp8_per_tensor, [](auto& p) { p.rows.groups[2].code(3, 4) = 0x01; }},
    {"a NaN scale", "rows operand scales", GemmKind::mxfp8, [](auto& p) { p.rows.groups[2].scales[3] = 0xFF; }},
    {"a scale with many bits", "columns operand", GemmKind::fp8_block, [](auto& p) { p.columns.groups[2].scales[0] = 0x3F800001; }},
    {"an alpha with many bits", "alpha", GemmKind::bf16, [](auto& p) { p.problem.alpha = kThird; }},
    {"a C with many bits", "c", GemmKind::bf16, [](auto& p) { p.problem.beta = kOnes, p.problem.c = kRagged.data(); }},
};
// clang-format on

class NotOrderFree : public testing::TestWithParam<Fault> {};

TEST_P(NotOrderFree, is_an_error_before_anything_is_written) {
  OrderFree data(make(GetParam().kind, GemmLayout::TN, GetParam().kind == GemmKind::mxfp8 ? "sm100" : "sm90"));
  logical::Problem& p = data.problem;
  GetParam().spoil(p);
  const GroupedGemmProblem kept = p.problem;  // stored() creates the problem again
  p.stored();
  p.problem.alpha = kept.alpha;
  p.problem.beta = kept.beta;
  p.problem.c = kept.c;
  std::vector<float> d(static_cast<std::size_t>(p.problem.rows * p.setting().N), -7);
  try {
    exact_integer_gemm(p.problem, d.data());
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), GetParam().argument) << error.what();
  }
  for (const float value : d) ASSERT_EQ(value, -7);
}

INSTANTIATE_TEST_SUITE_P(faults, NotOrderFree, testing::ValuesIn(kFaults));

}  // namespace
}  // namespace assay
