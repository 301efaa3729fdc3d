// Offsets of ragged groups: known vectors, a second route in 128-bit integers, every output form, every error (spec offsets-1.4).

#include "reference/layout/offsets.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "reference/types/error.h"

namespace assay {
namespace {

using Values = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Both layers have the same functions.
struct Layer {
  const char* name;
  Values (*offsets)(std::span<const std::int64_t>, std::int64_t);
  void (*multi)(std::span<const std::int64_t>, std::span<const OffsetsOutput>);
  Values (*two_d)(std::span<const std::int64_t>, std::span<const std::int64_t>);
};
void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.name; }

const Layer kLayers[] = {
    {"fast", splits_to_offsets, splits_to_offsets_multi, splits_to_offsets_2d},
    {"scalar", scalar::splits_to_offsets, scalar::splits_to_offsets_multi, scalar::splits_to_offsets_2d},
};

class Offsets : public testing::TestWithParam<Layer> {};
INSTANTIATE_TEST_SUITE_P(Layers, Offsets, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

// What the call throws, as text; empty when it does not.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

// Group sizes as a router makes them: many zeros, a few large.
Values splits_for(std::size_t groups, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values splits(groups);
  for (std::int64_t& split : splits) {
    const std::uint64_t kind = random() % 4;
    split = kind == 0   ? 0
            : kind == 1 ? static_cast<std::int64_t>(random() % (1u << 20))
                        : static_cast<std::int64_t>(random() % 300);
  }
  return splits;
}

// Second route: each offset alone, from a sum in 128 bits.
__int128 sum_before(const Values& splits, std::size_t end) {
  __int128 sum = 0;
  for (std::size_t i = 0; i < end; ++i) sum += splits[i];
  return sum;
}

TEST_P(Offsets, KnownVectors) {
  const auto offsets = GetParam().offsets;
  EXPECT_EQ(offsets(Values{}, 1), (Values{0}));
  EXPECT_EQ(offsets(Values{}, 7168), (Values{0}));
  EXPECT_EQ(offsets(Values{0}, 5), (Values{0, 0}));
  EXPECT_EQ(offsets(Values{5}, 1), (Values{0, 5}));
  EXPECT_EQ(offsets(Values{3, 0, 4, 0, 5}, 1), (Values{0, 3, 3, 7, 7, 12}));
  EXPECT_EQ(offsets(Values{0, 0, 2, 3, 0}, 7), (Values{0, 0, 0, 14, 35, 35}));
  EXPECT_EQ(offsets(Values{1, 2, 3}, 128), (Values{0, 128, 384, 768}));
  // Elements past 2^31 and 2^32.
  EXPECT_EQ(offsets(Values{300'000, 300'000}, 7168), (Values{0, 2'150'400'000, 4'300'800'000}));
  // The last value that int64 holds, by the sum and by the stride.
  EXPECT_EQ(offsets(Values{kMost - 1, 1, 0}, 1), (Values{0, kMost - 1, kMost, kMost}));
  EXPECT_EQ(offsets(Values{1}, kMost), (Values{0, kMost}));
}

TEST_P(Offsets, EqualsSumsInWideIntegers) {
  for (const std::size_t groups : {0, 1, 2, 17, 255, 256, 257, 513, 1024}) {
    for (const std::int64_t stride : {1, 7, 128, 7168}) {
      const Values splits = splits_for(groups, 1 + groups);
      const Values offsets = GetParam().offsets(splits, stride);
      ASSERT_EQ(offsets.size(), groups + 1);
      for (std::size_t i = 0; i <= groups; ++i) {
        ASSERT_TRUE(offsets[i] == stride * sum_before(splits, i)) << "groups " << groups << " stride " << stride << " at " << i;
      }
    }
  }
}

TEST_P(Offsets, SeveralOutputsFromOneReading) {
  for (const std::size_t groups : {0, 1, 2, 17, 255, 256, 257, 513, 1024}) {
    const Values splits = splits_for(groups, 99 + groups);
    // Every stride in every form, each in a buffer with a guard value behind it.
    struct Wanted {
      std::int64_t stride;
      bool leading_zero, is_int32;
    };
    std::vector<Wanted> wanted;
    for (const std::int64_t stride : {0, 1, 7, 128}) {
      for (const int form : {0, 1, 2, 3}) {
        const bool is_int32 = form % 2 == 1 && stride * sum_before(splits, groups) <= std::numeric_limits<std::int32_t>::max();
        wanted.push_back({stride, form / 2 == 1, is_int32});
      }
    }
    std::vector<Values> buffers(wanted.size(), Values(groups + 2, -0x5a5a5a5a5a5a5a5b));
    std::vector<OffsetsOutput> outputs;
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      outputs.push_back({wanted[o].stride, wanted[o].leading_zero, wanted[o].is_int32, buffers[o].data()});
    }
    GetParam().multi(splits, outputs);

    for (std::size_t o = 0; o < wanted.size(); ++o) {
      const std::size_t count = groups + (wanted[o].leading_zero ? 1 : 0);
      const std::size_t width = wanted[o].is_int32 ? 4 : 8;
      const auto* bytes = reinterpret_cast<const unsigned char*>(buffers[o].data());
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t got = 0;
        if (wanted[o].is_int32) {
          std::int32_t narrow;
          std::memcpy(&narrow, bytes + i * 4, 4);
          got = narrow;
        } else {
          std::memcpy(&got, bytes + i * 8, 8);
        }
        const __int128 want = wanted[o].stride * sum_before(splits, i + (wanted[o].leading_zero ? 0 : 1));
        ASSERT_TRUE(got == want) << "groups " << groups << " output " << o << " at " << i << ": got " << got;
      }
      std::uint32_t behind;
      std::memcpy(&behind, bytes + count * width, 4);
      EXPECT_EQ(behind, 0xa5a5a5a5u) << "written past output " << o << " of " << groups << " groups";
    }
  }
}

TEST_P(Offsets, AnOutputMayReplaceTheSplits) {
  Values splits = {3, 0, 4};
  const std::vector<OffsetsOutput> in_place = {{.stride = 2, .leading_zero = false, .values = splits.data()}};
  GetParam().multi(splits, in_place);
  EXPECT_EQ(splits, (Values{6, 6, 14}));
}

TEST_P(Offsets, StrideZeroHidesNoOverflow) {
  std::int32_t narrow[3] = {9, 9, 9};
  const std::vector<OffsetsOutput> zero = {{.stride = 0, .leading_zero = true, .is_int32 = true, .values = narrow}};
  GetParam().multi(Values{kMost, 0}, zero);
  EXPECT_EQ(narrow[2], 0);
  EXPECT_EQ(error_of([&] {
              GetParam().multi(Values{kMost, 1}, zero);
            }),
            "splits[1] is 1: expected a sum of splits that fits int64");
}

TEST_P(Offsets, ProductsOfTwoExtents) {
  const auto two_d = GetParam().two_d;
  EXPECT_EQ(two_d(Values{}, Values{}), (Values{0}));
  EXPECT_EQ(two_d(Values{3, 0, 2}, Values{5, 7, 0}), (Values{0, 15, 15, 15}));
  EXPECT_EQ(two_d(Values{kMost, 0}, Values{1, kMost}), (Values{0, kMost, kMost}));
  for (const std::size_t groups : {1, 4, 255, 256, 257, 1024}) {
    const Values first = splits_for(groups, 5 + groups), last = splits_for(groups, 6 + groups);
    const Values offsets = two_d(first, last);
    ASSERT_EQ(offsets.size(), groups + 1);
    __int128 sum = 0;
    for (std::size_t i = 0; i <= groups; ++i) {
      ASSERT_TRUE(offsets[i] == sum) << "groups " << groups << " at " << i;
      if (i < groups) sum += static_cast<__int128>(first[i]) * last[i];
    }
  }
}

TEST_P(Offsets, ErrorsNameTheValueAtFault) {
  const Layer& layer = GetParam();
  const std::int64_t half = kMost / 2 + 1;
  struct Bad {
    Values splits;
    std::int64_t stride;
    std::string text;
  };
  const Bad cases[] = {
      {{3, -1, 4}, 1, "splits[1] is -1: expected a value of at least 0"},
      {{std::numeric_limits<std::int64_t>::min()}, 1, "splits[0] is -9223372036854775808: expected a value of at least 0"},
      {{5, -5, -1}, 1, "splits[1] is -5: expected a value of at least 0"},
      {{1}, 0, "stride is 0: expected a value of at least 1"},
      {{1}, -7, "stride is -7: expected a value of at least 1"},
      {{}, 0, "stride is 0: expected a value of at least 1"},
      {{kMost, 1}, 1, "splits[1] is 1: expected a sum of splits that fits int64"},
      {{kMost, kMost, 2}, 1, "splits[1] is 9223372036854775807: expected a sum of splits that fits int64"},
      {{0, half}, 2, "stride is 2: expected stride * 4611686018427387904 (a sum of splits) to fit int64"},
      {{1, 1}, kMost, "stride is 9223372036854775807: expected stride * 2 (a sum of splits) to fit int64"},
  };
  for (const Bad& bad : cases) {
    EXPECT_EQ(error_of([&] { layer.offsets(bad.splits, bad.stride); }), bad.text);
  }
  EXPECT_EQ(error_of([&] { layer.two_d(Values{1, 2}, Values{1}); }), "last.size() is 1: expected as many values as first: 2");
  EXPECT_EQ(error_of([&] { layer.two_d(Values{1, -2}, Values{1, 1}); }), "first[1] is -2: expected a value of at least 0");
  EXPECT_EQ(error_of([&] { layer.two_d(Values{1, 2}, Values{-1, 1}); }), "last[0] is -1: expected a value of at least 0");
  EXPECT_EQ(error_of([&] { layer.two_d(Values{half}, Values{2}); }),
            "last[0] is 2: expected a sum of first * last that fits int64");
  EXPECT_EQ(error_of([&] {
              layer.two_d(Values{kMost, 1}, Values{1, 1});
            }),
            "last[1] is 1: expected a sum of first * last that fits int64");
}

TEST_P(Offsets, NothingIsWrittenWhenAnyOutputIsWrong) {
  const std::int32_t poison = -1515870811;
  std::int32_t good[8], bad[8];
  const std::int64_t past_int32 = std::int64_t{1} << 31;
  struct Bad {
    Values splits;
    OffsetsOutput output;
    std::string text;
  };
  // clang-format off
  const Bad cases[] = {
      {{1, -1}, {.is_int32 = true, .values = bad}, "splits[1] is -1: expected a value of at least 0"},
      {{1, 2}, {.stride = -1, .is_int32 = true, .values = bad}, "outputs[1].stride is -1: expected a value of at least 0"},
      {{1, 2}, {.values = nullptr}, "outputs[1].values is null: expected a buffer"},
      {{1, 2},
       {.values = reinterpret_cast<char*>(bad) + 4 - reinterpret_cast<std::uintptr_t>(bad) % 8},
       "outputs[1].values is a pointer: expected an address aligned to the type of the values"},
      {{1, 2}, {.is_int32 = true, .values = good + 2}, "outputs[1].values is a pointer: expected a buffer apart from that of outputs[0]"},
      {{0, 1, 0},
       {.stride = past_int32, .is_int32 = true, .values = bad},
       "outputs[1].stride is 2147483648: expected stride * 1 (a sum of splits) to fit int32"},
      {{1, 2},
       {.stride = kMost, .is_int32 = true, .values = bad},
       "outputs[1].stride is 9223372036854775807: expected stride * 1 (a sum of splits) to fit int32"},
  };
  // clang-format on
  for (const Bad& bad_case : cases) {
    std::fill_n(good, 8, poison);
    std::fill_n(bad, 8, poison);
    const std::vector<OffsetsOutput> outputs = {{.stride = 1, .is_int32 = true, .values = good}, bad_case.output};
    EXPECT_EQ(error_of([&] { GetParam().multi(bad_case.splits, outputs); }), bad_case.text);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(good[i], poison) << bad_case.text;
      EXPECT_EQ(bad[i], poison) << bad_case.text;
    }
  }
}

TEST_P(Offsets, Int32EndsAtItsLargestValue) {
  std::int32_t values[2];
  const std::vector<OffsetsOutput> output = {{.stride = 1, .is_int32 = true, .values = values}};
  GetParam().multi(Values{2147483647}, output);
  EXPECT_EQ(values[1], 2147483647);
  EXPECT_EQ(error_of([&] { GetParam().multi(Values{2147483648}, output); }),
            "outputs[0].stride is 1: expected stride * 2147483648 (a sum of splits) to fit int32");
}

TEST_P(Offsets, WithoutOutputsOrGroups) {
  GetParam().multi(Values{1, 2}, {});
  EXPECT_NE(error_of([&] { GetParam().multi(Values{-1}, {}); }), "");
  // No group and no leading zero: nothing to write, so no buffer is needed.
  const std::vector<OffsetsOutput> empty = {{.leading_zero = false}};
  GetParam().multi(Values{}, empty);
  std::int64_t zero = 7;
  const std::vector<OffsetsOutput> one = {{.values = &zero}};
  GetParam().multi(Values{}, one);
  EXPECT_EQ(zero, 0);
}

}  // namespace
}  // namespace assay
