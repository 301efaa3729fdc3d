// What the host can say about extents that the splits decide. The limits are written from the pages on layouts and scale rules.

#include "conformance/ops/schema_check.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

Case made(const std::string& line) {
  Case problem = generate(parse_case_line(line));
  for (const OutputSpec& spec : outputs_of(Request::of(problem))) problem.out[spec.name] = make_tensor(spec.type, spec.shape);
  return problem;
}

bool is_taken(Case& problem) {
  try {
    check_against_schema(Request::of(problem));
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

// Groups of one row each but the last have the most scales: they are taken, and one unit more is not.
TEST(SchemaCheck, LimitsScalesByTheRows) {
  const struct {
    const char* line;
    const char* input;   // null: the output
    const char* output;  // null: the input
    std::int64_t unit;
    // clang-format off
  } rows[] = {
      {"swizzle recipe=mxfp8 splits=1,1,1,126 K=64", "compact", "swizzled", 128 * 4},
      {"swizzle recipe=mxfp8 direction=columnwise splits=1,1,31 K=64", "compact", "swizzled", 4 * 128},
      {"unswizzle recipe=nvfp4 splits=1,1,126 K=64", "swizzled", "compact", 128 * 4},
      {"dequantize recipe=block_1x128 splits=1,1,1,3 K=256", "rowwise_scale_inv", nullptr, 2 * 4},
      {"dequantize recipe=block_128x128 splits=1,1,129 K=256", "rowwise_scale_inv", nullptr, 4},
      {"quantize recipe=mxfp8 splits=1,1,126 K=64", nullptr, "rowwise_scale_inv", 128 * 4},
      {"quantize_by_rule preset=deepgemm splits=1,1,126 K=256", nullptr, "scale_inv", 2},
  };
  // clang-format on
  for (const auto& row : rows) {
    SCOPED_TRACE(row.line);
    Case problem = made(row.line);
    ASSERT_TRUE(is_taken(problem));
    const auto change = [&](std::int64_t by) {
      for (auto [list, name] : {std::pair(&problem.in, row.input), std::pair(&problem.out, row.output)}) {
        if (name == nullptr) continue;
        const Tensor before = list->at(name);
        list->at(name) = make_tensor(before.type, {before.shape[0] + by});
      }
    };
    change(row.unit);
    EXPECT_FALSE(is_taken(problem)) << "more than any splits of the rows have";
    change(-2 * row.unit);
    EXPECT_TRUE(is_taken(problem)) << "other splits have so many";
    if (row.unit == 2) continue;  // the storage pads
    change(1 - row.unit);
    EXPECT_FALSE(is_taken(problem)) << "no multiple of the scales of a row";
  }
}

// K=0 leaves no scales: not those of the other columns.
TEST(SchemaCheck, KnowsThatNoColumnsHaveNoScales) {
  for (const char* line :
       {"swizzle recipe=mxfp8 splits=32,0,64 K=64 seed=1009", "unswizzle recipe=nvfp4 splits=16,0,32 K=32 seed=1010",
        "swizzle recipe=nvfp4 direction=columnwise splits=16,0,32 K=32 seed=1036", "swizzle recipe=mxfp8 R=32 K=64"}) {
    Case problem = made(line);
    ASSERT_TRUE(is_taken(problem)) << line;
    problem.attributes["K"] = std::int64_t{0};
    EXPECT_FALSE(is_taken(problem)) << line;
  }
}

// The scales of another block or storage have other extents: without splits exactly those.
TEST(SchemaCheck, KnowsHowManyScalesARuleHas) {
  const struct {
    const char* line;
    const char* key;
    const char* value;
    bool taken;
    // clang-format off
  } rows[] = {
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "block", "1x16", true},
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "block", "1x32", false},
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "block", "2x16", false},
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "block", "allxall", false},
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "block", "2x8", true},
      {"quantize_by_rule preset=nvfp4.te R=16 K=64 seed=1054", "storage", "swizzled_128x4", false},
      {"quantize_by_rule preset=nvfp4.te R=128 K=64 seed=1054", "storage", "swizzled_128x4", true},
      {"quantize_by_rule preset=nvfp4.te splits=16,0,32 K=64 seed=1", "block", "2x16", false},
      {"quantize_by_rule preset=nvfp4.te splits=16,0,32 K=64 seed=1", "block", "1x64", false},
      {"quantize_by_rule preset=nvfp4.te splits=16,0,32 K=64 seed=1", "block", "allxall", false},
  };
  // clang-format on
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.line) + " with " + row.key + "=" + row.value);
    Case problem = made(row.line);
    ASSERT_TRUE(is_taken(problem));
    problem.attributes[row.key] = std::string(row.value);
    EXPECT_EQ(is_taken(problem), row.taken);
  }
}

}  // namespace
}  // namespace assay::conformance
