// The module GroupedLinear: one microbatch with every choice of outputs, the promise about its rows, and the number of calls of
// the heuristic.
//
// Faults of conformance/cases/faults.md that die here:
//   A13 splits of backward read again from the caller's buffer                                   SplitsAreThoseOfForward
//   A14, A18, C7 gradients that were not asked for, or lost with one that was not                EveryGradient
//   A20 gradients of biases in a list lost with deferred work                                    EveryGradient
//   A23 memory allocated by a call                                                               EveryGradient

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

using device::DbiasRoute;

std::string recipe_of(const testing::TestParamInfo<LinearRecipe>& info) { return std::string(name_of(info.param)); }
INSTANTIATE_TEST_SUITE_P(GroupedLinear, EveryRecipe, testing::ValuesIn(kRecipes), recipe_of);

// ---- One microbatch --------------------------------------------------------------------------------------------------

// Each gradient alone and all together, immediate and deferred, in lists and in one buffer, on every path.
TEST_P(EveryRecipe, EveryGradient) {
  const std::vector<GemmPath> paths = paths_of(GetParam());
  for (int options = 0; options < 32 * static_cast<int>(paths.size()); ++options) {
    const bool wants_dx = options % 2 != 0, wants_dw = options / 2 % 2 != 0, wants_dbias = options / 4 % 2 != 0;
    const bool defer = options / 8 % 2 != 0, lists = options / 16 % 2 != 0;
    const GemmPath path = paths[static_cast<std::size_t>(options / 32)];
    SCOPED_TRACE("dx " + std::to_string(wants_dx) + " dw " + std::to_string(wants_dw) + " dbias " + std::to_string(wants_dbias) +
                 " defer " + std::to_string(defer) + " lists " + std::to_string(lists) + " " + device::name_of(path));
    const Case c = layer();
    Buffers b(c, 1, lists);
    GroupedLinearOptions o = options_of(c, path);
    o.defer_wgrad = defer;
    Module module(o);
    const int allocations = host_memory().allocations;

    const GroupedLinearForwardResult forward = module.forward(b.forward(), nullptr);
    EXPECT_EQ(forward.weights, WeightUse::fresh);
    EXPECT_EQ(forward.microbatch, 0);
    expect_same(b.y, y_of(c, b.o), "y");
    EXPECT_TRUE(forward.report.forward.ran);
    EXPECT_FALSE(forward.report.dgrad.ran);
    EXPECT_FALSE(forward.report.wgrad.ran);
    EXPECT_EQ(forward.report.forward.path, path);
    EXPECT_EQ(forward.report.x.calls, quantizes() ? 1 : 0) << "both directions in one pass";
    EXPECT_EQ(forward.report.x.rowwise && forward.report.x.columnwise, quantizes());
    EXPECT_EQ(forward.report.w.calls, !quantizes() ? 0 : lists ? 4 : 1);
    EXPECT_EQ(forward.report.w.rowwise && forward.report.w.columnwise, quantizes());

    GroupedLinearBackward call = b.backward(forward.microbatch);
    if (!wants_dx) call.dx = nullptr;
    if (!wants_dbias) call.dbias = nullptr, call.dbias_list = nullptr;
    if (!wants_dw) call.dw = nullptr, call.dw_list = nullptr;
    const Matrix before = b.dw;
    const GroupedLinearBackwardResult backward = module.backward(call, nullptr);
    EXPECT_EQ(backward.deferred, defer && wants_dw);
    EXPECT_EQ(backward.accumulated, wants_dw) << "nothing said about microbatches means add";
    EXPECT_EQ(backward.report.dgrad.ran, wants_dx);
    EXPECT_EQ(backward.report.wgrad.ran, wants_dw && !defer);
    EXPECT_EQ(backward.report.dy.calls, quantizes() && (wants_dx || wants_dw) ? 1 : 0) << "dy is read once";
    EXPECT_EQ(backward.report.dy.rowwise, quantizes() && wants_dx);
    EXPECT_EQ(backward.report.dy.columnwise, quantizes() && wants_dw);
    const bool fused = GetParam() == LinearRecipe::block                                       ? wants_dx
                       : GetParam() == LinearRecipe::none || GetParam() == LinearRecipe::nvfp4 ? false
                                                                                               : wants_dx || wants_dw;
    EXPECT_EQ(backward.report.dbias, !wants_dbias ? DbiasRoute::none : fused ? DbiasRoute::fused : DbiasRoute::separate);
    b.collect();
    expect_same(b.dx, wants_dx ? dx_of(c, b.o) : Matrix(c.config.type, c.layout.rows() * c.layout.K, kPoison), "dx");
    expect_same(b.dbias, wants_dbias ? dbias_of(c, b.o) : Matrix(c.config.type, c.layout.groups() * c.layout.N, kPoison),
                "dbias");
    if (defer && wants_dw) {
      expect_same(b.dw, before, "dw before backward_dw");
      EXPECT_EQ(module.pending(), 1);
      EXPECT_EQ(module.in_flight(), 1);
      const device::LinearReport late = module.backward_dw(nullptr);
      EXPECT_TRUE(late.wgrad.ran);
      EXPECT_EQ(late.wgrad.path, path);
      EXPECT_EQ(late.dy.calls + late.x.calls, 0) << "what is put off is quantized already";
      b.collect();
    }
    expect_same(b.dw, wants_dw ? dw_of(c, b.o, true, before) : before, "dw");
    EXPECT_EQ(module.pending(), 0);
    EXPECT_EQ(module.in_flight(), 0);
    EXPECT_THROW(module.backward_dw(nullptr), device::InvalidArgument);
    EXPECT_EQ(host_memory().allocations, allocations) << "a call allocated memory";
  }
}

TEST_P(EveryRecipe, ForwardAlone) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  GroupedLinearForward call = b.forward();
  call.keep = false;
  const GroupedLinearForwardResult result = module.forward(call, nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  EXPECT_EQ(result.microbatch, -1);
  EXPECT_EQ(module.in_flight(), 0);
  EXPECT_FALSE(result.report.x.columnwise) << "no step reads it";

  // Without gradients no direction is quantized for them.
  o.dgrad = o.wgrad = false;
  Module inference(o);
  b.clear();
  const GroupedLinearForwardResult other = inference.forward(b.forward(), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  EXPECT_EQ(other.microbatch, -1);
  EXPECT_FALSE(other.report.w.columnwise);
  EXPECT_LT(inference.memory_bytes(), module.memory_bytes());
}

TEST_P(EveryRecipe, ShapesWithNothingInThem) {
  for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{}, {0}, {0, 0, 0}, {2}, {0, 4}}) {
    for (const auto& [N, K] : {std::pair<std::int64_t, std::int64_t>{4, 6}, {0, 6}, {4, 0}}) {
      for (const bool defer : {false, true}) {
        Case c = make_case(GetParam(), splits, N, K, 2);
        c.bias = true;
        Buffers b(c);
        if (b.splits.empty()) b.splits.reserve(1);
        GroupedLinearOptions o = options_of(c);
        o.defer_wgrad = defer;
        Module module(o);
        const Matrix before = b.dw;
        const auto forward = module.forward(b.forward(), nullptr);
        const auto backward = module.backward(b.backward(forward.microbatch), nullptr);
        if (backward.deferred) module.backward_dw(nullptr);
        expect_same(b.y, y_of(c, b.o), "y");
        expect_same(b.dx, dx_of(c, b.o), "dx");
        if (!splits.empty()) expect_same(b.dbias, dbias_of(c, b.o), "dbias");
        expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
      }
    }
  }
}

// A13: backward uses the splits of its forward.
TEST_P(EveryRecipe, SplitsAreThoseOfForward) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  const Matrix before = b.dw;
  const auto forward = module.forward(b.forward(), nullptr);
  std::fill(b.splits.begin(), b.splits.end(), 2);
  module.backward(b.backward(forward.microbatch), nullptr);
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dbias, dbias_of(c, b.o), "dbias");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// A single group needs no splits.
TEST_P(EveryRecipe, OneGroupWithoutSplits) {
  Case c = layer({40}, 0);
  Buffers b(c);
  Module module(options_of(c));
  const Matrix before = b.dw;
  GroupedLinearForward call = b.forward();
  call.rows.splits = nullptr;
  const auto forward = module.forward(call, nullptr);
  module.backward(b.backward(forward.microbatch), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// 32-bit splits are read as such by forward and, from the module's copy, by backward.
TEST_P(EveryRecipe, SplitsOf32Bits) {
  for (const bool graph : {false, true}) {
    const Case c = layer();
    Buffers b(c);
    Module module(options_of(c));
    const Matrix before = b.dw;
    std::vector<std::int32_t> splits(c.layout.splits.begin(), c.layout.splits.end());
    GroupedLinearForward call = b.forward();
    call.rows = device::Rows::of_int32(c.layout.rows(), splits.data(), static_cast<int>(splits.size()));
    const auto step = [&] {
      const int place = module.forward(call, nullptr).microbatch;
      if (!graph) std::fill(splits.begin(), splits.end(), 1);  // backward has a copy
      module.backward(b.backward(place), nullptr);
    };
    if (graph) {
      Graph(step).replay();
    } else {
      step();
    }
    expect_same(b.y, y_of(c, b.o), "y");
    expect_same(b.dx, dx_of(c, b.o), "dx");
    expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
    call.rows.splits = reinterpret_cast<const std::int64_t*>(reinterpret_cast<const char*>(splits.data()) + 2);
    EXPECT_THROW(module.forward(call, nullptr), device::InvalidArgument) << "misaligned for 32 bits";
  }
}

// ---- Promised rows ---------------------------------------------------------------------------------------------------

// The promise is passed to every product and every quantization of rows, saves memory of wgrad, and is checked and reported where
// a step relies on it. The rows of weights are known without it.
TEST_P(EveryRecipe, RowsMultiple) {
  for (const bool defer : {false, true}) {
    const Case c = layer({16, 0, 32, 16}, 4);
    Buffers b(c);
    std::uint32_t status = 0;
    GroupedLinearOptions o = options_of(c);
    o.defer_wgrad = defer;
    o.status = &status;
    const std::int64_t without = Module(o).memory_bytes();
    o.rows_multiple = 16;
    Module module(o);
    EXPECT_EQ(module.options().rows_multiple, 16);
    EXPECT_LE(module.memory_bytes(), without);
    if (defer) {
      EXPECT_LT(module.memory_bytes(), without) << "wgrad that is put off has a workspace of its own";
    }
    const auto step = [&] {
      host_device().products.clear();
      host_device().quantizations.clear();
      const auto forward = module.forward(b.forward(), nullptr);
      device::LinearReport report = module.backward(b.backward(forward.microbatch), nullptr).report;
      EXPECT_EQ(forward.report.forward.rows_multiple, 1) << "nothing relies on it";
      EXPECT_EQ(report.dgrad.rows_multiple, 1);
      if (defer) report = module.backward_dw(nullptr);
      EXPECT_EQ(report.wgrad.rows_multiple, 16);
      EXPECT_NE(report.description().find("groups of 16 rows or multiples"), std::string::npos) << report.description();
      EXPECT_EQ(host_device().products.size(), 3u);
      for (const HostDevice::ProductMemory& each : host_device().products) EXPECT_EQ(each.rows_multiple, 16);
      for (const HostDevice::Quantization& each : host_device().quantizations) {
        const bool of_weights = each.rows == static_cast<std::int64_t>(c.layout.splits.size()) * c.layout.N;
        EXPECT_EQ(each.rows_multiple, of_weights ? c.layout.N : 16) << each.rows << " rows";
      }
      EXPECT_EQ(host_device().quantizations.empty(), c.config.recipe == LinearRecipe::none);
    };
    const Matrix before = b.dw;
    step();
    EXPECT_EQ(status, device::kStatusOk);
    const Matrix added = dw_of(c, b.o, true, before);
    expect_same(b.dw, added, "dw");

    b.fill(layer({16, 0, 30, 18}, 4), 2);
    step();
    EXPECT_EQ(status, device::kStatusUnalignedRows);
    expect_same(b.dw, added, "dw, of which nothing is written");
  }
}

// ---- The heuristic ---------------------------------------------------------------------------------------------------

TEST_P(EveryRecipe, TheHeuristicIsAskedOnce) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  EXPECT_EQ(host_device().log, std::vector<std::string>{"prepare"});
  for (int step = 0; step < 3; ++step) {
    const auto forward = module.forward(b.forward(), nullptr);
    const auto backward = module.backward(b.backward(forward.microbatch), nullptr);
    EXPECT_EQ(forward.report.forward.algorithm.id, 60);
    EXPECT_EQ(backward.report.dgrad.algorithm.id, 61);
    EXPECT_EQ(backward.report.wgrad.algorithm.id, 62);
    EXPECT_EQ(forward.report.forward.library_version, 131000);
    EXPECT_EQ(host_device().heuristic_calls, 3);
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
