// Modules of the layer that share scratch and workspaces by a LinearPool: the bits do not change, and with the number of modules
// only the memory that each keeps for itself grows.

#include "device/linear/linear_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

constexpr std::int64_t kLibrary = 8192;

// A model of layers whose microbatches are interleaved, eagerly and in graphs, with immediate and deferred wgrad.
TEST_P(EveryRecipe, ModulesOfAPool) {
  for (const bool graphs : {false, true}) {
    for (const bool defer : {false, true}) {
      device::LinearPool pool(nullptr, kHostMemory, kLibrary);
      const std::vector<Case> cases = {layer(), layer({0, 50, 0, 6}, 0), layer({100, 20, 6, 0}, 4)};
      std::vector<std::unique_ptr<Buffers>> b;
      std::vector<std::unique_ptr<GroupedLinear>> modules;
      for (const Case& c : cases) {  // each needs more scratch than the one before, or less
        b.push_back(std::make_unique<Buffers>(c, b.size() + 1));
        GroupedLinearOptions o = options_of(c);
        o.pool = &pool;
        o.defer_wgrad = defer;
        modules.push_back(std::make_unique<GroupedLinear>(o, host_kernels(), kHostMemory));
      }
      pool.workspaces().reserve_setup(nullptr, 4, 9);
      const int allocations = host_memory().allocations;
      std::vector<std::unique_ptr<Graph>> made;
      const auto run = [&](auto body) {
        if (!graphs) return body();
        made.push_back(std::make_unique<Graph>(body));
      };
      std::vector<Matrix> before;
      std::vector<int> place(cases.size(), -1);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        before.push_back(b[i]->dw);
        run([&, i] { place[i] = modules[i]->forward(b[i]->forward(), nullptr).microbatch; });
      }
      for (std::size_t i = cases.size(); i-- > 0;) run([&, i] { modules[i]->backward(b[i]->backward(place[i]), nullptr); });
      for (std::size_t i = 0; defer && i < cases.size(); ++i) run([&, i] { modules[i]->backward_dw(nullptr); });
      for (const auto& graph : made) graph->replay();
      for (std::size_t i = 0; i < cases.size(); ++i) {
        expect_same(b[i]->y, y_of(cases[i], b[i]->o), "y");
        expect_same(b[i]->dx, dx_of(cases[i], b[i]->o), "dx");
        expect_same(b[i]->dw, dw_of(cases[i], b[i]->o, true, before[i]), "dw");
      }
      EXPECT_EQ(host_memory().allocations, allocations) << "a call allocated memory";
      made.clear();
    }
  }
}

// A second module of a pool needs only the memory that it keeps, and no further scratch or workspaces.
TEST_P(EveryRecipe, APoolSavesMemory) {
  const Case c = layer();
  GroupedLinearOptions o = options_of(c);
  const std::int64_t alone = Module(o).memory_bytes();
  device::LinearPool pool(nullptr, kHostMemory, kLibrary);
  o.pool = &pool;
  const GroupedLinear first(o, host_kernels(), kHostMemory);
  const std::int64_t shared = pool.memory_bytes();
  EXPECT_GE(shared, 3 * kLibrary);
  const GroupedLinear second(o, host_kernels(), kHostMemory);
  EXPECT_EQ(pool.memory_bytes(), shared);
  EXPECT_EQ(first.memory_bytes(), second.memory_bytes());
  EXPECT_LT(second.memory_bytes(), alone - 3 * kLibrary);
  std::int64_t live = 0;
  for (const auto& [at, memory] : host_memory().live) live += memory->bytes();
  EXPECT_EQ(live, shared + first.memory_bytes() + second.memory_bytes());
}

// A larger module allocates a new scratch; graphs of earlier modules continue to use the old one.
TEST_P(EveryRecipe, GraphsKeepTheScratchThatTheyWereCapturedWith) {
  device::LinearPool pool(nullptr, kHostMemory, kLibrary);
  const Case small = layer(), large = layer({1000, 24, 0, 1000}, 0);
  Buffers b(small), b_large(large, 2);
  GroupedLinearOptions o = options_of(small);
  o.pool = &pool;
  GroupedLinear first(o, host_kernels(), kHostMemory);
  first.reserve_setup(nullptr, 4);
  const Matrix before = b.dw;
  const Graph graph([&] { first.backward(b.backward(first.forward(b.forward(), nullptr).microbatch), nullptr); });
  GroupedLinearOptions larger = options_of(large);
  larger.pool = &pool;
  GroupedLinear second(larger, host_kernels(), kHostMemory);
  second.drop(second.forward(b_large.forward(), nullptr).microbatch);
  expect_same(b_large.y, y_of(large, b_large.o), "y of the larger");
  graph.replay();
  expect_same(b.y, y_of(small, b.o), "y");
  expect_same(b.dx, dx_of(small, b.o), "dx");
  expect_same(b.dw, dw_of(small, b.o, true, before), "dw");
}

TEST_P(EveryRecipe, APoolServesOneStream) {
  device::LinearPool pool(nullptr, kHostMemory, kLibrary);
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.pool = &pool;
  GroupedLinear module(o, host_kernels(), kHostMemory);
  host_device().log.clear();
  try {
    module.forward(b.forward(), reinterpret_cast<device::Stream>(std::uintptr_t{8}));
    ADD_FAILURE() << "another stream was accepted";
  } catch (const device::InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("the stream of options.pool"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(host_device().log.empty());
  EXPECT_EQ(module.in_flight(), 0);
}

// With an allocator everything comes from it, for the stream of the pool.
TEST_P(EveryRecipe, AnAllocatorOfTheCaller) {
  struct Blocks {
    std::map<void*, std::unique_ptr<GuardedMemory>> live;
    int refuse_after = -1;
  } blocks;
  device::Allocator allocator;
  allocator.context = &blocks;
  allocator.allocate = [](void* context, std::int64_t bytes, int, device::Stream) -> void* {
    Blocks& of = *static_cast<Blocks*>(context);
    if (of.refuse_after == 0) throw std::bad_alloc();
    if (of.refuse_after > 0) --of.refuse_after;
    auto made = std::make_unique<GuardedMemory>(bytes);
    void* const at = made->data();
    of.live.emplace(at, std::move(made));
    return at;
  };
  allocator.release = [](void* context, void* memory, std::int64_t, int, device::Stream) noexcept {
    EXPECT_EQ(static_cast<Blocks*>(context)->live.erase(memory), 1u);
  };
  const int from_source = host_memory().allocations;
  {
    device::LinearPool pool(nullptr, kHostMemory, kLibrary, allocator);
    const Case c = layer();
    Buffers b(c);
    GroupedLinearOptions o = options_of(c);
    o.pool = &pool;
    for (int allowed = 0; allowed < 3; ++allowed) {
      blocks.refuse_after = allowed;
      EXPECT_THROW(GroupedLinear(o, host_kernels(), kHostMemory), std::bad_alloc);
    }
    blocks.refuse_after = -1;
    GroupedLinear module(o, host_kernels(), kHostMemory);
    module.backward(b.backward(module.forward(b.forward(), nullptr).microbatch), nullptr);
    expect_same(b.dx, dx_of(c, b.o), "dx");
    std::int64_t live = 0;
    for (const auto& [at, memory] : blocks.live) live += memory->bytes();
    EXPECT_EQ(live, pool.memory_bytes() + module.memory_bytes());
  }
  EXPECT_TRUE(blocks.live.empty());
  EXPECT_EQ(host_memory().allocations, from_source);
  device::Allocator half = allocator;
  half.release = nullptr;
  EXPECT_THROW(device::LinearPool(nullptr, kHostMemory, kLibrary, half), device::InvalidArgument);
}

}  // namespace
}  // namespace assay::device_linear_suite
