// The weights that a forward of the module GroupedLinear uses: those of the call, or those in the cache.
//
// Faults of conformance/cases/faults.md that die here:
//   D1, D3, D4 the skip flag inverted, cleared by another use of the weights                     Weights

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// The weights change before every forward, so that the result shows which are used.
TEST_P(EveryRecipe, Weights) {
  struct Use {
    std::optional<bool> first;
    std::optional<float> flag;
    WeightUse expected;
    int taken;  // which earlier forward's weights: 0 is this one, 1 the one before, ...
  };
  const Use kUses[] = {
      {true, {}, WeightUse::renewed, 0},
      {false, {}, WeightUse::kept, 1},
      {{}, {}, WeightUse::fresh, 0},
      {false, {}, WeightUse::kept, 3},
      {{}, 0.0f, WeightUse::by_flag, 0},
      {{}, 1.0f, WeightUse::by_flag, 1},
      {true, 1.0f, WeightUse::by_flag, 2},
      {{}, {}, WeightUse::fresh, 0},
      {false, 1.0f, WeightUse::by_flag, 4},
      {{}, 0.5f, WeightUse::by_flag, 0},
      {{}, std::nanf(""), WeightUse::by_flag, 0},
      {false, {}, WeightUse::kept, 1},
  };
  for (const bool lists : {false, true}) {
    const Case c = layer();
    Buffers b(c, 1, lists);
    Module module(options_of(c));
    std::vector<Operands> weights;
    float flag = 0;
    for (const Use& use : kUses) {
      const auto number = weights.size();
      SCOPED_TRACE("use " + std::to_string(number));
      weights.push_back(make_operands(c, 20 + number));
      b.fill_weights(weights.back());
      b.clear();
      GroupedLinearForward call = b.forward();
      call.is_first_microbatch = use.first;
      if (use.flag) {
        flag = *use.flag;
        call.skip_weight_update = &flag;
      }
      const auto forward = module.forward(call, nullptr);
      EXPECT_EQ(forward.weights, use.expected);
      EXPECT_EQ(forward.report.w.calls, !quantizes() || use.expected == WeightUse::kept ? 0 : lists ? 4 : 1);
      module.backward(b.backward(forward.microbatch), nullptr);
      const Operands taken =
          b.with_weights_of(quantizes() ? weights[number - static_cast<std::size_t>(use.taken)] : weights.back());
      expect_same(b.y, y_of(c, taken), "y");
      expect_same(b.dx, dx_of(c, taken), "dx");
    }
  }
}

TEST_P(EveryRecipe, WeightsThatAreNotThere) {
  if (!quantizes()) return;
  const Case c = layer();
  Buffers b(c);
  const auto expect_refused = [&](Module& module, const char* argument, std::optional<bool> first, const float* flag) {
    GroupedLinearForward call = b.forward();
    call.is_first_microbatch = first;
    call.skip_weight_update = flag;
    host_device().log.clear();
    try {
      module.forward(call, nullptr);
      ADD_FAILURE() << "no error about " << argument;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(argument, 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_device().log.empty()) << host_device().log.front();
    EXPECT_EQ(module.in_flight(), 0);
  };
  const float flag = 0;
  GroupedLinearOptions o = options_of(c);
  Module both(o);
  expect_refused(both, "is_first_microbatch is false", false, nullptr);
  GroupedLinearForward unkept = b.forward();
  unkept.keep = false;
  both.forward(unkept, nullptr);
  expect_refused(both, "is_first_microbatch is false", false, nullptr);  // weights used only once are not cached
  o.fresh_weights = false;
  Module cached(o);
  expect_refused(cached, "is_first_microbatch is not given", {}, nullptr);
  o.fresh_weights = true;
  o.cache_weights = false;
  Module fresh(o);
  expect_refused(fresh, "is_first_microbatch is given", true, nullptr);
  expect_refused(fresh, "is_first_microbatch is given", false, nullptr);
  expect_refused(fresh, "skip_weight_update is given", {}, &flag);
  EXPECT_LT(cached.memory_bytes(), both.memory_bytes());
  EXPECT_LT(fresh.memory_bytes(), both.memory_bytes());
}

// reserve() does not allocate the cache again.
TEST_P(EveryRecipe, CachedWeightsOutliveReserve) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c));
  const Operands taken = b.o;
  GroupedLinearForward call = b.forward();
  call.keep = false;
  call.is_first_microbatch = true;
  module.forward(call, nullptr);
  module.reserve(1000);
  b.fill_weights(make_operands(c, 9));
  b.clear();
  call.is_first_microbatch = false;
  module.forward(call, nullptr);
  expect_same(b.y, y_of(c, b.with_weights_of(quantizes() ? taken : b.o)), "y");
}

}  // namespace
}  // namespace assay::device_linear_suite
