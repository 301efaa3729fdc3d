// FP8 block scaling on the CPU: elements of x a second, and bytes read and written. The matrix, 2048 x 4096, is larger than
// the nearest caches. ASSAY_THREADS=1 measures one core.

#include <benchmark/benchmark.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/recipes/dbias.h"
#include "reference/recipes/quantize.h"

namespace assay {
namespace {

constexpr std::int64_t kRows = 2048, kColumns = 4096;

// Ordinary values of every type: bits of a counter, with exponents around that of 1.
std::vector<std::uint8_t> ordinary_values(Format type) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_of(type, kRows * kColumns)));
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<std::uint32_t>(state >> 32);
    const std::uint32_t sign = random & 0x8000'0000, exponent = 120 + (random >> 28 & 7), mantissa = random & 0x7f'ffff;
    const std::uint32_t f32 = sign | exponent << 23 | mantissa;
    const auto u16 = static_cast<std::uint16_t>(type == Format::bf16 ? f32 >> 16 : (sign >> 16) | (exponent - 112) << 10 | mantissa >> 13);
    if (type == Format::f32) {
      reinterpret_cast<std::uint32_t*>(bytes.data())[i] = f32;
    } else {
      reinterpret_cast<std::uint16_t*>(bytes.data())[i] = u16;
    }
  }
  return bytes;
}

void quantize_blocks(benchmark::State& state, Recipe recipe, Format type, Format output, bool rowwise, bool columnwise,
                     bool dbias) {
  const std::vector<std::uint8_t> x = ordinary_values(type);
  QuantizeProblem problem;
  problem.config = {.recipe = recipe, .output = output, .rowwise = rowwise, .columnwise = columnwise, .dbias = dbias};
  problem.x_type = type;
  problem.x = x.data();
  problem.rows = kRows;
  problem.columns = kColumns;
  const QuantizeShapes shapes = quantize_outputs(problem);
  std::int64_t bytes = static_cast<std::int64_t>(x.size());
  const auto room = [&](const OutputShape& shape) {
    const std::int64_t size = shape.bytes();
    bytes += size;
    return std::vector<float>(static_cast<std::size_t>(size / 4));
  };
  auto rowwise_data = room(shapes.rowwise_data), columnwise_data = room(shapes.columnwise_data);
  auto rowwise_scale = room(shapes.rowwise_scale_inv), columnwise_scale = room(shapes.columnwise_scale_inv);
  auto sums = room(shapes.dbias);
  QuantizeOutput results;
  results.rowwise_data = rowwise_data.data();
  results.columnwise_data = columnwise_data.data();
  results.rowwise_scale_inv = rowwise_scale.data();
  results.columnwise_scale_inv = columnwise_scale.data();
  results.dbias = sums.data();
  for (auto _ : state) {
    quantize(problem, results);
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = benchmark::Counter(static_cast<double>(kRows * kColumns), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * bytes);
}

void sum_columns(benchmark::State& state, Format type) {
  const std::vector<std::uint8_t> x = ordinary_values(type);
  std::vector<float> sums(kColumns);
  const DbiasProblem problem = {type, x.data(), kRows, kColumns, false, {}, Format::f32};
  for (auto _ : state) {
    grouped_dbias(problem, sums.data());
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = benchmark::Counter(static_cast<double>(kRows * kColumns), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(x.size() + 4 * kColumns));
}

const int registered = [] {
  const auto add = [](const std::string& name, auto... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), quantize_blocks, arguments...)->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
    for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
      const std::string name = std::string(name_of(recipe)) + "/" + std::string(name_of(type)) + "/";
      add(name + "e4m3/both", recipe, type, Format::e4m3, true, true, false);
      add(name + "e4m3/rowwise", recipe, type, Format::e4m3, true, false, false);
    }
    add(std::string(name_of(recipe)) + "/bf16/e5m2/both", recipe, Format::bf16, Format::e5m2, true, true, false);
    add(std::string(name_of(recipe)) + "/bf16/e4m3/both+dbias", recipe, Format::bf16, Format::e4m3, true, true, true);
  }
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    benchmark::RegisterBenchmark(("dbias/" + std::string(name_of(type))).c_str(), sum_columns, type)->UseRealTime()->Unit(benchmark::kMillisecond);
  }
  return 0;
}();

}  // namespace
}  // namespace assay
