// Calls that do not fit their plan or their D: what is refused before a launch, and what only the set-up kernel can see.

#include <gtest/gtest.h>

#include <functional>

#include "device/emulated_gemm/merge_program.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/give_betas.h"
#include "device/tests/emulated_gemm/host_gemm.h"

namespace assay::conformance {
namespace {

constexpr const char* kQuantized = "grouped_gemm kind=bf16 arch=sm100 d_type=e4m3 splits=5,0,7 N=24 K=40 seed=1";
constexpr const char* kAdded =
    "grouped_gemm kind=bf16 arch=sm100 plan=unit=sm100.tcgen05.f16,epilogue=reduce_add d_type=f32 beta=1 splits=5,0,7 N=24 K=40 "
    "seed=1";

// What stands in D decides about beta: on the device, where it is. Groups without rows are not asked.
TEST(Beta, IsCheckedWhereItLies) {
  const struct {
    const char* line;
    std::vector<float> betas;
    const char* status;
  } rows[] = {
      {kQuantized, {0, 0, 0}, "ok"},
      {kQuantized, {0, 3, 0}, "ok"},
      {kQuantized, {0, 0, 1}, "wrong_beta"},
      {kQuantized, {1e-45f, 0, 0}, "wrong_beta"},
      {kAdded, {1, 1, 1}, "ok"},
      {kAdded, {1, 0, 1}, "ok"},
      {kAdded, {1, 1, 0}, "wrong_beta"},
      {kAdded, {0.5, 1, 1}, "wrong_beta"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::Message() << row.line << " " << row.betas[0] << " " << row.betas[1] << " " << row.betas[2]);
    Case problem = generate(parse_case_line(row.line));
    const std::vector<std::byte>& d = poisoned_d(problem);
    give_betas(problem, row.betas);
    const std::vector<std::byte> before = d;
    EXPECT_EQ(device::describe_status(gemm_on_host(problem).status), row.status);
    EXPECT_EQ(d == before, row.status == std::string("wrong_beta"));  // then nothing is written
  }
}

TEST(Call, HasColumnsThatFollowOneAnother) {
  Case problem = generate(parse_case_line("grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=16,32 N=16 K=16 seed=1"));
  GemmRequest request(Request::of(problem));
  const AccumulationPlan& plan = *plan_for(request.key());
  const device::EmulatedArithmetic arithmetic{&plan, find_tensor_core_unit(plan.unit)};
  EXPECT_NO_THROW(device::check_emulated_gemm(request.shape(), arithmetic));
  request.align_columns(request.shape().dy.data, request.shape().x.data);
  try {
    device::check_emulated_gemm(request.shape(), arithmetic);
    ADD_FAILURE() << "taken";
  } catch (const device::NotSupported& error) {
    EXPECT_EQ(std::string(error.what()),
              "the emulated GEMM reads columns that follow one another; those of the call begin at multiples of 16 bytes "
              "(fp8_block_grouped_gemm() takes them)");
  }
}

// Refused before a launch.
TEST(Call, MustFitItsPlan) {
  const struct {
    const char* line;
    std::function<void(Case&)> change;
    const char* says;
    // clang-format off
  } rows[] = {
      {kAdded, [](Case& each) { each.attributes.erase("beta"); }, "beta is null, which is 0: expected 1 where the plan adds"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm90.wgmma.fp8"); }, "type of the operand that supplies the rows is bf16"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.mxf8f6f4,epilogue=reduce_add"); }, "plan.unit"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.f16,slices=2x16,merge=tree_f32"); }, "plan.slices"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.f16,scale_vectors=rows_first"); }, "plan.scale_vectors"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.f16,widen=f16"); }, "plan.widen"},
      {kAdded, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.f16,promote=64,association=rows_first"); }, "plan.association"},
      {kQuantized, [](Case& each) { each.attributes["plan"] = std::string("unit=sm100.tcgen05.f16,slices=2x32,merge=sequential_output"); }, "plan.merge is sequential_output"},
      {kQuantized, [](Case& each) { each.in.erase("d_scale"); }, "d_scale is null"},
  };
  // clang-format on
  for (const auto& row : rows) {
    Case problem = generate(parse_case_line(row.line));
    const std::vector<std::byte>& d = poisoned_d(problem);
    const std::vector<std::byte> before = d;
    row.change(problem);
    try {
      gemm_on_host(problem);
      FAIL() << "taken: " << row.says;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(row.says, 0), 0u) << error.what();
    }
    EXPECT_EQ(d, before);
  }
}

// The height of the stack that the steps need, which must leave one value.
int height_of(const std::vector<std::int16_t>& steps) {
  int height = 0, most = 0;
  for (const std::int16_t step : steps) {
    height += step < 0 ? -1 : 1;
    most = std::max(most, height);
  }
  EXPECT_EQ(height, 1);
  return most;
}

TEST(MergeProgram, NeedsAStackOfFewValues) {
  AccumulationPlan plan = read_plan_line("unit=sm90.wgmma.f16,slices=2x1,merge=tree_f32");
  EXPECT_EQ(device::emulated::merge_program(plan), (std::vector<std::int16_t>{0, 1, -1}));
  for (const int slices : {2, 3, 5, 7, 8, 9, 63, 64, 65, 511, 513, 1023, 1024}) {
    plan.slices = slices;
    const std::vector<std::int16_t> steps = device::emulated::merge_program(plan);
    EXPECT_EQ(static_cast<std::int64_t>(steps.size()), device::emulated::merge_steps(plan));
    EXPECT_LE(height_of(steps), device::emulated::kMergeHeight) << slices;
    std::vector<int> times(static_cast<std::size_t>(slices), 0);
    for (const std::int16_t step : steps) {
      if (step >= 0) ++times.at(static_cast<std::size_t>(step));
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), slices);
  }
  const AccumulationPlan shaped = read_plan_line("unit=sm90.wgmma.f16,slices=5x64,merge=(3+((1+0)+(2+4)))");
  EXPECT_EQ(device::emulated::merge_program(shaped), (std::vector<std::int16_t>{1, 0, -1, 2, 4, -1, -1, 3, -1}));
}

TEST(MergeProgram, IsEmptyWhereSlicesFollowOneAnother) {
  for (const char* line : {"unit=sm90.wgmma.f16", "unit=sm90.wgmma.f16,slices=3x16,merge=sequential_f32",
                           "unit=sm90.wgmma.f16,slices=3x16,merge=sequential_output"}) {
    EXPECT_TRUE(device::emulated::merge_program(read_plan_line(line)).empty()) << line;
    EXPECT_EQ(device::emulated::merge_steps(read_plan_line(line)), 0) << line;
  }
}

}  // namespace
}  // namespace assay::conformance
