// Rules that compute an activation first (spec scale-rules-1.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/formats/encode.h"
#include "reference/tests/rules/rule_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using rules_suite::Case;
using rules_suite::Data;
using rules_suite::Layer;

constexpr char kRows[] =
    "name=gated blocks=1x128,128x128,allx1 activation=\"h = max(gate, 0); x = h * up + 0.25\" rule=\"s = amax / 448; scale = s; "
    "code = x / s\" "
    "source=\"this test\"\n"
    "name=plain blocks=1x128,128x128,allx1 rule=\"s = amax / 448; scale = s; code = x / s\" source=\"this test\"\n";

// The activation by hand, then the rule without one, which reads f32.
TEST(Activation, IsTheSameAsQuantizingItsResult) {
  const auto rules = parse_scale_rules(kRows, "rows");
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    for (const BlockShape& block : rules[0].blocks) {
      for (const bool transposed : {false, true}) {
        const Case gated{.rule = &rules[0],
                         .block = block,
                         .storage = {},
                         .transposed = transposed,
                         .x_type = type,
                         .splits = {3, 0, 140},
                         .columns = 300,
                         .rows_beyond = 2,
                         .data = Data::specials,
                         .seed = 8};
        const std::vector<std::uint8_t> given = rules_suite::make_x(gated, 145);
        std::vector<float> values(145 * 600), x(145 * 300);
        widen(type, reinterpret_cast<const std::byte*>(given.data()), values);
        for (std::size_t r = 0; r < 145; ++r) {
          for (std::size_t c = 0; c < 300; ++c) {
            const float gate = values[r * 600 + c], up = values[r * 600 + 300 + c];
            const float h = std::fmax(gate, 0.0f), product = h * up;
            x[r * 300 + c] = product + 0.25f;
          }
        }
        Case plain = gated;
        plain.rule = &rules[1];
        plain.x_type = Format::f32;
        std::vector<std::uint8_t> bytes(x.size() * 4);
        std::memcpy(bytes.data(), x.data(), bytes.size());
        const auto want = rules_suite::run(plain, Layer::scalar, 0xC3, bytes);
        for (const Layer layer : {Layer::scalar, Layer::fast}) {
          const auto got = rules_suite::run(gated, layer, 0xC3, given);
          ASSERT_EQ(got.data, want.data) << name_of(type) << " " << to_text(block) << " " << transposed;
          ASSERT_EQ(got.scale, want.scale) << name_of(type) << " " << to_text(block) << " " << transposed;
        }
      }
    }
  }
}

TEST(Activation, IsPartOfTheRow) {
  const auto rules = parse_scale_rules(kRows, "rows");
  EXPECT_TRUE(rules[0].is_gated());
  EXPECT_FALSE(rules[1].is_gated());
  EXPECT_EQ(to_text(parse_scale_rules(to_text(rules[0]), "again")[0]), to_text(rules[0]));
}

void expect_refusal(const std::string& row, const std::string& expected) {
  try {
    parse_scale_rules(row, "rows");
    FAIL() << row;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

TEST(Activation, RefusesWhatIsNoActivation) {
  const std::string rest = " rule=\"scale = amax; code = x\" source=s blocks=1x128";
  expect_refusal("name=a activation=\"y = gate * up\"" + rest, "an assignment to x");
  expect_refusal("name=a activation=\"x = amax\"" + rest, "amax");
  expect_refusal("name=a activation=\"x = gate +\"" + rest, "activation");
}

}  // namespace
}  // namespace assay
