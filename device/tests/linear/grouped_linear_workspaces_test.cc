// The memory that the module GroupedLinear keeps for the library: a workspace for each layout, set-up buffers for each stream and
// each capture.
//
// Faults of conformance/cases/faults.md that die here:
//   C18 set-up buffers that graphs, streams or modules share, or that each call makes            SetUpBuffers..., GraphsHave...
//   C19 workspaces of two layouts, or of two modules, that overlap                               AWorkspaceForEachLayout
//   C20 memory allocated by each capture                                                         AnyNumberOfCaptures

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/cublaslt/group_setup.h"
#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// The memory of the products of a step: forward, dgrad, wgrad.
using Products = std::vector<HostDevice::ProductMemory>;
Products products_of_step(Module& module, Buffers& b, device::Stream stream = nullptr) {
  host_device().products.clear();
  if (module.backward(b.backward(module.forward(b.forward(), stream).microbatch), stream).deferred) module.backward_dw(stream);
  return host_device().products;
}

bool overlap(const HostDevice::Extent& a, const HostDevice::Extent& b) {
  const auto *first = static_cast<const std::byte*>(a.begin), *second = static_cast<const std::byte*>(b.begin);
  return first < second + b.bytes && second < first + a.bytes;
}

// C19: the product of each layout has its own memory, the same in every call and, except for set-up buffers, in every graph.
TEST_P(EveryRecipe, AWorkspaceForEachLayout) {
  for (const bool defer : {false, true}) {
    const Case c = layer();
    Buffers b(c);
    GroupedLinearOptions o = options_of(c);
    o.defer_wgrad = defer;
    Module module(o), other(o);
    const Products eager = products_of_step(module, b);
    EXPECT_EQ(products_of_step(module, b), eager);
    Products captured;
    const Graph graph([&] { captured = products_of_step(module, b); });
    ASSERT_EQ(eager.size(), 3u);
    ASSERT_EQ(captured.size(), 3u);
    Products all = eager;
    for (const HostDevice::ProductMemory& each : products_of_step(other, b)) all.push_back(each);
    std::vector<HostDevice::Extent> apart;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].layout, static_cast<GemmLayout>(i % 3));
      EXPECT_EQ(all[i].library.bytes, 8192);
      // Consecutive products of a module share the scratch of the call; a deferred wgrad may run at the same time as others.
      if (i % 3 == 0 || (i % 3 == 2 && defer)) apart.push_back(all[i].workspace);
      apart.push_back(all[i].library);
      if (i % 3 == 0) apart.push_back(all[i].setup);
      EXPECT_EQ(all[i].setup, all[i / 3 * 3].setup) << "written anew before each product";
      if (i >= 3) continue;
      EXPECT_EQ(captured[i].workspace, eager[i].workspace);
      EXPECT_EQ(captured[i].library, eager[i].library);
    }
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_GT(apart[i].bytes, 0);
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(apart[i], apart[j])) << i << " and " << j;
    }
  }
}

TEST_P(EveryRecipe, TheLibraryHas32MiBForEachLayout) {
  const auto blocks = [&](bool dgrad, bool wgrad, GemmPath path) {
    GroupedLinearOptions o = options_of(layer(), path);
    o.dgrad = dgrad;
    o.wgrad = wgrad;
    const GroupedLinear module(o, host_kernels(), kHostMemory);
    std::int64_t bytes = 0;
    for (const auto& [at, memory] : host_memory().live) bytes += memory->bytes();
    EXPECT_EQ(module.memory_bytes(), bytes);
    return std::count_if(host_memory().live.begin(), host_memory().live.end(),
                         [](const auto& each) { return each.second->bytes() == std::int64_t{32} << 20; });
  };
  EXPECT_EQ(blocks(false, true, GemmPath::cublaslt), 2);
  EXPECT_EQ(blocks(true, false, GemmPath::cublaslt), 2);
  EXPECT_EQ(blocks(false, false, GemmPath::cublaslt), 1);
  for (const GemmPath path : paths_of(GetParam())) {
    EXPECT_EQ(blocks(true, true, path), path == GemmPath::cublaslt ? 3 : 0) << device::name_of(path);
  }
}

// C18: a set-up buffer for each stream and group count, used again by every eager call there.
TEST_P(EveryRecipe, SetUpBuffersByStreamAndGroups) {
  std::set<void*> seen;
  std::vector<std::unique_ptr<Module>> modules;
  for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{6, 0, 34, 2}, {6, 36}}) {
    Buffers b(layer(splits));
    modules.push_back(std::make_unique<Module>(options_of(b.c)));
    for (std::uintptr_t number = 1; number <= 2; ++number) {
      const auto stream = reinterpret_cast<device::Stream>(number);
      const Products first = products_of_step(*modules.back(), b, stream);
      const int allocations = host_memory().allocations;
      EXPECT_EQ(products_of_step(*modules.back(), b, stream), first);
      EXPECT_EQ(host_memory().allocations, allocations);
      EXPECT_TRUE(seen.insert(first[0].setup.begin).second) << "stream " << number;
      EXPECT_EQ(first[0].setup.bytes, device::group_arrays_bytes(static_cast<int>(splits.size())));
      for (const HostDevice::ProductMemory& each : first) EXPECT_EQ(each.setup, first[0].setup);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

// C18: no graph writes to the set-up of another graph, of an eager call or of another module.
TEST_P(EveryRecipe, GraphsHaveSetUpBuffersOfTheirOwn) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.defer_wgrad = true;
  Module module(o, 4), other(o, 1);
  std::vector<HostDevice::Extent> seen;
  const auto add = [&](const Products& products, std::size_t count) {
    ASSERT_EQ(products.size(), count);
    for (const HostDevice::ProductMemory& each : products) EXPECT_EQ(each.setup, products[0].setup) << "within one graph";
    for (const HostDevice::Extent& each : seen) EXPECT_FALSE(overlap(each, products[0].setup)) << seen.size();
    seen.push_back(products[0].setup);
  };
  std::vector<std::unique_ptr<Graph>> graphs;  // that live at the same time
  const auto captured = [&](auto body) {
    host_device().products.clear();
    graphs.push_back(std::make_unique<Graph>(body));
    return host_device().products;
  };
  int microbatch = -1;
  add(products_of_step(module, b), 3);
  const int allocations = host_memory().allocations;
  add(captured([&] { microbatch = module.forward(b.forward(), nullptr).microbatch; }), 1);
  add(captured([&] { module.backward(b.backward(microbatch), nullptr); }), 1);
  add(captured([&] { module.backward_dw(nullptr); }), 1);
  add(captured([&] { products_of_step(module, b); }), 3);
  add(captured([&] { products_of_step(other, b); }), 3);
  EXPECT_EQ(host_memory().allocations, allocations) << "memory was made for a capture";
}

// C20: captures use memory that was allocated in advance. A capture without such memory allocates once, and a destroyed graph
// leaves its buffer to the next capture: any number of captures works, without more memory.
TEST_P(EveryRecipe, AnyNumberOfCaptures) {
  const Case c = layer();
  Buffers b(c);
  Module module(options_of(c), 2);
  const int allocations = host_memory().allocations;
  const auto body = [&] { module.drop(module.forward(b.forward(), nullptr).microbatch); };
  for (int i = 0; i < 20; ++i) const Graph graph(body);
  EXPECT_EQ(host_memory().allocations, allocations);
  EXPECT_THROW(module.reserve_setup(nullptr, -1), device::InvalidArgument);

  host_memory().while_capturing = true;
  std::vector<std::unique_ptr<Graph>> graphs;
  for (int i = 0; i < 5; ++i) graphs.push_back(std::make_unique<Graph>(body));
  EXPECT_EQ(host_memory().allocations, allocations + 3);
  for (const auto& graph : graphs) {
    b.clear();
    graph->replay();
    expect_same(b.y, y_of(c, b.o), "y");
  }
  graphs.clear();
  for (int i = 0; i < 5; ++i) graphs.push_back(std::make_unique<Graph>(body));
  EXPECT_EQ(host_memory().allocations, allocations + 3);
}

}  // namespace
}  // namespace assay::device_linear_suite
