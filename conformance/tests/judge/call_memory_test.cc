// What a call receives: memory with the alignment that the interface requires, the original inputs, the settings; and what
// happens when the backend cannot give that memory.

#include <gtest/gtest.h>

#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

constexpr const char* kOffsets = "splits_to_offsets splits=3,0,5";  // one input of 24 bytes, one output of 32
constexpr const char* kQuantize = "quantize recipe=block_1x128 splits=5,0,128 extra_rows=7 K=136 seed=22";

// Failures of the backend's own memory functions are not the case's.
TEST(Machine, MemoryThatTheBackendCannotGiveIsAnErrorOfItsOwn) {
  for (int fails_at = 0; fails_at < 2; ++fails_at) {  // tensors, and a workspace too large to be placed after them
    Rogue rogue;
    rogue.error = "all gone";
    rogue.workspace = 3 << 20;
    int asked = 0;
    rogue.allocate = [&](std::int64_t) { return asked++ == fails_at ? ASSAY_OUT_OF_MEMORY : ASSAY_OK; };
    try {
      judge_text(rogue, kOffsets);
      FAIL() << "allocation " << fails_at << " failed unseen";
    } catch (const BackendError& error) {
      EXPECT_EQ(error.status(), ASSAY_OUT_OF_MEMORY);
      const char* labels[] = {"splits", "workspace"};
      EXPECT_TRUE(contains(error.what(), std::string(labels[fails_at])) && contains(error.what(), "(out of memory): all gone"))
          << error.what();
    }
    EXPECT_EQ(asked, fails_at + 1);
    EXPECT_TRUE(rogue.buffers.empty());
  }
}

// Allocations must be memory with the alignment that the interface requires.
TEST(Machine, AllocationsAreLookedAt) {
  for (const std::ptrdiff_t off : {std::ptrdiff_t{0}, std::ptrdiff_t{16}}) {
    Rogue rogue;
    rogue.given = [off](void* data) { return off == 0 ? nullptr : static_cast<char*>(data) + off; };
    try {
      judge_text(rogue, kOffsets);
      FAIL() << "taken: an allocation at " << off;
    } catch (const BackendError& error) {
      EXPECT_EQ(error.status(), ASSAY_FAILED);
      EXPECT_TRUE(contains(error.what(), "expected a multiple of 256 other than 0")) << error.what();
    }
  }
}

// The second attempt starts with the original inputs, even if the first has changed them.
TEST(Machine, BothPoisonsMeetTheSameInputs) {
  Rogue rogue;
  std::vector<std::vector<std::uint8_t>> seen;
  rogue.supports = [](const assay_call&) { return ASSAY_NOT_SUPPORTED; };
  rogue.execute = [&](const assay_call& call) {
    const std::uint8_t* splits = bytes(call, "splits");
    seen.emplace_back(splits, splits + 24);
    seen.emplace_back(bytes(call, "offsets"), bytes(call, "offsets") + 32);
    return ASSAY_NOT_SUPPORTED;
  };
  EXPECT_EQ(judge_text(rogue, kOffsets).verdict, Verdict::not_run);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(seen[1], std::vector<std::uint8_t>(32, 0xff));
  EXPECT_EQ(seen[3], std::vector<std::uint8_t>(32, 0xa5));
}

// What a call receives: alignment, sizes, null for no elements, the algorithm that was pinned.
TEST(Machine, TheCallIsAsTheInterfaceSays) {
  Rogue rogue;
  rogue.workspace = 100;
  std::vector<std::string> faults;
  rogue.execute = [&](const assay_call& call) {
    const auto expect = [&](bool good, const std::string& what) {
      if (!good) faults.push_back(what);
    };
    expect(call.struct_size == sizeof(assay_call), "struct_size");
    expect(std::string(call.op) == "quantize", "op");
    expect(call.algorithm == 7, "algorithm");
    expect(call.workspace_bytes == 100 && reinterpret_cast<std::uintptr_t>(call.workspace) % 512 == 256, "workspace");
    for (int i = 0; i < call.workspace_bytes; ++i)
      expect(static_cast<std::uint8_t*>(call.workspace)[i] == 0xff, "workspace poison");
    for (const auto& [tensors, count] : {std::pair(call.inputs, call.input_count), {call.outputs, call.output_count}}) {
      for (int i = 0; i < count; ++i) {
        const assay_tensor& each = tensors[i];
        std::int64_t elements = 1;
        for (int axis = 0; axis < each.rank; ++axis) elements *= each.shape[axis];
        expect(each.bytes == bytes_of(static_cast<Format>(each.dtype), elements), each.name + std::string(" bytes"));
        expect((each.data == nullptr) == (elements == 0), each.name + std::string(" null"));
        expect(elements == 0 || reinterpret_cast<std::uintptr_t>(each.data) % 512 == 256, each.name + std::string(" alignment"));
      }
    }
    return ASSAY_FAILED;
  };
  JudgeOptions options;
  options.algorithm = 7;
  judge_text(rogue, "quantize recipe=block_1x128 splits=0,0 K=136 seed=1", options);
  judge_text(rogue, kQuantize, options);
  EXPECT_EQ(rogue.calls, 2) << "the reference has no algorithm 7: once is enough";
  EXPECT_EQ(faults, std::vector<std::string>{});
}

}  // namespace
}  // namespace assay::conformance
