// The memory of a case: every byte of what the backend allocated is watched.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/judge/memory/case_memory.h"

namespace assay::conformance {
namespace {

using Role = CaseMemory::Role;

std::map<std::uint8_t*, std::int64_t> allocations;

const assay_backend& table() {
  static const assay_backend made = [] {
    assay_backend table = *reference_backend();
    table.allocate = [](assay_context* context, std::int64_t bytes, void** data) {
      const assay_status status = reference_backend()->allocate(context, bytes, data);
      if (status == ASSAY_OK) allocations[static_cast<std::uint8_t*>(*data)] = bytes;
      return status;
    };
    table.release = [](assay_context* context, void* data) {
      allocations.erase(static_cast<std::uint8_t*>(data));
      reference_backend()->release(context, data);
    };
    return table;
  }();
  return made;
}

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    allocations.clear();
    ASSERT_EQ(backend_.table().stream_create(backend_.context(), &stream_), ASSAY_OK);
  }
  void TearDown() override {
    backend_.table().stream_destroy(backend_.context(), stream_);
    EXPECT_TRUE(allocations.empty());
  }

  Backend backend_{table()};
  assay_stream* stream_ = nullptr;
};

std::vector<std::byte> contents(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST_F(Memory, HoldsWhatIsWritten) {
  const std::vector<std::byte> x = contents(1000), splits = contents(24);
  CaseMemory memory(backend_, 5);
  const auto in = memory.add("in/x", Role::input, 1000), counts = memory.add("in/splits", Role::input, 24);
  const auto none = memory.add("in/none", Role::input, 0);
  const auto out = memory.add("d", Role::output, 300);
  memory.set(in, x.data());
  memory.set(counts, splits.data());
  memory.set(none, nullptr);
  memory.place();
  memory.write(stream_, 0xff, 0xff);
  const auto workspace = memory.add("workspace", Role::workspace, 77);
  memory.place();
  memory.write_placed(stream_, 0x11);
  EXPECT_EQ(allocations.size(), 1u) << "one arena";
  EXPECT_EQ(memory.data(none), nullptr);
  EXPECT_EQ(std::memcmp(memory.data(in), x.data(), 1000), 0);
  EXPECT_EQ(std::memcmp(memory.data(counts), splits.data(), 24), 0);
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.data(out))[299], 0xff);
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.data(workspace))[76], 0x11);
  EXPECT_EQ(memory.look(stream_, nullptr), std::vector<std::string>{});
  std::memset(memory.data(out), 0x22, 300);
  std::memset(memory.data(workspace), 0x33, 77);
  std::vector<std::byte> found;
  const CaseMemory::Outputs outputs{{out, &found}};
  EXPECT_EQ(memory.look(stream_, &outputs), std::vector<std::string>{});
  EXPECT_EQ(found, std::vector<std::byte>(300, std::byte{0x22}));
  const std::vector<std::string> both{"d was written, first at byte 0: 0x22", "workspace was written, first at byte 0: 0x33"};
  EXPECT_EQ(memory.look(stream_, nullptr), both);
  memory.write(stream_, 0xa5, std::nullopt);
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.data(workspace))[0], 0x33) << "workspaces are left";
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.data(out))[0], 0xa5);
  memory.blank(stream_, 0x44);
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.data(in))[17], 0);
  memory.write(stream_, 0xa5, 0, 100);
  EXPECT_EQ(memory.look(stream_, nullptr), std::vector<std::string>{}) << "in pieces of 100 bytes";
}

TEST_F(Memory, EveryByteIsWatched) {
  const std::vector<std::byte> x = contents(5000), w = contents(777);
  CaseMemory memory(backend_, 12);
  const auto first = memory.add("in/x", Role::input, 5000), second = memory.add("in/w", Role::input, 777);
  memory.add("d", Role::output, 3000);
  memory.set(first, x.data());
  memory.set(second, w.data());
  memory.place();
  memory.write(stream_, 0xff, 0xff);
  memory.add("workspace", Role::workspace, 4000);
  memory.place();
  memory.write_placed(stream_, 0xff);
  ASSERT_EQ(allocations.size(), 1u);
  std::uint8_t* const base = allocations.begin()->first;
  // From the start of the arena to its margin after the workspace; a prime step reaches every place.
  const std::int64_t end = static_cast<std::uint8_t*>(memory.data(3)) + 4000 + CaseMemory::kMargin - base;
  ASSERT_LE(end, allocations.begin()->second);
  for (std::int64_t at = 0; at < end; at = at + 1 == end ? end : std::min(at + 1009, end - 1)) {
    const std::uint8_t before = base[at];
    base[at] = static_cast<std::uint8_t>(before + 1);
    ASSERT_EQ(memory.look(stream_, nullptr).size(), 1u) << at;
    base[at] = before;
    memory.write(stream_, 0xff, 0xff);  // the canaries have changed
  }
}

TEST_F(Memory, TellsWhatWasHitAndByHowMuch) {
  const std::vector<std::byte> x = contents(512);
  CaseMemory memory(backend_, 2);
  const auto in = memory.add("in/x", Role::input, 512), out = memory.add("d", Role::output, 512);
  memory.set(in, x.data());
  memory.place();
  memory.write(stream_, 0xff, 0xff);
  auto *const d = static_cast<std::uint8_t*>(memory.data(out)), *const i = static_cast<std::uint8_t*>(memory.data(in));
  ASSERT_LT(d, i) << "d lies in front";
  const auto hit = [&](std::uint8_t* at, int count) {
    for (int j = 0; j < count; ++j) at[j] ^= 0x40;
    const std::vector<std::string> damage = memory.look(stream_, nullptr);
    memory.write(stream_, 0xff, 0xff);
    EXPECT_EQ(damage.size(), 1u);
    return damage.empty() ? "" : damage[0].substr(0, damage[0].find(": 0x")) + damage[0].substr(damage[0].find_last_of(')') + 1);
  };
  EXPECT_EQ(hit(d + 512 + 1000, 3), "d: 3 bytes written past its end (first at +1000, between it and in/x");
  EXPECT_EQ(hit(i - 2000, 4), "in/x: 4 bytes written before its start (first at -2000, between it and d");
  EXPECT_EQ(hit(i + 512 + 70'000, 12), "in/x: 12 bytes written past its end (first at +70000, in the margin");
  EXPECT_EQ(hit(d - 65'536, 1), "d: 1 bytes written before its start (first at -65536, in the margin");
  i[5] ^= 1;
  const std::string text = memory.look(stream_, nullptr).at(0);
  EXPECT_EQ(text, "in/x: the input was changed, first at byte 5: 0x24 became 0x25 (" + std::to_string(i + 5 - d - 512) +
                      " bytes past the end of d)");
}

// One value written everywhere is detected after the first write or after the second, whatever the value is.
TEST_F(Memory, NoConstantLooksLikeACanaryTwice) {
  CaseMemory memory(backend_, 3);
  const auto out = memory.add("d", Role::output, 64);
  memory.place();
  memory.write(stream_, 0xff, 0xff);
  auto* const past = static_cast<std::uint8_t*>(memory.data(out)) + 64 + 777;
  for (int value = 0; value < 256; ++value) {
    int seen = 0;
    for (int run = 0; run < 2; ++run) {
      memory.write(stream_, 0xff, 0xff);
      *past = static_cast<std::uint8_t>(value);
      seen += memory.look(stream_, nullptr).empty() ? 0 : 1;
    }
    EXPECT_GE(seen, 1) << value;
  }
}

// Memory has the alignment that the interface guarantees, and no larger one.
TEST_F(Memory, TensorsStandAtOddMultiplesOf256) {
  std::set<std::uintptr_t> places;
  for (std::uint64_t placement = 0; placement < 64; ++placement) {
    CaseMemory memory(backend_, placement * 0x9E37'79B9);
    for (const std::int64_t bytes : {1, 256, 511, 4096}) memory.add("in", bytes == 511 ? Role::output : Role::input, bytes);
    memory.place();
    memory.add("workspace", Role::workspace, 2 << 20);
    memory.place();
    EXPECT_EQ(allocations.size(), 2u) << "a workspace too large to lie behind the tensors";
    for (CaseMemory::Part part = 0; part < 5; ++part) {
      const auto address = reinterpret_cast<std::uintptr_t>(memory.data(part));
      EXPECT_EQ(address % 512, 256u);
      places.insert(address % 4096);
    }
  }
  EXPECT_EQ(places.size(), 8u);
}

// Inputs that need several copies, and tensors that do not fit one arena.
TEST_F(Memory, LargeTensorsAreWatchedToo) {
  constexpr std::int64_t kLarge = std::int64_t{140} << 20;
  const std::vector<std::byte> x = contents(static_cast<std::size_t>(kLarge));
  CaseMemory memory(backend_, 6);
  const auto in = memory.add("in/x", Role::input, kLarge), out = memory.add("d", Role::output, kLarge);
  memory.set(in, x.data());
  memory.place();
  memory.write(stream_, 0xff, 0xff);
  EXPECT_EQ(allocations.size(), 2u);
  auto *const d = static_cast<std::uint8_t*>(memory.data(out)), *const i = static_cast<std::uint8_t*>(memory.data(in));
  d[kLarge - 1] = 3;
  d[kLarge + 9] ^= 1;
  i[kLarge - 5] ^= 1;
  i[-9] ^= 1;
  std::vector<std::byte> found;
  const CaseMemory::Outputs outputs{{out, &found}};
  const std::vector<std::string> damage = memory.look(stream_, &outputs);
  ASSERT_EQ(damage.size(), 3u);
  EXPECT_EQ(found.at(kLarge - 1), std::byte{3});
  memory.write(stream_, 0xff, 0xff);
  EXPECT_EQ(memory.look(stream_, nullptr), std::vector<std::string>{}) << "what was spoilt is written again";
}

TEST_F(Memory, SizesThatNoMachineHasAreRefused) {
  for (const std::int64_t bytes : {std::int64_t{-1}, INT64_MAX, (std::int64_t{1} << 48) + 1}) {
    CaseMemory memory(backend_, 0);
    memory.add("d", Role::output, bytes);
    EXPECT_THROW(memory.place(), BackendError) << bytes;
  }
}

}  // namespace
}  // namespace assay::conformance
