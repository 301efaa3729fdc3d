// The products of a layer by the kernel of our own: what is called, with what settings and memory, and what is reported.
//
// Faults of conformance/cases/faults.md that die here:
//   A5, A7, C16 another path than the one asked for, or one that is named and does not run        LinearAssay

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/tests/linear/linear_steps.h"

namespace assay::device_linear_suite {
namespace {

using device::GemmPath;

// The FP8 block GEMM: no other product is called, each has its own settings, and wgrad names the promise that it relied on.
TEST(LinearAssay, EachProductByOneCall) {
  host_device().reset();
  StepCase c{make_case(LinearRecipe::block, {16, 0, 32, 16}, 18, 34, 0)};
  c.path = GemmPath::assay;
  c.list = c.constants = true;
  Steps s(c);
  Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N), dx = poisoned(Format::bf16, s.l.rows() * s.l.K);
  Matrix dw = linear_suite::wgrad_start(c.layer, s.o);
  const std::string plan = "assay: plan assay.sm90.fp8_block.", unit = ", unit sm90.wgmma.fp8";
  const auto ends_with = [&](const LinearReport& report, const std::string& text) {
    EXPECT_TRUE(report.description().ends_with(text)) << report.description();
    EXPECT_EQ(host_device().heuristic_calls, 0);
    std::erase_if(host_device().log, [](const std::string& call) { return !call.starts_with("gemm"); });
  };
  ends_with(s.run(s.forward(y)), "forward by " + plan + "scales_first" + unit);
  ends_with(s.run(s.dgrad(dx, nullptr)), "dgrad by " + plan + "scales_first" + unit);
  device::LinearWgradCall wgrad = s.wgrad(dw, nullptr);
  ends_with(s.run(wgrad), "wgrad by " + plan + "rows_first" + unit);
  wgrad.path.wgrad.fp8_block = {};
  wgrad.rows_multiple = 16;
  ends_with(s.run(wgrad),
            "wgrad by " + plan + "scales_first" + unit + ", groups of 16 rows or multiples, scales that are powers of two");
  EXPECT_EQ(host_device().log, (std::vector<std::string>{"gemm TN assay", "gemm NN assay", "gemm NT assay", "gemm NT assay"}));

  // Memory: none in TN and NN; what the settings of wgrad and the promise say in NT.
  const std::int64_t copied = device::linear_wgrad_workspace_bytes(s.wgrad(dw, nullptr), host_kernels());
  EXPECT_EQ(copied - device::linear_wgrad_workspace_bytes(wgrad, host_kernels()), 32 * s.l.rows());
  const std::int64_t few = device::linear_wgrad_workspace_bytes(wgrad, host_kernels());
  wgrad.path.wgrad.fp8_block.multiprocessors = 10;
  EXPECT_EQ(device::linear_wgrad_workspace_bytes(wgrad, host_kernels()) - few, 5120);
  for (const HostDevice::ProductMemory& each : host_device().products)
    EXPECT_EQ(each.workspace.bytes == 0, each.layout != GemmLayout::NT);
}

// A layer promises powers of two where its configuration makes such scales.
TEST(LinearAssay, PromisesNoOtherScales) {
  for (const bool pow2 : {true, false}) {
    host_device().reset();
    StepCase c{make_case(LinearRecipe::block, {16, 0, 32, 16}, 18, 34, 0)};
    c.layer.config.force_pow_2_scales = pow2;
    c.path = GemmPath::assay;
    Steps s(c);
    Matrix dw = linear_suite::wgrad_start(c.layer, s.o);
    device::LinearWgradCall wgrad = s.wgrad(dw, nullptr);
    wgrad.path.wgrad.fp8_block = {};
    EXPECT_EQ(s.run(wgrad).wgrad.pow2_scales, pow2);
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
