// Which promises backend `device` makes for a call: those that its tensors kept when it last saw them. No device is needed.

#include "conformance/backends/device/promises.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"

namespace assay::conformance {
namespace {

Promises promises(const PromiseOptions& options) {
  return Promises(options, [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
}

constexpr char kDy[] = "dy_columnwise_scale_inv", kX[] = "x_columnwise_scale_inv";
Case product(const char* splits = "16,0,32", const char* scales = "pow2") {
  return generate(
      parse_case_line("grouped_gemm kind=fp8_block layout=NT N=20 K=24 scales=" + std::string(scales) + " splits=" + splits));
}

TEST(Promises, NoneUnlessTheyAreAskedForAndSeen) {
  Case problem = product();
  const Request request = Request::of(problem);
  Promises none = promises({}), unseen = promises({16, true});
  none.look(request);
  EXPECT_FALSE(none.kept(request).any());
  EXPECT_FALSE(unseen.kept(request).any());
}

TEST(Promises, EachByItself) {
  Case problem = product(), of_any_rows = product("16,3"), of_any_scales = product("16,0,32", "plain");
  Promises both = promises({16, true}), rows = promises({16, false}), scales = promises({1, true});
  for (Case* each : {&problem, &of_any_rows, &of_any_scales}) {
    const Request request = Request::of(*each);
    for (Promises* made : {&both, &rows, &scales}) made->look(request);
    const bool keeps_rows = each != &of_any_rows, keeps_scales = each != &of_any_scales;
    EXPECT_EQ(both.kept(request).rows_multiple, keeps_rows ? 16 : 1);
    EXPECT_EQ(both.kept(request).pow2_scales, keeps_scales);
    EXPECT_EQ(rows.kept(request).rows_multiple, keeps_rows ? 16 : 1);
    EXPECT_FALSE(rows.kept(request).pow2_scales);
    EXPECT_EQ(scales.kept(request).rows_multiple, 1);
    EXPECT_EQ(scales.kept(request).pow2_scales, keeps_scales);
  }
}

TEST(Promises, AreTakenBackWhenTheContentsChange) {
  Case problem = product();
  const Request request = Request::of(problem);
  Promises made = promises({16, true});
  made.look(request);
  for (const char* name : {kDy, kX}) {
    float& scale = problem.in.at(name).as<float>()[1];
    const float before = scale;
    scale = 1.5f;
    EXPECT_TRUE(made.kept(request).pow2_scales) << "not seen yet";
    made.look(request);
    EXPECT_FALSE(made.kept(request).pow2_scales) << name;
    scale = before;
    made.look(request);
    EXPECT_TRUE(made.kept(request).pow2_scales) << name;
  }
  std::int64_t& split = problem.in.at("splits").as<std::int64_t>()[0];
  split = -1;
  made.look(request);
  EXPECT_FALSE(made.kept(request).any()) << "wrong splits are the device's to report";
}

// A call with the same dy and another x keeps nothing by the first one.
TEST(Promises, AreOfBothOperands) {
  Case problem = product(), other = product("16,0,32", "plain");
  Promises made = promises({1, true});
  made.look(Request::of(problem));
  Case mixed = problem;
  std::swap(mixed.in.at(kDy), problem.in.at(kDy));  // the memory of the first call's dy
  EXPECT_FALSE(made.kept(Request::of(mixed)).pow2_scales);
  mixed.in.at(kX) = other.in.at(kX);
  made.look(Request::of(mixed));
  EXPECT_FALSE(made.kept(Request::of(mixed)).pow2_scales);
}

TEST(Promises, OfOtherOpsNoScales) {
  Case problem = generate(parse_case_line("quantize recipe=block_1x128 splits=16,32 K=24"));
  const Request request = Request::of(problem);
  Promises made = promises({16, true});
  made.look(request);
  EXPECT_EQ(made.kept(request).rows_multiple, 16);
  EXPECT_FALSE(made.kept(request).pow2_scales);
}

}  // namespace
}  // namespace assay::conformance
