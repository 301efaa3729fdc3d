// Contents of m_indices, psum and counts that no call may have: reported in the status word, and nothing is written.

#include <gtest/gtest.h>

#include <cstring>

#include "device/support/error.h"
#include "device/tests/emulated_gemm/host_gemm.h"

namespace assay::conformance {
namespace {

struct Fault {
  const char* line;
  const char* tensor;
  std::size_t at;
  std::int32_t value;
  std::uint32_t status;
};

TEST(group_faults, are_reported_and_write_nothing) {
  const char* const indices = "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=8 splits=5,0,17 N=24 K=40 beta=1 seed=1";
  // 1250 blocks: the fault is in the second round of the set-up kernel, after groups of the first were made
  const char* const many = "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=4 splits=4996,4 N=8 K=8 seed=1";
  const char* const psum = "grouped_gemm kind=fp8_block grouped_layout=psum alignment=8 splits=5,0,17 N=24 K=40 seed=1";
  const char* const wgrad = "grouped_gemm kind=bf16 layout=NT grouped_layout=psum alignment=8 splits=5,0,17 N=24 K=40 seed=1";
  const char* const masked = "grouped_gemm kind=bf16 grouped_layout=masked max_m=20 splits=5,0,17 N=24 K=40 seed=1";
  const Fault faults[] = {
      {indices, "m_indices", 0, 3, device::kStatusInvalidIndex},  {indices, "m_indices", 31, -2, device::kStatusInvalidIndex},
      {indices, "m_indices", 1, 0, device::kStatusInvalidIndex},  {many, "m_indices", 4990, 7, device::kStatusInvalidIndex},
      {psum, "psum", 1, 4, device::kStatusNegativeSplit},         {psum, "psum", 2, 33, device::kStatusSplitsExceedRows},
      {psum, "psum", 0, -1, device::kStatusNegativeSplit},        {wgrad, "psum", 2, 7, device::kStatusNegativeSplit},
      {masked, "splits", 0, 21, device::kStatusSplitsExceedRows}, {masked, "splits", 2, -1, device::kStatusNegativeSplit},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(std::string(fault.line) + ": " + fault.tensor + "[" + std::to_string(fault.at) +
                 "] = " + std::to_string(fault.value));
    Case problem = generate(parse_case_line(fault.line));
    const std::vector<std::byte> before = poisoned_d(problem);
    EXPECT_EQ(gemm_on_host(problem).status, 0u);
    EXPECT_NE(problem.out.at("d").bytes, before);
    poisoned_d(problem);
    Tensor& tensor = problem.in.at(fault.tensor);
    ASSERT_EQ(tensor.type, Format::i32);
    ASSERT_NE(tensor.as<std::int32_t>()[fault.at], fault.value);
    tensor.as<std::int32_t>()[fault.at] = fault.value;
    EXPECT_EQ(gemm_on_host(problem).status, fault.status);
    EXPECT_EQ(problem.out.at("d").bytes, before);
  }
}

// Also where D has no elements, or is not requested.
TEST(group_faults, are_reported_without_an_output) {
  for (const char* text :
       {"grouped_gemm kind=bf16 splits=5,0,17 N=0 K=40 seed=1", "grouped_gemm kind=mxfp8 splits=32,0,64 N=0 K=64 seed=1",
        "grouped_gemm kind=bf16 layout=NT splits=5,0,17 N=8 K=0 seed=1",
        "grouped_gemm kind=bf16 beta=1 splits=5,0,17 N=24 K=40 seed=1"}) {
    SCOPED_TRACE(text);
    Case problem = generate(parse_case_line(text));
    if (outputs_of(Request::of(problem)).at(0).shape[0] * outputs_of(Request::of(problem)).at(0).shape[1] == 0)
      poisoned_d(problem);
    EXPECT_EQ(gemm_on_host(problem).status, 0u);
    auto* const splits = problem.in.at("splits").as<std::int64_t>();
    splits[1] = -1;
    EXPECT_EQ(gemm_on_host(problem).status, device::kStatusNegativeSplit);
    splits[1] = 1;
    EXPECT_EQ(gemm_on_host(problem).status, device::kStatusSplitsExceedRows);
  }
}

}  // namespace
}  // namespace assay::conformance
