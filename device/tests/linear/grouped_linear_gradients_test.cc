// Weight gradients of the module GroupedLinear over several microbatches: added or overwritten, at once or put off.
//
// Faults of conformance/cases/faults.md that die here:
//   A19 put off work done at once, twice, in another order, from buffers that are used again     Deferred
//   A20 gradients of biases in a list lost with deferred work                                    Deferred
//   A21, D5 accumulation                                                                         Accumulates

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/tests/linear/module.h"
#include "reference/linear/microbatch.h"

namespace assay::device_linear_suite {
namespace {

// ---- Main gradients --------------------------------------------------------------------------------------------------

TEST_P(EveryRecipe, Accumulates) {
  const Case c = layer({6, 4}, 0);
  const float flag = 0;
  for (const bool fused : {true, false}) {
    for (const bool overwrite : {false, true}) {
      for (const bool flagged : {false, true}) {
        for (const bool defer : {false, true}) {
          for (const std::optional<bool> first : {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
            Buffers b(c);
            GroupedLinearOptions o = options_of(c);
            o.fuse_accumulation = fused;
            o.overwrite_main_grad = overwrite;
            o.defer_wgrad = defer;
            Module module(o);
            GroupedLinearForward call = b.forward();
            if (first == false && !flagged) {
              call.is_first_microbatch = true;
              call.keep = false;
              module.forward(call, nullptr);
              call.keep = true;
            }
            call.is_first_microbatch = first;
            call.skip_weight_update = flagged ? &flag : nullptr;
            const bool want = accumulates({fused, overwrite, first, flagged});
            const Matrix before = b.dw;
            const auto result = module.backward(b.backward(module.forward(call, nullptr).microbatch), nullptr);
            if (defer) module.backward_dw(nullptr);
            EXPECT_EQ(result.accumulated, want);
            expect_same(b.dw, dw_of(c, b.o, want, before), want ? "added" : "overwritten");
          }
        }
      }
    }
  }
}

TEST_P(EveryRecipe, TypesOfTheWeightGradient) {
  for (const Format type : {Format::f32, Format::bf16, Format::f16}) {
    Case c = layer();
    c.dw_type = type;
    Buffers b(c);
    Module module(options_of(c));
    const Matrix before = b.dw;
    module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr);
    expect_same(b.dw, dw_of(c, b.o, true, before), std::string(name_of(type)));
  }
}

// ---- Several microbatches --------------------------------------------------------------------------------------------

// Three forwards, their backwards in another order, and their weight gradients put off: all that was handed over is spoilt
// before they run, and every one is added to the same gradient, in the order of the backwards.
TEST_P(EveryRecipe, Deferred) {
  for (const bool lists : {false, true}) {
    const Case shapes[] = {layer({6, 0, 34, 2}, 4), layer({0, 20, 4, 10}, 12), layer({2, 2, 2, 40}, 0)};
    GroupedLinearOptions o = options_of(shapes[0]);
    o.defer_wgrad = true;
    o.microbatches = 3;
    Module module(o);
    std::vector<std::unique_ptr<Buffers>> all;
    std::vector<int> places;
    Buffers gradient(shapes[0], 50, lists);  // whose dw all share
    const Matrix start = gradient.dw;
    for (std::uint64_t i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Buffers>(shapes[i], i + 1, lists));
      all[i]->fill_weights(gradient.o);
      GroupedLinearForward call = all[i]->forward();
      call.is_first_microbatch = i == 0;
      places.push_back(module.forward(call, nullptr).microbatch);
      expect_same(all[i]->y, y_of(shapes[i], all[i]->o), "y");
    }
    EXPECT_EQ(std::set<int>(places.begin(), places.end()).size(), 3u);
    EXPECT_THROW(module.forward(all[0]->forward(), nullptr), device::InvalidArgument) << "every place is taken";

    const std::size_t order[] = {1, 0, 2};
    std::vector<Matrix> want;
    Matrix sum = start;
    for (const std::size_t i : order) {
      Buffers& b = *all[i];
      GroupedLinearBackward call = b.backward(places[i]);
      call.dw = lists ? nullptr : gradient.dw.data();
      call.dw_list = lists ? gradient.dw_list.data() : nullptr;
      const auto result = module.backward(call, nullptr);
      EXPECT_TRUE(result.deferred);
      EXPECT_THROW(module.backward(call, nullptr), device::InvalidArgument) << "twice";
      b.collect();
      expect_same(b.dx, dx_of(b.c, b.o), "dx");
      expect_same(b.dbias, dbias_of(b.c, b.o), "dbias");
      sum = dw_of(b.c, b.o, i != 0, sum);
      want.push_back(sum);
    }
    for (auto& b : all) {
      for (Matrix* matrix : {&b->o.x, &b->o.dy}) std::fill(matrix->bytes.begin(), matrix->bytes.end(), 0xff);
      std::fill(b->splits.begin(), b->splits.end(), -1);
      std::fill(b->dw_list.begin(), b->dw_list.end(), nullptr);
    }
    std::fill(gradient.dw_list.begin(), gradient.dw_list.end(), nullptr);  // the list itself may go as well
    gradient.collect();
    expect_same(gradient.dw, start, "dw before any backward_dw");
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(module.pending(), 3 - i);
      module.backward_dw(nullptr);
      gradient.collect();
      expect_same(gradient.dw, want[static_cast<std::size_t>(i)], "dw after backward_dw " + std::to_string(i));
    }
    EXPECT_THROW(module.backward_dw(nullptr), device::InvalidArgument);
    gradient.collect();
    expect_same(gradient.dw, want[2], "dw after one call too many");
    EXPECT_EQ(module.in_flight(), 0);
  }
}

TEST_P(EveryRecipe, MicrobatchesThatAreNotInFlight) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.microbatches = 2;
  Module module(o);
  const auto refused = [&](int microbatch) {
    EXPECT_THROW(module.backward(b.backward(microbatch), nullptr), device::InvalidArgument) << microbatch;
    EXPECT_THROW(module.drop(microbatch), device::InvalidArgument) << microbatch;
  };
  for (const int microbatch : {-1, 0, 1, 2, 1 << 30}) refused(microbatch);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 0);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 1);
  EXPECT_THROW(module.forward(b.forward(), nullptr), device::InvalidArgument);
  module.drop(0);
  refused(0);
  EXPECT_EQ(module.forward(b.forward(), nullptr).microbatch, 0) << "the lowest place that is free";
  module.backward(b.backward(1), nullptr);
  refused(1);
}

}  // namespace
}  // namespace assay::device_linear_suite
