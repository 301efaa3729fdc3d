// No hint where chance explains the difference: random wrong elements in every type and shape, and values that coincide.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "conformance/diagnose/hints/hints.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/tests/judge/words.h"

namespace assay::conformance {
namespace {

using Random = std::mt19937_64;

// An output of a case.
struct Shape {
  const char* name;
  const char* line;
  const char* output;
  Format type;
  std::vector<std::int64_t> shape;
};
void PrintTo(const Shape& s, std::ostream* out) { *out << s.name; }

// Expected contents: any bits; numbers from a short list, like scales and codes; repeated rows or columns.
Tensor expected(const Shape& s, int kind, Random& random) {
  Tensor t{s.type, s.shape, {}};
  t.bytes.resize(static_cast<std::size_t>(t.elements() * std::max(bits_of(s.type) / 8, 1)));
  std::vector<std::uint64_t> list(5 + random() % 40);
  for (std::uint64_t& each : list) each = random();
  const std::int64_t columns = s.shape.back() * (s.type == Format::e2m1 ? 2 : 1);
  for (std::int64_t i = 0; i < count_of(t); ++i) {
    const auto row = static_cast<std::size_t>(i / columns), column = static_cast<std::size_t>(i % columns);
    put(t, i, kind == 0 ? random() : kind == 1 ? list[random() % list.size()] : list[(kind == 2 ? row : column) % list.size()]);
  }
  return t;
}

// Elements of `got` become wrong: any bits, or values that are expected elsewhere. All elements, one in ten, or a few.
void spoil(const Tensor& want, Tensor& got, bool drawn, int rate, Random& random) {
  const std::int64_t count = count_of(want);
  const auto spoil_one = [&](std::int64_t at) {
    put(got, at, drawn ? get(want, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count))) : random());
  };
  if (rate == 2) {
    for (int i = 0; i < 7; ++i) spoil_one(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (rate == 0 || random() % 10 == 0) spoil_one(i);
  }
}

class RandomWords : public testing::TestWithParam<Shape> {};
TEST_P(RandomWords, GetNoHint) {
  const Shape& s = GetParam();
  const Case problem = case_of(s.line);
  Random random(static_cast<std::uint64_t>(s.type) * 1000 + s.shape.size());
  for (int round = 0; round < 24; ++round) {
    const int kind = round % 4, rate = round / 4 % 3;
    const bool drawn = round / 12 == 1;
    // One value per group: a value expected elsewhere is that of another group, and the hint rightly says so.
    if (drawn && s.output == std::string("rowwise_scale_inv") && s.shape == std::vector<std::int64_t>{9}) continue;
    const Tensor want = expected(s, kind, random);
    Tensor got = want, again = want, first = want, second = want;
    spoil(want, got, drawn, rate, random);
    std::fill(first.bytes.begin(), first.bytes.end(), std::byte{0xFF});
    std::fill(second.bytes.begin(), second.bytes.end(), std::byte{0xA5});
    CompareOptions options;
    const bool two_runs = round % 2 == 0;
    if (two_runs) {
      spoil(want, again, drawn, rate, random);
      options.before = &first;
      options.other = {&again, &second};
    }
    std::string hints;
    for (const std::string& each : compare(problem, s.output, want, got, options).hints) {
      // This hint states a count and is no guess.
      if (!each.starts_with("written where nothing may be") && !each.starts_with("padding must be 0")) hints += each + "; ";
    }
    EXPECT_EQ(hints, "") << "kind " << kind << ", rate " << rate << (drawn ? ", drawn" : ", any bits") << ", round " << round;
  }
}
const Shape kShapes[] = {
    {"codes", "quantize recipe=mxfp8 splits=61,0,35 K=160", "rowwise_data", Format::e4m3, {96, 160}},
    {"codes_e5m2", "quantize recipe=mxfp8 splits=64,32 K=128", "rowwise_data", Format::e5m2, {96, 128}},
    {"codes_columnwise",
     "quantize recipe=block_1x128 direction=columnwise splits=64,32 K=128",
     "columnwise_data",
     Format::e4m3,
     {12288}},
    {"nibbles", "quantize recipe=nvfp4 splits=64,48 K=128", "rowwise_data", Format::e2m1, {112, 64}},
    {"scales", "quantize recipe=block_1x128 splits=96,64 K=512", "rowwise_scale_inv", Format::f32, {640}},
    {"exponents", "quantize recipe=mxfp8 splits=128,64 K=512", "rowwise_scale_inv", Format::e8m0, {256, 16}},
    {"exponents_swizzled",
     "quantize recipe=mxfp8 scale_layout=swizzled splits=256,128 K=512",
     "rowwise_scale_inv",
     Format::e8m0,
     {6144}},
    {"scales_of_nibbles", "quantize recipe=nvfp4 splits=64,48 K=128", "rowwise_scale_inv", Format::e4m3, {256, 8}},
    {"scales_of_groups", "quantize recipe=tensor_current splits=3,2,5,6,7,1,1,1,9 K=4", "rowwise_scale_inv", Format::f32, {9}},
    {"product", "grouped_gemm kind=bf16 splits=40,0,56 N=96 K=8", "d", Format::bf16, {96, 96}},
    {"product_f16", "grouped_gemm kind=bf16 splits=40,0,56 N=96 K=8", "d", Format::f16, {96, 96}},
    {"product_f32", "grouped_gemm kind=bf16 d_type=f32 splits=40,0,56 N=96 K=8", "d", Format::f32, {96, 96}},
    {"product_of_weights", "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=4,8 N=64 K=64", "d", Format::f32, {128, 64}},
    {"offsets", "splits_to_offsets splits=999x3", "offsets", Format::i64, {1000}},
    {"history", "delayed_update tensors=64 length=16", "amax_history", Format::f32, {16, 64}},
    {"one_row", "grouped_dbias splits=3,2 K=256", "dbias", Format::f32, {2, 256}},
    {"numbers", "splits_to_offsets splits=999x3", "offsets", Format::i32, {1000}},
};
INSTANTIATE_TEST_SUITE_P(All, RandomWords, testing::ValuesIn(kShapes),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- values that coincide

class Coincidence : public testing::Test {
 protected:
  std::vector<std::string> hints() const { return compare(problem, "rowwise_scale_inv", want, got).hints; }
  // Scales 2^exponent(i), in f32.
  template <class Exponent>
  void expect(Exponent exponent) {
    want = {Format::f32, {640}, std::vector<std::byte>(2560)};
    for (std::int64_t i = 0; i < 640; ++i) put(want, i, static_cast<std::uint64_t>(127 + exponent(i)) << 23);
    got = want;
  }
  void add(std::int64_t at, int steps) { put(got, at, get(want, at) + (static_cast<std::uint64_t>(steps) << 23)); }
  Case problem = case_of("quantize recipe=block_1x128 splits=96,64 K=512");  // [4, 96] and [4, 64]
  Tensor want, got;
};

TEST_F(Coincidence, EqualScalesHaveNoPlace) {
  expect([](std::int64_t) { return 3; });
  for (std::int64_t i = 100; i < 200; ++i) add(i, 1);
  EXPECT_EQ(hints(), std::vector<std::string>{"scales off by a factor of 2, always twice the expected one: all 100"});
}

TEST_F(Coincidence, DoubledScalesAreNotThoseOfTheNextBlock) {
  // Each k-block is twice the one before it.
  expect([](std::int64_t i) { return static_cast<int>((i < 384 ? i / 96 : i / 64) % 8); });
  for (std::int64_t i = 0; i < 640; ++i) add(i, 1);
  EXPECT_EQ(hints(), std::vector<std::string>{"scales off by a factor of 2, always twice the expected one: all 640"});
}

TEST_F(Coincidence, ScalesOfOneGroupThatAreTwiceAnothersAreNotTheOthers) {
  Random random(3);
  std::vector<int> exponents(256);
  for (int& each : exponents) each = static_cast<int>(random() % 20);
  expect([&](std::int64_t i) { return exponents[static_cast<std::size_t>(i % 96)] + (i >= 384 ? 1 : 0); });
  for (std::int64_t i = 0; i < 384; ++i) add(i, 1);
  EXPECT_EQ(hints(), std::vector<std::string>{"scales off by a factor of 2, always twice the expected one: all 384"});
}

TEST_F(Coincidence, HalvedAndDoubledScalesAreNoOthers) {
  Random random(4);
  expect([&](std::int64_t) { return static_cast<int>(random() % 3); });
  for (std::int64_t i = 0; i < 640; ++i) add(i, random() % 2 == 0 ? 1 : -1);
  EXPECT_EQ(hints(), std::vector<std::string>{"scales off by a factor of 2, twice or half the expected one: all 640"});
}

// The row before it holds the contents of the row after it.
TEST_F(Coincidence, TwoDisplacementsAlikeAreNone) {
  Random random(5);
  std::vector<int> exponents(96);
  for (int& each : exponents) each = static_cast<int>(random() % 60);
  expect([&](std::int64_t i) { return i < 384 ? exponents[static_cast<std::size_t>(i % 96)] * (i / 96 % 2) : 0; });
  for (std::int64_t i = 0; i < 384; ++i) put(got, i, get(want, (i + 96) % 384));
  for (const std::string& each : hints()) EXPECT_EQ(each.find("scales of"), std::string::npos) << each;
}

// One scale that another block also has.
TEST_F(Coincidence, OneValueThatOccursElsewhereIsNoDisplacement) {
  Random random(6);
  want = {Format::f32, {640}, std::vector<std::byte>(2560)};
  for (std::int64_t i = 0; i < 640; ++i) put(want, i, 0x3F000000 | random() >> 40);
  got = want;
  for (const std::int64_t at : {5, 100, 321, 400, 600}) put(got, at, get(want, static_cast<std::int64_t>(random() % 640)));
  EXPECT_EQ(hints(), std::vector<std::string>{});
}

// ---- the work

// The work does not depend on how many elements are wrong: the same number is sampled, the same number of places is read, and one
// pass counts all.
TEST(HintEffort, DoesNotGrowWithTheOutput) {
  for (const std::int64_t rows : {64, 1024, 8192}) {
    Case problem;
    problem.op = "anything";
    Tensor want{Format::e4m3, {rows, 256}, std::vector<std::byte>(static_cast<std::size_t>(rows * 256))};
    Random random(7);
    for (std::byte& each : want.bytes) each = static_cast<std::byte>(random() % 16 + 8);
    Tensor got = want;
    for (std::byte& each : got.bytes) each = static_cast<std::byte>(random() % 16 + 8);
    const OutputMap map = map_output(problem, "d", want);
    WrongWords used;
    constexpr std::int64_t kPiece = 1 << 20;
    for (std::int64_t begin = 0; begin < rows * 256; begin += kPiece) {
      WrongWords::Piece piece(0, begin, std::min(begin + kPiece, rows * 256));
      for (std::int64_t at = begin; at < std::min(begin + kPiece, rows * 256); ++at) {
        if (get(want, at) != get(got, at)) piece.add(at);
      }
      used.add(std::move(piece));
    }
    ASSERT_GT(used.count(), rows * 230);
    HintEffort effort;
    const WrongOutput output{problem, map, Elements(got), Elements(want), false, {}, {}, false, std::move(used), {}};
    EXPECT_EQ(hints_for(output, &effort), std::vector<std::string>{});
    EXPECT_EQ(effort.sampled, 4096);
    EXPECT_LE(effort.hypotheses, 40);
    EXPECT_LE(effort.places, 20'000'000);
    EXPECT_EQ(effort.passes, 0) << "nothing to count";
  }
}

TEST(HintEffort, CountsAllWordsOnce) {
  Case problem;
  problem.op = "anything";
  const Tensor want{Format::e4m3, {8192, 256}, std::vector<std::byte>(8192 * 256, std::byte{0x30})};
  const Tensor got{Format::e4m3, {8192, 256}, std::vector<std::byte>(8192 * 256, std::byte{0x00})};
  EXPECT_EQ(compare(problem, "d", want, got).hints, std::vector<std::string>{"0 where another value is expected: all 2097152"});
}

// The sample is spread over all wrong elements, each at most once.
TEST(WrongWords, AreSampledEvenly) {
  Case problem;
  const Tensor t{Format::e4m3, {1000, 100}, std::vector<std::byte>(100'000)};
  const OutputMap map = map_output(problem, "d", t);
  WrongWords words;
  for (std::int64_t begin = 0; begin < 100'000; begin += 10'000) {
    WrongWords::Piece piece(0, begin, begin + 10'000);
    for (std::int64_t at = begin; at < begin + 10'000; at += 3) piece.add(at);
    words.add(std::move(piece));
  }
  std::vector<std::int64_t> all;
  std::vector<std::vector<std::int64_t>> pieces(words.pieces());
  words.visit(map, Elements(t), Elements(t), [&](std::size_t piece, std::span<const Word> some) {
    for (const Word& w : some) {
      EXPECT_EQ(w.at.row * 100 + w.at.column, w.element);
      pieces[piece].push_back(w.element);
    }
  });
  for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), words.count());
  const std::vector<Word> sample = words.sample(map, Elements(t), Elements(t), 500);
  ASSERT_EQ(sample.size(), 500u);
  for (std::size_t i = 0; i < 500; ++i) {
    const auto place = std::lower_bound(all.begin(), all.end(), sample[i].element);
    ASSERT_TRUE(place != all.end() && *place == sample[i].element);
    const auto at = static_cast<std::size_t>(place - all.begin());
    EXPECT_TRUE(at >= i * all.size() / 500 && at < (i + 1) * all.size() / 500) << "one from each share";
  }
  EXPECT_EQ(words.sample(map, Elements(t), Elements(t), 1'000'000).size(), all.size());
}

}  // namespace
}  // namespace assay::conformance
