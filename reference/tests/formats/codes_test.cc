// Every code of every format: its value, and its conversion back. Then the conversions that a reader would look up, each with its
// reason.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/tests/formats/ladder.h"
#include "reference/tests/formats/scalar_layer.h"

namespace assay::test {
namespace {

constexpr std::uint32_t kNanBits = 0x7fc0'0000;
constexpr std::uint32_t kInfinityBits = 0x7f80'0000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Bits of the value of `code`, from the ladder.
std::uint32_t want_value(const Facts& facts, std::uint32_t code) {
  if (facts.format == Format::e8m0) return code == 0xFF ? kNanBits : bits_of_float(static_cast<float>(rungs(facts)[code]));
  const std::uint32_t sign_bit = 1u << (facts.bits - 1);
  if (!facts.signed_zero && code == sign_bit) return kNanBits;
  const std::uint32_t magnitude = code % sign_bit;
  std::uint32_t bits = kNanBits;
  if (facts.special == Special::last_is_infinity && magnitude == facts.last) {
    bits = kInfinityBits;
  } else if (facts.special == Special::ieee && magnitude == facts.last + 1) {
    bits = kInfinityBits;
  } else if (magnitude <= facts.last) {
    static thread_local Format cached = Format::i64;
    static thread_local std::vector<double> values;
    if (cached != facts.format) values = rungs(facts), cached = facts.format;
    bits = bits_of_float(static_cast<float>(values[magnitude]));
  }
  return code >= sign_bit ? bits | 0x8000'0000 : bits;
}

std::vector<std::uint32_t> every_code(const Facts& facts) {
  std::vector<std::uint32_t> codes(std::size_t{1} << facts.bits);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint32_t>(i);
  return codes;
}

class EveryCode : public testing::TestWithParam<Facts> {};

TEST_P(EveryCode, DecodesToItsRung) {
  const Facts& facts = GetParam();
  const std::vector<std::uint32_t> codes = every_code(facts);
  std::vector<float> bulk;
  decode_bulk(facts.format, codes, bulk);
  for (const std::uint32_t code : codes) {
    const std::uint32_t want = want_value(facts, code);
    EXPECT_EQ(show_input(bits_of_float(decode_scalar(facts.format, code))), show_input(want)) << "scalar, code " << hex(code);
    EXPECT_EQ(show_input(bits_of_float(bulk[code])), show_input(want)) << "bulk, code " << hex(code);
  }
}

TEST_P(EveryCode, SurvivesTheWayThereAndBack) {
  const Facts& facts = GetParam();
  const std::uint32_t sign_bit = 1u << (facts.bits - 1);
  for (const std::uint32_t code : every_code(facts)) {
    const float value = decode_scalar(facts.format, code);
    std::uint32_t want = code;
    if (std::isnan(value)) want = facts.nan;
    if (facts.special == Special::ieee && std::isinf(value)) want = code < sign_bit ? facts.last : facts.last | sign_bit;
    EXPECT_EQ(hex(encode_scalar_one(facts.format, value)), hex(want)) << "scalar, " << value;
    EXPECT_EQ(hex(encode_bulk_one(facts.format, value)), hex(want)) << "bulk, " << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryCode, testing::ValuesIn(all_formats()),
                         [](const auto& info) { return std::string(info.param.name); });

// Values written out from the definitions, which check the ladder itself.
struct Landmark {
  Format format;
  float value;
  std::uint32_t code;
  const char* reason;
};

void PrintTo(const Landmark& each, std::ostream* out) {
  *out << name_of(each.format) << ' ' << show_input(bits_of_float(each.value)) << ": " << each.reason;
}

const Landmark kLandmarks[] = {
    {Format::e4m3, 1.0f, 0x38, "one: the bias is 7"},
    {Format::e4m3, 0x1p-9f, 0x01, "smallest subnormal"},
    {Format::e4m3, 0x1p-6f, 0x08, "smallest normal"},
    {Format::e4m3, 0x1p-10f, 0x00, "tie of 0 and the smallest: even"},
    {Format::e4m3, -0x1p-10f, 0x80, "a negative that underflows keeps its sign"},
    {Format::e4m3, 0x1.000002p-10f, 0x01, "just past that tie"},
    {Format::e4m3, 0x1.8p-9f, 0x02, "tie of subnormals 1 and 2: even"},
    {Format::e4m3, 0x1.Ep-7f, 0x08, "tie of the largest subnormal and the smallest normal: even"},
    {Format::e4m3, 1.0625f, 0x38, "tie of 1 and 1.125: down to even"},
    {Format::e4m3, 1.1875f, 0x3A, "tie of 1.125 and 1.25: up to even"},
    {Format::e4m3, 0x1.Fp0f, 0x40, "tie that carries into the exponent"},
    {Format::e4m3, 448.0f, 0x7E, "largest"},
    {Format::e4m3, 464.0f, 0x7E, "would be the tie of 448 and 480, which is NaN's place"},
    {Format::e4m3, 480.0f, 0x7E, "saturates"},
    {Format::e4m3, -kInfinity, 0xFE, "infinity saturates, with its sign"},
    {Format::e4m3, -0.0f, 0x80, "zero keeps its sign"},
    {Format::e4m3, -kNan, 0x7F, "NaN drops its sign"},
    {Format::e4m3, 0x1p-149f, 0x00, "an f32 subnormal"},
    {Format::e5m2, 1.0f, 0x3C, "one: the bias is 15"},
    {Format::e5m2, 0x1p-16f, 0x01, "smallest subnormal"},
    {Format::e5m2, 0x1p-14f, 0x04, "smallest normal"},
    {Format::e5m2, 0x1p-17f, 0x00, "tie of 0 and the smallest: even"},
    {Format::e5m2, 1.125f, 0x3C, "tie: down to even"},
    {Format::e5m2, 1.375f, 0x3E, "tie: up to even"},
    {Format::e5m2, 57344.0f, 0x7B, "largest"},
    {Format::e5m2, 61440.0f, 0x7B, "tie of 57344 and what would be infinity: saturates"},
    {Format::e5m2, kInfinity, 0x7B, "the code of infinity is never produced"},
    {Format::e5m2, -kNan, 0x7F, "NaN drops its sign"},
    {Format::e4m3_fnuz, 1.0f, 0x40, "one: the bias is 8"},
    {Format::e4m3_fnuz, 0x1p-10f, 0x01, "smallest subnormal"},
    {Format::e4m3_fnuz, -0x1p-11f, 0x00, "a negative that underflows: there is no -0"},
    {Format::e4m3_fnuz, -0x1.000002p-11f, 0x81, "just past that tie"},
    {Format::e4m3_fnuz, -0.0f, 0x00, "there is no -0"},
    {Format::e4m3_fnuz, 240.0f, 0x7F, "largest"},
    {Format::e4m3_fnuz, -kInfinity, 0xFF, "infinity saturates"},
    {Format::e4m3_fnuz, kNan, 0x80, "the only NaN"},
    {Format::e5m2_fnuz, 1.0f, 0x40, "one: the bias is 16"},
    {Format::e5m2_fnuz, 0x1p-17f, 0x01, "smallest subnormal"},
    {Format::e5m2_fnuz, -0x1p-18f, 0x00, "a negative that underflows: there is no -0"},
    {Format::e5m2_fnuz, 57344.0f, 0x7F, "largest"},
    {Format::e5m2_fnuz, kInfinity, 0x7F, "infinity saturates"},
    {Format::e5m2_fnuz, -kNan, 0x80, "the only NaN"},
    {Format::e2m1, 0.25f, 0x0, "tie of 0 and 0.5: even"},
    {Format::e2m1, -0.25f, 0x8, "a negative that underflows keeps its sign"},
    {Format::e2m1, 0.75f, 0x2, "tie of 0.5 and 1: even"},
    {Format::e2m1, 1.25f, 0x2, "tie of 1 and 1.5: even"},
    {Format::e2m1, 1.75f, 0x4, "tie of 1.5 and 2: even"},
    {Format::e2m1, 2.5f, 0x4, "tie of 2 and 3: even"},
    {Format::e2m1, 3.5f, 0x6, "tie of 3 and 4: even"},
    {Format::e2m1, 5.0f, 0x6, "tie of 4 and 6: even"},
    {Format::e2m1, 0x1.400002p2f, 0x7, "just past that tie"},
    {Format::e2m1, -kInfinity, 0xF, "infinity saturates"},
    {Format::e2m1, -kNan, 0x7, "NaN of either sign gives +6"},
    {Format::e3m2, 1.0f, 0x0C, "one: the bias is 3"},
    {Format::e3m2, 0x1p-4f, 0x01, "smallest subnormal"},
    {Format::e3m2, 0x1p-5f, 0x00, "tie of 0 and the smallest: even"},
    {Format::e3m2, -0x1p-5f, 0x20, "a negative that underflows keeps its sign"},
    {Format::e3m2, 26.0f, 0x1E, "tie of 24 and 28: even"},
    {Format::e3m2, 28.0f, 0x1F, "largest"},
    {Format::e3m2, 1000.0f, 0x1F, "past the largest saturates"},
    {Format::e3m2, -kInfinity, 0x3F, "infinity saturates"},
    {Format::e3m2, -kNan, 0x1F, "NaN of either sign gives +28"},
    {Format::e2m3, 1.0f, 0x08, "one: the bias is 1"},
    {Format::e2m3, 0.125f, 0x01, "smallest subnormal"},
    {Format::e2m3, 0.0625f, 0x00, "tie of 0 and the smallest: even"},
    {Format::e2m3, -0.0625f, 0x20, "a negative that underflows keeps its sign"},
    {Format::e2m3, 7.25f, 0x1E, "tie of 7 and 7.5: even"},
    {Format::e2m3, 7.5f, 0x1F, "largest"},
    {Format::e2m3, -kInfinity, 0x3F, "infinity saturates"},
    {Format::e2m3, kNan, 0x1F, "NaN of either sign gives +7.5"},
    {Format::e8m0, 0.0f, 0x00, "zero gives the smallest scale"},
    {Format::e8m0, 0x1p-127f, 0x00, "2^-127 itself"},
    {Format::e8m0, 0x1.00004p-127f, 0x01, "just past it: up"},
    {Format::e8m0, 0x1p-126f, 0x01, "exact"},
    {Format::e8m0, 1.0f, 0x7F, "one: the bias is 127"},
    {Format::e8m0, 0x1.000002p0f, 0x80, "rounds up, however little is over"},
    {Format::e8m0, 0x1p127f, 0xFE, "largest"},
    {Format::e8m0, 0x1.fffffep127f, 0xFE, "saturates"},
    {Format::e8m0, kInfinity, 0xFE, "infinity saturates"},
    {Format::e8m0, kNan, 0xFF, "NaN"},
    {Format::e8m0, -3.0f, 0x81, "the sign is ignored"},
    {Format::bf16, 1.0f, 0x3F80, "one"},
    {Format::bf16, 0x1.01p0f, 0x3F80, "tie: down to even"},
    {Format::bf16, 0x1.03p0f, 0x3F82, "tie: up to even"},
    {Format::bf16, 0x1.FEp127f, 0x7F7F, "largest"},
    {Format::bf16, 0x1.FEFFFEp127f, 0x7F7F, "below half a unit past it"},
    {Format::bf16, 0x1.FFp127f, 0x7F80, "half a unit past it: does not saturate"},
    {Format::bf16, -kInfinity, 0xFF80, "infinity"},
    {Format::bf16, 0x1p-133f, 0x0001, "smallest subnormal"},
    {Format::bf16, -0x1p-134f, 0x8000, "tie of 0 and it: even, with its sign"},
    {Format::bf16, -kNan, 0x7FFF, "NaN"},
    {Format::f16, 1.0f, 0x3C00, "one"},
    {Format::f16, 65504.0f, 0x7BFF, "largest"},
    {Format::f16, 0x1.ffdffep15f, 0x7BFF, "below 65520"},
    {Format::f16, 65520.0f, 0x7C00, "half a unit past the largest: does not saturate"},
    {Format::f16, -kInfinity, 0xFC00, "infinity"},
    {Format::f16, 0x1p-24f, 0x0001, "smallest subnormal"},
    {Format::f16, -0x1p-25f, 0x8000, "tie of 0 and it: even, with its sign"},
    {Format::f16, 0x1.ffcp-15f, 0x0400, "tie of the largest subnormal and the smallest normal: even"},
    {Format::f16, kNan, 0x7FFF, "NaN"},
};

class Landmarks : public testing::TestWithParam<Landmark> {};

TEST_P(Landmarks, HaveTheirCode) {
  const Landmark& each = GetParam();
  EXPECT_EQ(hex(encode_scalar_one(each.format, each.value)), hex(each.code)) << "scalar";
  EXPECT_EQ(hex(encode_bulk_one(each.format, each.value)), hex(each.code)) << "bulk";
}

INSTANTIATE_TEST_SUITE_P(Formats, Landmarks, testing::ValuesIn(kLandmarks));

// Quiet and signalling, both signs, smallest and largest payload.
class NanPayloads : public testing::TestWithParam<Facts> {};

TEST_P(NanPayloads, AllGiveTheOneNan) {
  const Facts& facts = GetParam();
  for (const std::uint32_t bits : {0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffbfffffu, 0xffc00000u,
                                   0xffffffffu, 0x7f801000u, 0xff8fffffu}) {
    EXPECT_EQ(hex(encode_scalar_one(facts.format, float_of_bits(bits))), hex(facts.nan)) << "scalar, " << hex(bits);
    EXPECT_EQ(hex(encode_bulk_one(facts.format, float_of_bits(bits))), hex(facts.nan)) << "bulk, " << hex(bits);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, NanPayloads, testing::ValuesIn(all_formats()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(E8m0Multipliers, ArePowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const std::uint32_t quantize = bits_of_float(std::ldexp(1.0f, 127 - code));
    const std::uint32_t dequantize = bits_of_float(std::ldexp(1.0f, code - 127));
    EXPECT_EQ(hex(bits_of_float(scalar::e8m0_quantize_multiplier(byte))), hex(quantize)) << "code " << code;
    EXPECT_EQ(hex(bits_of_float(fast::e8m0_quantize_multiplier(byte))), hex(quantize)) << "code " << code;
    EXPECT_EQ(hex(bits_of_float(scalar::e8m0_dequantize_multiplier(byte))), hex(dequantize)) << "code " << code;
    EXPECT_EQ(hex(bits_of_float(fast::e8m0_dequantize_multiplier(byte))), hex(dequantize)) << "code " << code;
  }
}

TEST(E8m0Multipliers, OfNanHaveEveryBitSetButTheSign) {
  for (const float nan : {scalar::e8m0_quantize_multiplier(0xFF), fast::e8m0_quantize_multiplier(0xFF),
                          scalar::e8m0_dequantize_multiplier(0xFF), fast::e8m0_dequantize_multiplier(0xFF)}) {
    EXPECT_EQ(hex(bits_of_float(nan)), "0x7fffffff");
  }
}

TEST(E8m0Multipliers, QuantizeAndDequantizeCancel) {
  for (int code = 0; code < 255; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(fast::e8m0_quantize_multiplier(byte) * fast::e8m0_dequantize_multiplier(byte), 1.0f) << "code " << code;
  }
}

}  // namespace
}  // namespace assay::test
