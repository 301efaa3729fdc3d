// Codes of E2M1 that are found by cutting (cut_codes.cuh) against the reference's, for every 16-bit element under scales of many
// groups: those of any amax, and those whose products lie at ties or next to them.

#include "device/quantize/nvfp4/cut_codes.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/f16.h"

namespace assay::device::nvfp4 {
namespace {

// c of a scale's code (nvfp4.h).
float factor_of(int scale, float inverse) {
  return std::min(1.0f / (scalar::decode_e4m3(static_cast<std::uint8_t>(scale)) * inverse), 0x1.FFFFFEp127f);
}

// Groups of eight codes that differ from the reference's, of all elements of a format with |v| below 7.
template <class Decode>
int wrong_words(float c, int infinity, const Decode& decode) {
  int wrong = 0;
  for (int first = 0; first < infinity; first += 8) {
    float v[8];
    std::uint32_t want = 0;
    for (int i = 0; i < 8; ++i) {
      const int sign = (first >> 3 ^ i) & 1;
      float x = decode(static_cast<std::uint16_t>((first + i) | sign << 15));
      if (!(std::fabs(x * c) < 7)) x = 0;
      want |= std::uint32_t{scalar::encode_e2m1(x * c)} << (4 * i);
      v[i] = x * (c * kCutScale);
    }
    wrong += cut_codes(v) != want;
  }
  return wrong;
}
int wrong_words(float c) {
  return wrong_words(c, 0x7F80, [](std::uint16_t code) { return scalar::decode_bf16(code); }) +
         wrong_words(c, 0x7C00, [](std::uint16_t code) { return scalar::decode_f16(code); });
}

// Scales of each binade, and those that are subnormal.
const std::vector<int> kScales = {1, 2, 3, 5, 7, 8, 9, 61, 62, 63, 64, 65, 66, 67, 119, 120, 125, 126};

TEST(CutCodes, OfGroupsThatMayBeCut) {
  int cut = 0;
  for (int i = 0; i < 60; ++i) {
    const float amax = std::ldexp(1 + static_cast<float>(i * 2654435761u % 16777213u) / 16777216.0f, i % 40 - 20);
    const float inverse = 1.0f / (6.0f * (i % 2 == 0 ? 448.0f : 256.0f) / amax);
    if (!codes_may_be_cut(inverse)) continue;
    ++cut;
    for (const int scale : kScales) EXPECT_EQ(wrong_words(factor_of(scale, inverse)), 0) << amax << ' ' << scale;
  }
  EXPECT_GT(cut, 50);
}

// 1/S so that an element of 8 bits times c is a tie: where nearest even gives the smaller code, cutting does not.
TEST(CutCodes, OfGroupsWithTies) {
  for (int element = 128; element < 256; element += 3) {
    for (const float tie : {1.0f, 1.25f}) {
      const float inverse = static_cast<float>(element) / tie;
      const float c = factor_of(0x38, inverse);  // of scale 1
      const float product = static_cast<float>(element) * c;
      if (product == tie) {
        EXPECT_FALSE(codes_may_be_cut(inverse)) << inverse;
        EXPECT_GT(wrong_words(c), 0) << inverse;
      }
      // Of the next values of 1/S the products are beside the tie, or are rounded to it.
      for (const float near : {std::nextafter(inverse, 0.0f), std::nextafter(inverse, 1e9f)}) {
        if (!codes_may_be_cut(near)) continue;
        for (const int scale : kScales) EXPECT_EQ(wrong_words(factor_of(scale, near)), 0) << near << ' ' << scale;
      }
    }
  }
}

TEST(CutCodes, OfScalesBeyondTheRange) {
  for (const float inverse : {0x1p-101f, 0x1p101f, 0.0f, -1.0f, INFINITY, NAN})
    EXPECT_FALSE(codes_may_be_cut(inverse)) << inverse;
}

// Each of eight places, at both sides of every step of the codes, with both signs.
TEST(CutCodes, AtTheStepsOfCodes) {
  for (const float step : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f}) {
    for (int place = 0; place < 8; ++place) {
      for (const float sign : {1.0f, -1.0f}) {
        float v[8] = {};
        const auto code_of = [&](float value) {
          v[place] = sign * value * kCutScale;
          const std::uint32_t codes = cut_codes(v);
          EXPECT_EQ(codes & ~(15u << (4 * place)), 0u);
          return codes >> (4 * place) & 15;
        };
        EXPECT_EQ(code_of(std::nextafter(step, 0.0f)), scalar::encode_e2m1(sign * std::nextafter(step, 0.0f)));
        EXPECT_EQ(code_of(step), scalar::encode_e2m1(sign * std::nextafter(step, 8.0f)));
      }
    }
  }
}

// The largest |v| of a block that is cut, and the largest that could be: 7 would need a bit more.
TEST(CutCodes, UpToTheLargest) {
  for (int place = 0; place < 8; ++place) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto is_right = [&](float value) {
        float v[8] = {};
        v[place] = sign * value * kCutScale;
        return cut_codes(v) == std::uint32_t{scalar::encode_e2m1(sign * value)} << (4 * place);
      };
      EXPECT_TRUE(is_right(kCutBelow));
      EXPECT_TRUE(is_right(std::nextafter(7.0f, 0.0f)));
      EXPECT_FALSE(is_right(7));
    }
  }
}

}  // namespace
}  // namespace assay::device::nvfp4
