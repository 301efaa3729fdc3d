// Plans as lines: the meaning of each field, one canonical form, and errors that name the field.

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "reference/gemm/plan.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay {
namespace {

TEST(plan_line, says_each_field) {
  const AccumulationPlan* plan = find_accumulation_plan(
      "unit=sm90.wgmma.fp8,promote=64,association=rows_first,slices=2x3584,merge=sequential_f32,epilogue=reduce_add_ftz");
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->unit, "sm90.wgmma.fp8");
  EXPECT_EQ(plan->promotion_interval, 64);
  EXPECT_EQ(plan->promotion, Promotion::fma_rows_first);
  EXPECT_EQ(plan->slices, 2);
  EXPECT_EQ(plan->slice_length, 3584);
  EXPECT_EQ(plan->merge, SliceMerge::sequential_f32);
  EXPECT_EQ(plan->epilogue, GemmEpilogue::reduce_add_ftz);
  EXPECT_EQ(plan->scale_vectors, ScaleVectors::none);
  EXPECT_EQ(plan->widen, std::nullopt);
  EXPECT_EQ(plan->subnormals, Subnormals::kept);

  plan = find_accumulation_plan("unit=sm90.mma.f16,widen=f16,slices=4x128,merge=((0+1)+(2+3)),scale_vectors=cols_first");
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->widen, Format::f16);
  EXPECT_EQ(plan->promotion_interval, 0);
  EXPECT_EQ(plan->promotion, Promotion::none);
  EXPECT_EQ(plan->merge, SliceMerge::shape_f32);
  EXPECT_EQ(plan->merge_shape, "((0+1)+(2+3))");
  EXPECT_EQ(plan->scale_vectors, ScaleVectors::cols_first);
  EXPECT_EQ(plan->epilogue, GemmEpilogue::scaled_alpha_beta);
}

// The order of fields, and default values written or left out, do not change the plan.
TEST(plan_line, has_one_canonical_form) {
  const AccumulationPlan* plan = find_accumulation_plan("unit=sm90.wgmma.fp8,promote=128");
  for (const char* same : {"promote=128,unit=sm90.wgmma.fp8", "unit=sm90.wgmma.fp8,promote=128,association=add", "unit=sm90.wgmma.fp8,merge=none,promote=128",
                           "epilogue=alpha_beta,unit=sm90.wgmma.fp8,scale_vectors=none,widen=none,promote=128"}) {
    EXPECT_EQ(find_accumulation_plan(same), plan) << same;
  }
  EXPECT_EQ(plan->name, "unit=sm90.wgmma.fp8,promote=128");
  EXPECT_EQ(plan_line(*find_accumulation_plan("cublaslt.sm90.fp8_tensor.split")), plan->name);
}

const char* const kCanonical[] = {
    "unit=sm90.wgmma.f16",
    "unit=sm90.wgmma.fp8,promote=32",
    "unit=sm90.wgmma.fp8,promote=256",
    "unit=sm90.wgmma.fp8,promote=128,association=scales_first",
    "unit=sm90.wgmma.fp8,promote=64,association=cols_first",
    "unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio",
    "unit=sm90.wgmma.fp8,promote=128,association=rescale_in_turn,slices=3x256,merge=tree_f32",
    "unit=sm90.wgmma.fp8,promote=128,association=rows_first,slices=2x3584,merge=sequential_output",
    "unit=sm90.wgmma.f16,slices=5x61,merge=(3+((1+0)+(2+4)))",
    "unit=sm90.mma.f16,widen=bf16,promote=96,scale_vectors=scales_first",
    "unit=sm90.wgmma.fp8,promote=128,association=scales_first,epilogue=reduce_add",
    "unit=sm100.tcgen05.mxf8f6f4,promote=64",
    "unit=sm90.wgmma.fp8,promote=128,association=cols_first,subnormals=flushed",
    "unit=sm90.wgmma.fp8,scale_vectors=rows_first,subnormals=flushed,epilogue=reduce_add_ftz",
};

TEST(plan_line, comes_back_as_it_was_printed) {
  for (const char* line : kCanonical) {
    const AccumulationPlan* plan = find_accumulation_plan(line);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->name, line);
    EXPECT_EQ(plan_line(*plan), line);
    EXPECT_EQ(find_accumulation_plan(line), plan) << "the same plan, not another copy";
  }
  for (const AccumulationPlan& plan : accumulation_plans()) {
    AccumulationPlan again = read_plan_line(plan_line(plan));
    EXPECT_EQ(plan_line(again), plan_line(plan)) << plan.name;
  }
}

struct FaultyLine {
  const char* line;
  const char* argument;
  const char* reported;  // part of the message
};
void PrintTo(const FaultyLine& fault, std::ostream* out) { *out << fault.line; }

const FaultyLine kFaultyLines[] = {
    {"=", "plan", "FIELD=VALUE"},
    {"unit=", "plan", "FIELD=VALUE"},
    {"unit=sm90.wgmma.fp8,", "plan", "FIELD=VALUE"},
    {"unit=sm90.wgmma.fp8,,promote=128", "plan", "FIELD=VALUE"},
    {"unit=sm90.wgmma.fp8,promotion=128", "plan", "unit, widen, promote, association"},
    {"promote=128", "plan.unit", "not given"},
    {"unit=sm91.abacus", "plan.unit", "sm91.abacus"},
    {"unit=sm90.wgmma.fp8,unit=sm90.wgmma.fp8", "plan.unit", "each field once"},
    {"unit=sm90.wgmma.fp8,promote=0", "plan.promote", "1 or more"},
    {"unit=sm90.wgmma.fp8,promote=-128", "plan.promote", "-128"},
    {"unit=sm90.wgmma.fp8,promote=128k", "plan.promote", "128k"},
    {"unit=sm90.wgmma.fp8,promote=0128", "plan.promote", "0128"},
    {"unit=sm90.wgmma.fp8,promote=99999999999999999999", "plan.promote", "1 or more"},
    {"unit=sm90.wgmma.fp8,association=rows_first", "plan.association", "promote=INTERVAL"},
    {"unit=sm90.wgmma.fp8,promote=128,association=rows", "plan.association", "add, scales_first, rows_first, cols_first, rescale_by_ratio or rescale_in_turn"},
    {"unit=sm90.wgmma.fp8,promote=96,association=rows_first", "plan.promote", "divisor of 128"},
    {"unit=sm90.wgmma.fp8,promote=256,association=scales_first", "plan.promote", "divisor of 128"},
    {"unit=sm90.wgmma.fp8.to_f16,promote=128,association=rescale_by_ratio", "plan.association", "f16"},
    {"unit=sm100.tcgen05.mxf8f6f4,promote=48", "plan.promote", "multiple of 32"},
    {"unit=sm90.wgmma.fp8,slices=0x128,merge=sequential_f32", "plan.slices", "0x128"},
    {"unit=sm90.wgmma.fp8,slices=1x128", "plan.slices", "COUNTxLENGTH"},
    {"unit=sm90.wgmma.fp8,slices=2", "plan.slices", "COUNTxLENGTH"},
    {"unit=sm90.wgmma.fp8,slices=2x", "plan.slices", "COUNTxLENGTH"},
    {"unit=sm90.wgmma.fp8,slices=2x0,merge=sequential_f32", "plan.slices", "COUNTxLENGTH"},
    {"unit=sm90.wgmma.fp8,slices=2x128", "plan.merge", "a way to merge 2 slices"},
    {"unit=sm90.wgmma.fp8,merge=sequential_f32", "plan.merge", "several slices"},
    {"unit=sm90.wgmma.fp8,merge=(0+1)", "plan.merge", "several slices"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=pairs", "plan.merge", "sequential_f32"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0+0)", "plan.merge", "0 is there 2 times"},
    {"unit=sm90.wgmma.fp8,slices=3x128,merge=(0+1)", "plan.merge", "2 is there 0 times"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0+2)", "plan.merge", "there is no 2"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0+1", "plan.merge", "sums of two"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0+1))", "plan.merge", "sums of two"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0-1)", "plan.merge", "sums of two"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(0+-1)", "plan.merge", "sums of two"},
    {"unit=sm90.wgmma.fp8,slices=2x128,merge=(00+1)", "plan.merge", "sums of two"},
    {"unit=sm90.wgmma.fp8,slices=1025x128,merge=tree_f32", "plan.slices", "at most 1024"},
    {"unit=sm90.wgmma.fp8,promote=128,association=rows_first,slices=2x192,merge=sequential_f32", "plan.slices", "multiple of promote=128"},
    {"unit=sm100.tcgen05.mxf8f6f4,slices=2x40,merge=sequential_f32", "plan.slices", "multiple of 32"},
    {"unit=sm90.wgmma.fp8,widen=f16", "plan.widen", "operand type of sm90.wgmma.fp8"},
    {"unit=sm90.mma.f16,widen=f32", "plan.widen", "none, f16 or bf16"},
    {"unit=sm90.mma.f16.to_f16,widen=bf16", "plan.widen", "operand type of sm90.mma.f16.to_f16"},
    {"unit=sm90.wgmma.fp8,scale_vectors=both", "plan.scale_vectors", "rows_first"},
    {"unit=sm90.wgmma.fp8,promote=128,subnormals=zero", "plan.subnormals", "kept or flushed"},
    {"unit=sm90.wgmma.fp8,subnormals=flushed", "plan.subnormals", "a promotion or scale vectors"},
    {"unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio,subnormals=flushed", "plan.subnormals", "rescale_by_ratio"},
    {"unit=sm90.wgmma.fp8,promote=128,slices=2x256,merge=tree_f32,subnormals=flushed", "plan.subnormals", "several slices"},
    {"unit=sm90.wgmma.fp8,epilogue=relu", "plan.epilogue", "alpha_beta, reduce_add or reduce_add_ftz"},
};

class Faulty : public testing::TestWithParam<FaultyLine> {};

TEST_P(Faulty, names_the_field) {
  try {
    find_accumulation_plan(GetParam().line);
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), GetParam().argument) << error.what();
    EXPECT_NE(std::string(error.what()).find(GetParam().reported), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(lines, Faulty, testing::ValuesIn(kFaultyLines));

TEST(plan_line, of_great_depth_is_refused) {
  std::string shape;
  for (int i = 0; i < 100000; ++i) shape += "(";
  EXPECT_THROW(find_accumulation_plan("unit=sm90.wgmma.f16,slices=2x16,merge=" + shape), InvalidArgument);
}

TEST(plan_line, is_not_a_name) {
  EXPECT_EQ(find_accumulation_plan(""), nullptr);
  EXPECT_EQ(find_accumulation_plan("sm90.wgmma.fp8"), nullptr);
}

struct Unfit {
  const char* plan;
  GemmKind kind;
  bool vectors;
  const char* argument;
};
const Unfit kUnfit[] = {
    {"unit=sm90.wgmma.fp8", GemmKind::fp8_per_tensor, true, "plan.scale_vectors"},
    {"unit=sm90.wgmma.fp8,scale_vectors=rows_first", GemmKind::fp8_per_tensor, false, "plan.scale_vectors"},
    {"unit=sm90.wgmma.fp8", GemmKind::fp8_block, false, "plan.association"},
    {"unit=sm90.wgmma.fp8,promote=128", GemmKind::fp8_block, false, "plan.association"},
    {"unit=sm90.wgmma.f16,promote=128,association=rescale_by_ratio", GemmKind::bf16, false, "plan.association"},
    {"unit=sm90.mma.f16,widen=f16", GemmKind::f16, false, "plan.widen"},
    {"unit=sm90.wgmma.fp8", GemmKind::mxfp8, false, "plan.unit"},
};

TEST(plan, serves_the_kinds_that_have_its_scales) {
  for (const Unfit& each : kUnfit) {
    const AccumulationPlan& plan = *find_accumulation_plan(each.plan);
    try {
      require_serves(plan, *find_tensor_core_unit(plan.unit), each.kind, each.vectors);
      ADD_FAILURE() << each.plan;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), each.argument) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
