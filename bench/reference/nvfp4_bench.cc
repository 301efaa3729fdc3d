// NVFP4 on the CPU. The tensor amax is computed in the call.

#include <benchmark/benchmark.h>

#include "bench/reference/block_scaled_bench.h"
#include "reference/recipes/dequantize.h"
#include "reference/recipes/hadamard.h"

namespace assay::bench {
namespace {

struct Options {
  bool two_dimensional = false, hadamard = false, stochastic = false;
  FourOverSix four_over_six = FourOverSix::off;
  ScaleLayout layout = ScaleLayout::compact;
};

void nvfp4(benchmark::State& state, Format type, bool rowwise, bool columnwise, Options options) {
  quantize_matrix(state,
                  {.recipe = Recipe::nvfp4,
                   .output = Format::e2m1,
                   .rowwise = rowwise,
                   .columnwise = columnwise,
                   .scale_layout = options.layout,
                   .two_dimensional = options.two_dimensional,
                   .hadamard = options.hadamard,
                   .hadamard_sign_mask = 0xd7e8,
                   .stochastic_rounding = options.stochastic,
                   .four_over_six = options.four_over_six},
                  type);
}

void nvfp4_back(benchmark::State& state, Direction direction) {
  const std::vector<std::uint8_t> codes(static_cast<std::size_t>(kRows * kColumns / 2), 0x3a);
  const std::vector<std::uint8_t> scales(static_cast<std::size_t>(kRows * kColumns / 16), 0x38);
  std::vector<float> y(static_cast<std::size_t>(kRows * kColumns));
  const float amax = 3;
  DequantizeProblem problem;
  problem.recipe = Recipe::nvfp4;
  problem.data_type = Format::e2m1;
  problem.direction = direction;
  problem.rows = kRows;
  problem.columns = kColumns;
  problem.data = codes.data();
  problem.scale_inv = scales.data();
  problem.amax = &amax;
  for (auto _ : state) {
    dequantize(problem, y.data());
    benchmark::ClobberMemory();
  }
  count(state, static_cast<std::int64_t>(codes.size() + scales.size() + 4 * y.size()));
}

// The transform alone, in cache: elements of x per second.
void hadamard(benchmark::State& state) {
  const std::vector<std::uint8_t> x = ordinary_values(Format::bf16);
  std::vector<std::uint16_t> y(16 * 1024);
  for (auto _ : state) {
    hadamard_transform(0xd7e8, reinterpret_cast<const std::uint16_t*>(x.data()), 1024, 16, 1024, y.data(), 1024);
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = benchmark::Counter(16 * 1024, benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * 4 * 16 * 1024);
}

BENCHMARK_CAPTURE(nvfp4, bf16_rowwise, Format::bf16, true, false, Options{})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_columnwise, Format::bf16, false, true, Options{})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both, Format::bf16, true, true, Options{})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both_swizzled, Format::bf16, true, true, Options{.layout = ScaleLayout::swizzled})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both_2d, Format::bf16, true, true, Options{.two_dimensional = true})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both_hadamard, Format::bf16, true, true, Options{.hadamard = true})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both_stochastic, Format::bf16, true, true, Options{.stochastic = true})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, bf16_both_4over6, Format::bf16, true, true, Options{.four_over_six = FourOverSix::mean_squared_error})
    ->UseRealTime();
BENCHMARK_CAPTURE(nvfp4, f32_both, Format::f32, true, true, Options{})->UseRealTime();
BENCHMARK_CAPTURE(nvfp4_back, rowwise, Direction::rowwise)->UseRealTime();
BENCHMARK_CAPTURE(nvfp4_back, columnwise, Direction::columnwise)->UseRealTime();
BENCHMARK(hadamard);

}  // namespace
}  // namespace assay::bench
