// Cases of permute and unpermute through the kernels, as the host compiles them, against the reference; maps that are none.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/backends/device/token_call.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "device/support/call_device.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "reference/types/tensor.h"

namespace assay {
namespace device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

}  // namespace device

namespace conformance {
namespace {

std::uint32_t run_on_host(Case& problem) {
  alignas(256) static std::byte workspace[1024];
  std::fill(std::begin(workspace), std::end(workspace), std::byte{0xFF});
  std::uint32_t status = 0;
  const Request request = Request::of(problem);
  const DeviceCall call = problem.op == "permute" ? permute_call(request) : unpermute_call(request);
  EXPECT_LE(call.workspace_bytes, static_cast<std::int64_t>(sizeof workspace));
  call.enqueue(nullptr, workspace, &status);
  return status;
}

TEST(token_kernels, give_the_bytes_of_the_reference) {
  int cases = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "permute" && line.op != "unpermute") continue;
    Case want = generate(line), got = generate(line);
    give_outputs(line, want);
    give_outputs(line, got);
    answer(Request::of(want), Layer::scalar);
    EXPECT_EQ(run_on_host(got), 0u) << to_text(line);
    for (const auto& [name, tensor] : want.out) EXPECT_EQ(got.out.at(name).bytes, tensor.bytes) << to_text(line) << " " << name;
    ++cases;
  }
  EXPECT_GT(cases, 50);
}

TEST(token_kernels, report_an_entry_that_names_no_row) {
  for (const char* text : {"permute token_scales=f32 R=9 topk=2 K=130 seed=1", "unpermute R=9 topk=2 K=24 weights=1 seed=1"}) {
    const CaseLine line = parse_case_line(text);
    for (const std::int32_t value : {-2, 18, 2147483647, -2147483647 - 1}) {
      Case problem = generate(line);
      give_outputs(line, problem);
      const std::map<std::string, Tensor> before = problem.out;
      problem.in.at("row_map").as<std::int32_t>()[17] = value;
      EXPECT_EQ(run_on_host(problem), device::kStatusInvalidIndex) << text << " " << value;
      for (const auto& [name, tensor] : before) EXPECT_EQ(problem.out.at(name).bytes, tensor.bytes) << text << " " << value;
    }
  }
}

TEST(token_kernels, check_the_map_of_a_call_without_an_output) {
  for (const char* text :
       {"permute R=9 topk=2 K=130 seed=1", "unpermute R=9 topk=2 K=24 seed=1", "unpermute R=9 topk=2 K=0 seed=1"}) {
    const CaseLine line = parse_case_line(text);
    Case problem = generate(line);
    if (line.integer("K") == 0) give_outputs(line, problem);
    EXPECT_EQ(run_on_host(problem), 0u) << text;
    problem.in.at("row_map").as<std::int32_t>()[3] = 18;
    EXPECT_EQ(run_on_host(problem), device::kStatusInvalidIndex) << text;
  }
}

}  // namespace
}  // namespace conformance
}  // namespace assay
