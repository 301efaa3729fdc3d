// The memory that a call gets, without a device: a substitute reports captures and allocations.

#include "device/cublaslt/gemm_workspaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "device/cublaslt/group_setup.h"

namespace assay::device {
namespace {

struct FakeMemory {
  std::map<void*, std::int64_t> live;
  int device = 0;
  std::uint64_t capture = 0;
  std::map<std::uint64_t, std::function<void()>> ended;  // by capture
  bool refuses_graphs = false;
  int fail_after = -1;  // allocations that still succeed; -1: all
  std::uintptr_t next = 1 << 20;
};
FakeMemory memory;

const MemorySource kSource{[](std::int64_t bytes) -> void* {
                             if (memory.fail_after-- == 0) throw CudaError("out of memory");
                             memory.next += std::uintptr_t{64} << 20;
                             memory.live[reinterpret_cast<void*>(memory.next)] = bytes;
                             return reinterpret_cast<void*>(memory.next);
                           },
                           [](void* given) { EXPECT_EQ(memory.live.erase(given), 1u); },
                           [](void*, const void*, std::int64_t) { FAIL() << "nothing is uploaded"; },
                           [] { return memory.device; },
                           [](int device) { memory.device = device; },
                           [](Stream) { return memory.device; },
                           [](Stream) { return memory.capture; },
                           [](Stream, void (*ended)(void*), void* argument) {
                             if (memory.refuses_graphs) throw CudaError("no user objects");
                             const std::function<void()> before = memory.ended[memory.capture];
                             memory.ended[memory.capture] = [before, ended, argument] {
                               if (before) before();
                               ended(argument);
                             };
                           }};

// The graph of this capture is destroyed.
void destroy_graph(std::uint64_t capture) {
  const auto found = memory.ended.find(capture);
  ASSERT_NE(found, memory.ended.end());
  const std::function<void()> ended = found->second;
  memory.ended.erase(found);
  ended();
}

Stream stream(std::uintptr_t number) { return reinterpret_cast<Stream>(number); }
constexpr auto kTN = GemmLayout::TN, kNN = GemmLayout::NN, kNT = GemmLayout::NT;

class Workspaces : public testing::Test {
 protected:
  void SetUp() override { memory = FakeMemory{}; }
  void TearDown() override { EXPECT_TRUE(memory.live.empty()) << "memory was not released"; }
};

CublasLtSettings given(GemmWorkspaces& by, Stream to, GemmLayout layout, int groups) {
  CublasLtSettings settings;
  settings.workspace_bytes = 1;
  by.give(settings, to, layout, groups);
  return settings;
}
void* setup_of(GemmWorkspaces& by, Stream to, GemmLayout layout, int groups) {
  return given(by, to, layout, groups).group_arrays;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST_F(Workspaces, SetUpBuffersByDeviceStreamAndGroups) {
  GemmWorkspaces workspaces(kSource, 4096);
  std::set<void*> seen;
  for (int device = 0; device < 2; ++device) {
    for (std::uintptr_t s = 1; s <= 2; ++s) {
      for (const int groups : {4, 8, 1024}) {
        memory.device = device;
        void* setup = setup_of(workspaces, stream(s), kTN, groups);
        EXPECT_TRUE(seen.insert(setup).second);
        EXPECT_GE(memory.live[setup], group_arrays_bytes(groups));
        EXPECT_EQ(setup_of(workspaces, stream(s), kNT, groups), setup);  // rewritten before each product
        EXPECT_EQ(setup_of(workspaces, stream(s), kTN, groups), setup);
      }
    }
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST_F(Workspaces, TheLibrarysByDeviceAndLayout) {
  GemmWorkspaces workspaces(kSource);
  std::set<void*> seen;
  for (int device = 0; device < 2; ++device) {
    memory.device = device;
    for (const GemmLayout layout : {kTN, kNN, kNT}) {
      const CublasLtSettings first = given(workspaces, stream(1), layout, 4);
      EXPECT_EQ(first.workspace_bytes, std::int64_t{32} << 20);
      EXPECT_EQ(memory.live[first.library_workspace], std::int64_t{32} << 20);
      EXPECT_TRUE(seen.insert(first.library_workspace).second);
      EXPECT_EQ(given(workspaces, stream(2), layout, 8).library_workspace, first.library_workspace);
    }
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST_F(Workspaces, ACaptureHasItsOwnSetUpBuffer) {
  GemmWorkspaces workspaces(kSource, 4096);
  const CublasLtSettings eager = given(workspaces, stream(1), kTN, 4);
  std::set<void*> seen = {eager.group_arrays};
  workspaces.reserve_library(kNN);
  workspaces.reserve_setup(stream(1), 4, 3);
  for (std::uint64_t id = 7; id < 10; ++id) {
    memory.capture = id;
    const CublasLtSettings own = given(workspaces, stream(1), kTN, 4);
    EXPECT_TRUE(seen.insert(own.group_arrays).second);
    EXPECT_EQ(own.library_workspace, eager.library_workspace);
    EXPECT_EQ(setup_of(workspaces, stream(1), kNN, 4), own.group_arrays);
  }
  memory.capture = 8;  // a capture that continues after another one has begun
  EXPECT_EQ(seen.count(setup_of(workspaces, stream(1), kNN, 4)), 1u);
  memory.capture = 0;
  EXPECT_EQ(setup_of(workspaces, stream(1), kTN, 4), eager.group_arrays);
}

TEST_F(Workspaces, ACaptureTakesWhatIsReservedBeforeItAllocates) {
  GemmWorkspaces workspaces(kSource, 4096);
  workspaces.reserve_library(kTN);
  workspaces.reserve_setup(stream(1), 4, 1);
  auto live = memory.live;
  memory.capture = 3;
  void* const first = setup_of(workspaces, stream(1), kTN, 4);
  EXPECT_EQ(memory.live, live);
  EXPECT_EQ(live.count(first), 1u);

  memory.capture = 4;  // the one that was spare belongs to capture 3
  void* const second = setup_of(workspaces, stream(1), kTN, 4);
  EXPECT_EQ(memory.live.size(), live.size() + 1);
  EXPECT_EQ(live.count(second), 0u);
  live = memory.live;
  EXPECT_EQ(setup_of(workspaces, stream(1), kTN, 4), second);
  EXPECT_EQ(memory.live, live);

  // Another layout, other groups, another stream, another device: each lacks something.
  given(workspaces, stream(1), kNT, 4);
  EXPECT_EQ(memory.live.size(), live.size() + 1);
  given(workspaces, stream(1), kTN, 5);
  given(workspaces, stream(2), kTN, 4);
  EXPECT_EQ(memory.live.size(), live.size() + 3);
  memory.device = 1;
  EXPECT_NE(setup_of(workspaces, stream(1), kTN, 4), second);
}

// Any number of captures does not increase memory: a graph's buffer is used again by the next capture.
TEST_F(Workspaces, TheBufferOfADestroyedGraphServesAgain) {
  GemmWorkspaces workspaces(kSource, 4096);
  given(workspaces, stream(1), kTN, 4);
  const auto live = memory.live;
  std::map<void*, std::uint64_t> held;
  for (std::uint64_t capture = 1; capture <= 100; ++capture) {
    memory.capture = capture;
    void* const setup = setup_of(workspaces, stream(1), kTN, 4);
    EXPECT_TRUE(held.emplace(setup, capture).second) << "two graphs that live share a buffer";
    if (held.size() < GemmWorkspaces::kCapturesAhead) continue;
    memory.capture = 0;
    const auto oldest =
        std::min_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    destroy_graph(oldest->second);
    held.erase(oldest);
  }
  EXPECT_EQ(memory.live, live);
  // A capture that found no spare buffer leaves the one that it allocated to the next capture.
  for (std::uint64_t capture = 101; capture <= 105; ++capture) {
    memory.capture = capture;
    setup_of(workspaces, stream(1), kTN, 4);
  }
  const auto more = memory.live;
  EXPECT_GT(more.size(), live.size());
  while (!memory.ended.empty()) destroy_graph(memory.ended.begin()->first);
  for (std::uint64_t capture = 106; capture < 106 + 3 + GemmWorkspaces::kCapturesAhead; ++capture) {
    memory.capture = capture;
    setup_of(workspaces, stream(1), kTN, 4);
  }
  EXPECT_EQ(memory.live, more);
}

TEST_F(Workspaces, AGraphMayOutliveItsOwner) {
  {
    GemmWorkspaces workspaces(kSource, 4096);
    memory.capture = 1;
    setup_of(workspaces, stream(1), kTN, 4);
  }
  EXPECT_TRUE(memory.live.empty());
  destroy_graph(1);  // there is nothing to release
}

TEST_F(Workspaces, AGraphThatCannotBeWatchedTakesNothing) {
  GemmWorkspaces workspaces(kSource, 4096);
  given(workspaces, stream(1), kTN, 4);
  memory.refuses_graphs = true;
  memory.capture = 1;
  EXPECT_THROW(given(workspaces, stream(1), kTN, 4), CudaError);
  memory.refuses_graphs = false;
  const auto live = memory.live;
  given(workspaces, stream(1), kTN, 4);
  EXPECT_EQ(memory.live, live);
}

// All memory can come from the caller.
TEST_F(Workspaces, FromAnAllocator) {
  struct Cache {
    struct Block {
      std::int64_t bytes;
      int device;
      Stream stream;
    };
    std::map<void*, Block> live;
    std::uintptr_t next = 1 << 20;
  } cache;
  Allocator allocator;
  allocator.context = &cache;
  allocator.allocate = [](void* context, std::int64_t bytes, int device, Stream on) -> void* {
    Cache& of = *static_cast<Cache*>(context);
    of.next += std::uintptr_t{64} << 20;
    of.live[reinterpret_cast<void*>(of.next)] = {bytes, device, on};
    EXPECT_EQ(memory.device, device);
    return reinterpret_cast<void*>(of.next);
  };
  allocator.release = [](void* context, void* given, std::int64_t bytes, int device, Stream on) noexcept {
    Cache& of = *static_cast<Cache*>(context);
    const auto found = of.live.find(given);
    ASSERT_NE(found, of.live.end());
    EXPECT_EQ(found->second.bytes, bytes);
    EXPECT_EQ(found->second.device, device);
    EXPECT_EQ(found->second.stream, on);
    EXPECT_EQ(memory.device, device);
    of.live.erase(found);
  };
  {
    GemmWorkspaces workspaces(kSource, 4096, allocator);
    memory.device = 1;
    given(workspaces, stream(7), kTN, 4);
    EXPECT_EQ(cache.live.size(), 2u + GemmWorkspaces::kCapturesAhead);
    for (const auto& [at, block] : cache.live) EXPECT_EQ(block.stream, stream(7));
    memory.device = 0;
  }
  EXPECT_EQ(memory.device, 0);
  EXPECT_TRUE(cache.live.empty());
}

TEST_F(Workspaces, ReservingTwiceMakesNothingMore) {
  GemmWorkspaces workspaces(kSource, 4096);
  workspaces.reserve_library(kTN);
  workspaces.reserve_setup(stream(1), 4, 6);
  EXPECT_EQ(memory.live.size(), 8u);
  workspaces.reserve_library(kTN);
  workspaces.reserve_setup(stream(1), 4, 6);
  workspaces.reserve_setup(stream(1), 4, 0);
  given(workspaces, stream(1), kTN, 4);
  EXPECT_EQ(memory.live.size(), 8u);
  EXPECT_NE(refusal([&] { workspaces.reserve_setup(stream(1), -1); }), "");
  EXPECT_NE(refusal([&] { workspaces.reserve_setup(stream(1), 4, -1); }), "");
}

TEST_F(Workspaces, OwnersShareNothingAndGiveEverythingBack) {
  GemmWorkspaces one(kSource, 4096), other(kSource, 4096);
  for (const GemmLayout layout : {kTN, kNN, kNT}) {
    const CublasLtSettings a = given(one, stream(1), layout, 4), b = given(other, stream(1), layout, 4);
    EXPECT_NE(a.group_arrays, b.group_arrays);
    EXPECT_NE(a.library_workspace, b.library_workspace);
  }
  std::int64_t bytes = 0;
  for (const auto& [at, size] : memory.live) bytes += size;
  EXPECT_EQ(one.allocated_bytes() + other.allocated_bytes(), bytes);
}

TEST_F(Workspaces, AFailedAllocationLosesNothing) {
  constexpr int kNeeded = 2 + GemmWorkspaces::kCapturesAhead;
  for (int allowed = 0; allowed < kNeeded; ++allowed) {
    GemmWorkspaces workspaces(kSource, 4096);
    memory.fail_after = allowed;
    EXPECT_THROW(given(workspaces, stream(1), kTN, 4), CudaError);
    memory.fail_after = -1;
    const CublasLtSettings settings = given(workspaces, stream(1), kTN, 4);
    EXPECT_NE(settings.library_workspace, nullptr);
    EXPECT_NE(settings.group_arrays, nullptr);
    EXPECT_EQ(memory.live.size(), static_cast<std::size_t>(kNeeded));
  }
}

// A call that is given this memory needs so much less workspace.
TEST_F(Workspaces, ForACall) {
  GroupedGemmCall call;
  call.kind = GemmKind::fp8_block;
  call.layout = kNN;
  call.rows.groups = 8;
  call.N = 2048;
  call.K = 7168;
  const CublasLtSettings alone;
  GemmWorkspaces workspaces(kSource);
  const CublasLtSettings settings = given(workspaces, stream(1), kNN, 8);
  EXPECT_EQ(cublaslt_gemm_workspace_bytes(call, alone) - cublaslt_gemm_workspace_bytes(call, settings),
            GemmWorkspaces::kLibraryBytes + group_arrays_bytes(8));
}

}  // namespace
}  // namespace assay::device
