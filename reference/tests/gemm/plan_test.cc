// The plan table: its contents, and the plan that each request finds.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "reference/gemm/plan.h"

namespace assay {
namespace {

TEST(plans, have_names_of_their_own_and_units_that_exist) {
  std::set<std::string_view> names;
  for (const AccumulationPlan& plan : accumulation_plans()) {
    EXPECT_TRUE(names.insert(plan.name).second) << plan.name;
    EXPECT_NE(find_tensor_core_unit(plan.unit), nullptr) << plan.name;
    EXPECT_EQ(find_accumulation_plan(plan.name), &plan);
  }
  EXPECT_EQ(find_accumulation_plan("cublaslt"), nullptr);
}

TEST(plan_table, states_evidence_and_measures_only_with_measured_units) {
  for (const PlanEntry& entry : plan_table()) {
    ASSERT_NE(entry.plan, nullptr);
    const TensorCoreUnit& unit = *find_tensor_core_unit(entry.plan->unit);
    EXPECT_EQ(unit.architecture, entry.key.architecture) << entry.plan->name;
    const bool measured = entry.evidence.starts_with("measured");
    EXPECT_TRUE(measured || entry.evidence.starts_with("unmeasured")) << entry.plan->name;
    EXPECT_EQ(measured, unit.measured_by_us) << entry.plan->name;
  }
}

struct Row {
  GemmKind kind;
  bool split;
  WeightBlock weight_block;
  std::string_view unit;
  std::int64_t interval;
  Promotion promotion;
};

// The table of spec plans-2.1.
TEST(plan_for, finds_what_was_measured_on_sm90) {
  const Row rows[] = {
      {GemmKind::bf16, false, WeightBlock::b128x128, "sm90.wgmma.f16", 0, Promotion::none},
      {GemmKind::bf16, true, WeightBlock::b128x128, "sm90.wgmma.f16", 0, Promotion::none},
      {GemmKind::f16, false, WeightBlock::b128x128, "sm90.wgmma.f16", 0, Promotion::none},
      {GemmKind::fp8_per_tensor, false, WeightBlock::b128x128, "sm90.wgmma.fp8", 0, Promotion::none},
      {GemmKind::fp8_per_tensor, true, WeightBlock::b128x128, "sm90.wgmma.fp8", 128, Promotion::add},
      {GemmKind::fp8_block, true, WeightBlock::b128x128, "sm90.wgmma.fp8", 128, Promotion::fma_scales_first},
      {GemmKind::fp8_block, true, WeightBlock::b1x128, "sm90.wgmma.fp8", 128, Promotion::fma_rows_first},
  };
  for (const Row& row : rows) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      PlanKey request;
      request.library = "cublaslt";
      request.version_from = request.version_to = 131000;
      request.architecture = "sm90";
      request.kind = row.kind;
      request.layout = layout;
      request.split_accumulator = row.split;
      request.weight_block = row.weight_block;
      const AccumulationPlan* plan = plan_for(request);
      ASSERT_NE(plan, nullptr) << name_of(row.kind);
      EXPECT_EQ(plan->unit, row.unit);
      EXPECT_EQ(plan->promotion_interval, row.interval) << plan->name;
      EXPECT_EQ(plan->promotion, row.promotion) << plan->name;
      EXPECT_EQ(plan->slices, 1) << plan->name;
    }
  }
}

TEST(plan_for, knows_nothing_of_other_versions_machines_and_kinds) {
  PlanKey request{
      .architecture = "sm90", .kind = GemmKind::bf16, .layout = {}, .split_accumulator = {}, .weight_block = {}, .d_type = {}};
  ASSERT_NE(plan_for(request), nullptr);
  const auto with = [&](const auto& change) {
    PlanKey changed = request;
    change(changed);
    return plan_for(changed);
  };
  EXPECT_EQ(with([](PlanKey& key) { key.library = "another"; }), nullptr);
  EXPECT_EQ(with([](PlanKey& key) { key.version_from = key.version_to = 130300; }), nullptr);
  EXPECT_NE(with([](PlanKey& key) { key.version_from = key.version_to = 130600; }), nullptr);
  EXPECT_EQ(with([](PlanKey& key) { key.version_from = key.version_to = 140000; }), nullptr);
  EXPECT_NE(with([](PlanKey& key) { key.version_from = key.version_to = 131001; }), nullptr);
  EXPECT_NE(with([](PlanKey& key) { key.sm_count = 66; }), nullptr);
  EXPECT_NE(with([](PlanKey& key) { key.workspace = 1 << 20; }), nullptr);
  EXPECT_EQ(with([](PlanKey& key) { key.algorithm = 67; }), nullptr);
  EXPECT_EQ(with([](PlanKey& key) { key.split_k = 2; }), nullptr);
  EXPECT_NE(with([](PlanKey& key) { key.split_k = 1; }), nullptr);
  EXPECT_EQ(with([](PlanKey& key) { key.kind = GemmKind::mxfp8; }), nullptr) << "MXFP8 needs SM100";
  EXPECT_EQ(with([](PlanKey& key) { key.architecture = "sm75"; }), nullptr);
}

TEST(plan_for, covers_each_architecture) {
  const struct {
    std::string_view architecture;
    std::vector<GemmKind> kinds;
  } rows[] = {
      {"sm80", {GemmKind::bf16, GemmKind::f16}},
      {"sm89", {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor}},
      {"sm90", {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor, GemmKind::fp8_block}},
      {"sm100", {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor, GemmKind::mxfp8, GemmKind::nvfp4}},
      {"sm120", {GemmKind::bf16, GemmKind::f16, GemmKind::fp8_per_tensor, GemmKind::mxfp8, GemmKind::nvfp4}},
  };
  for (const auto& row : rows) {
    for (std::uint32_t code = 0; code <= 5; ++code) {
      const auto kind = static_cast<GemmKind>(code);
      PlanKey request;
      request.architecture = row.architecture;
      request.kind = kind;
      const bool expected = std::find(row.kinds.begin(), row.kinds.end(), kind) != row.kinds.end();
      EXPECT_EQ(plan_for(request) != nullptr, expected) << row.architecture << " " << name_of(kind);
    }
  }
}

TEST(names, go_both_ways) {
  for (std::uint32_t code = 0; code <= 5; ++code) {
    EXPECT_EQ(gemm_kind_named(name_of(static_cast<GemmKind>(code))), static_cast<GemmKind>(code));
  }
  for (std::uint32_t code = 0; code <= 2; ++code) {
    EXPECT_EQ(gemm_layout_named(name_of(static_cast<GemmLayout>(code))), static_cast<GemmLayout>(code));
  }
  EXPECT_EQ(gemm_kind_named("fp8"), std::nullopt);
  EXPECT_EQ(gemm_layout_named("tn"), std::nullopt);
  EXPECT_EQ(name_of(static_cast<GemmKind>(9)), "unknown");
}

}  // namespace
}  // namespace assay
