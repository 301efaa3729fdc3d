// The scalar grouped GEMM against the second route: every kind, layout, output type, plan shape and epilogue, on data that
// cancel, with scales that are no powers of two; and the data against changed rules, which they must detect.

#include <gtest/gtest.h>

#include <bit>
#include <ostream>
#include <sstream>

#include "reference/tests/gemm/expected_gemm.h"

namespace assay {
namespace {

using logical::GemmMutation;
using logical::Setting;

struct Case {
  const char* what;
  Setting setting;
  AccumulationPlan plan;  // without a name: the table's
  std::vector<float> alpha = {}, beta = {};
  bool bias = false;
  bool raw = false;  // every code, including infinities and NaN
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.what << ": " << name_of(c.setting.kind) << " " << name_of(c.setting.layout) << " " << c.setting.architecture << " to "
       << name_of(c.setting.d_type);
}

constexpr AccumulationPlan kTable = {};
constexpr auto kEpilogue = GemmEpilogue::scaled_alpha_beta;

Setting make(GemmKind kind, GemmLayout layout, Format rows, Format columns, Format d_type, std::int64_t N, std::int64_t K,
             std::vector<std::int64_t> splits, const std::string& architecture = "sm90") {
  Setting s;
  s.kind = kind, s.layout = layout, s.rows_type = rows, s.columns_type = columns, s.d_type = d_type;
  s.N = N, s.K = K, s.splits = std::move(splits), s.architecture = architecture;
  s.spare_rows = 2;
  return s;
}

std::vector<Case> cases() {
  constexpr Format bf16 = Format::bf16, f16 = Format::f16, f32 = Format::f32, e4m3 = Format::e4m3, e5m2 = Format::e5m2;
  std::vector<Case> all;
  for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
    all.push_back({"one chain", make(GemmKind::bf16, layout, bf16, bf16, f32, 7, 45, {3, 0, 37, 1}), kTable});
    all.push_back({"one chain", make(GemmKind::f16, layout, f16, f16, f16, 6, 33, {2, 35}), kTable, {0.75f, -3}, {1, 0.5f}});
    all.push_back({"fast", make(GemmKind::fp8_per_tensor, layout, e4m3, e5m2, bf16, 70, 71, {3, 0, 70}), kTable});
    all.push_back({"promoted",
                   make(GemmKind::fp8_per_tensor, layout, e5m2, e4m3, f32, 140, 150, {3, 0, 200}),
                   kTable,
                   {1, 1, 1},
                   {1, 1, 0.3f}});
    all.back().setting.split_accumulator = true;
    all.push_back({"tiles by rows", make(GemmKind::fp8_block, layout, e4m3, e4m3, f32, 140, 150, {3, 0, 260}), kTable});
    all.push_back({"rows by rows",
                   make(GemmKind::fp8_block, layout, e4m3, e5m2, bf16, 140, 150, {3, 0, 260}),
                   kTable,
                   {1, 1, 0.1f},
                   {0, 1, 1}});
    all.back().setting.weight_block = WeightBlock::b1x128;
    all.push_back({"columns first",
                   make(GemmKind::fp8_block, layout, e4m3, e4m3, f32, 140, 150, {2, 140}),
                   {"test", "sm90.wgmma.fp8", 64, Promotion::fma_cols_first, 1, 0, SliceMerge::none, kEpilogue}});
    all.push_back({"compact", make(GemmKind::mxfp8, layout, e4m3, e5m2, f32, 70, 69, {3, 0, 68}, "sm100"), kTable});
    all.push_back(
        {"swizzled", make(GemmKind::mxfp8, layout, e4m3, e4m3, bf16, 140, 150, {3, 140}, "sm120"), kTable, {2, 0.7f}, {0, 1}});
    all.back().setting.scale_layout = ScaleLayout::swizzled;
    all.push_back({"compact",
                   make(GemmKind::nvfp4, layout, Format::e2m1, Format::e2m1, f32, 90, 88, {4, 0, 86}, "sm100"),
                   kTable,
                   {0.7f, 1, 1.3f}});
    all.push_back({"swizzled",
                   make(GemmKind::nvfp4, layout, Format::e2m1, Format::e2m1, bf16, 90, 88, {4, 86}, "sm120"),
                   kTable,
                   {1, 0.7f},
                   {1, 1}});
    all.back().setting.scale_layout = ScaleLayout::swizzled;
    all.push_back({"split K in f32",
                   make(GemmKind::bf16, layout, bf16, bf16, f32, 50, 50, {50}),
                   {"test", "sm90.wgmma.f16", 0, Promotion::none, 4, 16, SliceMerge::sequential_f32, kEpilogue}});
    all.push_back({"split K in the output's type, inside a step",
                   make(GemmKind::bf16, layout, bf16, bf16, bf16, 50, 50, {50}),
                   {"test", "sm90.wgmma.f16", 0, Promotion::none, 5, 13, SliceMerge::sequential_output, kEpilogue}});
    all.push_back({"split K, promoted inside a step",
                   make(GemmKind::fp8_per_tensor, layout, e4m3, e4m3, f32, 150, 150, {150}),
                   {"test", "sm90.wgmma.fp8", 40, Promotion::add, 2, 100, SliceMerge::sequential_f32, kEpilogue}});
    all.push_back({"f16 accumulator",
                   make(GemmKind::f16, layout, f16, f16, f16, 40, 40, {40}),
                   {"test", "sm90.wgmma.f16.to_f16", 0, Promotion::none, 1, 0, SliceMerge::none, kEpilogue}});
    all.push_back({"emulated",
                   make(GemmKind::fp8_per_tensor, layout, e4m3, e5m2, f32, 70, 70, {70}),
                   {"test", "sm90.mma.fp8", 0, Promotion::none, 1, 0, SliceMerge::none, kEpilogue}});
    const auto line = [](const char* text) { return *find_accumulation_plan(text); };
    for (const char* interval : {"32", "64", "128", "256"}) {
      all.push_back({"promoted", make(GemmKind::fp8_per_tensor, layout, e4m3, e4m3, f32, 300, 290, {3, 280}),
                     line((std::string("unit=sm90.wgmma.fp8,promote=") + interval).c_str())});
    }
    all.push_back({"rescaled by the ratio", make(GemmKind::fp8_block, layout, e4m3, e4m3, f32, 300, 290, {2, 300}),
                   line("unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio")});
    all.push_back({"rescaled in turn, in slices", make(GemmKind::fp8_block, layout, e5m2, e4m3, f32, 400, 390, {2, 400}),
                   line("unit=sm90.mma.fp8,promote=64,association=rescale_in_turn,slices=2x256,merge=sequential_f32")});
    all.push_back({"a tree of seven", make(GemmKind::bf16, layout, bf16, bf16, f32, 50, 50, {50}),
                   line("unit=sm90.wgmma.f16,slices=7x8,merge=tree_f32")});
    all.push_back({"a shape", make(GemmKind::f16, layout, f16, f16, f32, 50, 50, {50}),
                   line("unit=sm90.wgmma.f16,slices=5x10,merge=(3+((1+0)+(2+4)))")});
    all.push_back({"widened to f16", make(GemmKind::fp8_per_tensor, layout, e4m3, e5m2, f32, 70, 69, {3, 68}),
                   line("unit=sm90.mma.f16,widen=f16")});
    all.push_back({"widened to bf16", make(GemmKind::fp8_block, layout, e4m3, e4m3, f32, 150, 140, {150}),
                   line("unit=sm90.mma.f16,widen=bf16,promote=128,association=rows_first")});
    for (const char* order : {"rows_first", "cols_first", "scales_first"}) {
      all.push_back({"scales of rows and columns", make(GemmKind::fp8_per_tensor, layout, e4m3, e4m3, f32, 40, 45, {3, 0, 37}),
                     line((std::string("unit=sm90.wgmma.fp8,scale_vectors=") + order).c_str())});
      all.back().setting.row_and_column_scales = true;
    }
    all.push_back({"scales of rows and columns, split",
                   make(GemmKind::fp8_per_tensor, layout, e4m3, e4m3, bf16, 40, 45, {37, 2}),
                   line("unit=sm90.wgmma.fp8,promote=32,scale_vectors=rows_first"),
                   {0.7f, 1},
                   {0, 1.5f}});
    all.back().setting.row_and_column_scales = true;
    all.push_back({"added in memory",
                   make(GemmKind::fp8_block, layout, e4m3, e4m3, f32, 140, 150, {3, 0, 140}),
                   line("unit=sm90.wgmma.fp8,promote=128,association=scales_first,epilogue=reduce_add"),
                   {1, 0.3f, 0.7f},
                   {1, 1, 1}});
    all.push_back({"added in memory, flushed",
                   make(GemmKind::bf16, layout, bf16, bf16, f32, 20, 20, {20, 0}),
                   line("unit=sm90.wgmma.f16,epilogue=reduce_add_ftz"),
                   {0x1p-130f, 1},
                   {1, 1}});
    all.push_back({"every code", make(GemmKind::bf16, layout, bf16, bf16, f32, 20, 20, {20}), kTable, {1}, {1}, false, true});
    all.push_back({"every code, rescaled",
                   make(GemmKind::fp8_block, layout, e5m2, e4m3, f32, 150, 150, {150}),
                   line("unit=sm90.wgmma.fp8,promote=64,association=rescale_by_ratio"),
                   {1},
                   {},
                   false,
                   true});
    all.push_back({"every code, widened",
                   make(GemmKind::fp8_per_tensor, layout, e5m2, e4m3, f32, 20, 20, {20}),
                   line("unit=sm90.mma.f16,widen=f16"),
                   {1},
                   {},
                   false,
                   true});
    all.push_back(
        {"every code", make(GemmKind::fp8_per_tensor, layout, e5m2, e5m2, bf16, 20, 20, {20}), kTable, {0}, {}, false, true});
  }
  all.push_back({"bias", make(GemmKind::bf16, GemmLayout::TN, bf16, bf16, bf16, 20, 40, {3, 0, 5}), kTable, {}, {}, true});
  all.push_back(
      {"bias", make(GemmKind::fp8_per_tensor, GemmLayout::TN, e4m3, e4m3, f32, 20, 40, {3, 0, 5}), kTable, {}, {1, 1, 1}, true});
  all.push_back({"bias", make(GemmKind::f16, GemmLayout::TN, f16, f16, f16, 20, 40, {3, 0, 5}), kTable, {2, 2, 2}, {}, true});
  all.push_back({"Ampere", make(GemmKind::bf16, GemmLayout::TN, bf16, bf16, f32, 20, 40, {9}, "sm80"), kTable});
  all.push_back({"Ada", make(GemmKind::fp8_per_tensor, GemmLayout::TN, e4m3, e4m3, f32, 20, 90, {9}, "sm89"), kTable});
  all.push_back({"no K at all", make(GemmKind::bf16, GemmLayout::TN, bf16, bf16, f32, 4, 0, {3, 2}), kTable, {2, 2}, {0, 0.5f}});
  return all;
}

struct Ready {
  logical::Problem problem;
  std::vector<float> alpha, beta;
  std::vector<std::uint32_t> c, bias;

  explicit Ready(const Case& test) : problem(test.setting), alpha(test.alpha), beta(test.beta) {
    const Setting& s = test.setting;
    const auto random = [](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
      return logical::mixed(a + 3 * logical::mixed(b + 5 * logical::mixed(c + 7 * logical::mixed(d + 11))));
    };
    problem.fill_codes([&](int which, std::int64_t t, std::int64_t i, std::int64_t k) -> std::uint32_t {
      const Format type = which == 0 ? s.rows_type : s.columns_type;
      // Every odd k nearly cancels the one before it: the same code, in one operand with the other sign.
      const bool second = k % 2 == 1 && !test.raw;
      const std::uint64_t bits = random(static_cast<std::uint64_t>(which), static_cast<std::uint64_t>(t),
                                        static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(second ? k - 1 : k));
      auto code = static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << bits_of(type)) - 1));
      if (test.raw) return code;
      switch (type) {  // exponents within some binades of 1
        case Format::bf16: code = (code & 0x807F) | static_cast<std::uint32_t>(120 + bits / 65536 % 12) << 7; break;
        case Format::f16: code = (code & 0x83FF) | static_cast<std::uint32_t>(10 + bits / 65536 % 8) << 10; break;
        case Format::e4m3: code = (code & 0x7F) == 0x7F ? code ^ 1 : code; break;
        case Format::e5m2: code = (code & 0x83) | static_cast<std::uint32_t>(9 + bits / 65536 % 12) << 2; break;
        default: break;
      }
      if (second && which == 0) code ^= 1u << (bits_of(type) - 1);
      if (second && which == 1 && bits % 5 == 0) code ^= 1;
      if (type == Format::e4m3 && (code & 0x7F) == 0x7F) code ^= 1;
      return code;
    });
    problem.fill_scales([&](int which, std::int64_t t, std::int64_t at) -> std::uint32_t {
      const std::uint64_t bits =
          random(static_cast<std::uint64_t>(which) + 2, static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(at), 1);
      switch (s.kind) {
        case GemmKind::mxfp8: return static_cast<std::uint32_t>(122 + bits % 11);
        case GemmKind::nvfp4: return static_cast<std::uint32_t>(0x20 + bits % 0x30);
        default: return static_cast<std::uint32_t>(0x3B000000 + bits % 0x2000000);
      }
    });
    for (std::size_t t = 0; t < s.splits.size(); ++t) {
      problem.rows.groups[t].amax = 3.3f + static_cast<float>(t);
      problem.columns.groups[t].amax = 1.9f * static_cast<float>(t + 1);  // with alpha 0.7 the order of the factors shows
    }
    GroupedGemmProblem& p = problem.stored();
    p.alpha = alpha;
    p.beta = beta;
    if (alpha.empty()) alpha.assign(s.splits.size(), 1);
    if (beta.empty()) beta.assign(s.splits.size(), 0);
    const MatrixShape shape = grouped_gemm_shape(p);
    for (std::int64_t at = 0; at < shape.rows * shape.columns; ++at)
      c.push_back(output_number(s.d_type, random(9, 9, 9, static_cast<std::uint64_t>(at)),
                                test.plan.epilogue == GemmEpilogue::reduce_add_ftz && at % 2 == 0));
    if (test.bias) {
      for (std::size_t at = 0; at < s.splits.size() * static_cast<std::size_t>(s.N); ++at)
        bias.push_back(output_number(s.d_type, random(8, 8, 8, at)));
    }
  }

  // A code with a value of about 1, or an f32 about the smallest normal.
  static std::uint32_t output_number(Format type, std::uint64_t bits, bool tiny = false) {
    if (tiny) return static_cast<std::uint32_t>(bits & 0x81FFFFFF);
    if (type == Format::f32) return static_cast<std::uint32_t>((bits & 0x80000000) | (0x3E000000 + bits / 65536 % 0x3000000));
    return static_cast<std::uint32_t>((bits & 0x8000) | ((type == Format::bf16 ? 0x3E00u : 0x3400u) + bits / 65536 % 0x300));
  }
};

std::vector<std::uint8_t> packed(Format type, const std::vector<std::uint32_t>& codes) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at < codes.size(); ++at) logical::put(type, bytes, static_cast<std::int64_t>(at), codes[at]);
  bytes.resize(codes.size() * static_cast<std::size_t>(bits_of(type)) / 8 + 8, 0xEE);
  return bytes;
}

class Scalar : public testing::TestWithParam<Case> {};

TEST_P(Scalar, equals_the_second_route) {
  const Case& test = GetParam();
  Ready ready(test);
  GroupedGemmProblem& p = ready.problem.problem;
  if (!test.plan.name.empty()) p.plan = &test.plan;

  PlanKey key;
  key.architecture = test.setting.architecture;
  key.kind = test.setting.kind;
  key.split_accumulator = test.setting.split_accumulator;
  key.weight_block = test.setting.layout == GemmLayout::NT ? WeightBlock::b1x128 : test.setting.weight_block;
  const AccumulationPlan& plan = p.plan != nullptr ? *p.plan : *plan_for(key);

  const Format d_type = test.setting.d_type;
  const std::vector<std::uint8_t> c = packed(d_type, ready.c), bias = packed(d_type, ready.bias);
  const bool accumulates = std::any_of(ready.beta.begin(), ready.beta.end(), [](float beta) { return beta != 0; });
  p.c = accumulates ? c.data() : nullptr;  // beta 0: C is not read
  if (test.bias) p.bias = bias.data();

  const logical::Expected expected{plan, ready.problem};
  const auto want = expected.words(ready.alpha, ready.beta, ready.c, ready.bias);
  std::vector<std::uint8_t> d(c.size(), 0xA5);
  scalar::grouped_gemm(p, d.data());
  const std::size_t size = static_cast<std::size_t>(bits_of(d_type)) / 8;
  for (const auto& [at, code] : want) {
    std::uint32_t got = 0;
    std::memcpy(&got, &d[at * size], size);
    ASSERT_EQ(got, code) << "element " << at << std::hex << ": want 0x" << code << ", got 0x" << got;
  }
  const std::size_t written = expected.elements() * size;
  for (std::size_t at = written; at < d.size(); ++at) ASSERT_EQ(d[at], 0xA5) << "written past the splits";

  // C may be D.
  if (accumulates) {
    std::vector<std::uint8_t> in_place = c;
    p.c = in_place.data();
    scalar::grouped_gemm(p, in_place.data());
    EXPECT_EQ(std::memcmp(in_place.data(), d.data(), written), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(cases, Scalar, testing::ValuesIn(cases()));

// The data detect these mistakes: each gives other elements in some case.
TEST(scalar_grouped_gemm, cases_expose_bent_rules) {
  const std::pair<GemmMutation, const char*> bent[] = {
      {GemmMutation::other_association, "another association of the scales"},
      {GemmMutation::interval_halved, "promotion twice as often"},
      {GemmMutation::merge_reversed, "slices merged from the last"},
      {GemmMutation::scale_of_first_block, "the scale of the first block"},
      {GemmMutation::epilogue_without_fma, "alpha and beta without FMA"},
      {GemmMutation::other_rescaling, "the ratio of scales in the other order"},
      {GemmMutation::tree_in_turn, "a tree added in turn"},
      {GemmMutation::other_vector_order, "scales of rows and columns in the other order"},
      {GemmMutation::not_flushed, "subnormals kept in memory"},
  };
  for (const auto& [mutation, what] : bent) {
    int exposed = 0;
    for (const Case& test : cases()) {
      if (test.setting.layout != GemmLayout::NT || test.raw) continue;
      PlanKey key;
      key.architecture = test.setting.architecture;
      key.kind = test.setting.kind;
      key.split_accumulator = test.setting.split_accumulator;
      key.weight_block = WeightBlock::b1x128;
      const AccumulationPlan& plan = test.plan.name.empty() ? *plan_for(key) : test.plan;
      const bool concerned = mutation == GemmMutation::merge_reversed         ? plan.slices > 1
                             : mutation == GemmMutation::epilogue_without_fma ? !test.beta.empty()
                             : mutation == GemmMutation::other_rescaling      ? rescales(plan.promotion)
                             : mutation == GemmMutation::tree_in_turn         ? plan.merge == SliceMerge::tree_f32
                             : mutation == GemmMutation::other_vector_order   ? plan.scale_vectors != ScaleVectors::none
                             : mutation == GemmMutation::not_flushed          ? plan.epilogue == GemmEpilogue::reduce_add_ftz
                                                                              : plan.promotion_interval > 0;
      if (!concerned || exposed > 0) continue;
      Ready ready(test);
      const auto right = logical::Expected{plan, ready.problem}.words(ready.alpha, ready.beta, ready.c, ready.bias);
      const auto wrong = logical::Expected{plan, ready.problem, mutation}.words(ready.alpha, ready.beta, ready.c, ready.bias);
      exposed += right != wrong;
    }
    EXPECT_GT(exposed, 0) << what;
  }
}

// 2^-9 is a subnormal of E4M3, whose exponent is -6, and a normal of f16. So the largest exponent of this step is 6 and the grid
// 2^-19 where it is widened, 9 and 2^-16 where it is not: 2^-9 * 2^15 - 2^-9 * 2^15 + 2^-9 * 2^-9.
TEST(scalar_grouped_gemm, widens_before_the_exponents_are_compared) {
  Setting s = make(GemmKind::fp8_per_tensor, GemmLayout::TN, Format::e4m3, Format::e5m2, Format::f32, 1, 3, {1});
  logical::Problem problem(s);
  problem.fill_codes([](int which, std::int64_t, std::int64_t, std::int64_t k) -> std::uint32_t {
    constexpr std::uint32_t kColumn[] = {0x78, 0xF8, 0x18};
    return which == 0 ? 0x01 : kColumn[k];
  });
  GroupedGemmProblem& p = problem.stored();
  p.plan = find_accumulation_plan("unit=sm90.mma.f16,widen=f16");
  float d = 0;
  scalar::grouped_gemm(p, &d);
  EXPECT_EQ(d, 0x1p-18f);
  grouped_gemm(p, &d);
  EXPECT_EQ(d, 0x1p-18f);
  p.plan = find_accumulation_plan("unit=sm100.tcgen05.f8f6f4");
  scalar::grouped_gemm(p, &d);
  EXPECT_EQ(d, 0);
}

}  // namespace
}  // namespace assay
