// MXFP8 on the CPU.

#include <benchmark/benchmark.h>

#include "bench/reference/block_scaled_bench.h"
#include "reference/recipes/dequantize.h"

namespace assay::bench {
namespace {

void mxfp8(benchmark::State& state, Format type, Format output, bool rowwise, bool columnwise, ScaleLayout layout,
           bool two_dimensional) {
  quantize_matrix(state,
                  {.recipe = Recipe::mxfp8,
                   .output = output,
                   .rowwise = rowwise,
                   .columnwise = columnwise,
                   .scale_layout = layout,
                   .two_dimensional = two_dimensional},
                  type);
}

void mxfp8_back(benchmark::State& state, Direction direction, Format type) {
  const std::vector<std::uint8_t> codes(static_cast<std::size_t>(kRows * kColumns), 0x3a);
  const std::vector<std::uint8_t> scales(static_cast<std::size_t>(kRows * kColumns / 32), 127);
  std::vector<std::uint8_t> y(static_cast<std::size_t>(bytes_of(type, kRows * kColumns)));
  DequantizeProblem problem;
  problem.recipe = Recipe::mxfp8;
  problem.output_type = type;
  problem.direction = direction;
  problem.rows = kRows;
  problem.columns = kColumns;
  problem.data = codes.data();
  problem.scale_inv = scales.data();
  for (auto _ : state) {
    dequantize(problem, y.data());
    benchmark::ClobberMemory();
  }
  count(state, static_cast<std::int64_t>(codes.size() + scales.size() + y.size()));
}

constexpr ScaleLayout kCompact = ScaleLayout::compact, kSwizzled = ScaleLayout::swizzled;
BENCHMARK_CAPTURE(mxfp8, bf16_e4m3_rowwise, Format::bf16, Format::e4m3, true, false, kCompact, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, bf16_e4m3_columnwise, Format::bf16, Format::e4m3, false, true, kCompact, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, bf16_e4m3_both, Format::bf16, Format::e4m3, true, true, kCompact, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, bf16_e4m3_both_swizzled, Format::bf16, Format::e4m3, true, true, kSwizzled, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, bf16_e4m3_both_2d, Format::bf16, Format::e4m3, true, true, kCompact, true)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, f16_e5m2_both, Format::f16, Format::e5m2, true, true, kCompact, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8, f32_e4m3_both, Format::f32, Format::e4m3, true, true, kCompact, false)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8_back, rowwise_f32, Direction::rowwise, Format::f32)->UseRealTime();
BENCHMARK_CAPTURE(mxfp8_back, columnwise_bf16, Direction::columnwise, Format::bf16)->UseRealTime();

}  // namespace
}  // namespace assay::bench
