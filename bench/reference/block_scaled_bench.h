#pragma once
// Shared by the benchmarks of MXFP8 and NVFP4: a matrix larger than the first caches, its outputs, and the
// counters (elements of x per second, bytes read and written). ASSAY_THREADS=1 measures one core.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "reference/recipes/quantize.h"

namespace assay::bench {

constexpr std::int64_t kRows = 2048, kColumns = 4096;

// Values between 2^-3 and 2 of either sign.
inline std::vector<std::uint8_t> ordinary_values(Format type) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_of(type, kRows * kColumns)));
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<std::uint32_t>(state >> 32);
    const std::uint32_t sign = random & 0x8000'0000, exponent = 124 + (random >> 29 & 3), mantissa = random & 0x7f'ffff;
    const std::uint32_t f32 = sign | exponent << 23 | mantissa;
    if (type == Format::f32) {
      reinterpret_cast<std::uint32_t*>(bytes.data())[i] = f32;
    } else {
      const std::uint32_t f16 = (sign >> 16) | (exponent - 112) << 10 | mantissa >> 13;
      reinterpret_cast<std::uint16_t*>(bytes.data())[i] = static_cast<std::uint16_t>(type == Format::bf16 ? f32 >> 16 : f16);
    }
  }
  return bytes;
}

inline void count(benchmark::State& state, std::int64_t bytes) {
  state.counters["elements"] =
      benchmark::Counter(static_cast<double>(kRows * kColumns), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * bytes);
}

inline void quantize_matrix(benchmark::State& state, QuantizeConfig config, Format type) {
  const std::vector<std::uint8_t> x = ordinary_values(type);
  std::vector<std::uint8_t> random;
  if (config.stochastic_rounding) random = ordinary_values(Format::bf16);
  QuantizeProblem problem;
  problem.config = config;
  problem.x_type = type;
  problem.x = x.data();
  problem.rows = kRows;
  problem.columns = kColumns;
  problem.rowwise_random = problem.columnwise_random = random.data();
  const QuantizeShapes shapes = quantize_outputs(problem);
  auto bytes = static_cast<std::int64_t>(x.size());
  const auto room = [&](const OutputShape& shape) {
    bytes += shape.elements();  // one byte each: FP8 codes, pairs of E2M1 codes, scales
    return std::vector<std::uint8_t>(static_cast<std::size_t>(shape.elements()));
  };
  auto rowwise_data = room(shapes.rowwise_data), columnwise_data = room(shapes.columnwise_data);
  auto rowwise_scale = room(shapes.rowwise_scale_inv), columnwise_scale = room(shapes.columnwise_scale_inv);
  QuantizeOutput output;
  output.rowwise_data = rowwise_data.data();
  output.columnwise_data = columnwise_data.data();
  output.rowwise_scale_inv = rowwise_scale.data();
  output.columnwise_scale_inv = columnwise_scale.data();
  for (auto _ : state) {
    quantize(problem, output);
    benchmark::ClobberMemory();
  }
  count(state, bytes);
}

}  // namespace assay::bench
