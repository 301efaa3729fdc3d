// Both layers of quantization by a rule against each other, over every preset with its blocks, outputs and storages.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "reference/tests/rules/rule_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace rules_suite;

const std::vector<std::int64_t> kSplits[] = {{1}, {33, 0, 68}, {4, 128, 12}, {}, {0, 0}, {520}};
constexpr std::int64_t kColumns[] = {4, 36, 272, 520, 0};

class EveryPreset : public testing::TestWithParam<std::string> {};

void expect_layers_agree(const Case& c) {
  std::int64_t rows = c.rows_beyond;
  for (const std::int64_t each : c.splits) rows += each;
  const std::vector<std::uint8_t> x = make_x(c, rows);
  const std::uint8_t poison = 0xA5;
  const Outputs want = run(c, Layer::scalar, poison, x), got = run(c, Layer::fast, poison, x);
  EXPECT_EQ(got.data, want.data) << testing::PrintToString(c);
  EXPECT_EQ(got.scale, want.scale) << testing::PrintToString(c);
  EXPECT_EQ(got.outer, want.outer) << testing::PrintToString(c);
}

// Each choice with the others drawn, so that all values occur many times.
TEST_P(EveryPreset, HasEqualBitsInBothLayers) {
  const ScaleRule& rule = *find_scale_rule(GetParam());
  std::uint32_t draw = 12345;
  const auto pick = [&draw](std::size_t of) {
    draw = draw * 1664525u + 1013904223u;
    return (draw >> 8) % of;
  };
  const std::vector<std::string> storages = scale_storage_names();
  int compared = 0;
  for (const BlockShape& block : rule.blocks) {
    for (const Format output : rule.outputs) {
      for (const Data data : {Data::spread, Data::specials, Data::tiny, Data::zeros, Data::bits}) {
        for (int repeat = 0; repeat < 2; ++repeat) {
          Case c{.rule = &rule, .output = output, .block = block, .data = data, .seed = draw};
          c.splits = kSplits[pick(std::size(kSplits))];
          c.columns = kColumns[pick(std::size(kColumns))];
          c.rows_beyond = static_cast<std::int64_t>(pick(3));
          c.x_type = std::array{Format::bf16, Format::f16, Format::f32}[pick(3)];
          c.storage = parse_scale_storage("storage", storages[pick(storages.size())]);
          c.transposed = pick(2) == 1 && bits_of(output) == 8;
          c.grouped = c.splits.size() != 1;
          if (!c.grouped) c.rows_beyond = 0;
          try {
            rule_outputs(problem_of(c));
          } catch (const InvalidArgument&) {
            c.storage = {};  // of another type of scales
          }
          expect_layers_agree(c);
          ++compared;
        }
      }
    }
  }
  EXPECT_GE(compared, 10);
}

TEST_P(EveryPreset, IsPrintedAsARowThatReadsTheSame) {
  const ScaleRule& rule = *find_scale_rule(GetParam());
  const std::deque<ScaleRule> again = parse_scale_rules(to_text(rule), "again");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(to_text(again[0]), to_text(rule));
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const ScaleRule& each : scale_rules()) all.push_back(each.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryPreset, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Packed and transposed: codes of 4 and 6 bits, whose rows are those of the group.
TEST(Transposed, PackedCodesHaveEqualBitsInBothLayers) {
  for (const Format output : {Format::e2m1, Format::e3m2, Format::e2m3}) {
    for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{4, 0, 132}, {64, 600}, {8}}) {
      Case c{
          .rule = find_scale_rule("torchao.mx_floor"), .output = output, .block = {1, 32}, .transposed = true, .splits = splits};
      c.columns = 70;
      expect_layers_agree(c);
      c.block = {32, 1};
      expect_layers_agree(c);
      c.block = {0, 1};
      expect_layers_agree(c);
    }
  }
}

}  // namespace
}  // namespace assay
