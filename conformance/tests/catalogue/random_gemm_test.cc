// Random products: the same from the same seed, within their bounds, of every kind.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/catalogue/random_gemm.h"
#include "conformance/generate/generator.h"

namespace assay::conformance {
namespace {

std::vector<CaseLine> drawn(std::uint64_t seed, std::int64_t count, std::string_view architecture) {
  std::vector<CaseLine> lines;
  for (std::int64_t i = 0; i < count; ++i) lines.push_back(random_gemm(seed, i, architecture));
  return lines;
}

TEST(random_gemm, depends_on_seed_and_index_alone) {
  const std::vector<CaseLine> lines = drawn(7, 200, "sm90");
  EXPECT_EQ(lines, drawn(7, 200, "sm90"));
  EXPECT_EQ(lines[150], random_gemm(7, 150, "sm90"));
  EXPECT_NE(lines, drawn(8, 200, "sm90"));
  std::set<std::string> texts;
  for (const CaseLine& each : lines) {
    texts.insert(to_text(each));
    EXPECT_EQ(parse_case_line(to_text(each)), each);
  }
  EXPECT_EQ(texts.size(), lines.size());
}

// Bytes of a row of each matrix in storage are multiples of 16, and so are the offsets of its groups.
bool is_aligned(const CaseLine& line) {
  const std::string kind = line.text("kind"), layout = line.text("layout");
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  const std::int64_t d_width = line.text("d_type") == "f32" ? 4 : 2, d_columns = layout == "TN" ? N : K;
  if (d_columns * d_width % 16 != 0) return false;
  if (kind == "bf16" || kind == "f16") {
    return K % 8 == 0 && (layout == "TN" || N % 8 == 0);
  }
  if (layout != "NT") return (layout == "TN" ? K : N) % 16 == 0;
  const std::vector<std::int64_t> splits = line.splits();
  return N % 16 == 0 && K % 16 == 0 &&
         std::all_of(splits.begin(), splits.end(), [](std::int64_t rows) { return rows % 16 == 0; });
}

TEST(random_gemm, stays_within_its_bounds) {
  for (const char* architecture : {"sm90", "sm100", ""}) {
    double products = 0;
    int unaligned = 0;
    const std::vector<CaseLine> lines = drawn(1, 2000, architecture);
    for (const CaseLine& each : lines) {
      const std::vector<std::int64_t> splits = each.splits();
      ASSERT_TRUE(!splits.empty() && splits.size() <= 64) << to_text(each);
      EXPECT_LE(each.integer("N"), 8192);
      EXPECT_LE(each.integer("K"), 8192);
      EXPECT_LE(cost_of(each).macs, 20'000'000'000) << to_text(each);
      products += static_cast<double>(cost_of(each).macs);
      unaligned += !is_aligned(each);
    }
    EXPECT_GT(unaligned, 5) << architecture;
    EXPECT_LT(unaligned, 120) << architecture;
    EXPECT_LT(products / 2000, 2e9) << architecture;
    EXPECT_GT(products / 2000, 2e8) << architecture;
  }
}

TEST(random_gemm, has_cases_of_every_sort) {
  std::map<std::string, int> seen;
  int empty = 0, many_groups = 0, ragged = 0, long_k = 0, odd_n = 0, waves = 0, plain_scales = 0;
  for (const CaseLine& each : drawn(3, 2000, "sm90")) {
    for (const char* key : {"kind", "layout", "d_type"}) ++seen[each.text(key)];
    const std::vector<std::int64_t> splits = each.splits();
    std::int64_t rows = 0;
    for (const std::int64_t split : splits) rows += split;
    empty += std::count(splits.begin(), splits.end(), 0) > 0;
    many_groups += splits.size() >= 32;
    ragged += std::any_of(splits.begin(), splits.end(), [](std::int64_t split) { return split % 16 != 0; });
    long_k += each.integer("K") >= 4096;
    odd_n += each.integer("N") % 128 != 0;
    waves += each.text("layout") == "TN" && rows * each.integer("N") > std::int64_t{2} * 132 * 128 * 128;
    plain_scales += each.text("kind") == "fp8_block" && each.text("scales") == "plain";
  }
  for (const char* word : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "TN", "NN", "NT", "f32"})
    EXPECT_GT(seen[word], 100) << word;
  EXPECT_EQ(seen.count("mxfp8") + seen.count("nvfp4"), 0u) << "Hopper has neither";
  for (const int count : {empty, many_groups, ragged, long_k, odd_n, waves, plain_scales}) EXPECT_GT(count, 60);
}

TEST(random_gemm, has_the_kinds_of_the_architecture) {
  std::map<std::string, std::set<std::string>> kinds;
  for (const char* architecture : {"sm80", "sm100", "sm103", "sm120", "x86-64"}) {
    for (const CaseLine& each : drawn(2, 200, architecture))
      kinds[architecture].insert(each.text("kind") + " " + each.text("arch"));
  }
  EXPECT_EQ(kinds["sm80"], (std::set<std::string>{"bf16 sm80", "f16 sm80"}));
  EXPECT_EQ(kinds["sm100"],
            (std::set<std::string>{"bf16 sm100", "f16 sm100", "fp8_per_tensor sm100", "mxfp8 sm100", "nvfp4 sm100"}));
  EXPECT_EQ(kinds["sm103"], kinds["sm100"]);
  EXPECT_TRUE(kinds["sm120"].count("nvfp4 sm120"));
  EXPECT_EQ(kinds["x86-64"].size(), 6u);
}

}  // namespace
}  // namespace assay::conformance
