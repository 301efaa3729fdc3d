// Requests of the suite through the set-up and the generic kernel, on the host, against the reference.

#include <gtest/gtest.h>

#include "conformance/catalogue/catalogue.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/host_gemm.h"
#include "reference/arithmetic/unit_table.h"

namespace assay::conformance {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// Every case that only the generic kernel can compute, those whose groups do not follow one another, and some of the others.
// Under a plan whose unit's steps are no fused sum.
bool is_refused(const CaseLine& line) {
  if (!line.has("plan")) return false;
  const AccumulationPlan* plan = find_accumulation_plan(line.text("plan"));
  return plan != nullptr && !device::emulation_missing(*find_tensor_core_unit(plan->unit)).empty();
}

TEST(Generic, GivesTheBitsOfTheReference) {
  struct {
    const char* word;
    int cases = 0;
  } terms[] = {{"plan="}, {"scaling=per_row_column"}, {"d_type=e4m3"}, {"d_type=e5m2"}, {"w_type=e2m1"}, {"grouped_layout="}};
  int number = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    const std::string text = to_text(line);
    if (line.op != "grouped_gemm" || line.splits().size() > 1024) continue;
    bool chosen = ++number % 32 == 0;
    for (auto& term : terms) {
      if (!has(text, term.word)) continue;
      ++term.cases;
      chosen = true;
    }
    if (!chosen || is_refused(line)) continue;
    EXPECT_EQ(difference(line), "") << text;
  }
  for (const auto& term : terms) EXPECT_GE(term.cases, 4) << term.word;
  EXPECT_GT(number, 400);
}

// What the catalogue leaves out.
constexpr const char* kLines[] = {
    // Flushed subnormals, beside scales at the edge of f32.
    "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=scales_first,subnormals=flushed "
    "splits=9,0,17 N=136 K=304 scales=edge seed=20",
    "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=rows_first,subnormals=flushed "
    "splits=9,0,17 N=136 K=304 scales=edge seed=21",
    "grouped_gemm kind=fp8_block d_type=f32 plan=unit=sm90.wgmma.fp8,promote=128,association=cols_first,subnormals=flushed "
    "splits=9,0,17 N=136 K=304 scales=edge seed=22",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column d_type=f32 "
    "plan=unit=sm90.wgmma.fp8,scale_vectors=rows_first,subnormals=flushed "
    "splits=9,0,17 N=48 K=160 scales=edge seed=23",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column d_type=f32 "
    "plan=unit=sm90.wgmma.fp8,scale_vectors=cols_first,subnormals=flushed "
    "splits=9,0,17 N=48 K=160 scales=edge seed=24",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column d_type=f32 "
    "plan=unit=sm90.wgmma.fp8,promote=128,scale_vectors=scales_first,subnormals=flushed "
    "splits=9,0,17 N=48 K=160 scales=edge seed=25",
    // Trees: odd numbers of slices, slices past the end of k, no products at all, a D that is not f32, and promotion inside.
    "grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,slices=2x64,merge=tree_f32 splits=9 N=24 K=72 data=clustered seed=1",
    "grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,slices=13x16,merge=tree_f32 splits=5,0 N=24 K=72 data=clustered seed=2",
    "grouped_gemm kind=bf16 layout=NT plan=unit=sm90.wgmma.f16,slices=3x16,merge=tree_f32 d_type=f32 splits=40,0,3 N=8 K=8 "
    "seed=3",
    "grouped_gemm kind=f16 plan=unit=sm90.wgmma.f16.to_f16,slices=4x32,merge=((3+0)+(2+1)) d_type=f16 splits=9 N=24 K=104 seed=4",
    "grouped_gemm kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=64,association=cols_first,slices=5x64,merge=(4+(3+(2+(1+0)))) "
    "d_type=f32 splits=9,0,7 N=24 K=304 data=clustered seed=5",
    "grouped_gemm kind=mxfp8 plan=unit=sm100.tcgen05.mxf8f6f4,slices=3x32,merge=tree_f32 d_type=f32 splits=9 N=32 K=96 seed=6",
    "grouped_gemm kind=nvfp4 plan=unit=sm100.tcgen05.mxf4nvf4,slices=3x64,merge=tree_f32 d_type=f32 splits=16 N=16 K=160 seed=7",
    // Rescaled chains: a last interval that is short, slices, scales whose ratios are not exact, infinite or NaN.
    "grouped_gemm kind=fp8_block "
    "plan=unit=sm90.wgmma.fp8,promote=64,association=rescale_by_ratio,slices=2x192,merge=sequential_f32 "
    "d_type=f32 splits=9,0,7 N=24 K=360 data=block_scales seed=8",
    "grouped_gemm kind=fp8_block weight_block=1x128 plan=unit=sm90.mma.fp8,promote=128,association=rescale_in_turn d_type=f32 "
    "splits=9,7 N=24 K=304 data=clustered seed=9",
    "grouped_gemm kind=fp8_block layout=NN plan=unit=sm100.mma.fp8,promote=128,association=rescale_by_ratio splits=9 N=272 K=24 "
    "scales=specials seed=10",
    // Widened operands: every code of both formats.
    "grouped_gemm kind=fp8_per_tensor plan=unit=sm90.wgmma.f16,widen=f16 x_type=e5m2 d_type=f32 splits=9 N=24 K=64 "
    "data=every_code seed=11",
    "grouped_gemm kind=fp8_per_tensor plan=unit=sm90.wgmma.f16,widen=bf16 x_type=e5m2 d_type=f32 splits=9 N=24 K=64 "
    "data=every_code seed=12",
    "grouped_gemm kind=fp8_per_tensor plan=unit=sm90.wgmma.f16,widen=bf16 d_type=f32 splits=9 N=24 K=64 data=every_code seed=13",
    // The last steps: an infinite factor, subnormal addends and sums, no products.
    "grouped_gemm kind=fp8_per_tensor plan=unit=sm90.wgmma.fp8,epilogue=reduce_add_ftz d_type=f32 beta=1 scales=edge "
    "addends=every_special splits=9 N=24 K=48 data=full_exponent seed=14",
    "grouped_gemm kind=bf16 layout=NT plan=unit=sm90.wgmma.f16,epilogue=reduce_add d_type=f32 alpha=-2 beta=1 "
    "addends=every_special splits=9,0,7 N=24 K=48 seed=15",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column layout=NT plan=unit=sm90.wgmma.fp8,scale_vectors=rows_first "
    "d_type=e5m2 "
    "alpha=3 scales=specials d_scales=edge splits=20,0,3 N=24 K=40 data=clustered seed=16",
    "grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,slices=2x48,merge=tree_f32 d_type=e4m3 alpha=0.3 splits=9,0,7 N=24 K=72 "
    "data=every_special seed=17",
    "grouped_gemm kind=mxfp8 w_type=e2m1 x_type=e5m2 d_type=e4m3 scale_layout=compact splits=9,0,7 N=24 K=66 data=clustered "
    "seed=18",
    // Groups in other places: several blocks of a group, each with the scales of its group and of its rows; more blocks than the set-up
    // kernel has threads; a tree of slices, whose program lies behind the copied scales.
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column grouped_layout=m_indices alignment=8 d_type=e4m3 d_scales=edge "
    "alpha=3 "
    "splits=5,0,17,8 N=24 K=48 data=clustered seed=19",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column grouped_layout=masked max_m=20 splits=5,0,17,8 N=24 K=48 seed=20",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column layout=NN grouped_layout=psum alignment=8 splits=5,0,17 N=48 K=24 "
    "seed=21",
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=1 splits=1500,0,3 N=8 K=16 beta=1 seed=23",
    "grouped_gemm kind=mxfp8 w_type=e2m1 grouped_layout=psum alignment=16 splits=150,0,7 N=32 K=96 d_type=e5m2 seed=24",
    "grouped_gemm kind=nvfp4 grouped_layout=m_indices alignment=48 plan=unit=sm100.tcgen05.mxf4nvf4,slices=3x64,merge=tree_f32 "
    "d_type=f32 splits=50,0,140,7 N=16 K=160 seed=25",
};

TEST(Generic, FollowsTermsTogether) {
  for (const char* line : kLines) EXPECT_EQ(difference(parse_case_line(line)), "") << line;
}

// 1024 slices: the most that a tree has, in shapes whose stack would be 1024 high if the terms were taken as they are written.
TEST(Generic, MergesTheLargestTrees) {
  std::string left = "0", right = "1023";
  for (int slice = 1; slice < 1024; ++slice) {
    left = "(" + left + "+" + std::to_string(slice) + ")";
    right = "(" + std::to_string(1023 - slice) + "+" + right + ")";
  }
  for (const std::string& merge : {std::string("tree_f32"), left, right}) {
    const std::string line = "grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,slices=1024x1,merge=" + merge +
                             " d_type=f32 splits=2 N=2 K=1024 data=clustered seed=1";
    EXPECT_EQ(difference(parse_case_line(line)), "") << merge.substr(0, 20);
  }
}

// Terms that a fast kernel would not see keep a call from it; the others do not.
TEST(Generic, TakesWhatTheFastKernelsDoNotKnow) {
  const struct {
    const char* words;
    const char* kernel;
    // clang-format off
  } rows[] = {
      {"kind=fp8_block d_type=f32", "fast"},
      {"kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=64,association=cols_first d_type=f32", "fast"},
      {"kind=fp8_per_tensor plan=unit=sm90.wgmma.fp8,promote=32,slices=2x64,merge=sequential_output", "fast"},
      {"kind=mxfp8", "fast"},
      {"kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio d_type=f32", "generic"},
      {"kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=128,association=rescale_in_turn d_type=f32", "generic"},
      {"kind=bf16 plan=unit=sm90.wgmma.f16,slices=2x32,merge=tree_f32", "generic"},
      {"kind=bf16 plan=unit=sm90.wgmma.f16,slices=2x32,merge=(1+0)", "generic"},
      {"kind=fp8_per_tensor plan=unit=sm90.wgmma.f16,widen=f16", "generic"},
      {"kind=bf16 plan=unit=sm90.wgmma.f16,epilogue=reduce_add d_type=f32 beta=1", "generic"},
      {"kind=fp8_per_tensor scaling=per_row_column", "generic"},
      {"kind=bf16 d_type=e5m2", "generic"},
      {"kind=bf16 d_type=e4m3", "generic"},
  };
  // clang-format on
  for (const auto& row : rows) {
    std::string kernel;
    const std::string line = std::string("grouped_gemm ") + row.words + " splits=3 N=32 K=64 seed=1";
    EXPECT_EQ(difference(parse_case_line(line), &kernel), "") << line;
    EXPECT_EQ(kernel, row.kernel) << line;
  }
}

// Units of the table's limits, which its rows do not reach.
TEST(Generic, FollowsUnitsOfOtherRows) {
  add_tensor_core_units(
      "name=test.forty instruction=none operands=bf16 products=64 fraction_bits=40 evidence=none\n"
      "name=test.one instruction=none operands=bf16 products=1 fraction_bits=1 evidence=none\n"
      "name=test.half instruction=none operands=f16 products=7 fraction_bits=40 accumulator=f16_nearest evidence=none\n"
      "name=test.low instruction=none operands=bf16 products=8 fraction_bits=24 zero_floor=-300 evidence=none\n",
      "test");
  for (const char* words : {"kind=bf16 plan=unit=test.forty", "kind=bf16 plan=unit=test.one", "kind=f16 plan=unit=test.half"}) {
    for (const char* data : {"clustered", "full_exponent", "every_special", "near_underflow"}) {
      const std::string line = std::string("grouped_gemm ") + words + " d_type=f32 splits=9 N=24 K=136 data=" + data + " seed=1";
      EXPECT_EQ(difference(parse_case_line(line)), "") << line;
    }
  }
}

// Few fraction bits show the exponents of small FP8 numbers, which those of wide units do not.
TEST(Generic, WidensSmallNumbers) {
  add_tensor_core_units(
      "name=test.narrow_f16 instruction=none operands=f16 products=8 fraction_bits=2 evidence=none\n"
      "name=test.narrow_bf16 instruction=none operands=bf16 products=8 fraction_bits=2 evidence=none\n",
      "test");
  for (const char* to : {"f16", "bf16"}) {
    for (const char* types : {"x_type=e4m3 w_type=e4m3", "x_type=e5m2 w_type=e4m3", "x_type=e5m2 w_type=e5m2"}) {
      const std::string line = std::string("grouped_gemm kind=fp8_per_tensor plan=unit=test.narrow_") + to + ",widen=" + to +
                               " " + types + " d_type=f32 splits=17 N=24 K=64 data=subnormals seed=1";
      EXPECT_EQ(difference(parse_case_line(line)), "") << line;
    }
  }
}

// Values on both sides of the smallest normal number, of both signs, in C, in what is added to it, and in the sum.
TEST(Generic, FlushesInMemory) {
  constexpr std::uint16_t kAdded[] = {0x0080, 0x8080, 0x0040, 0x8040, 0x00C0, 0x80C0, 0x0000, 0x0100};  // bf16: 0x0080 is 2^-126
  constexpr std::uint32_t kC[] = {0x0080'0000, 0x8080'0000, 0x0040'0000, 0x8040'0000, 0x00C0'0000, 0x80C0'0001, 0x8000'0000, 1};
  for (const char* epilogue : {"reduce_add", "reduce_add_ftz"}) {
    const std::string line = std::string("grouped_gemm kind=bf16 plan=unit=sm90.wgmma.f16,epilogue=") + epilogue +
                             " d_type=f32 beta=1 splits=8 N=8 K=8 data=zeros seed=1";
    Case expected = generate(parse_case_line(line));
    for (std::size_t i = 0; i < 8; ++i) {  // D[i][j] = C[j] + added[i] * 1
      constexpr std::uint16_t kOne = 0x3F80;
      std::memcpy(expected.in.at("x").bytes.data() + 16 * i, &kAdded[i], 2);
      std::memcpy(expected.in.at("w").bytes.data() + 16 * i, &kOne, 2);
      std::memcpy(expected.in.at("c").bytes.data() + 32 * i, kC, sizeof kC);
    }
    Case got = expected;
    const std::vector<std::byte>& want = poisoned_d(expected);
    answer(Request::of(expected), Layer::scalar);
    const std::vector<std::byte>& have = poisoned_d(got);
    EXPECT_EQ(gemm_on_host(got).status, 0u);
    EXPECT_EQ(have, want) << line;
  }
}

// The plan of a line, whose unit it has not.
std::string refusal(const std::string& words) {
  Case problem = generate(parse_case_line("grouped_gemm " + words + " splits=3 N=16 K=32 seed=1"));
  poisoned_d(problem);
  try {
    gemm_on_host(problem);
    return "";
  } catch (const device::NotSupported& error) {
    return error.what();
  }
}

TEST(Generic, NamesTheFieldOfAUnitThatItHasNot) {
  EXPECT_EQ(refusal("kind=bf16 plan=unit=amx.tdpbf16ps"),
            "the emulated GEMM has no unit with sum=chains (plan.unit amx.tdpbf16ps)");
  EXPECT_EQ(refusal("kind=f16 plan=unit=cdna3.mfma.f16"),
            "the emulated GEMM has no unit with sum=joined (plan.unit cdna3.mfma.f16)");
  EXPECT_EQ(refusal("kind=bf16 plan=unit=test.low"), "the emulated GEMM has no unit with zero_floor=-300 (plan.unit test.low)");
}

}  // namespace
}  // namespace assay::conformance
