// A trace against a second implementation of the steps, and against the text of a block by hand.

#include "conformance/diagnose/trace/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <tuple>

#include "conformance/generate/generator.h"
#include "conformance/ops/grouped_gemm.h"
#include "conformance/tests/diagnose/unit_chain.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/gemm/problem.h"
#include "reference/tests/arithmetic/second_route.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

alignas(16) const std::byte nowhere[16] = {};  // only the presence of D is checked

Case call_of(const char* line) { return generate(parse_case_line(line)); }

std::string hex(float value) { return fmt::format("0x{:08X}", std::bit_cast<std::uint32_t>(value)); }

// The bits that the line whose text begins with `what` expects.
std::string expected(const Trace& trace, const std::string& what) {
  for (const TraceLine& line : trace.lines) {
    if (line.what.starts_with(what)) return line.expected.substr(0, line.expected.find(' '));
  }
  return "no line begins with " + what;
}

TEST(Trace, GivesEveryStepAndPromotionOfABlockScaledProduct) {
  Case call = call_of("grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 seed=45");
  const Trace trace = trace_element(call, {"d", 2, 3, 130});
  const Request request = Request::read_only(call);
  ParsedGroupedGemm parsed;
  parse_grouped_gemm(request, parsed);
  const GroupedGemmView view = view_of(parsed.problem, nowhere);
  const GroupView& group = view.groups[1];  // the empty one is left out
  float acc = 0;
  for (std::int64_t k = 0; k < 272; k += 128) {
    const std::int64_t last = std::min<std::int64_t>(k + 128, 272);
    for (std::int64_t at = k; at < last; at += view.unit->products_per_step) {
      const std::int64_t end = std::min<std::int64_t>(at + view.unit->products_per_step, last);
      EXPECT_EQ(expected(trace, fmt::format("  K {}-{}: step", at, end - 1)), hex(chain(*view.unit, group, 3, 130, k, end)));
    }
    const float rows = group.rows.scale.value(3, k), columns = group.columns.scale.value(130, k);
    EXPECT_EQ(expected(trace, fmt::format("K {}-{}: scale of the row", k, last - 1)), hex(rows));
    EXPECT_EQ(expected(trace, fmt::format("K {}-{}: scale of the column", k, last - 1)), hex(columns));
    acc = std::fma(rows * columns, chain(*view.unit, group, 3, 130, k, last), acc);
    EXPECT_EQ(expected(trace, fmt::format("  K to {}: after promotion", last - 1)), hex(acc));
  }
  EXPECT_EQ(expected(trace, "d"), hex(acc));
  EXPECT_EQ(trace.output, "d group 2 row 3 column 130");
}

TEST(Trace, FollowsThePlanOfTheCall) {
  Case call = call_of("grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=304 seed=2458");
  call.attributes["plan"] = std::string("unit=sm90.wgmma.f16,slices=2x160,merge=sequential_f32");
  const Trace trace = trace_element(call, {"", 0, 8, 23});
  const Request request = Request::read_only(call);
  ParsedGroupedGemm parsed;
  parse_grouped_gemm(request, parsed);
  const GroupedGemmView view = view_of(parsed.problem, nowhere);
  const float first = chain(*view.unit, view.groups[0], 8, 23, 0, 160),
              second = chain(*view.unit, view.groups[0], 8, 23, 160, 304);
  EXPECT_EQ(expected(trace, "  K 144-159: step"), hex(first));
  EXPECT_EQ(expected(trace, "  K 288-303: step"), hex(second));
  EXPECT_EQ(expected(trace, "slices merged"), hex(first + second));
}

TEST(Trace, GivesTheBlockOfAQuantizedElementBesideWhatWasGiven) {
  Case call = call_of("quantize recipe=block_1x128 splits=3,0,5 K=200 seed=4");
  const auto* x = call.in.at("x").as<std::uint16_t>();
  float amax = 0;
  for (int column = 128; column < 200; ++column) amax = std::max(amax, std::fabs(scalar::decode_bf16(x[(3 + 2) * 200 + column])));
  Tensor given{Format::e4m3, {8, 200}, std::vector<std::byte>(8 * 200)};
  given.bytes[(3 + 2) * 200 + 150] = std::byte{0x38};  // 1
  call.out["rowwise_data"] = given;
  const Trace trace = trace_element(call, {"rowwise_data", 2, 2, 150});
  EXPECT_EQ(expected(trace, "amax of the block"), hex(amax));
  EXPECT_EQ(expected(trace, "scale:"), hex(448 / amax));
  EXPECT_EQ(expected(trace, "rowwise_scale_inv"), hex(1 / (448 / amax)));
  EXPECT_EQ(expected(trace, "x times scale"), hex(scalar::decode_bf16(x[5 * 200 + 150]) * (448 / amax)));
  EXPECT_EQ(trace.lines.back().got, "0x38 (1)");
  EXPECT_EQ(trace.lines.back().what, "rowwise_data");
}

// Steps with block scales, which lie swizzled, in slices that begin inside K.
TEST(Trace, GivesScalesAndStepsOfSwizzledScales) {
  for (const auto& [line, unit, step, block] :
       {std::tuple{"grouped_gemm kind=mxfp8 d_type=f32 splits=17,0,150 N=32 K=256 data=block_scales seed=7",
                   "sm100.tcgen05.mxf8f6f4", 32, 32},
        {"grouped_gemm kind=nvfp4 d_type=f32 splits=16,0,150 N=32 K=256 data=block_scales seed=8", "sm100.tcgen05.mxf4nvf4", 64,
         16}}) {
    Case call = call_of(line);
    call.attributes["plan"] = fmt::format("unit={},slices=2x128,merge=sequential_f32", unit);
    const Trace trace = trace_element(call, {"d", 2, 140, 30});
    const Request request = Request::read_only(call);
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    const GroupedGemmView view = view_of(parsed.problem, nowhere);
    const GroupView& group = view.groups[1];
    ASSERT_TRUE(group.rows.scale.swizzled);
    float slices[2] = {};
    for (int slice = 0; slice < 2; ++slice) {
      std::uint32_t acc = 0;
      for (std::int64_t k = slice * 128; k < (slice + 1) * 128; k += step) {
        second_route::Vector v{group.rows.type, group.columns.type, {}, {}, acc, {}, {}};
        for (std::int64_t at = k; at < k + step; ++at) {
          v.a.push_back(group.rows.element(140, at));
          v.b.push_back(group.columns.element(30, at));
          if (at % block != 0) continue;
          v.scale_a.push_back(group.rows.scale.code(140, at));
          v.scale_b.push_back(group.columns.scale.code(30, at));
          EXPECT_EQ(expected(trace, fmt::format("  K {}-{}: scale of the row", at, at + block - 1)),
                    fmt::format("0x{:02X}", group.rows.scale.code(140, at)));
          EXPECT_EQ(expected(trace, fmt::format("  K {}-{}: scale of the column", at, at + block - 1)),
                    fmt::format("0x{:02X}", group.columns.scale.code(30, at)));
        }
        acc = second_route::step(*view.unit, v);
        EXPECT_EQ(expected(trace, fmt::format("  K {}-{}: step", k, k + step - 1)), hex(std::bit_cast<float>(acc))) << line;
      }
      slices[slice] = std::bit_cast<float>(acc);
    }
    EXPECT_EQ(expected(trace, "slices merged"), hex(slices[0] + slices[1])) << line;
  }
}

TEST(Trace, GivesTheScaleOfAnFp8Result) {
  const Case call = call_of("grouped_gemm kind=fp8_per_tensor d_type=e4m3 splits=17,0,33 N=32 K=96 seed=2701");
  const Trace trace = trace_element(call, {"d", 2, 8, 5});
  const Request request = Request::read_only(call);
  ParsedGroupedGemm parsed;
  parse_grouped_gemm(request, parsed);
  const GroupedGemmView view = view_of(parsed.problem, nowhere);
  const GroupView& group = view.groups[1];
  const float factor = group.columns.scale.value(0, 0) * group.rows.scale.value(0, 0);
  const float value = std::fma(chain(*view.unit, group, 8, 5, 0, 96), factor, 0.0f);
  EXPECT_EQ(expected(trace, "value of D before its scale"), hex(value));
  EXPECT_EQ(expected(trace, "scale of D"), hex(call.in.at("d_scale").as<float>()[2]));
  EXPECT_EQ(expected(trace, "value times scale"), hex(value * call.in.at("d_scale").as<float>()[2]));
  EXPECT_EQ(expected(trace, "d"), fmt::format("0x{:02X}", scalar::encode_e4m3(value * call.in.at("d_scale").as<float>()[2])));
}

TEST(Trace, RefusesAPlaceThatIsNotThere) {
  const Case call = call_of("quantize recipe=mxfp8 splits=32,64 K=64 seed=1");
  EXPECT_THROW(trace_element(call, {"rowwise_data", 2, 0, 0}), InvalidArgument);
  EXPECT_THROW(trace_element(call, {"rowwise_data", 0, 32, 0}), InvalidArgument);
  EXPECT_THROW(trace_element(call, {"rowwise_data", 0, 0, 64}), InvalidArgument);
  EXPECT_THROW(trace_element(call, {"d", 0, 0, 0}), InvalidArgument);
}

}  // namespace
}  // namespace assay::conformance
