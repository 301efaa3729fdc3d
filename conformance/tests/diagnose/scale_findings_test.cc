// A product computed with scales of other blocks is reported as such, tile by tile; other faults are not reported so.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/diagnose/product_hints.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

Tensor product_of(Case& problem) {
  const OutputSpec spec = outputs_of(Request::of(problem)).at(0);
  problem.out["d"] = make_tensor(spec.type, spec.shape);
  answer(Request::of(problem), Layer::fast);
  Tensor made = problem.out.at("d");
  problem.out.clear();
  return made;
}

struct Fault {
  const char* name;
  const char* line;
  const char* scales;  // the tensor whose scales are read from elsewhere
  std::int64_t distance;
  bool of_columns;
  std::int64_t least_explained;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class ShiftedScales : public testing::TestWithParam<Fault> {};

TEST_P(ShiftedScales, AreFound) {
  const Fault& fault = GetParam();
  Case problem = generate(parse_case_line(fault.line));
  const Tensor want = product_of(problem);
  Case shifted = problem;
  Tensor& scales = shifted.in.at(fault.scales);
  const Tensor& right = problem.in.at(fault.scales);
  const std::int64_t count = right.elements();
  for (std::int64_t i = 0; i < count; ++i)
    scales.as<float>()[i] = right.as<float>()[((i + fault.distance) % count + count) % count];
  const Tensor got = product_of(shifted);

  const ScaleFindings findings = scale_findings(Request::of(problem), got, want);
  ASSERT_FALSE(findings.tiles.empty());
  EXPECT_EQ(findings.looked_at, static_cast<std::int64_t>(findings.tiles.size()));
  EXPECT_GE(findings.explained, fault.least_explained);
  EXPECT_EQ(findings.explained, static_cast<std::int64_t>(findings.details.size()));
  for (const WrongTile& tile : findings.tiles) {
    if (!tile.is_explained) continue;
    EXPECT_EQ(tile.of_columns, fault.of_columns);
    EXPECT_EQ(((tile.read - tile.wanted - fault.distance) % count + count) % count, 0)
        << tile.group << " " << tile.row << " " << tile.column;
  }
  ASSERT_EQ(findings.hints.size(), 1u);
  EXPECT_EQ(findings.hints[0].find("scale of another block: scales of "), 0u) << findings.hints[0];
}

// clang-format off
constexpr Fault kFaults[] = {
    {"block_TN_w", "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,260 N=300 K=400 seed=1", "w_rowwise_scale_inv", 4, true, 8},
    {"block_TN_w_another_group", "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,260 N=300 K=400 seed=2", "w_rowwise_scale_inv", -24, true, 6},
    {"block_TN_x", "grouped_gemm kind=fp8_block d_type=f32 splits=130,0,260 N=300 K=400 seed=3", "x_rowwise_scale_inv", 1, false, 4},
    {"block_TN_w_bf16", "grouped_gemm kind=fp8_block d_type=bf16 splits=130,0,260 N=300 K=400 seed=4", "w_rowwise_scale_inv", 4, true, 8},
    {"block_TN_w_1x128", "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=130,0,260 N=300 K=400 seed=5", "w_rowwise_scale_inv", 128, true, 3},
    {"block_NN_w", "grouped_gemm kind=fp8_block layout=NN d_type=f32 splits=130,0,260 N=400 K=300 seed=6", "w_columnwise_scale_inv", 4, true, 8},
    {"block_NT_x", "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=256,0,384 N=300 K=200 seed=7", "x_columnwise_scale_inv", 1, true, 4},
    {"block_TN_alpha_beta", "grouped_gemm kind=fp8_block d_type=f32 alpha=0.5 beta=-0.7 splits=130,0,260 N=300 K=400 seed=8", "w_rowwise_scale_inv", 4, true, 8},
    {"tensor_TN_w", "grouped_gemm kind=fp8_per_tensor split_accumulator=1 d_type=f32 alpha=0.3 splits=130,0,260,140 N=300 K=400 seed=9", "w_rowwise_scale_inv", 2, true, 6},
    {"tensor_NT_dy", "grouped_gemm kind=fp8_per_tensor layout=NT d_type=bf16 splits=130,7,260 N=300 K=200 seed=10", "dy_columnwise_scale_inv", 1, false, 4},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Harness, ShiftedScales, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

// Of many wrong tiles a sample is tested, with tiles of every column.
TEST(scale_findings, sample_many_tiles) {
  Case problem = generate(parse_case_line("grouped_gemm kind=fp8_block d_type=f32 splits=64x1 N=1280 K=400 seed=13"));
  const Tensor want = product_of(problem);
  Case shifted = problem;
  float* scales = shifted.in.at("w_rowwise_scale_inv").as<float>();
  std::rotate(scales, scales + 4, scales + shifted.in.at("w_rowwise_scale_inv").elements());
  const ScaleFindings findings = scale_findings(Request::of(problem), product_of(shifted), want);
  EXPECT_EQ(findings.tiles.size(), 640u);
  EXPECT_EQ(findings.looked_at, 320);
  EXPECT_GT(findings.explained, 300);
  std::set<std::int64_t> columns;
  for (const WrongTile& tile : findings.tiles) {
    if (tile.is_explained) columns.insert(tile.column);
  }
  EXPECT_EQ(columns.size(), 10u);
  ASSERT_EQ(findings.hints.size(), 1u);
  EXPECT_NE(findings.hints[0].find("320 wrong tiles 128x128 sampled, of 640"), std::string::npos) << findings.hints[0];
}

// Faults that are not in the scales: the last bit of some elements, and a whole tile with the wrong sign.
TEST(scale_findings, leave_other_faults_alone) {
  for (const char* type : {"f32", "bf16"}) {
    Case problem =
        generate(parse_case_line(std::string("grouped_gemm kind=fp8_block splits=130,0,260 N=300 K=400 seed=11 d_type=") + type));
    const Tensor want = product_of(problem);
    Tensor got = want;
    const std::size_t width = got.bytes.size() / static_cast<std::size_t>(got.elements());
    for (std::size_t at = 0; at < got.bytes.size(); at += width) {
      if (at / width % 3 == 0) got.bytes[at] ^= std::byte{1};
    }
    const ScaleFindings findings = scale_findings(Request::of(problem), got, want);
    EXPECT_FALSE(findings.tiles.empty());
    EXPECT_EQ(findings.explained, 0) << findings.hints.at(0);
    EXPECT_TRUE(findings.hints.empty());
  }
}

TEST(scale_findings, have_nothing_to_say_of_products_without_scales) {
  Case problem = generate(parse_case_line("grouped_gemm kind=bf16 d_type=f32 splits=130 N=136 K=40 seed=12"));
  const Tensor want = product_of(problem);
  Tensor got = want;
  got.bytes[0] ^= std::byte{1};
  EXPECT_TRUE(scale_findings(Request::of(problem), got, want).tiles.empty());
}

}  // namespace
}  // namespace assay::conformance
