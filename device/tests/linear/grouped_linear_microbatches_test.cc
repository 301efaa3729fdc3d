// Several microbatches of the module GroupedLinear in flight at the same time, as in pipeline schedules (1F1B).
//
// Faults that this finds: one buffer of quantized weights for all microbatches, so that the dgrad of one reads another's; a
// cache that is renewed under a microbatch which still has to read it; a cache that counts as filled when the forward that
// fills it has only been captured.

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// Each microbatch has its own weights and data; backwards run in every order.
TEST_P(EveryRecipe, MicrobatchesWithWeightsOfTheirOwn) {
  constexpr int kCount = 3;
  const int kOrders[][kCount] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
  for (const bool graphs : {false, true}) {
    for (const bool defer : {false, true}) {
      for (const auto& order : kOrders) {
        SCOPED_TRACE(std::string(graphs ? "graphs " : "eager ") + (defer ? "defer" : "at once"));
        const Case c = layer();
        std::vector<std::unique_ptr<Buffers>> b;
        for (int i = 0; i < kCount; ++i) b.push_back(std::make_unique<Buffers>(c, static_cast<std::uint64_t>(i + 1)));
        GroupedLinearOptions o = options_of(c);
        o.microbatches = kCount;
        o.defer_wgrad = defer;
        Module module(o, 3 * kCount);
        std::vector<Matrix> before;
        std::vector<int> place(kCount, -1);
        std::vector<std::unique_ptr<Graph>> made;
        const auto run = [&](auto body) {
          if (!graphs) return body();
          made.push_back(std::make_unique<Graph>(body));
        };
        for (int i = 0; i < kCount; ++i) {
          before.push_back(b[static_cast<std::size_t>(i)]->dw);
          run([&] {
            place[static_cast<std::size_t>(i)] = module.forward(b[static_cast<std::size_t>(i)]->forward(), nullptr).microbatch;
          });
        }
        for (const int i : order) {
          run([&] { module.backward(b[static_cast<std::size_t>(i)]->backward(place[static_cast<std::size_t>(i)]), nullptr); });
        }
        for (int i = 0; defer && i < kCount; ++i) run([&] { module.backward_dw(nullptr); });
        for (const auto& graph : made) graph->replay();
        for (int i = 0; i < kCount; ++i) {
          const Buffers& of = *b[static_cast<std::size_t>(i)];
          const std::string number = " of microbatch " + std::to_string(i);
          expect_same(of.y, y_of(c, of.o), "y" + number);
          expect_same(of.dx, dx_of(c, of.o), "dx" + number);
          expect_same(of.dw, dw_of(c, of.o, true, before[static_cast<std::size_t>(i)]), "dw" + number);
        }
      }
    }
  }
}

// A forward that keeps nothing runs between the forward and the backward of another microbatch.
TEST_P(EveryRecipe, AForwardAloneLeavesMicrobatchesAsTheyAre) {
  const Case c = layer();
  Buffers kept(c, 1), alone(c, 2);
  Module module(options_of(c));
  const int place = module.forward(kept.forward(), nullptr).microbatch;
  GroupedLinearForward call = alone.forward();
  call.keep = false;
  module.forward(call, nullptr);
  expect_same(alone.y, y_of(c, alone.o), "y of the forward alone");
  module.backward(kept.backward(place), nullptr);
  expect_same(kept.dx, dx_of(c, kept.o), "dx");
}

TEST_P(EveryRecipe, TheCacheIsNotRenewedUnderAMicrobatch) {
  const Case c = layer();
  Buffers first(c, 1), second(c, 2);
  GroupedLinearOptions o = options_of(c);
  o.microbatches = 2;
  Module module(o);
  const auto cached = [](GroupedLinearForward call, bool is_first) {
    call.is_first_microbatch = is_first;
    return call;
  };
  const int place = module.forward(cached(first.forward(), true), nullptr).microbatch;
  if (quantizes()) {
    host_device().log.clear();
    try {
      module.forward(cached(second.forward(), true), nullptr);
      ADD_FAILURE() << "the cache was renewed";
    } catch (const device::InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("the backward of microbatch 0 first"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(host_device().log.empty());
    EXPECT_EQ(module.in_flight(), 1);
  }
  module.backward(first.backward(place), nullptr);
  expect_same(first.dx, dx_of(c, first.o), "dx");
  const int next = module.forward(cached(second.forward(), true), nullptr).microbatch;
  module.backward(second.backward(next), nullptr);
  expect_same(second.dx, dx_of(c, second.o), "dx of the next");
}

// A forward that is captured has not run.
TEST_P(EveryRecipe, ACapturedForwardFillsTheCacheWhenItIsReplayed) {
  if (!quantizes()) return;  // there is no cache
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  GroupedLinearForward fill = b.forward(), use = b.forward();
  fill.keep = use.keep = false;
  fill.is_first_microbatch = true;
  use.is_first_microbatch = false;
  EXPECT_THROW(module.note_cache_filled(), device::InvalidArgument);
  const Graph filling([&] { module.forward(fill, nullptr); });
  const Graph using_it([&] { module.forward(use, nullptr); });  // in the order of replays the cache is filled here
  host_device().log.clear();
  try {
    module.forward(use, nullptr);
    ADD_FAILURE() << "an eager call used a cache that no call has filled";
  } catch (const device::InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("note_cache_filled()"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(host_device().log.empty());
  filling.replay();
  b.clear();
  using_it.replay();
  expect_same(b.y, y_of(c, b.o), "y of the graph");
  module.note_cache_filled();
  b.clear();
  module.forward(use, nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
}

}  // namespace
}  // namespace assay::device_linear_suite
