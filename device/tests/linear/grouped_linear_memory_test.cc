// The memory of the module GroupedLinear: its owner, when it grows, and what happens if it cannot be allocated.
//
// Faults of conformance/cases/faults.md that die here:
//   A23, C20 memory allocated by a call                                                          MemoryGrowsWithRowsAndNothingElse
//   C19 workspaces of two modules that overlap                                                   TwoModulesShareNothing

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <string>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// The addresses that calls get: the parts of one module do not overlap one another or those of another module.
TEST_P(EveryRecipe, TwoModulesShareNothing) {
  const Case c = layer();
  Buffers a(c, 1), b(c, 2);
  GroupedLinearOptions o = options_of(c);
  Module first(o), second(o);
  EXPECT_EQ(host_memory().live.size(), 2u * kModuleAllocations);
  const Matrix a_before = a.dw, b_before = b.dw;
  int a_place = -1, b_place = -1;
  const auto cached = [](GroupedLinearForward call, bool is_first) {
    call.is_first_microbatch = is_first;
    return call;
  };
  // Graphs of both, replayed in turn.
  const Graph a_forward([&] { a_place = first.forward(cached(a.forward(), true), nullptr).microbatch; });
  const Graph b_forward([&] { b_place = second.forward(cached(b.forward(), true), nullptr).microbatch; });
  const Graph a_backward([&] { first.backward(a.backward(a_place), nullptr); });
  const Graph b_backward([&] { second.backward(b.backward(b_place), nullptr); });
  for (int replay = 0; replay < 2; ++replay) {
    a_forward.replay();
    b_forward.replay();
    b_backward.replay();
    a_backward.replay();
    expect_same(a.y, y_of(c, a.o), "y of the first");
    expect_same(b.y, y_of(c, b.o), "y of the second");
    expect_same(a.dx, dx_of(c, a.o), "dx of the first");
    expect_same(b.dx, dx_of(c, b.o), "dx of the second");
    expect_same(a.dw, dw_of(c, a.o, false, a_before), "dw of the first");
    expect_same(b.dw, dw_of(c, b.o, false, b_before), "dw of the second");
  }
}

TEST_P(EveryRecipe, MemoryGrowsWithRowsAndNothingElse) {
  const Case c = layer();
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  EXPECT_EQ(host_memory().allocations, kModuleAllocations);
  const std::int64_t small = module.memory_bytes();
  module.reserve(10);
  EXPECT_EQ(module.memory_bytes(), small);
  EXPECT_EQ(host_memory().allocations, kModuleAllocations);

  Case larger = layer({100, 0, 90, 10}, 2);
  Buffers b(larger);
  const auto forward = [&] { return module.forward(b.forward(), nullptr); };
  try {
    forward();
    ADD_FAILURE() << "more rows than there is room for";
  } catch (const device::InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).rfind("rows.capacity is 202: ", 0), 0u) << error.what();
  }
  module.reserve(202);
  EXPECT_GE(module.memory_bytes() - small,
            quantizes() ? 2 * 156 * 18 : 0);  // at least the codes of dy, rowwise and columnwise
  EXPECT_EQ(module.options().rows_capacity, 202);
  EXPECT_EQ(host_memory().live.size(), static_cast<std::size_t>(kModuleAllocations));
  const Matrix before = b.dw;
  const auto result = forward();
  EXPECT_THROW(module.reserve(300), device::InvalidArgument) << "a microbatch is in flight";
  module.backward(b.backward(result.microbatch), nullptr);
  expect_same(b.y, y_of(larger, b.o), "y");
  expect_same(b.dw, dw_of(larger, b.o, true, before), "dw");
  module.reserve(300);
  EXPECT_EQ(module.options().rows_capacity, 300);
}

// Without enough memory the module is not constructed, or does not change.
TEST_P(EveryRecipe, MemoryThatIsNotThere) {
  const Case c = layer();
  const GroupedLinearOptions o = options_of(c);
  for (int allocations = 0; allocations < kModuleAllocations; ++allocations) {
    host_memory().refuse_after = allocations;
    EXPECT_THROW(Module module(o), device::CudaError);
    EXPECT_TRUE(host_memory().live.empty());
  }
  host_memory().refuse_after = -1;
  Module module(o);
  const std::int64_t bytes = module.memory_bytes();
  host_memory().refuse_after = 0;
  EXPECT_THROW(module.reserve(1000), device::CudaError);
  EXPECT_EQ(module.memory_bytes(), bytes);
  EXPECT_EQ(module.options().rows_capacity, o.rows_capacity);
  Buffers b(c);
  const Matrix before = b.dw;
  module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr);
  expect_same(b.y, y_of(c, b.o), "y");
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

}  // namespace
}  // namespace assay::device_linear_suite
