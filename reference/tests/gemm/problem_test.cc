// The common view: every element and every scale is read from where the recipes store it, and errors name the bad argument.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <ostream>

#include "reference/gemm/problem.h"
#include "reference/tests/gemm/logical_problem.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using logical::Setting;

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
    Setting s;
    s.layout = layout;
    s.splits = {3, 0, 150, 1};
    s.N = 140, s.K = 290, s.spare_rows = 5;
    s.kind = GemmKind::bf16;
    all.push_back(s);
    s.other_storage = true;
    all.push_back(s);
    s.kind = GemmKind::f16, s.rows_type = s.columns_type = Format::f16;
    all.push_back(s);
    s.kind = GemmKind::fp8_per_tensor, s.rows_type = Format::e4m3, s.columns_type = Format::e5m2, s.other_storage = false;
    all.push_back(s);
    s.architecture = "sm100", s.other_storage = true;
    all.push_back(s);
    s.architecture = "sm90", s.other_storage = false;
    s.kind = GemmKind::fp8_block;
    all.push_back(s);
    s.weight_block = WeightBlock::b1x128;
    all.push_back(s);
    s.architecture = "sm100", s.kind = GemmKind::mxfp8;
    all.push_back(s);
    s.scale_layout = ScaleLayout::swizzled;
    all.push_back(s);
    s.kind = GemmKind::nvfp4, s.rows_type = s.columns_type = Format::e2m1;
    s.splits = {4, 0, 150, 2};
    all.push_back(s);
    s.scale_layout = ScaleLayout::compact;
    all.push_back(s);
  }
  return all;
}

std::string label(const testing::TestParamInfo<Setting>& info) {
  const Setting& s = info.param;
  return std::string(name_of(s.kind)) + "_" + std::string(name_of(s.layout)) + (s.other_storage ? "_other_storage" : "") +
         (s.weight_block == WeightBlock::b1x128 ? "_1x128" : "") + (s.scale_layout == ScaleLayout::swizzled ? "_swizzled" : "") +
         "_" + s.architecture;
}

class View : public testing::TestWithParam<Setting> {};

TEST_P(View, finds_every_element_and_scale) {
  const Setting& s = GetParam();
  logical::Problem p(s);
  const std::uint32_t mask = (1u << bits_of(s.rows_type)) - 1;
  p.fill_codes([&](int which, std::int64_t t, std::int64_t i, std::int64_t k) {
    return static_cast<std::uint32_t>(
               logical::mixed(static_cast<std::uint64_t>(which + 2 * t + 16 * i) + 1000003u * static_cast<std::uint64_t>(k))) &
           mask;
  });
  const bool f32_scales = s.kind == GemmKind::fp8_per_tensor || s.kind == GemmKind::fp8_block;
  p.fill_scales([&](int which, std::int64_t t, std::int64_t at) {
    const auto random = static_cast<std::uint32_t>(logical::mixed(static_cast<std::uint64_t>(7 * which + 31 * t + 1009 * at)));
    return f32_scales ? 0x3F800000u | (random & 0x7FFFFF) : random & 0xFF;
  });
  for (std::size_t t = 0; t < s.splits.size(); ++t) {
    p.rows.groups[t].amax = 1.5f + static_cast<float>(t);
    p.columns.groups[t].amax = 2.5f + static_cast<float>(t);
  }
  const GroupedGemmProblem& problem = p.stored();
  const MatrixShape shape = grouped_gemm_shape(problem);
  std::vector<float> d(static_cast<std::size_t>(shape.rows * shape.columns));
  const GroupedGemmView view = view_of(problem, d.data());

  std::size_t at = 0;
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < s.splits.size(); ++t) {
    const logical::Matrix& rows = p.rows.groups[t];
    const logical::Matrix& columns = p.columns.groups[t];
    const std::int64_t d_rows = s.layout == GemmLayout::NT ? s.N : s.splits[t];
    if (rows.extent != 0) {
      ASSERT_LT(at, view.groups.size());
      const GroupView& group = view.groups[at++];
      ASSERT_EQ(group.m, rows.extent);
      ASSERT_EQ(group.n, columns.extent);
      ASSERT_EQ(group.depth, rows.depth);
      EXPECT_EQ(group.d_offset, first_row * columns.extent);
      const std::pair<const logical::Matrix*, const OperandView*> pairs[] = {{&rows, &group.rows}, {&columns, &group.columns}};
      for (const auto& [want, got] : pairs) {
        for (std::int64_t i = 0; i < want->extent; ++i) {
          for (std::int64_t k = 0; k < want->depth; ++k) {
            ASSERT_EQ(got->element(i, k), want->code(i, k)) << "group " << t << ", i " << i << ", k " << k;
            if (f32_scales) {
              ASSERT_EQ(std::bit_cast<std::uint32_t>(got->scale.value(i, k)), want->scale(i, k)) << i << ", " << k;
            } else if (got->scale.data != nullptr) {
              ASSERT_EQ(got->scale.code(i, k), want->scale(i, k)) << i << ", " << k;
            }
          }
        }
        const bool scaled = s.kind != GemmKind::bf16 && s.kind != GemmKind::f16;
        EXPECT_EQ(got->scale.data != nullptr, scaled);
        EXPECT_EQ(got->amax, s.kind == GemmKind::nvfp4 ? want->amax : 0);
      }
    }
    first_row += d_rows;
  }
  EXPECT_EQ(at, view.groups.size());
}

INSTANTIATE_TEST_SUITE_P(storages, View, testing::ValuesIn(settings()), label);

// ---- Bad problems --------------------------------------------------------------------------------------------------

struct Fault {
  const char* argument;  // what the error must name
  Setting setting;
  std::function<void(GroupedGemmProblem&)> spoil;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.argument; }

const std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 2;
const std::int64_t kNegativeSplit[] = {3, -1};
const std::int64_t kManySplits[] = {kHuge, kHuge, kHuge};
const std::int64_t kOddSplits[] = {3, 3};
const float kThree[] = {1, 1, 1};
const float kOne[] = {1};
const AccumulationPlan kBroken[] = {
    {"no unit", "sm1.abacus", 0, Promotion::none, 1, 0, SliceMerge::none, {}},
    {"unmerged", "sm90.wgmma.f16", 0, Promotion::none, 2, 16, SliceMerge::none, {}},
    {"uncovered", "sm90.wgmma.f16", 0, Promotion::none, 2, 16, SliceMerge::sequential_f32, {}},
    {"no slice", "sm90.wgmma.f16", 0, Promotion::none, 0, 0, SliceMerge::none, {}},
    {"lone slice with a length", "sm90.wgmma.f16", 0, Promotion::none, 1, 64, SliceMerge::none, {}},
    {"interval without promotion", "sm90.wgmma.f16", 128, Promotion::none, 1, 0, SliceMerge::none, {}},
    {"scales inside", "sm90.wgmma.f16", 128, Promotion::fma_rows_first, 1, 0, SliceMerge::none, {}},
    {"wrong unit", "sm90.wgmma.fp8", 0, Promotion::none, 1, 0, SliceMerge::none, {}},
    {"scaled unit", "sm100.tcgen05.mxf8f6f4", 0, Promotion::none, 1, 0, SliceMerge::none, {}},
    {"interval across blocks", "sm90.wgmma.fp8", 96, Promotion::fma_rows_first, 1, 0, SliceMerge::none, {}},
    {"steps across scales", "sm100.tcgen05.mxf8f6f4", 48, Promotion::add, 1, 0, SliceMerge::none, {}},
    {"negative interval", "sm90.wgmma.f16", -1, Promotion::add, 1, 0, SliceMerge::none, {}},
};

Setting simple(GemmKind kind, GemmLayout layout = GemmLayout::TN) {
  Setting s;
  s.kind = kind;
  s.layout = layout;
  s.splits = {4, 6};
  s.N = 32, s.K = 64;
  s.rows_type = s.columns_type = kind == GemmKind::bf16    ? Format::bf16
                                 : kind == GemmKind::f16   ? Format::f16
                                 : kind == GemmKind::nvfp4 ? Format::e2m1
                                                           : Format::e4m3;
  if (kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4) s.architecture = "sm100";
  return s;
}

const Setting kBf16 = simple(GemmKind::bf16), kTensor = simple(GemmKind::fp8_per_tensor), kBlock = simple(GemmKind::fp8_block);
const Setting kMx = simple(GemmKind::mxfp8), kFp4 = simple(GemmKind::nvfp4);

const Fault kFaults[] = {
    {"kind", kBf16, [](auto& p) { p.kind = static_cast<GemmKind>(17); }},
    {"layout", kBf16, [](auto& p) { p.layout = static_cast<GemmLayout>(3); }},
    {"weight_block", kBlock, [](auto& p) { p.weight_block = static_cast<WeightBlock>(2); }},
    {"scale_layout", kMx, [](auto& p) { p.scale_layout = static_cast<ScaleLayout>(2); }},
    {"d_type", kBf16, [](auto& p) { p.d_type = Format::e4m3; }},
    {"d_type", kBf16, [](auto& p) { p.d_type = static_cast<Format>(99); }},
    {"rows", kBf16, [](auto& p) { p.rows = -1; }},
    {"splits", kBf16, [](auto& p) { p.rows = 9; }},
    {"N", kBf16, [](auto& p) { p.N = -1; }},
    {"K", kBf16, [](auto& p) { p.K = -5; }},
    {"splits[1]", kBf16, [](auto& p) { p.splits = kNegativeSplit; }},
    {"splits[2]", kBf16, [](auto& p) { p.splits = kManySplits; }},
    {"rows", kBf16, [](auto& p) { p.rows = kHuge; }},
    {"w rows", kBf16, [](auto& p) { p.N = kHuge / 64; }},
    {"alpha", kBf16, [](auto& p) { p.alpha = kThree; }},
    {"beta", kBf16, [](auto& p) { p.beta = kThree; }},
    {"c", kBf16, [](auto& p) { p.beta = kOne; }},
    {"x.data", kBf16, [](auto& p) { p.x.data = nullptr; }},
    {"w.data", kBf16, [](auto& p) { p.w.data = nullptr; }},
    {"x.data", kBf16, [](auto& p) { p.x.data = static_cast<const char*>(p.x.data) + 1; }},
    {"x.type", kBf16, [](auto& p) { p.x.type = Format::f16; }},
    {"w.type", kTensor, [](auto& p) { p.w.type = Format::e2m1; }},
    {"x.scale_inv", kTensor, [](auto& p) { p.x.scale_inv = nullptr; }},
    {"w.scale_inv", kBlock, [](auto& p) { p.w.scale_inv = static_cast<const char*>(p.w.scale_inv) + 2; }},
    {"x.columnwise", kTensor, [](auto& p) { p.x.columnwise = true; }},
    {"w.columnwise", simple(GemmKind::fp8_per_tensor, GemmLayout::NN), [](auto& p) { p.w.columnwise = false; }},
    {"dy.columnwise", simple(GemmKind::fp8_block, GemmLayout::NT), [](auto& p) { p.dy.columnwise = false; }},
    {"x.columnwise", kMx, [](auto& p) { p.x.columnwise = true; }},
    {"x.amax", kFp4, [](auto& p) { p.x.amax = nullptr; }},
    {"columns of x", kFp4, [](auto& p) { p.K = 63; }},
    {"rows of group 0", simple(GemmKind::nvfp4, GemmLayout::NT), [](auto& p) { p.splits = kOddSplits; }},
    {"bias", simple(GemmKind::bf16, GemmLayout::NN), [](auto& p) { p.bias = kThree; }},
    {"plan.unit", kBf16, [](auto& p) { p.plan = &kBroken[0]; }},
    {"plan.merge", kBf16, [](auto& p) { p.plan = &kBroken[1]; }},
    {"plan.slices", kBf16, [](auto& p) { p.plan = &kBroken[2]; }},
    {"plan.slices", kBf16, [](auto& p) { p.plan = &kBroken[3]; }},
    {"plan.slices", kBf16, [](auto& p) { p.plan = &kBroken[4]; }},
    {"plan.promote", kBf16, [](auto& p) { p.plan = &kBroken[5]; }},
    {"plan.association", kBf16, [](auto& p) { p.plan = &kBroken[6]; }},
    {"x.type", kBf16, [](auto& p) { p.plan = &kBroken[7]; }},
    {"plan.unit", kTensor, [](auto& p) { p.plan = &kBroken[8]; }},
    {"plan.association", kBlock, [](auto& p) { p.plan = find_accumulation_plan("cublaslt.sm90.fp8_tensor.split"); }},
    {"plan.promote", kBlock, [](auto& p) { p.plan = &kBroken[9]; }},
    {"plan.promote", kMx, [](auto& p) { p.plan = &kBroken[10]; }},
    {"plan.promote", kBf16, [](auto& p) { p.plan = &kBroken[11]; }},
};

class BadProblem : public testing::TestWithParam<Fault> {};

TEST_P(BadProblem, is_named_before_anything_is_written) {
  logical::Problem p(GetParam().setting);
  GroupedGemmProblem problem = p.stored();
  std::vector<float> d(4096, -7.0f);
  ASSERT_NO_THROW(view_of(problem, d.data())) << "the problem must be fine before it is spoilt";
  GetParam().spoil(problem);
  try {
    scalar::grouped_gemm(problem, d.data());
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), GetParam().argument) << error.what();
  }
  for (const float value : d) ASSERT_EQ(value, -7.0f);
}

INSTANTIATE_TEST_SUITE_P(faults, BadProblem, testing::ValuesIn(kFaults));

TEST(problem, needs_an_output) {
  logical::Problem p(kBf16);
  EXPECT_THROW(view_of(p.stored(), nullptr), InvalidArgument);
  const std::vector<float> d(4096);
  EXPECT_THROW(view_of(p.stored(), reinterpret_cast<const char*>(d.data()) + 2), InvalidArgument);
}

TEST(problem, without_a_plan_is_not_supported) {
  logical::Problem p(kMx);
  p.stored().architecture = "sm90";
  std::vector<float> d(4096);
  EXPECT_THROW(view_of(p.problem, d.data()), NotSupported);
}

TEST(problem, of_nothing_is_fine) {
  Setting s = kBf16;
  s.splits = {};
  logical::Problem none(s);
  EXPECT_NO_THROW(scalar::grouped_gemm(none.stored(), nullptr));
  s.splits = {0, 0};
  logical::Problem empty(s);
  EXPECT_NO_THROW(scalar::grouped_gemm(empty.stored(), nullptr));
}

}  // namespace
}  // namespace assay
