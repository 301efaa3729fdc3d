// A backend that claims success and writes nothing fails every case of the smoke profile that has an element to write.

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "conformance/backends/built_in.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/calls/scenario.h"
#include "conformance/judge/judge.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

// Decided from the line alone: the skip flag is set, or no group has a row and no output has rows without one.
bool has_nothing_to_write(const CaseLine& line) {
  if (line.op == "quantize") return line.has("noop") && line.real("noop") == 1;
  if (line.op != "grouped_gemm" || line.text("layout") == "NT") return false;
  const std::vector<std::int64_t> splits = line.splits();
  return std::all_of(splits.begin(), splits.end(), [](std::int64_t rows) { return rows == 0; });
}

TEST(NullBackend, FailsEveryCaseWithAWordToWrite) {
  const std::vector<CaseLine> lines = catalogue(Profile::smoke);
  std::int64_t empty = 0;
  std::mutex mutex;
  parallel_for(static_cast<std::int64_t>(lines.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const CaseLine& given = lines[static_cast<std::size_t>(i)];
      const bool scenario = given.op == "scenario";
      const CaseLine line = scenario ? given : with(given, "replay", "");  // the call itself
      const std::vector<std::string> wanted = wanted_outputs(line);
      JudgeOptions options;
      options.wanted = &wanted;
      options.order_free = check_kind(line) == CheckKind::order_free;
      Backend backend(*null_backend());
      const Judgement judgement =
          scenario ? judge_scenario(backend, line, options) : judge(backend, generate(line), nullptr, options);
      const std::lock_guard lock(mutex);
      if (has_nothing_to_write(line)) {
        ++empty;
        EXPECT_EQ(judgement.verdict, Verdict::passed) << to_text(line);
        EXPECT_EQ(judgement.elements, 0) << to_text(line);
      } else {
        EXPECT_EQ(judgement.verdict, Verdict::failed) << to_text(line);
        EXPECT_GT(judgement.elements, 0) << to_text(line);
      }
    }
  });
  EXPECT_GT(lines.size(), 70u);
  EXPECT_LE(empty, 3) << "cases that nothing can fail";
}

}  // namespace
}  // namespace assay::conformance
