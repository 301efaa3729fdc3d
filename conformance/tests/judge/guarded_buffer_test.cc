// Canaries: every byte around the data is checked, and every byte of the data may be written.

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/judge/memory/guarded_buffer.h"

namespace assay::conformance {
namespace {

class Guarded : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { ASSERT_EQ(backend_.table().stream_create(backend_.context(), &stream_), ASSAY_OK); }
  void TearDown() override { backend_.table().stream_destroy(backend_.context(), stream_); }
  // The address of the data, also of empty data.
  static std::uint8_t* start(const GuardedBuffer& buffer) { return static_cast<std::uint8_t*>(buffer.data()); }

  Backend backend_{*reference_backend()};
  assay_stream* stream_ = nullptr;
};

TEST_P(Guarded, HoldsWhatIsWritten) {
  const std::int64_t size = GetParam();
  GuardedBuffer buffer(backend_, stream_, "x", size);
  EXPECT_EQ(buffer.bytes(), size);
  EXPECT_EQ(buffer.label(), "x");
  ASSERT_EQ(buffer.data() == nullptr, size == 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  std::vector<std::byte> contents(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<std::byte>(i * 7 + 1);
  buffer.write(contents.data());
  EXPECT_EQ(buffer.read(), contents);
  EXPECT_EQ(buffer.damage(), "");
  buffer.fill(0xa5);
  EXPECT_EQ(buffer.read(), std::vector<std::byte>(contents.size(), std::byte{0xa5}));
  EXPECT_EQ(buffer.damage(), "");
}

TEST_P(Guarded, SeesOneByteAnywhereInItsCanaries) {
  const std::int64_t size = GetParam();
  if (size == 0) return;  // there is no pointer, so nothing can be written around it
  GuardedBuffer buffer(backend_, stream_, "x", size);
  for (std::int64_t at = -GuardedBuffer::kGuard; at < size + GuardedBuffer::kGuard; ++at) {
    if (at >= 0 && at < size) continue;
    std::uint8_t* byte = start(buffer) + at;
    const std::uint8_t before = *byte;
    *byte = static_cast<std::uint8_t>(before + 1);
    char want[100];
    std::snprintf(want, sizeof want, "x: 1 bytes written %s (first at %+lld: 0x%02x)",
                  at < 0 ? "before its start" : "past its end", static_cast<long long>(at < 0 ? at : at - size), *byte);
    ASSERT_EQ(buffer.damage(), want);
    *byte = before;
  }
  EXPECT_EQ(buffer.damage(), "");
}

TEST_P(Guarded, IsNotFooledByOneValueEverywhere) {
  const std::int64_t size = GetParam();
  if (size == 0) return;
  for (int value = 0; value < 256; ++value) {
    GuardedBuffer buffer(backend_, stream_, "x", size);
    std::memset(start(buffer) - 2, value, static_cast<std::size_t>(size) + 4);
    const std::string damage = buffer.damage();
    ASSERT_NE(damage.find("before its start"), std::string::npos) << value;
    ASSERT_NE(damage.find("past its end"), std::string::npos) << value;
    ASSERT_NE(damage.find("; x: "), std::string::npos) << damage;
  }
}

TEST_P(Guarded, MovesWithItsMemory) {
  GuardedBuffer first(backend_, stream_, "x", GetParam());
  first.fill(0x11);
  void* const data = first.data();
  const GuardedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.read(), std::vector<std::byte>(static_cast<std::size_t>(GetParam()), std::byte{0x11}));
}

INSTANTIATE_TEST_SUITE_P(Bytes, Guarded, testing::Values(0, 1, 255, 256, 257, 5000), testing::PrintToStringParamName());

}  // namespace
}  // namespace assay::conformance
