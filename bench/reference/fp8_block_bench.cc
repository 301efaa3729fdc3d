// FP8 block scaling on the CPU: elements of x per second, and bytes read and written. One matrix, 256 x 1024, stays in
// the caches of a core; the other, 2048 x 4096, is read from and written to memory. ASSAY_THREADS=1 measures one core.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/recipes/dbias.h"
#include "reference/recipes/quantize.h"

namespace assay {
namespace {

struct Size {
  const char* name;
  std::int64_t rows, columns;
  std::int64_t elements() const { return rows * columns; }
};
constexpr Size kSizes[] = {{"cache", 256, 1024}, {"memory", 2048, 4096}};

// Buffers begin at multiples of 256 bytes, as from a device allocator.
struct Buffer {
  explicit Buffer(std::int64_t size) : bytes(static_cast<std::size_t>(size) + kAlignment) {}
  void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (kAlignment - address % kAlignment) % kAlignment;
  }
  static constexpr std::size_t kAlignment = 256;
  std::vector<std::uint8_t> bytes;
};

// Ordinary values of every type: bits of a counter, with exponents around that of 1.
Buffer ordinary_values(Format type, std::int64_t elements) {
  Buffer buffer(bytes_of(type, elements));
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < elements; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<std::uint32_t>(state >> 32);
    const std::uint32_t sign = random & 0x8000'0000, exponent = 120 + (random >> 28 & 7), mantissa = random & 0x7f'ffff;
    const std::uint32_t f32 = sign | exponent << 23 | mantissa;
    const std::uint32_t f16 = sign >> 16 | (exponent - 112) << 10 | mantissa >> 13;
    if (type == Format::f32) {
      static_cast<std::uint32_t*>(buffer.data())[i] = f32;
    } else {
      static_cast<std::uint16_t*>(buffer.data())[i] = static_cast<std::uint16_t>(type == Format::bf16 ? f32 >> 16 : f16);
    }
  }
  return buffer;
}

void count(benchmark::State& state, std::int64_t elements, std::int64_t bytes) {
  state.counters["elements"] = benchmark::Counter(static_cast<double>(elements), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * bytes);
}

void quantize_blocks(benchmark::State& state, Size size, Format type, QuantizeConfig config) {
  Buffer x = ordinary_values(type, size.elements());
  QuantizeProblem problem;
  problem.config = config;
  problem.x_type = type;
  problem.x = x.data();
  problem.rows = size.rows;
  problem.columns = size.columns;
  const QuantizeShapes shapes = quantize_outputs(problem);
  Buffer rowwise_data(shapes.rowwise_data.bytes()), columnwise_data(shapes.columnwise_data.bytes());
  Buffer rowwise_scales(shapes.rowwise_scale_inv.bytes()), columnwise_scales(shapes.columnwise_scale_inv.bytes());
  Buffer dbias(shapes.dbias.bytes());
  QuantizeOutput output;
  output.rowwise_data = rowwise_data.data();
  output.columnwise_data = columnwise_data.data();
  output.rowwise_scale_inv = rowwise_scales.data();
  output.columnwise_scale_inv = columnwise_scales.data();
  output.dbias = dbias.data();
  for (auto _ : state) {
    quantize(problem, output);
    benchmark::ClobberMemory();
  }
  count(state, size.elements(),
        bytes_of(type, size.elements()) + shapes.rowwise_data.bytes() + shapes.columnwise_data.bytes() +
            shapes.rowwise_scale_inv.bytes() + shapes.columnwise_scale_inv.bytes() + shapes.dbias.bytes());
}

void sum_columns(benchmark::State& state, Size size, Format type) {
  Buffer x = ordinary_values(type, size.elements());
  std::vector<float> sums(static_cast<std::size_t>(size.columns));
  const DbiasProblem problem = {type, x.data(), size.rows, size.columns, false, {}, Format::f32};
  for (auto _ : state) {
    grouped_dbias(problem, sums.data());
    benchmark::ClobberMemory();
  }
  count(state, size.elements(), bytes_of(type, size.elements()) + 4 * size.columns);
}

const int registered = [] {
  for (const Size& size : kSizes) {
    for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
      const std::string end = "/" + std::string(name_of(type)) + "/" + size.name;
      const auto add = [&](Recipe recipe, const char* what, QuantizeConfig config) {
        config.recipe = recipe;
        const std::string name = std::string(name_of(recipe)) + "/" + what + end;
        benchmark::RegisterBenchmark(name.c_str(), quantize_blocks, size, type, config)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      };
      for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
        add(recipe, "e4m3/both", {.columnwise = true});
        add(recipe, "e4m3/rowwise", {});
        add(recipe, "e5m2/both", {.output = Format::e5m2, .columnwise = true});
        add(recipe, "e4m3/both+dbias", {.columnwise = true, .dbias = true});
      }
      benchmark::RegisterBenchmark(("dbias" + end).c_str(), sum_columns, size, type)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace assay
