// Which memory a call gets, without a device: captures and allocations are told by a stand-in.

#include "device/gemm/gemm_workspaces.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

namespace assay::device {
namespace {

class FakeMemory final : public MemorySource {
 public:
  void* allocate(std::int64_t bytes) override {
    EXPECT_EQ(capture, 0u) << "allocated during a capture";
    if (fail_after-- == 0) throw CudaError("out of memory");
    next_ += 1 << 20;
    live[reinterpret_cast<void*>(next_)] = bytes;
    return reinterpret_cast<void*>(next_);
  }
  void release(void* memory) override { EXPECT_EQ(live.erase(memory), 1u); }
  int current_device() override { return device; }
  std::uint64_t capture_of(Stream) override { return capture; }

  std::map<void*, std::int64_t> live;
  int device = 0;
  std::uint64_t capture = 0;
  int fail_after = -1;

 private:
  std::uintptr_t next_ = 1 << 20;
};

Stream stream(std::uintptr_t number) { return reinterpret_cast<Stream>(number); }
constexpr auto kTN = GemmLayout::TN, kNN = GemmLayout::NN, kNT = GemmLayout::NT;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(Workspaces, SetUpBuffersByDeviceStreamAndGroups) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory, 4096);
  std::set<void*> seen;
  for (int device = 0; device < 2; ++device) {
    for (std::uintptr_t s = 1; s <= 2; ++s) {
      for (const int groups : {4, 8}) {
        memory.device = device;
        void* setup = workspaces.get(stream(s), kTN, groups, 1000).setup;
        EXPECT_TRUE(seen.insert(setup).second);
        EXPECT_EQ(workspaces.get(stream(s), kNT, groups, 1000).setup, setup);  // rewritten before each product
        EXPECT_EQ(workspaces.get(stream(s), kTN, groups, 500).setup, setup);
      }
    }
  }
  EXPECT_EQ(seen.size(), 8u);
}

TEST(Workspaces, TheLibrarysByDeviceAndLayout) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory);
  std::set<void*> seen;
  for (int device = 0; device < 2; ++device) {
    memory.device = device;
    for (const GemmLayout layout : {kTN, kNN, kNT}) {
      const GemmWorkspaces::Memory first = workspaces.get(stream(1), layout, 4, 1000);
      EXPECT_EQ(first.library_bytes, std::int64_t{32} << 20);
      EXPECT_TRUE(seen.insert(first.library).second);
      EXPECT_EQ(workspaces.get(stream(2), layout, 8, 1000).library, first.library);
    }
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST(Workspaces, ACaptureHasItsOwnSetUpBuffer) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory, 4096);
  void* eager = workspaces.get(stream(1), kTN, 4, 1000).setup;
  std::set<void*> seen = {eager};
  for (std::uint64_t id = 7; id < 10; ++id) {
    workspaces.reserve(stream(1), kTN, 4, 1000);
    workspaces.reserve(stream(1), kNN, 4, 1000);
    memory.capture = id;
    void* own = workspaces.get(stream(1), kTN, 4, 1000).setup;
    EXPECT_TRUE(seen.insert(own).second);
    EXPECT_EQ(workspaces.get(stream(1), kNN, 4, 1000).setup, own);
    memory.capture = 0;
    EXPECT_EQ(workspaces.get(stream(1), kTN, 4, 1000).setup, eager);
  }
}

TEST(Workspaces, NothingIsAllocatedDuringACapture) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory, 4096);
  workspaces.reserve(stream(1), kTN, 4, 1000);
  const auto live = memory.live;
  memory.capture = 3;
  workspaces.get(stream(1), kTN, 4, 1000);
  EXPECT_EQ(memory.live, live);

  // What is missing is named, with the call that would have made it.
  const std::string layout = refusal([&] { workspaces.get(stream(1), kNT, 4, 1000); });
  EXPECT_NE(layout.find("workspace of layout NT"), std::string::npos) << layout;
  EXPECT_NE(layout.find("reserve(stream, NT, 4, 1000)"), std::string::npos) << layout;
  const std::string groups = refusal([&] { workspaces.get(stream(1), kTN, 5, 1000); });
  EXPECT_NE(groups.find("5 groups"), std::string::npos) << groups;
  EXPECT_NE(refusal([&] { workspaces.get(stream(2), kTN, 4, 1000); }), "");
  EXPECT_NE(refusal([&] { workspaces.get(stream(1), kTN, 4, 5000); }), "");
  EXPECT_NE(refusal([&] { workspaces.reserve(stream(1), kTN, 4, 1000); }), "");
  memory.capture = 4;  // the spare went to capture 3
  const std::string second = refusal([&] { workspaces.get(stream(1), kTN, 4, 1000); });
  EXPECT_NE(second.find("no other capture"), std::string::npos) << second;
  EXPECT_EQ(memory.live, live);
}

TEST(Workspaces, GrowingKeepsWhatIsInUse) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory, 4096);
  void* small = workspaces.get(stream(1), kTN, 4, 1000).setup;
  const GemmWorkspaces::Memory large = workspaces.get(stream(1), kTN, 4, 100000);
  EXPECT_NE(large.setup, small);
  EXPECT_GE(large.setup_bytes, 100000);
  EXPECT_EQ(memory.live.count(small), 1u);
  EXPECT_GE(memory.live[large.setup], large.setup_bytes);
}

TEST(Workspaces, OwnersShareNothingAndGiveEverythingBack) {
  FakeMemory memory;
  {
    GemmWorkspaces one(memory, 4096), other(memory, 4096);
    for (const GemmLayout layout : {kTN, kNN, kNT}) {
      const auto a = one.get(stream(1), layout, 4, 1000), b = other.get(stream(1), layout, 4, 1000);
      EXPECT_NE(a.setup, b.setup);
      EXPECT_NE(a.library, b.library);
    }
    std::int64_t bytes = 0;
    for (const auto& [at, size] : memory.live) bytes += size;
    EXPECT_EQ(one.allocated_bytes() + other.allocated_bytes(), bytes);
  }
  EXPECT_TRUE(memory.live.empty());
}

TEST(Workspaces, AFailedAllocationLosesNothing) {
  for (int allowed = 0; allowed < 3; ++allowed) {
    FakeMemory memory;
    {
      GemmWorkspaces workspaces(memory, 4096);
      memory.fail_after = allowed;
      EXPECT_THROW(workspaces.reserve(stream(1), kTN, 4, 1000), CudaError);
      memory.fail_after = -1;
      EXPECT_NE(workspaces.get(stream(1), kTN, 4, 1000).library, nullptr);
      EXPECT_EQ(memory.live.size(), 3u);
    }
    EXPECT_TRUE(memory.live.empty());
  }
}

TEST(Workspaces, ForACall) {
  FakeMemory memory;
  GemmWorkspaces workspaces(memory);
  GroupedGemmCall call;
  call.kind = GemmKind::block;
  call.layout = GemmLayout::NN;
  call.rows.groups = 8;
  call.N = 2048;
  call.K = 7168;
  CublasLtSettings settings;
  workspaces.reserve(call, settings, stream(1));
  memory.capture = 1;
  workspaces.apply(call, settings, stream(1));
  EXPECT_NE(call.workspace, nullptr);
  EXPECT_NE(settings.library_workspace, nullptr);
  EXPECT_EQ(settings.workspace_bytes, GemmWorkspaces::kLibraryBytes);
  EXPECT_GE(call.workspace_bytes, cublaslt_gemm_workspace_bytes(call, settings));
  EXPECT_GE(memory.live[call.workspace], call.workspace_bytes);
}

}  // namespace
}  // namespace assay::device
