// FP8 with one scale per tensor on the CPU: elements of x per second, and bytes of x and of the codes. The matrix, 2048 x
// 4096, is larger than the nearest caches. ASSAY_THREADS=1 measures one core.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/recipes/quantize.h"

namespace assay {
namespace {

constexpr std::int64_t kRows = 2048, kColumns = 4096, kElements = kRows * kColumns;

void quantize_tensor(benchmark::State& state, Recipe recipe, Format type, bool columnwise) {
  // Bit patterns of positive values below 2: ordinary data for every type.
  const auto size = static_cast<std::size_t>(bytes_of(type, kElements));
  std::vector<std::uint32_t> x(size / 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * 2654435761u) & 0x3bff'3bff;
  const float given = 64;
  QuantizeProblem problem;
  problem.config = {.recipe = recipe, .columnwise = columnwise};
  problem.x_type = type;
  problem.x = x.data();
  problem.rows = kRows;
  problem.columns = kColumns;
  problem.scale = &given;
  std::vector<std::uint8_t> rowwise(kElements), transposed(columnwise ? kElements : 0);
  float scale_inv, amax, scale;
  QuantizeOutput output;
  output.rowwise_data = rowwise.data();
  output.columnwise_data = transposed.data();
  output.rowwise_scale_inv = &scale_inv;
  output.amax = &amax;
  output.scale = &scale;
  for (auto _ : state) {
    quantize(problem, output);
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = benchmark::Counter(static_cast<double>(kElements), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size + rowwise.size() + transposed.size()));
}

const int registered = [] {
  for (const Recipe recipe : {Recipe::tensor_current, Recipe::tensor_delayed}) {
    for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
      for (const bool columnwise : {true, false}) {
        const std::string name =
            std::string(name_of(recipe)) + "/" + std::string(name_of(type)) + "/e4m3/" + (columnwise ? "both" : "rowwise");
        benchmark::RegisterBenchmark(name.c_str(), quantize_tensor, recipe, type, columnwise)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return 0;
}();

}  // namespace
}  // namespace assay
