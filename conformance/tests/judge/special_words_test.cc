// Hints from single elements: not written, NaN, infinity, the largest number, zero.

#include <gtest/gtest.h>

#include "conformance/judge/compare/compare.h"
#include "conformance/tests/judge/words.h"
#include "reference/layout/swizzle.h"

namespace assay::conformance {
namespace {

// ---- NaN for NaN

TEST(SpecialWords, NanOfTheOtherSignIsNamedInOneWord) {
  Case problem;
  problem.op = "anything";
  Tensor want = drawn(Format::e4m3, {16, 32}, 3);
  want.bytes[7] = want.bytes[200] = std::byte{0x7f};
  Tensor got = want;
  const auto hints = [&] { return compare(problem, "d", want, got, {}).hints; };
  got.bytes[7] = std::byte{0xff};
  EXPECT_EQ(hints(),
            (std::vector<std::string>{"NaN of negative sign where one of positive sign is expected: the only wrong element"}));
  got.bytes[200] = std::byte{0xff};
  EXPECT_EQ(hints(), (std::vector<std::string>{"NaN of negative sign where one of positive sign is expected: all 2"}));
  std::swap(got, want);
  EXPECT_EQ(hints(), (std::vector<std::string>{"NaN of positive sign where one of negative sign is expected: all 2"}));
  want = drawn(Format::e5m2, {16, 32}, 3);
  want.bytes[7] = std::byte{0x7f};
  got = want;
  got.bytes[7] = std::byte{0x7d};
  EXPECT_EQ(hints(), (std::vector<std::string>{"another NaN than the expected one: the only wrong element"}));
}

// ---- what is not written

class Poison : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 64, kColumns = 32;
  Poison() { problem.op = "anything"; }
  Tensor filled(std::uint8_t byte) const {
    Tensor t = want;
    std::fill(t.bytes.begin(), t.bytes.end(), static_cast<std::byte>(byte));
    return t;
  }
  void leave(Tensor& t, std::size_t begin, std::size_t count, std::uint8_t byte) const {
    std::fill_n(t.bytes.begin() + static_cast<std::ptrdiff_t>(begin), count, static_cast<std::byte>(byte));
  }
  std::vector<std::string> hints(const Tensor& before, const Tensor* other = nullptr,
                                 const Tensor* other_before = nullptr) const {
    CompareOptions options;
    options.before = &before;
    if (other != nullptr) options.other = {other, other_before};
    return compare(problem, "d", want, got, options).hints;
  }
  Case problem;
  Tensor want = drawn(Format::e4m3, {kRows, kColumns}, 3), got = want;
};

TEST_F(Poison, ThatBothRunsKeepWasNotOverwritten) {
  const Tensor first = filled(0xFF), second = filled(0xA5);
  Tensor again = want;
  leave(got, 17, 40, 0xFF), leave(again, 17, 40, 0xA5);
  EXPECT_EQ(hints(first, &again, &second),
            (std::vector<std::string>{"not written: all 40 still hold what was there before the call"}));
  got.bytes[100] ^= std::byte{0x11};
  EXPECT_EQ(hints(first, &again, &second).at(0), "not written: 40 of 41 still hold what was there before the call");
}

TEST_F(Poison, IsNotWhatACodeHappensToBe) {
  const Tensor first = filled(0xFF), second = filled(0xA5);
  leave(got, 16, 20, 0xFF);  // NaN, written so
  const std::vector<std::string> nan{"NaN where a number is expected: all 20"};
  EXPECT_EQ(hints(first), nan) << "one run does not distinguish them";
  Tensor again = got;
  EXPECT_EQ(hints(first, &again, &second), nan);
  leave(again, 16, 12, 0xA5);  // these were not
  EXPECT_EQ(hints(first, &again, &second).at(0), "not written: 12 of 20 still hold what was there before the call");
}

TEST_F(Poison, OfOneWordInBothRunsIsEnough) {
  const Tensor first = filled(0xFF), second = filled(0xA5);
  Tensor again = want;
  leave(got, 17, 1, 0xFF), leave(again, 17, 1, 0xA5);
  EXPECT_EQ(hints(first, &again, &second),
            (std::vector<std::string>{"not written: the only wrong element still holds what was there before the call"}));
}

// Codes of four bits equal either poison in one byte of 256.
TEST_F(Poison, IsNotWhatWrongNibblesHoldByChance) {
  want = drawn(Format::e2m1, {256, 128}, 3);
  got = drawn(Format::e2m1, {256, 128}, 4);
  const Tensor first = filled(0xFF), second = filled(0xA5), again = drawn(Format::e2m1, {256, 128}, 5);
  EXPECT_EQ(hints(first, &again, &second), std::vector<std::string>{});
}

TEST_F(Poison, IsToldByOneRunWhereItFillsARow) {
  const Tensor before = filled(0xA5);
  leave(got, 16, 7, 0xA5), leave(got, 40, 1, 0xA5);
  EXPECT_EQ(hints(before), std::vector<std::string>{}) << "seven and one might be values";
  leave(got, 16, 8, 0xA5);
  EXPECT_EQ(hints(before), (std::vector<std::string>{"not written: 8 of 9 still hold what was there before the call"}));
  leave(want, 56, 8, 0xA5);
  EXPECT_EQ(hints(before), std::vector<std::string>{}) << "an answer may look like that";
}

TEST_F(Poison, OfNansIsNotToldByOneRun) {
  want = drawn(Format::f32, {kRows, kColumns}, 3), got = want;
  const Tensor first = filled(0xFF), second = filled(0xA5);
  leave(got, 0, 400, 0xFF);  // D += instead of D =; 0xA5A5A5A5 before would be too small to show
  EXPECT_EQ(hints(first, &want, &second), (std::vector<std::string>{"NaN where a number is expected: all 100"}));
}

TEST_F(Poison, InARunThatOnlyTheFirstTimeWrites) {
  const Tensor first = filled(0xFF), second = filled(0xA5);
  got = second;
  EXPECT_EQ(hints(second, &want, &first).at(0), "not written: all 2041 still hold what was there before the call");
}

TEST_F(Poison, InPaddingThatMustBeZero) {
  problem = case_of("quantize recipe=mxfp8 scale_layout=swizzled R=33 K=96");  // [128, 4], 33 x 3 in use
  want = tensor_like(Format::e8m0, {128, 4});
  for (std::int64_t i = 0; i < 33; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) put(want, swizzled_index(i, j, 1), static_cast<std::uint64_t>(100 + i + j));
  }
  got = want;
  Tensor again = want;
  const Tensor first = filled(0xFF), second = filled(0xA5);
  for (std::int64_t at = 0; at < 512; ++at) {
    if (get(want, at) == 0) put(got, at, 0xFF), put(again, at, 0xA5);
  }
  CompareOptions options;
  options.before = &first;
  options.other = {&again, &second};
  EXPECT_EQ(
      compare(problem, "rowwise_scale_inv", want, got, options).hints,
      (std::vector<std::string>{"padding, which must be 0, is not written: all 413 still hold what was there before the call"}));
  again = got;
  EXPECT_EQ(compare(problem, "rowwise_scale_inv", want, got, options).hints,
            (std::vector<std::string>{"padding must be 0: 413 elements are not"}));
}

// ---- special values

struct Special {
  const char* name;
  Format type;
  std::uint64_t want, got;  // of 40 words
  const char* hint;
};
void PrintTo(const Special& s, std::ostream* out) { *out << s.name; }
class SpecialValue : public testing::TestWithParam<Special> {};
TEST_P(SpecialValue, GetsItsHint) {
  const Special& s = GetParam();
  Case problem;
  problem.op = "anything";
  Tensor want = drawn(s.type, {64, 64}, 5);
  for (std::int64_t i = 0; i < 40; ++i) put(want, i * 97, s.want);
  Tensor got = want;
  for (std::int64_t i = 0; i < 40; ++i) put(got, i * 97, s.got);
  EXPECT_EQ(compare(problem, "d", want, got).hints, std::vector<std::string>{s.hint});
}
const Special kSpecials[] = {
    {"nan", Format::bf16, 0x4040, 0x7FC0, "NaN where a number is expected: all 40"},
    {"nan_for_infinity", Format::f32, 0x7F800000, 0x7FC00000, "NaN where infinity is expected: all 40"},
    {"nan_for_the_largest", Format::e4m3, 0x7E, 0x7F, "NaN where the largest number is expected: all 40: not saturated"},
    {"number_for_nan", Format::bf16, 0x7FC0, 0x4040, "a number where NaN is expected: all 40"},
    {"largest_for_nan", Format::e4m3, 0x7F, 0x7E, "the largest number where NaN is expected: all 40: saturated"},
    {"zero_for_nan", Format::f32, 0x7FC00000, 0, "0 where NaN is expected: all 40"},
    {"infinity_for_nan", Format::f16, 0x7E00, 0x7C00, "infinity where NaN is expected: all 40"},
    {"infinity_for_the_largest", Format::bf16, 0x7F7F, 0x7F80,
     "infinity where the largest number is expected: all 40: not saturated"},
    {"largest_for_infinity", Format::f16, 0x7C00, 0x7BFF, "the largest number where infinity is expected: all 40: saturated"},
    {"largest", Format::f32, 0x44000000, 0x7F7FFFFF, "the largest number where a smaller one is expected: all 40: saturated"},
    {"flushed", Format::f32, 0x00012345, 0, "0 where a subnormal is expected: all 40: flushed to zero"},
    {"sign_of_zero", Format::bf16, 0x8000, 0, "only the sign of zero differs: all 40 (zero_sign=free would allow it)"},
    {"nan_of_scales", Format::e8m0, 0x7F, 0xFF, "NaN where a number is expected: all 40"},
};
INSTANTIATE_TEST_SUITE_P(All, SpecialValue, testing::ValuesIn(kSpecials),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
