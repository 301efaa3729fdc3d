// D in FP8: the D in f32 of the same product, scaled, rounded to the nearest code and saturated here a second time; the two layers;
// bounds that hold it; what it does not go with.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/judge.h"
#include "conformance/ops/answer.h"
#include "conformance/tests/judge/rogue_backend.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

Tensor product(Case problem, Layer layer, std::byte before = {}) {
  Request request = Request::of(problem);
  request.out.clear();
  const OutputSpec spec = outputs_of(request).at(0);
  Tensor d = make_tensor(spec.type, spec.shape);
  std::fill(d.bytes.begin(), d.bytes.end(), before);
  request.out["d"] = {d.type, d.shape, d.bytes.empty() ? nullptr : d.bytes.data(), static_cast<std::int64_t>(d.bytes.size())};
  answer(request, layer);
  return d;
}

// The code nearest to x, ties to even, in exact arithmetic; past the largest value that one.
std::uint8_t nearest_code(Format type, double x) {
  const bool e4m3 = type == Format::e4m3;
  if (std::isnan(x)) return 0x7F;
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const int bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const double size = std::min(std::fabs(x), e4m3 ? 448.0 : 57344.0);
  const int exponent = size < std::ldexp(1.0, 1 - bias) ? 1 - bias : std::ilogb(size);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(size, bits - exponent)));
  return static_cast<std::uint8_t>(sign | (units + ((exponent + bias - 1) << bits)));
}

constexpr const char* kLines[] = {
    // clang-format off
    "grouped_gemm kind=bf16 d_type=e4m3 splits=9,0,17 N=24 K=48 seed=1",
    "grouped_gemm kind=bf16 layout=NN d_type=e5m2 splits=9,0,17 N=24 K=48 extra_rows=3 data=every_special seed=2",
    "grouped_gemm kind=f16 layout=NT d_type=e4m3 splits=9,0,17 N=24 K=48 alpha=-1.5 seed=3",
    "grouped_gemm kind=fp8_per_tensor d_type=e4m3 splits=16,0,32 N=32 K=48 d_scales=edge seed=4",
    "grouped_gemm kind=fp8_block d_type=e5m2 splits=9,0,17 N=24 K=272 d_scales=specials seed=5",
    "grouped_gemm kind=mxfp8 d_type=e4m3 splits=9,0,17 N=32 K=64 d_scales=negative seed=6",
    "grouped_gemm kind=nvfp4 d_type=e4m3 splits=16,0,17 N=32 K=64 seed=7",
    "grouped_gemm kind=fp8_block d_type=e4m3 grouped_layout=psum alignment=16 splits=9,0,17 N=24 K=144 seed=8",
    "grouped_gemm kind=fp8_per_tensor scaling=per_row_column d_type=e4m3 splits=9,0,17 N=24 K=48 seed=9",
    // clang-format on
};

class QuantizedOutput : public testing::TestWithParam<const char*> {};

TEST_P(QuantizedOutput, IsTheF32ValueScaledAndRounded) {
  const Case problem = generate(parse_case_line(GetParam()));
  Case wide = problem;
  wide.attributes["dtype_d"] = std::string("f32");
  wide.in.erase("d_scale");
  wide.attributes["plan"] = numerics_of(Request::read_only(problem)).plan;
  const float* scales = problem.in.at("d_scale").as<float>();
  std::map<int, int> met;
  for (const Layer layer : {Layer::fast, Layer::scalar}) {
    const std::byte untouched[] = {std::byte{0x00}, std::byte{0xFF}};
    const Tensor d = product(problem, layer, untouched[0]), again = product(problem, layer, untouched[1]),
                 values = product(wide, layer);
    const bool weights = std::get<std::string>(problem.attributes.at("layout")) == "NT";
    const Request request = Request::read_only(problem);
    std::vector<std::int64_t> group_of(static_cast<std::size_t>(d.shape[0]), -1);
    if (problem.in.count("psum") != 0) {
      for (std::int64_t row = 0; row < 9; ++row) group_of[static_cast<std::size_t>(row)] = 0;
      for (std::int64_t row = 16; row < 33; ++row) group_of[static_cast<std::size_t>(row)] = 2;
    } else {
      std::size_t row = 0;
      const std::vector<std::int64_t> splits = request.splits();
      for (std::size_t g = 0; g < splits.size(); ++g) {
        const std::int64_t rows = weights ? std::get<std::int64_t>(problem.attributes.at("N")) : splits[g];
        for (std::int64_t i = 0; i < rows; ++i) group_of[row++] = static_cast<std::int64_t>(g);
      }
    }
    for (std::int64_t row = 0; row < d.shape[0]; ++row) {
      for (std::int64_t at = row * d.shape[1]; at < (row + 1) * d.shape[1]; ++at) {
        const auto got = static_cast<std::uint8_t>(d.bytes[static_cast<std::size_t>(at)]);
        const std::int64_t group = group_of[static_cast<std::size_t>(row)];
        if (group < 0) {
          ASSERT_EQ(d.bytes[static_cast<std::size_t>(at)], untouched[0]) << row;
          ASSERT_EQ(again.bytes[static_cast<std::size_t>(at)], untouched[1]) << row;
          continue;
        }
        const auto scaled = static_cast<float>(static_cast<double>(values.as<float>()[at]) * scales[group]);
        const std::uint8_t want = nearest_code(d.type, scaled);
        ASSERT_EQ(got & (std::isnan(scaled) ? 0x7F : 0xFF), want) << "row " << row << " element " << at;
        ++met[want & 0x7F];
      }
    }
  }
  EXPECT_GT(met.size(), 3u);  // not all zeros, not all saturated
}

INSTANTIATE_TEST_SUITE_P(Lines, QuantizedOutput, testing::ValuesIn(kLines));

// A backend that states no plan is held to bounds, which are those of the f32 value, scaled and rounded.
TEST(QuantizedOutput, IsBoundedWhereNoPlanIsStated) {
  for (const char* line : {kLines[0], kLines[4], kLines[5]}) {
    Rogue rogue;
    rogue.state = [](assay_numerics& numerics) { numerics.unit[0] = numerics.plan[0] = '\0'; };
    Judgement judgement = judge_text(rogue, line);
    EXPECT_EQ(name_of(judgement.verdict), "passed") << judgement.text;
    EXPECT_EQ(name_of(judgement.basis), name_of(CheckBasis::bound));
    EXPECT_GT(judgement.elements_bounded + judgement.elements_exact, judgement.elements_unbounded);
    rogue.execute = [&](const assay_call& call) {  // without the scale
      auto* scale = static_cast<float*>(tensor(call, "d_scale").data);
      const std::vector<float> kept(scale, scale + 3);
      for (int g = 0; g < 3; ++g) scale[g] *= 4;
      const assay_status status = rogue.honest(call);
      std::copy(kept.begin(), kept.end(), scale);
      return status;
    };
    judgement = judge_text(rogue, line);
    EXPECT_EQ(name_of(judgement.verdict), "failed") << line;
  }
}

TEST(QuantizedOutput, GoesWithoutCAndBias) {
  for (const char* words :
       {"beta=1", "bias=1", "data=adversarial_output_ties", "plan=unit=sm90.wgmma.f16,slices=2x64,merge=sequential_output"})
    EXPECT_THROW(parse_case_line(std::string("grouped_gemm kind=bf16 d_type=e4m3 splits=8 N=8 K=128 ") + words), InvalidArgument)
        << words;
  const Case good = generate(parse_case_line(kLines[0]));
  Case bad = good;
  bad.in.erase("d_scale");
  EXPECT_THROW(product(bad, Layer::fast), InvalidArgument);
  bad = good;
  bad.attributes["dtype_d"] = std::string("f32");
  EXPECT_ANY_THROW(product(bad, Layer::fast));  // a scale that nothing reads
}

}  // namespace
}  // namespace assay::conformance
