// Shards are parts of equal work, and together the whole.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/suites/shards.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// The work of a shard by what its cases cost: multiply-adds, elements and calls are each spread evenly. Otherwise all machines
// would wait for the one with most of them.
TEST(Shards, AreEqualWorkAndTogetherTheWhole) {
  const std::vector<CaseLine> cases = catalogue(Profile::standard);
  for (std::int64_t total = 2; total <= 16; ++total) {
    std::map<std::string, int> seen;
    double most = 0, sum = 0;
    for (std::int64_t index = 0; index < total; ++index) {
      double work = 0;
      std::size_t at = 0;
      for (const CaseLine& line : shard(cases, index, total)) {
        ++seen[to_text(line)];
        work += work_of(line);
        while (at < cases.size() && !(cases[at] == line)) ++at;
        EXPECT_LT(at, cases.size()) << "the order is not that of the list";
      }
      most = std::max(most, work);
      sum += work;
    }
    EXPECT_LE(most, 1.2 * sum / static_cast<double>(total)) << total << " shards";
    EXPECT_EQ(seen.size(), cases.size()) << total << " shards";
    for (const auto& [text, times] : seen) EXPECT_EQ(times, 1) << text;
  }
}

TEST(Shards, WorkGrowsWithProductsAndElements) {
  const CaseLine small = parse_case_line("grouped_gemm kind=bf16 splits=16 N=16 K=16"),
                 large = parse_case_line("grouped_gemm kind=bf16 splits=512 N=512 K=512");
  EXPECT_GT(work_of(large), 100 * work_of(small));
  EXPECT_GT(work_of(parse_case_line("quantize recipe=mxfp8 R=1024 K=1024")),
            10 * work_of(parse_case_line("quantize recipe=mxfp8 R=1 K=32")));
}

TEST(Shards, OfFewCases) {
  const std::vector<CaseLine> two{parse_case_line("splits_to_offsets splits=1"), parse_case_line("splits_to_offsets splits=2")};
  EXPECT_EQ(shard(two, 0, 1), two);
  EXPECT_EQ(shard(two, 0, 8).size() + shard(two, 1, 8).size(), 2u);
  EXPECT_TRUE(shard(two, 7, 8).empty());
  EXPECT_TRUE(shard({}, 0, 3).empty());
  EXPECT_THROW(shard(two, 8, 8), InvalidArgument);
  EXPECT_THROW(shard(two, -1, 8), InvalidArgument);
  EXPECT_THROW(shard(two, 0, 0), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance
