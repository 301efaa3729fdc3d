// Which memory a call gets, without a device: captures and allocations are told by a stand-in.

#include "device/gemm/gemm_workspaces.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "device/gemm/group_setup.h"

namespace assay::device {
namespace {

struct FakeMemory {
  std::map<void*, std::int64_t> live;
  int device = 0;
  std::uint64_t capture = 0;
  int fail_after = -1;  // allocations that still succeed; -1: all
  std::uintptr_t next = 1 << 20;
};
FakeMemory memory;

const MemorySource kSource{
    [](std::int64_t bytes) -> void* {
      EXPECT_EQ(memory.capture, 0u) << "allocated during a capture";
      if (memory.fail_after-- == 0) throw CudaError("out of memory");
      memory.next += std::uintptr_t{64} << 20;
      memory.live[reinterpret_cast<void*>(memory.next)] = bytes;
      return reinterpret_cast<void*>(memory.next);
    },
    [](void* given) { EXPECT_EQ(memory.live.erase(given), 1u); },
    [](void*, const void*, std::int64_t) { FAIL() << "nothing is uploaded"; },
    [] { return memory.device; },
    [](Stream) { return memory.capture; }};

Stream stream(std::uintptr_t number) { return reinterpret_cast<Stream>(number); }
constexpr auto kTN = GemmLayout::TN, kNN = GemmLayout::NN, kNT = GemmLayout::NT;

class Workspaces : public testing::Test {
 protected:
  void SetUp() override { memory = FakeMemory{}; }
  void TearDown() override { EXPECT_TRUE(memory.live.empty()) << "memory was not given back"; }
};

CublasLtSettings given(GemmWorkspaces& by, Stream to, GemmLayout layout, int groups) {
  CublasLtSettings settings;
  settings.workspace_bytes = 1;
  by.give(settings, to, layout, groups);
  return settings;
}
void* setup_of(GemmWorkspaces& by, Stream to, GemmLayout layout, int groups) { return given(by, to, layout, groups).group_arrays; }

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
  memory.capture = 8;  // a capture that goes on after another one began
  EXPECT_EQ(seen.count(setup_of(workspaces, stream(1), kNN, 4)), 1u);
  memory.capture = 0;
  EXPECT_EQ(setup_of(workspaces, stream(1), kTN, 4), eager.group_arrays);
}

TEST_F(Workspaces, NothingIsAllocatedDuringACapture) {
  GemmWorkspaces workspaces(kSource, 4096);
  workspaces.reserve_library(kTN);
  workspaces.reserve_setup(stream(1), 4, 1);
  const auto live = memory.live;
  memory.capture = 3;
  setup_of(workspaces, stream(1), kTN, 4);
  EXPECT_EQ(memory.live, live);

  // What is missing is named, with the call that would have made it.
  const std::string layout = refusal([&] { given(workspaces, stream(1), kNT, 4); });
  EXPECT_NE(layout.find("workspace for layout NT"), std::string::npos) << layout;
  EXPECT_NE(layout.find("reserve_library(NT)"), std::string::npos) << layout;
  const std::string groups = refusal([&] { given(workspaces, stream(1), kTN, 5); });
  EXPECT_NE(groups.find("for 5 groups on this stream"), std::string::npos) << groups;
  EXPECT_NE(groups.find("reserve_setup() of this stream for 5 groups"), std::string::npos) << groups;
  EXPECT_NE(refusal([&] { given(workspaces, stream(2), kTN, 4); }), "");
  EXPECT_NE(refusal([&] { workspaces.reserve_setup(stream(1), 4); }), "");
  memory.capture = 4;  // the one that was spare went to capture 3
  const std::string second = refusal([&] { given(workspaces, stream(1), kTN, 4); });
  EXPECT_NE(second.find("belongs to another capture"), std::string::npos) << second;
  memory.device = 1;
  EXPECT_NE(refusal([&] { given(workspaces, stream(1), kTN, 4); }), "");
  EXPECT_EQ(memory.live, live);
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
    memory.capture = 1;
    EXPECT_EQ(refusal([&] { given(workspaces, stream(1), kTN, 4); }) == "", allowed > 2) << "what is not there is not given";
    memory.capture = 0;
    const CublasLtSettings settings = given(workspaces, stream(1), kTN, 4);
    EXPECT_NE(settings.library_workspace, nullptr);
    EXPECT_NE(settings.group_arrays, nullptr);
    EXPECT_EQ(memory.live.size(), static_cast<std::size_t>(kNeeded + (allowed > 2)));  // one is the capture's
  }
}

// A call whose memory is given needs that much less of its own.
TEST_F(Workspaces, ForACall) {
  GroupedGemmCall call;
  call.kind = GemmKind::block;
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
