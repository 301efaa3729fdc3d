// The calls on whole arrays: lengths, alignment, memory beyond the end, and misuse.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "reference/tests/formats/ladder.h"
#include "reference/tests/formats/scalar_layer.h"
#include "reference/types/error.h"

namespace assay::test {
namespace {

constexpr std::size_t kLongest = 130;  // past two vectors of 64 codes
constexpr std::size_t kGuard = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Floats of every exponent and sign, NaN and infinity among them: the odd multiplier walks through all bit patterns.
float value_at(std::size_t index) { return float_of_bits(static_cast<std::uint32_t>(index + 1) * 2654435761u); }

// Runs `write(n, offset, destination)` for every length at every offset from an aligned address, in a guarded array, and
// compares element i with want(i).
template <class Element>
void check_lengths(const std::function<void(std::size_t, std::size_t, Element*)>& write,
                   const std::function<Element(std::size_t, std::size_t)>& want) {
  Element guard;
  std::memset(&guard, 0xA5, sizeof guard);
  for (std::size_t n = 0; n <= kLongest; ++n) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
      std::vector<Element> buffer(kLongest + 4 + 2 * kGuard, guard);
      Element* const to = buffer.data() + kGuard + offset;
      write(n, offset, to);
      for (std::size_t i = 0; i < buffer.size(); ++i) {
        const Element* const here = buffer.data() + i;
        const bool inside = here >= to && here < to + n;
        const Element expected = inside ? want(static_cast<std::size_t>(here - to), offset) : guard;
        ASSERT_EQ(0, std::memcmp(here, &expected, sizeof expected))
            << "length " << n << ", offset " << offset << ", element " << (here - to) << (inside ? "" : " (guard)");
      }
    }
  }
}

std::vector<float> values_for(std::size_t n, std::size_t offset) {
  std::vector<float> values(n + offset);
  for (std::size_t i = 0; i < n; ++i) values[offset + i] = value_at(i);
  return values;
}

class Lengths : public testing::TestWithParam<Facts> {};

template <class Code>
void check_encode_lengths(Format format) {
  check_lengths<Code>(
      [&](std::size_t n, std::size_t offset, Code* to) {
        const std::vector<float> values = values_for(n, offset);
        encode(format, std::span(values).subspan(offset), std::span(to, n));
      },
      [&](std::size_t i, std::size_t) { return static_cast<Code>(encode_scalar_one(format, value_at(i))); });
}

template <class Code>
void check_decode_lengths(Format format) {
  check_lengths<float>(
      [&](std::size_t n, std::size_t offset, float* to) {
        std::vector<Code> codes(n + offset);
        for (std::size_t i = 0; i < n; ++i) codes[offset + i] = static_cast<Code>((i + 1) * 40503u);
        decode(format, std::span<const Code>(codes).subspan(offset), std::span(to, n));
      },
      [&](std::size_t i, std::size_t) { return decode_scalar(format, static_cast<Code>((i + 1) * 40503u)); });
}

TEST_P(Lengths, Encode) {
  if (GetParam().bits == 16) return check_encode_lengths<std::uint16_t>(GetParam().format);
  check_encode_lengths<std::uint8_t>(GetParam().format);
}

TEST_P(Lengths, Decode) {
  if (GetParam().bits == 16) return check_decode_lengths<std::uint16_t>(GetParam().format);
  check_decode_lengths<std::uint8_t>(GetParam().format);
}

INSTANTIATE_TEST_SUITE_P(Formats, Lengths, testing::ValuesIn(all_formats()),
                         [](const auto& info) { return std::string(info.param.name); });

class ByteFormats : public testing::TestWithParam<Facts> {};

// The product in double is exact, and rounding it to float is what one f32 multiplication does.
float product(float x, float scale) { return static_cast<float>(static_cast<double>(x) * static_cast<double>(scale)); }

TEST_P(ByteFormats, EncodeScaledRoundsTheProductFirst) {
  const Format format = GetParam().format;
  for (const float scale : {1.0f, -1.0f, 0.0f, 0x1p-20f, 0x1p30f, 448.0f / 3, 0x1.fffffep-1f, 0x1p-149f, kInfinity, kNan}) {
    check_lengths<std::uint8_t>(
        [&](std::size_t n, std::size_t offset, std::uint8_t* to) {
          const std::vector<float> values = values_for(n, offset);
          encode_scaled(format, std::span(values).subspan(offset), scale, std::span(to, n));
        },
        [&](std::size_t i, std::size_t) {
          return static_cast<std::uint8_t>(encode_scalar_one(format, product(value_at(i), scale)));
        });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ByteFormats, testing::ValuesIn([] {
                           std::vector<Facts> bytes;
                           for (const Facts& facts : all_formats()) {
                             if (facts.bits <= 8) bytes.push_back(facts);
                           }
                           return bytes;
                         }()),
                         [](const auto& info) { return std::string(info.param.name); });

// The exact product lies just past the tie of 1 and 1.125; as a float it is the tie, which goes to 1.
TEST(EncodeScaled, DiffersFromRoundingTheExactProductOnce) {
  const float x = 0x1.100002p0f, scale = 0x1.fffffep-1f;
  ASSERT_GT(static_cast<double>(x) * static_cast<double>(scale), 1.0625);
  std::uint8_t code = 0;
  encode_scaled(Format::e4m3, std::span(&x, 1), scale, std::span(&code, 1));
  EXPECT_EQ(hex(code), "0x38");
}

TEST(Widen, Bf16IsTheUpperHalf) {
  check_lengths<float>(
      [](std::size_t n, std::size_t offset, float* to) {
        std::vector<std::uint16_t> source(n + offset);
        for (std::size_t i = 0; i < n; ++i) source[offset + i] = static_cast<std::uint16_t>((i + 1) * 40503u);
        widen(Format::bf16, source.data() + offset, std::span(to, n));
      },
      [](std::size_t i, std::size_t) { return float_of_bits(((static_cast<std::uint32_t>(i + 1) * 40503u) & 0xFFFF) * 65536u); });
}

// Every code; NaN keeps sign and payload, and a signalling NaN stays signalling.
TEST(Widen, EveryWord) {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  std::vector<float> from_bf16(codes.size()), from_f16(codes.size());
  widen(Format::bf16, codes.data(), from_bf16);
  widen(Format::f16, codes.data(), from_f16);
  for (std::uint32_t code = 0; code < 65536; ++code) {
    EXPECT_EQ(hex(bits_of_float(from_bf16[code])), hex(code * 65536u));
    const int exponent = static_cast<int>(code / 1024 % 32), fraction = static_cast<int>(code % 1024);
    std::uint32_t want;
    if (exponent == 31) {
      want = 0x7f80'0000u + static_cast<std::uint32_t>(fraction) * 8192u;
    } else {
      const float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
      want = bits_of_float(value);
    }
    EXPECT_EQ(hex(bits_of_float(from_f16[code])), hex(want + (code >= 0x8000 ? 0x8000'0000u : 0u))) << "f16 " << hex(code);
  }
}

TEST(Widen, F32KeepsEveryBit) {
  const std::uint32_t source[] = {0x7f800001, 0xffbfffff, 0x00000001, 0x80000000, 0x7fffffff};
  float values[5];
  widen(Format::f32, source, values);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(hex(bits_of_float(values[i])), hex(source[i]));
}

TEST(Amax, OfNothingIsZero) {
  EXPECT_EQ(hex(bits_of_float(amax({}))), "0x0");
  const std::vector<float> nans{kNan, -kNan, float_of_bits(0x7f800001), float_of_bits(0xff800001)};
  EXPECT_EQ(hex(bits_of_float(amax(nans))), "0x0") << "NaN is passed over";
  const float minus_zero[] = {-0.0f};
  EXPECT_EQ(hex(bits_of_float(amax(minus_zero))), "0x0") << "the sign is dropped";
}

TEST(Amax, InfinityCounts) {
  const float values[] = {1.0f, kNan, -kInfinity, 3e38f};
  EXPECT_EQ(amax(values), kInfinity);
}

// The largest may be anywhere, and a NaN next to it must not hide it.
TEST(Amax, FindsTheLargestWhereverItIs) {
  for (std::size_t n = 1; n <= kLongest; ++n) {
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> values(n, 0x1p-149f);
      values[at] = at % 2 == 0 ? -0x1p-140f : 0x1p-140f;
      if (n > 1) values[(at + 1) % n] = at % 3 == 0 ? kNan : -kNan;
      ASSERT_EQ(amax(values), 0x1p-140f) << "length " << n << ", at " << at;
    }
  }
}

TEST(Pairs, EveryLengthGoesInAndOut) {
  for (std::size_t n = 0; n <= kLongest; ++n) {
    std::vector<std::uint8_t> codes(n), bytes((n + 1) / 2 + 2, 0xA5), back(n + 2, 0xA5);
    for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>((i * 7 + i / 16) % 16);
    pack_e2m1(codes, bytes);
    for (std::size_t b = 0; b < (n + 1) / 2; ++b) {
      const unsigned low = codes[2 * b], high = 2 * b + 1 < n ? codes[2 * b + 1] : 0;
      ASSERT_EQ(bytes[b], low + 16 * high) << "length " << n << ", byte " << b;
    }
    ASSERT_EQ(bytes[(n + 1) / 2], 0xA5) << "length " << n << ": wrote past the end";
    unpack_e2m1(bytes, std::span(back).first(n));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(back[i], codes[i]) << "length " << n << ", element " << i;
    ASSERT_EQ(back[n], 0xA5) << "length " << n << ": wrote past the end";
  }
}

TEST(Pairs, OnlyTheLowNibbleOfACodeIsRead) {
  const std::uint8_t codes[] = {0xF1, 0xA2, 0x53};
  std::uint8_t bytes[2];
  pack_e2m1(codes, bytes);
  EXPECT_EQ(hex(bytes[0]), "0x21");
  EXPECT_EQ(hex(bytes[1]), "0x3");
  float value = 0;
  decode(Format::e2m1, std::span(codes, 1), std::span(&value, 1));
  EXPECT_EQ(value, 0.5f);
}

TEST(Fours, EveryLengthGoesInAndOut) {
  for (std::size_t n = 0; n <= kLongest; ++n) {
    const auto used = static_cast<std::size_t>(bytes_of(Format::e3m2, static_cast<std::int64_t>(n)));
    std::vector<std::uint8_t> codes(n), bytes(used + 2, 0xA5), back(n + 2, 0xA5);
    for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>((i * 23 + i / 64) % 64);
    pack_fp6(codes, bytes);
    for (std::size_t bit = 0; bit < 8 * used; ++bit) {
      const unsigned want = bit / 6 < n ? codes[bit / 6] >> (bit % 6) & 1u : 0u;
      ASSERT_EQ(bytes[bit / 8] >> (bit % 8) & 1u, want) << "length " << n << ", bit " << bit;
    }
    ASSERT_EQ(bytes[used], 0xA5) << "length " << n << ": wrote past the end";
    unpack_fp6(bytes, std::span(back).first(n));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(back[i], codes[i]) << "length " << n << ", element " << i;
    ASSERT_EQ(back[n], 0xA5) << "length " << n << ": wrote past the end";
  }
}

TEST(Fours, OnlyTheLowSixBitsOfACodeAreRead) {
  const std::uint8_t codes[] = {0xC1, 0x42, 0x83, 0xFF};
  std::uint8_t bytes[3];
  pack_fp6(codes, bytes);
  EXPECT_EQ(hex(bytes[0]), "0x81");  // 00'0001, and the low two bits of 00'0010 above it
  EXPECT_EQ(hex(bytes[1]), "0x30");
  EXPECT_EQ(hex(bytes[2]), "0xfc");
  float values[2];
  decode(Format::e3m2, std::span(codes, 1), std::span(values, 1));
  decode(Format::e2m3, std::span(codes, 1), std::span(values + 1, 1));
  EXPECT_EQ(values[0], 0.0625f);
  EXPECT_EQ(values[1], 0.125f);
}

// Every misuse names its argument and leaves the destination unchanged.
struct Misuse {
  const char* name;
  const char* message;
  std::function<void(std::span<std::uint8_t>, std::span<std::uint16_t>, std::span<float>)> call;
};

void PrintTo(const Misuse& each, std::ostream* out) { *out << each.name; }

const float kThree[] = {1, 2, 3};
const std::uint8_t kThreeBytes[] = {1, 2, 3};
const std::uint16_t kThreeWords[] = {1, 2, 3};
using Bytes = std::span<std::uint8_t>;
using Words = std::span<std::uint16_t>;
using Floats = std::span<float>;

// clang-format off
const Misuse kMisuses[] = {
    {"EncodeBf16ToBytes", "format is bf16", [](Bytes b, Words, Floats) { encode(Format::bf16, kThree, b); }},
    {"EncodeF32ToBytes", "format is f32", [](Bytes b, Words, Floats) { encode(Format::f32, kThree, b); }},
    {"EncodeUnknownToBytes", "format is 99", [](Bytes b, Words, Floats) { encode(static_cast<Format>(99), kThree, b); }},
    {"EncodeE4m3ToWords", "format is e4m3", [](Bytes, Words w, Floats) { encode(Format::e4m3, kThree, w); }},
    {"EncodeUnknownToWords", "format is 4294967295",
     [](Bytes, Words w, Floats) { encode(static_cast<Format>(~0u), kThree, w); }},
    {"EncodeToShortBytes", "codes.size() is 2: expected at least 3 elements",
     [](Bytes b, Words, Floats) { encode(Format::e4m3, kThree, b.first(2)); }},
    {"EncodeToShortWords", "codes.size() is 2: expected at least 3 elements",
     [](Bytes, Words w, Floats) { encode(Format::f16, kThree, w.first(2)); }},
    {"EncodeScaledToBf16", "format is bf16", [](Bytes b, Words, Floats) { encode_scaled(Format::bf16, kThree, 1, b); }},
    {"EncodeScaledToShort", "codes.size() is 0", [](Bytes, Words, Floats) { encode_scaled(Format::e4m3, kThree, 1, {}); }},
    {"DecodeBytesAsF16", "format is f16", [](Bytes, Words, Floats f) { decode(Format::f16, kThreeBytes, f); }},
    {"DecodeWordsAsE5m2", "format is e5m2", [](Bytes, Words, Floats f) { decode(Format::e5m2, kThreeWords, f); }},
    {"DecodeBytesToShort", "values.size() is 2: expected at least 3 elements",
     [](Bytes, Words, Floats f) { decode(Format::e4m3, kThreeBytes, f.first(2)); }},
    {"DecodeWordsToShort", "values.size() is 1: expected at least 3 elements",
     [](Bytes, Words, Floats f) { decode(Format::bf16, kThreeWords, f.first(1)); }},
    {"WidenE4m3", "type is e4m3", [](Bytes, Words, Floats f) { widen(Format::e4m3, kThreeBytes, f); }},
    {"WidenNull", "source is null", [](Bytes, Words, Floats f) { widen(Format::bf16, nullptr, f); }},
    {"WidenMisaligned", "expected an address that is a multiple of 2",
     [](Bytes, Words, Floats f) { widen(Format::f16, reinterpret_cast<const char*>(kThreeWords) + 1, f.first(1)); }},
    {"PackToShort", "bytes.size() is 1: expected at least 2 elements",
     [](Bytes b, Words, Floats) { pack_e2m1(kThreeBytes, b.first(1)); }},
    {"UnpackFromShort", "bytes.size() is 1: expected at least 2 elements",
     [](Bytes b, Words, Floats) { unpack_e2m1(std::span(kThreeBytes, 1), b.first(3)); }},
    {"PackFp6ToShort", "bytes.size() is 2: expected at least 3 elements",
     [](Bytes b, Words, Floats) { pack_fp6(kThreeBytes, b.first(2)); }},
    {"UnpackFp6FromShort", "bytes.size() is 1: expected at least 3 elements",
     [](Bytes b, Words, Floats) { unpack_fp6(std::span(kThreeBytes, 1), b.first(3)); }},
};
// clang-format on

class MisusedCalls : public testing::TestWithParam<Misuse> {};

TEST_P(MisusedCalls, NameTheArgumentAndWriteNothing) {
  std::vector<std::uint8_t> bytes(4, 0xA5);
  std::vector<std::uint16_t> words(4, 0xA5A5);
  std::vector<float> floats(4, -7.0f);
  try {
    GetParam().call(bytes, words, floats);
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
  }
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(4, 0xA5));
  EXPECT_EQ(words, std::vector<std::uint16_t>(4, 0xA5A5));
  EXPECT_EQ(floats, std::vector<float>(4, -7.0f));
}

INSTANTIATE_TEST_SUITE_P(Formats, MisusedCalls, testing::ValuesIn(kMisuses),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(NoElements, AreNoErrorEvenWithoutMemory) {
  encode(Format::e4m3, {}, std::span<std::uint8_t>{});
  decode(Format::f16, std::span<const std::uint16_t>{}, {});
  widen(Format::bf16, nullptr, {});
  pack_e2m1({}, {});
  unpack_e2m1({}, {});
  pack_fp6({}, {});
  unpack_fp6({}, {});
}

struct Named {
  Format format;
  const char* name;
  int bits;
  double largest;  // 0: the question is an error
};

// clang-format off
const Named kNamed[] = {
    {Format::f32, "f32", 32, 0x1.fffffep127}, {Format::bf16, "bf16", 16, 0x1.FEp127},
    {Format::f16, "f16", 16, 65504},          {Format::e4m3, "e4m3", 8, 448},
    {Format::e5m2, "e5m2", 8, 57344},         {Format::e4m3_fnuz, "e4m3_fnuz", 8, 240},
    {Format::e5m2_fnuz, "e5m2_fnuz", 8, 57344}, {Format::e8m0, "e8m0", 8, 0},
    {Format::e2m1, "e2m1", 4, 6},             {Format::i32, "i32", 32, 0},
    {Format::i64, "i64", 64, 0},              {Format::e3m2, "e3m2", 6, 28},
    {Format::e2m3, "e2m3", 6, 7.5},
};
// clang-format on

TEST(Names, GoBothWays) {
  for (const Named& each : kNamed) {
    EXPECT_EQ(name_of(each.format), each.name);
    EXPECT_EQ(format_named(each.name), each.format);
    EXPECT_EQ(bits_of(each.format), each.bits) << each.name;
    if (each.largest > 0) {
      EXPECT_EQ(max_finite(each.format), each.largest) << each.name;
    } else {
      EXPECT_THROW(max_finite(each.format), InvalidArgument) << each.name;
    }
  }
  for (const char* name : {"", "E4M3", "e4m3 ", "f64"}) EXPECT_FALSE(format_named(name).has_value()) << name;
  EXPECT_THROW(name_of(static_cast<Format>(std::size(kNamed))), InvalidArgument);
  EXPECT_THROW(bits_of(static_cast<Format>(~0u)), InvalidArgument);
}

TEST(Names, AnOddE2m1CodeHasAByteToItself) {
  EXPECT_EQ(bytes_of(Format::e2m1, 0), 0);
  EXPECT_EQ(bytes_of(Format::e2m1, 1), 1);
  EXPECT_EQ(bytes_of(Format::e2m1, 2), 1);
  EXPECT_EQ(bytes_of(Format::e2m1, 3), 2);
  EXPECT_EQ(bytes_of(Format::i64, 3), 24);
  EXPECT_EQ(bytes_of(Format::e3m2, 1), 1);
  EXPECT_EQ(bytes_of(Format::e3m2, 4), 3);
  EXPECT_EQ(bytes_of(Format::e2m3, 6), 5);
}

}  // namespace
}  // namespace assay::test
