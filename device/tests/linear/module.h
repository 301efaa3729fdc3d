#pragma once
// The module GroupedLinear over guarded and counted host memory, with the reference in place of kernels, for its tests. Expected
// values come from the reference's own layer (grouped_linear.h, microbatch.h), which computes each microbatch separately.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/linear/grouped_linear.h"
#include "device/tests/linear/buffers.h"
#include "device/tests/linear/layer.h"

namespace assay::device_linear_suite {

using device::GroupedLinear;
using device::GroupedLinearBackwardResult;
using device::GroupedLinearForwardResult;

struct HostMemory {
  std::map<void*, std::unique_ptr<GuardedMemory>> live;
  int allocations = 0;
  int refuse_after = -1;         // allocations that still succeed; -1: all
  bool while_capturing = false;  // allocations are expected then too
};
inline HostMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

inline const device::MemorySource kHostMemory{
    [](std::int64_t bytes) -> void* {
      EXPECT_TRUE(host_device().capture == nullptr || host_memory().while_capturing) << "memory was allocated during a capture";
      if (host_memory().refuse_after == 0) throw device::CudaError("out of memory");
      if (host_memory().refuse_after > 0) --host_memory().refuse_after;
      auto made = std::make_unique<GuardedMemory>(bytes);
      void* const at = made->data();
      host_memory().live.emplace(at, std::move(made));
      ++host_memory().allocations;
      return at;
    },
    [](void* memory) { EXPECT_EQ(host_memory().live.erase(memory), memory == nullptr ? 0u : 1u); },
    [](void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); },
    [] { return host_device().current_device; },
    [](int device) { host_device().current_device = device; },
    [](device::Stream stream) {
      const auto known = host_device().device_of_stream.find(stream);
      return known == host_device().device_of_stream.end() ? host_device().current_device : known->second;
    },
    [](device::Stream) { return host_device().capture == nullptr ? 0 : host_device().captures; },
    [](device::Stream, void (*ended)(void*), void* argument) {
      host_device().capture_ended->push_back([ended, argument] { ended(argument); });
    }};

inline constexpr int kCapturesAhead = device::GemmWorkspaces::kCapturesAhead;

// With less library memory than the default, because a few thousand modules are made. Set-up buffers for `captures` captures on
// the null stream.
struct Module : GroupedLinear {
  explicit Module(const GroupedLinearOptions& options, int captures = kCapturesAhead)
      : GroupedLinear(with_small_library(options), host_kernels(), kHostMemory) {
    reserve_setup(nullptr, captures);
  }
  static GroupedLinearOptions with_small_library(GroupedLinearOptions options) {
    options.path.settings.workspace_bytes = 8192;
    return options;
  }
};
// Allocations of the module, of each layout, of the stream and of each capture on it.
inline constexpr int kModuleAllocations = 3 + 3 + 1 + kCapturesAhead;

class EveryRecipe : public testing::TestWithParam<LinearRecipe> {
 protected:
  void SetUp() override {
    host_device().reset();
    ASSERT_TRUE(host_memory().live.empty());
    host_memory().allocations = 0;
    host_memory().refuse_after = -1;
    host_memory().while_capturing = false;
  }
  void TearDown() override { EXPECT_TRUE(host_memory().live.empty()) << "memory was not released"; }
  Case layer(std::vector<std::int64_t> splits = {6, 0, 34, 2}, std::int64_t beyond = 4) const {
    Case c = make_case(GetParam(), std::move(splits), 18, 34, beyond);
    c.bias = true;
    return c;
  }
  bool quantizes() const { return GetParam() != LinearRecipe::none; }
};

}  // namespace assay::device_linear_suite
