// Every encoder, both layers, for all 2^32 floats. The expected code is a step function of the magnitude (ladder.h), so it is
// written in whole runs and compared in whole blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/tests/formats/ladder.h"
#include "reference/tests/formats/scalar_layer.h"

namespace assay::test {
namespace {

constexpr std::uint32_t kBlock = 1 << 14;  // inputs at a time: they stay in the cache
constexpr std::int64_t kBlocks = (std::int64_t{1} << 32) / kBlock;
constexpr std::uint32_t kInfinityBits = 0x7f80'0000;

enum class Layer { scalar, bulk, inlined };

struct Case {
  Facts facts;
  Layer layer;
};

const char* name_of_layer(Layer layer) { return layer == Layer::scalar ? "scalar" : layer == Layer::bulk ? "bulk" : "inlined"; }

void PrintTo(const Case& each, std::ostream* out) { *out << each.facts.name << ' ' << name_of_layer(each.layer); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Facts& facts : all_formats()) {
    for (const Layer layer : {Layer::scalar, Layer::bulk, Layer::inlined}) all.push_back({facts, layer});
  }
  return all;
}

// The scalar layer in a form that the compiler can vectorise, for each width of codes: it has shifts by other numbers in each element.
[[gnu::flatten]] ASSAY_CLONES void encode_scalar_clones(Format format, const float* x, std::size_t n, std::uint8_t* codes) {
  encode_scalar(format, x, n, codes);
}
[[gnu::flatten]] ASSAY_CLONES void encode_scalar_clones(Format format, const float* x, std::size_t n, std::uint16_t* codes) {
  encode_scalar(format, x, n, codes);
}

template <class Code>
void encode_with(Layer layer, Format format, const std::vector<float>& x, std::vector<Code>& codes) {
  if (layer == Layer::scalar) return encode_scalar_clones(format, x.data(), x.size(), codes.data());
  if (layer == Layer::inlined) return encode_inlined(format, x.data(), x.size(), codes.data());
  encode(format, x, codes);
}

// Fills `want` for the block of inputs that starts at `begin`.
template <class Code>
void expect_block(const Facts& facts, const std::vector<std::uint32_t>& first, std::uint32_t begin, std::vector<Code>& want) {
  const bool negative = begin >> 31 != 0;
  const std::uint32_t magnitude = begin & 0x7fff'ffff;
  std::uint32_t i = 0;
  while (i < kBlock) {
    const std::uint32_t at = magnitude + i;
    std::uint32_t end = kBlock, code = facts.nan;
    if (at <= kInfinityBits) {
      const auto next = std::upper_bound(first.begin(), first.end(), at);
      code = with_sign(facts, negative, static_cast<std::uint32_t>(next - first.begin()) - 1);
      const std::uint32_t run_end = next == first.end() ? kInfinityBits + 1 : *next;
      end = std::min(kBlock, run_end - magnitude);
    }
    std::fill(want.begin() + i, want.begin() + end, static_cast<Code>(code));
    i = end;
  }
}

template <class Code>
void check_all_floats(const Case& each) {
  const std::vector<std::uint32_t> first = first_magnitudes(each.facts);
  std::mutex mutex;
  std::uint64_t differ = 0, checked = 0;
  std::uint64_t first_input = UINT64_MAX;
  Code first_got = 0, first_want = 0;
  parallel_for(kBlocks, 64, [&](std::int64_t from, std::int64_t to) {
    std::vector<float> x(kBlock);
    std::vector<Code> got(kBlock), want(kBlock);
    for (std::int64_t block = from; block < to; ++block) {
      const auto begin = static_cast<std::uint32_t>(block * kBlock);
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const std::uint32_t bits = begin + i;
        std::memcpy(&x[i], &bits, sizeof bits);
      }
      encode_with(each.layer, each.facts.format, x, got);
      expect_block(each.facts, first, begin, want);
      if (std::memcmp(got.data(), want.data(), kBlock * sizeof(Code)) == 0) continue;
      const std::lock_guard lock(mutex);
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        if (got[i] == want[i]) continue;
        ++differ;
        if (begin + i < first_input) first_input = begin + i, first_got = got[i], first_want = want[i];
      }
    }
    const std::lock_guard lock(mutex);
    checked += static_cast<std::uint64_t>(to - from) * kBlock;
  });
  EXPECT_EQ(checked, std::uint64_t{1} << 32);
  EXPECT_EQ(differ, 0u) << "first at " << show_input(static_cast<std::uint32_t>(first_input)) << ": want " << hex(first_want)
                        << ", got " << hex(first_got);
}

class AllFloats : public testing::TestWithParam<Case> {};

TEST_P(AllFloats, EncodeToTheNearestRung) {
  if (GetParam().facts.bits == 16) {
    check_all_floats<std::uint16_t>(GetParam());
  } else {
    check_all_floats<std::uint8_t>(GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AllFloats, testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(info.param.facts.name) + "_" + name_of_layer(info.param.layer);
});

// The mistake of a shortcut: converting to half first rounds twice. The count comes from other code, so it checks encode f16,
// decode f16 and encode e4m3 together.
TEST(TwoRoundings, HalfOnTheWayToE4m3SpoilsAKnownNumberOfFloats) {
  std::atomic<std::uint64_t> differ = 0;
  parallel_for(kBlocks, 64, [&](std::int64_t from, std::int64_t to) {
    std::vector<float> x(kBlock), widened(kBlock);
    std::vector<std::uint16_t> half(kBlock);
    std::vector<std::uint8_t> direct(kBlock), twice(kBlock);
    std::uint64_t here = 0;
    for (std::int64_t block = from; block < to; ++block) {
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const std::uint32_t bits = static_cast<std::uint32_t>(block * kBlock) + i;
        std::memcpy(&x[i], &bits, sizeof bits);
      }
      encode(Format::e4m3, x, direct);
      encode(Format::f16, x, half);
      decode(Format::f16, half, widened);
      encode(Format::e4m3, widened, twice);
      for (std::uint32_t i = 0; i < kBlock; ++i) here += direct[i] != twice[i];
    }
    differ += here;
  });
  EXPECT_EQ(differ, 1'032'192u);
}

}  // namespace
}  // namespace assay::test
