// The fast grouped GEMM against the scalar one, bit for bit: every unit, both kernels, with data for each place where a bit can
// be lost. All of D is compared, including rows that must not be written.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "reference/arithmetic/unit_table.h"
#include "reference/gemm/fused_kernel.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"
#include "reference/support/parallel.h"
#include "reference/tests/gemm/gemm_case.h"

// Tables, one row per line.
// clang-format off

namespace assay {
namespace {

using namespace gemm_suite;

// ---- Every unit, every class of data ------------------------------------------------------------------------------

struct KindAndTypes {
  GemmKind kind;
  Format first, second;
};

bool takes(const TensorCoreUnit& unit, Format format) {
  return std::find(unit.operands.begin(), unit.operands.end(), format) != unit.operands.end();
}

std::vector<KindAndTypes> uses_of(const TensorCoreUnit& unit) {
  std::vector<KindAndTypes> uses;
  if (unit.scaling == StepScaling::e4m3_per_16) return {{GemmKind::nvfp4, Format::e2m1, Format::e2m1}};
  const bool mx = unit.scaling == StepScaling::e8m0_per_32;
  if (takes(unit, Format::bf16)) uses.push_back({GemmKind::bf16, Format::bf16, Format::bf16});
  if (takes(unit, Format::f16)) uses.push_back({GemmKind::f16, Format::f16, Format::f16});
  if (takes(unit, Format::e4m3)) {
    const GemmKind kind = mx ? GemmKind::mxfp8 : GemmKind::fp8_per_tensor;
    uses.push_back({kind, Format::e4m3, Format::e4m3});
    uses.push_back({kind, Format::e5m2, Format::e4m3});
    if (!mx) uses.push_back({GemmKind::fp8_block, Format::e4m3, Format::e5m2});
  }
  return uses;
}

// The ways to accumulate that a kind allows, including synthetic ones.
struct Accumulation {
  std::int64_t interval;
  Promotion promotion;
  std::int64_t slices, slice_length;
  SliceMerge merge;
};
std::vector<Accumulation> accumulations_of(const TensorCoreUnit& unit, GemmKind kind) {
  const std::int64_t step = unit.products_per_step;
  if (kind == GemmKind::fp8_block) {
    return {{128, Promotion::fma_scales_first, 1, 0, SliceMerge::none},
            {128, Promotion::fma_rows_first, 1, 0, SliceMerge::none},
            {64, Promotion::fma_cols_first, 1, 0, SliceMerge::none},
            {8, Promotion::fma_rows_first, 3, 72, SliceMerge::sequential_f32}};
  }
  if (unit.scaling != StepScaling::none) {
    return {{0, Promotion::none, 1, 0, SliceMerge::none},
            {2 * step, Promotion::add, 1, 0, SliceMerge::none},
            {0, Promotion::none, 6, step, SliceMerge::sequential_output}};
  }
  return {{0, Promotion::none, 1, 0, SliceMerge::none},
          {128, Promotion::add, 1, 0, SliceMerge::none},
          {37, Promotion::add, 1, 0, SliceMerge::none},                    // intervals that end inside a step
          {0, Promotion::none, 3, 61, SliceMerge::sequential_f32},         // slices that do
          {16, Promotion::add, 6, 50, SliceMerge::sequential_output}};     // and slices past the end of K
}

class EveryUnit : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryUnit, EqualsTheScalarLayer) {
  const TensorCoreUnit& unit = *find_tensor_core_unit(GetParam());
  constexpr Format kOutputs[] = {Format::f32, Format::bf16, Format::f16};
  std::uint64_t number = 0;
  for (const KindAndTypes& use : uses_of(unit)) {
    for (const Data data : kEveryData) {
      for (const Accumulation& accumulation : accumulations_of(unit, use.kind)) {
        GemmCase c;
        c.unit = GetParam();
        c.kind = use.kind;
        c.first = use.first;
        c.second = use.second;
        c.data = data;
        c.interval = accumulation.interval;
        c.promotion = accumulation.promotion;
        c.slices = accumulation.slices;
        c.slice_length = accumulation.slice_length;
        c.merge = accumulation.merge;
        // The rest varies with the number of the case, so that all combinations occur over the units.
        c.seed = ++number;
        c.layout = static_cast<GemmLayout>(number % 3);
        c.d_type = data == Data::near_overflow || data == Data::near_underflow ? Format::f32 : kOutputs[number / 3 % 3];
        if (accumulation.merge == SliceMerge::sequential_output) c.d_type = kOutputs[1 + number % 2];
        c.transposed = number % 2 == 0;
        c.weight_block = static_cast<WeightBlock>(number / 2 % 2);
        c.scale_layout = static_cast<ScaleLayout>(number / 2 % 2);
        c.accumulate = number % 5 == 0;
        c.c_is_d = number % 2 == 0;
        c.bias = c.layout == GemmLayout::TN && number % 4 < 2;
        c.spare_rows = static_cast<std::int64_t>(number % 3);
        switch (c.layout) {
          case GemmLayout::TN: c.splits = {2, 0, 9}; c.N = 67; c.K = 146; break;
          case GemmLayout::NN: c.splits = {0, 5, 3}; c.N = 146; c.K = 68; break;
          case GemmLayout::NT: c.splits = {146, 0, 4}; c.N = 10; c.K = 34; break;
        }
        expect_equal_layers(c);
      }
    }
  }
}

// ---- Plans that are lines -----------------------------------------------------------------------------------------

struct LineCase {
  const char* line;
  GemmKind kind;
};
void PrintTo(const LineCase& c, std::ostream* out) { *out << c.line; }

const LineCase kLines[] = {
    {"unit=sm90.wgmma.fp8,promote=32", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=256", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,association=rescale_by_ratio", GemmKind::fp8_block},
    {"unit=sm90.wgmma.fp8,promote=64,association=rescale_in_turn", GemmKind::fp8_block},
    {"unit=sm90.mma.fp8,promote=128,association=rescale_by_ratio,slices=3x128,merge=tree_f32", GemmKind::fp8_block},
    {"unit=sm90.wgmma.f16,slices=7x50,merge=tree_f32", GemmKind::bf16},
    {"unit=sm90.wgmma.f16,slices=11x40,merge=tree_f32", GemmKind::bf16},  // slices past the end of K
    {"unit=sm90.wgmma.f16,slices=5x61,merge=(3+((1+0)+(2+4)))", GemmKind::bf16},
    {"unit=sm90.mma.f16,widen=f16", GemmKind::fp8_per_tensor},
    {"unit=sm80.mma.f16,widen=bf16,promote=96", GemmKind::fp8_per_tensor},
    {"unit=sm90.mma.f16.to_f16,widen=f16", GemmKind::fp8_per_tensor},
    {"unit=sm90.mma.f16,widen=f16,promote=128,association=rows_first", GemmKind::fp8_block},
    {"unit=sm90.wgmma.fp8,scale_vectors=rows_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,scale_vectors=cols_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,scale_vectors=scales_first", GemmKind::fp8_per_tensor},
    {"unit=sm90.wgmma.fp8,promote=128,association=scales_first,epilogue=reduce_add", GemmKind::fp8_block},
    {"unit=sm90.wgmma.f16,epilogue=reduce_add_ftz", GemmKind::bf16},
};

class Lines : public testing::TestWithParam<LineCase> {};

TEST_P(Lines, EqualTheScalarLayer) {
  const bool in_memory = find_accumulation_plan(GetParam().line)->epilogue != GemmEpilogue::scaled_alpha_beta;
  std::uint64_t number = 400;
  for (const Data data : kEveryData) {
    for (const GemmLayout layout : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
      GemmCase c;
      c.line = GetParam().line;
      c.kind = GetParam().kind;
      c.first = c.second = c.kind == GemmKind::bf16 ? Format::bf16 : Format::e4m3;
      if (c.kind != GemmKind::bf16 && number % 2 == 1) c.second = Format::e5m2;
      c.data = data;
      c.seed = ++number;
      c.layout = layout;
      c.d_type = in_memory || number % 3 == 0 ? Format::f32 : Format::bf16;
      c.weight_block = static_cast<WeightBlock>(number / 2 % 2);
      c.accumulate = in_memory || number % 4 == 0;
      c.c_is_d = number % 2 == 0;
      switch (c.layout) {
        case GemmLayout::TN: c.splits = {2, 0, 9}; c.N = 67; c.K = 301; break;
        case GemmLayout::NN: c.splits = {0, 5, 3}; c.N = 301; c.K = 68; break;
        case GemmLayout::NT: c.splits = {301, 0, 4}; c.N = 10; c.K = 34; break;
      }
      expect_equal_layers(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GroupedGemm, Lines, testing::ValuesIn(kLines));

std::vector<std::string_view> gemm_units() {
  std::vector<std::string_view> names;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    const bool has_kernels = unit.sum == StepSum::fused;  // others go element by element: the scalar layer itself
    if (has_kernels && !uses_of(unit).empty()) names.push_back(unit.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(GroupedGemm, EveryUnit, testing::ValuesIn(gemm_units()), [](const auto& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Rows that a caller adds: numbers at the limit of what the kernels hold, and beyond it.
TEST(GroupedGemm, UnitsOfOtherNumbersEqualTheScalarLayer) {
  constexpr const char* kRows[] = {"products=30 fraction_bits=25", "products=32 fraction_bits=25", "products=64 fraction_bits=23",
                                   "products=64 fraction_bits=24", "products=4 fraction_bits=26",  "products=5 fraction_bits=20",
                                   "products=2 fraction_bits=9",   "products=1 fraction_bits=40",  "products=16 fraction_bits=25 zero_floor=-126",
                                   "products=16 fraction_bits=25 zero_floor=-100"};
  int number = 0;
  for (const char* row : kRows) {
    const std::string name = "edge.row" + std::to_string(number++), text = "name=" + name + " instruction=none operands=bf16,f16 " + row;
    add_tensor_core_units(text + " evidence=none", "test");
    for (const Data data : kEveryData) {
      GemmCase c;
      c.unit = find_tensor_core_unit(name)->name;
      c.data = data;
      c.splits = {9, 0, 3};
      c.N = 67;
      c.K = 170;
      expect_equal_layers(c);
    }
  }
}

// ---- Shapes -------------------------------------------------------------------------------------------------------

class Shapes : public testing::TestWithParam<GemmCase> {};
TEST_P(Shapes, EqualsTheScalarLayer) { expect_equal_layers(GetParam()); }

const GemmCase kShapes[] = {
    {.splits = {}, .N = 5, .K = 7},                                                       // no group
    {.splits = {0, 0}, .N = 5, .K = 7},                                                   // nothing to do
    {.splits = {3}, .N = 0, .K = 7},                                                      // no column
    {.splits = {3}, .N = 5, .K = 0, .accumulate = true, .bias = true},                    // no product: beta * C, then the bias
    {.splits = {3}, .N = 5, .K = 0, .d_type = Format::bf16},
    {.layout = GemmLayout::NT, .splits = {0, 3, 0}, .N = 5, .K = 7, .accumulate = true},  // wgrad of empty groups
    {.splits = {1}, .N = 1, .K = 1},
    {.splits = {1}, .N = 1, .K = 17},
    {.splits = {0, 1, 127, 128, 129, 0}, .N = 33, .K = 65},                               // one either side of a block
    {.splits = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .N = 63, .K = 48},                            // every remainder of a row group
    {.splits = {255, 257}, .N = 65, .K = 40},                                             // one either side of a row tile
    {.splits = {3}, .N = 257, .K = 600},                                                  // chunks of K, tiles of columns
    {.data = Data::cancelling, .splits = {9}, .N = 66, .K = 1300},
    {.data = Data::rare_special, .splits = {9}, .N = 66, .K = 1300},                      // wide from one chunk on
    {.data = Data::narrow_edge, .splits = {17}, .N = 130, .K = 1300},
    {.layout = GemmLayout::NN, .splits = {0, 1, 129}, .N = 300, .K = 40},
    {.layout = GemmLayout::NT, .splits = {0, 1, 129, 300}, .N = 9, .K = 70},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_per_tensor, .first = Format::e4m3, .second = Format::e4m3, .data = Data::cancelling,
     .splits = {5, 0, 8}, .N = 66, .K = 1300},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_per_tensor, .first = Format::e5m2, .second = Format::e4m3, .splits = {129}, .N = 33,
     .K = 300, .interval = 128, .promotion = Promotion::add, .d_type = Format::bf16, .accumulate = true},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .first = Format::e4m3, .second = Format::e4m3, .splits = {1, 127, 129},
     .N = 130, .K = 300, .interval = 128, .promotion = Promotion::fma_scales_first},
    {.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .layout = GemmLayout::NT, .first = Format::e4m3, .second = Format::e5m2,
     .splits = {0, 130, 300}, .N = 20, .K = 140, .interval = 128, .promotion = Promotion::fma_rows_first, .accumulate = true},
    {.unit = "sm100.tcgen05.mxf8f6f4", .kind = GemmKind::mxfp8, .first = Format::e4m3, .second = Format::e4m3, .splits = {130, 1},
     .N = 70, .K = 600, .scale_layout = ScaleLayout::swizzled},
    {.unit = "sm100.tcgen05.mxf4nvf4", .kind = GemmKind::nvfp4, .first = Format::e2m1, .second = Format::e2m1, .splits = {130, 1},
     .N = 70, .K = 600, .scale_layout = ScaleLayout::swizzled, .d_type = Format::bf16},
    {.splits = {4}, .N = 70, .K = 100, .slices = std::int64_t{1} << 40, .slice_length = 60, .merge = SliceMerge::sequential_f32,
     .seed = 3},
};
// The scalar layer would add 2^40 empty slices one by one; that case has a test of its own below.
INSTANTIATE_TEST_SUITE_P(GroupedGemm, Shapes, testing::ValuesIn(std::begin(kShapes), std::end(kShapes) - 1));

TEST(GroupedGemm, SlicesPastTheEndOfKCostNothing) {
  GemmCase many = std::end(kShapes)[-1];
  GemmCase few = many;
  few.slices = 3;
  Fixture want(few), got(many);
  EXPECT_TRUE(same_bits(want.run(scalar::grouped_gemm), got.run(grouped_gemm), Format::f32, got.columns()));
}

// ---- Dispatch, threads, memory ------------------------------------------------------------------------------------

TEST(GroupedGemm, AnErrorLeavesDUntouched) {
  GemmCase c{.splits = {3, 4}};
  Fixture fixture(c);
  fixture.problem().splits = std::span<const std::int64_t>();
  fixture.problem().kind = static_cast<GemmKind>(9);
  std::vector<std::uint8_t> d(4 * 7 * 70, 0xA5);
  EXPECT_THROW(grouped_gemm(fixture.problem(), d.data()), std::invalid_argument);
  EXPECT_EQ(d, std::vector<std::uint8_t>(4 * 7 * 70, 0xA5));
}

std::uint64_t digest_of_problems() {
  std::uint64_t digest = 0;
  const auto add = [&](GemmCase c) {
    Fixture fixture(c);
    for (const std::uint8_t byte : fixture.run(grouped_gemm)) digest = mixed(digest ^ byte);
  };
  add({.data = Data::cancelling, .splits = {100, 0, 300, 1}, .N = 300, .K = 400});
  add({.data = Data::rare_special, .splits = {70}, .N = 700, .K = 600});
  add({.unit = "sm90.wgmma.fp8", .kind = GemmKind::fp8_block, .first = Format::e4m3, .second = Format::e4m3, .splits = {30, 40}, .N = 300,
       .K = 700, .interval = 128, .promotion = Promotion::fma_rows_first});
  return digest;
}

// No check of its own: the next test runs this one in separate processes and compares their output.
TEST(GroupedGemm, PrintsDigest) {
  std::printf("digest %llx threads %d narrow %d\n", static_cast<unsigned long long>(digest_of_problems()), thread_count(),
              static_cast<int>(gemm::narrow_kernel_available()));
}

TEST(GroupedGemm, BitsDoNotDependOnThreadsOrInstructions) {
  std::array<char, 4096> path{};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  const std::uint64_t want = digest_of_problems();
  for (const char* simd : {"auto", "portable"}) {
    for (const int threads : {1, 2, 5}) {
      std::ostringstream command;
      command << "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT ASSAY_SIMD=" << simd << " ASSAY_THREADS=" << threads << " '"
              << path.data() << "' --gtest_filter=GroupedGemm.PrintsDigest";
      FILE* pipe = popen(command.str().c_str(), "r");
      ASSERT_NE(pipe, nullptr);
      unsigned long long digest = 0;
      int used = 0, narrow = -1;
      std::array<char, 512> line{};
      while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {
        std::sscanf(line.data(), "digest %llx threads %d narrow %d", &digest, &used, &narrow);
      }
      EXPECT_EQ(pclose(pipe), 0) << command.str();
      EXPECT_EQ(digest, want) << command.str();
      EXPECT_EQ(used, threads) << command.str();
      const bool expected = std::string_view(simd) == "auto" && gemm::narrow_kernel_available();
      EXPECT_EQ(narrow, static_cast<int>(expected)) << command.str();
    }
  }
}

}  // namespace
}  // namespace assay
