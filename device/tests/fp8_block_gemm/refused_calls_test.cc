// Which calls the FP8 block GEMM does not take, and why; the plans that it states. Nothing is launched.

#include "device/fp8_block_gemm/fp8_block_gemm.h"

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "device/support/error.h"
#include "device/tests/gemm/sound_call.h"
#include "reference/gemm/plan.h"

namespace assay::device {
namespace {

std::string missing(const GroupedGemmCall& call, const Fp8BlockSettings& settings = {}) {
  return fp8_block_gemm_missing(call, settings);
}

TEST(Fp8BlockGemm, SaysWhatItDoesNotTake) {
  EXPECT_EQ(missing(sound(GemmKind::bf16, GemmLayout::TN)), "the FP8 block GEMM has no products of kind bf16");

  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::TN);
  call.places.layout = GroupedLayout::masked;
  EXPECT_EQ(missing(call), "the FP8 block GEMM takes groups that follow one another");

  call = sound(GemmKind::fp8_block, GemmLayout::TN);
  call.d_type = Format::e4m3;
  EXPECT_EQ(missing(call), "the FP8 block GEMM writes no D in FP8");
}

TEST(Fp8BlockGemm, TakesContractionsThatAreMultiplesOf16) {
  for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN}) {
    GroupedGemmCall call = sound(GemmKind::fp8_block, layout);
    std::int64_t& depth = layout == GemmLayout::TN ? call.K : call.N;
    for (depth = 0; depth < 40; ++depth) {
      const std::string expected = std::string("the FP8 block GEMM takes a contraction of a multiple of 16; ") +
                                   (layout == GemmLayout::TN ? "K" : "N") + " is " + std::to_string(depth);
      EXPECT_EQ(missing(call) == expected, depth % 16 != 0) << missing(call);
    }
  }
}

// The copy engine would stop the kernel.
TEST(Fp8BlockGemm, RefusesScalesBetweenMultiplesOf16Bytes) {
  using Operand = GemmOperand GroupedGemmCall::*;
  struct Named {
    GemmLayout layout;
    Operand operand;
    std::string name;
  };
  for (const Named& each : {Named{GemmLayout::TN, &GroupedGemmCall::x, "x"}, Named{GemmLayout::TN, &GroupedGemmCall::w, "w"},
                            Named{GemmLayout::NN, &GroupedGemmCall::dy, "dy"}, Named{GemmLayout::NN, &GroupedGemmCall::w, "w"},
                            Named{GemmLayout::NT, &GroupedGemmCall::dy, "dy"}, Named{GemmLayout::NT, &GroupedGemmCall::x, "x"}}) {
    const GroupedGemmCall call = sound(GemmKind::fp8_block, each.layout);
    const std::string name = each.name + ".scale_inv";
    for (const int bytes : {4, 8, 12}) {
      GroupedGemmCall shifted = call;
      (shifted.*each.operand).scale_inv = static_cast<const char*>((call.*each.operand).scale_inv) + bytes;
      try {
        fp8_block_grouped_gemm(shifted, {}, nullptr);
        ADD_FAILURE() << name << " + " << bytes << ": taken";
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("16"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Fp8BlockGemm, SaysWhatItDoesNotTakeInNT) {
  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::NT);
  call.N = std::int64_t{1} << 21;
  call.rows.groups = 1024;
  call.rows.capacity = 1024;
  call.rows_multiple = 16;  // nothing is copied
  EXPECT_EQ(missing(call), "the FP8 block GEMM takes D of at most 2147221504 rows; 1024 groups have 2097152 each");

  call.rows = {std::int64_t{1} << 30, call.rows.splits, 1};
  call.rows_multiple = 1;
  EXPECT_EQ(
      missing(call),
      "the FP8 block GEMM takes rows.capacity / 16 + rows.groups of at most 1024 in layout NT with N and K of at most 2097152; "
      "it is 67108865");
  call.rows_multiple = 16;
  EXPECT_EQ(missing(call), missing(sound(GemmKind::fp8_block, GemmLayout::NT)));
  call.rows_multiple = 1, call.column_alignment = 16;  // nothing is copied either
  EXPECT_EQ(missing(call), missing(sound(GemmKind::fp8_block, GemmLayout::NT)));

  call = sound(GemmKind::fp8_block, GemmLayout::NT);
  call.d_type = Format::e5m2;
  EXPECT_EQ(missing(call), "the FP8 block GEMM writes no D in FP8");
}

TEST(Fp8BlockGemm, RefusesSettingsThatItDoesNotHave) {
  const auto refusal = [](const GroupedGemmCall& call, int multiprocessors, int cluster) -> std::string {
    Fp8BlockSettings settings;
    settings.multiprocessors = multiprocessors, settings.cluster = cluster;
    try {
      fp8_block_grouped_gemm(call, settings, nullptr);
    } catch (const InvalidArgument& error) {
      return error.what();
    } catch (const std::exception&) {  // without a device
    }
    return "";
  };
  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::NT);
  EXPECT_EQ(refusal(call, 0, 1), "cluster of the settings is 1: expected 0 or 2 in layout NT");
  call = sound(GemmKind::fp8_block, GemmLayout::TN);
  EXPECT_EQ(refusal(call, -1, 0), "multiprocessors of the settings is -1: expected a value of at least 0");
  EXPECT_EQ(refusal(call, 0, 3), "cluster of the settings is 3: expected 0, 1 or 2");
  call.weight_block = WeightBlock::b1x128;
  EXPECT_EQ(refusal(call, 0, 2), "cluster of the settings is 2: expected 0 or 1 with 1x128 scales of w");
}

// Any N, K and rows are taken: what differs is whether groups have to be copied. So is D as a list.
TEST(Fp8BlockGemm, TakesAnySizesInNT) {
  const std::string of_the_device = missing(sound(GemmKind::fp8_block, GemmLayout::NT));
  GroupedGemmCall listed = sound(GemmKind::fp8_block, GemmLayout::NT);
  void* list[4] = {};
  listed.d = nullptr, listed.d_list = list;
  EXPECT_EQ(missing(listed), of_the_device);
  for (const std::int64_t size : {1, 15, 16, 17, 127, 128, 7168}) {
    GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::NT);
    call.N = size, call.K = 7169 - size;
    EXPECT_EQ(missing(call), of_the_device) << size;
  }
}

TEST(Fp8BlockGemm, CountsRowsOfWIn32Bits) {
  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::TN);
  call.rows.groups = 1024;
  call.N = std::int64_t{1} << 21;
  EXPECT_EQ(missing(call), "the FP8 block GEMM takes w of at most 2147221504 rows; 1024 groups have 2097152 each");
}

// The plan has the terms that the order says, and cuBLASLt's direct kernels have the same without a choice.
TEST(Fp8BlockGemm, StatesItsPlan) {
  GroupedGemmCall call = sound(GemmKind::fp8_block, GemmLayout::TN);
  const auto plan_of = [&](const Fp8BlockSettings& settings) {
    const AccumulationPlan* plan = find_accumulation_plan(fp8_block_gemm_plan(call, settings));
    return plan == nullptr ? "none" : plan_line(*plan);
  };
  const std::string scales_first = "unit=sm90.wgmma.fp8,promote=128,association=scales_first";
  const std::string rows_first = "unit=sm90.wgmma.fp8,promote=128,association=rows_first";
  call.weight_block = WeightBlock::b128x128;
  EXPECT_EQ(plan_of({}), scales_first);
  EXPECT_EQ(missing(call, {.order = Fp8BlockOrder::rows_first}),
            "the FP8 block GEMM has no plan rows_first for 128x128 scales of w");
  call.weight_block = WeightBlock::b1x128;
  EXPECT_EQ(plan_of({}), rows_first);
  EXPECT_EQ(plan_of({.order = Fp8BlockOrder::scales_first}), scales_first);
  EXPECT_EQ(plan_of({.order = Fp8BlockOrder::rows_first}), rows_first);
  for (const WeightBlock block : {WeightBlock::b128x128, WeightBlock::b1x128}) {
    call.weight_block = block;
    const PlanKey key{.library = "cublaslt", .architecture = "sm90", .kind = GemmKind::fp8_block, .weight_block = block};
    EXPECT_EQ(plan_of({}), plan_line(*plan_for(key)));
  }
  call.layout = GemmLayout::NT;
  EXPECT_EQ(plan_of({}), scales_first);
  EXPECT_EQ(plan_of({.order = Fp8BlockOrder::rows_first}), rows_first);
}

}  // namespace
}  // namespace assay::device
