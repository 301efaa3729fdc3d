// Conversions of whole arrays, one core: elements per second, and bytes read plus written.
//
//   cached    16384 elements: the f32 side is 64 KiB, which the second-level cache holds
//   memory    64 Mi elements: 256 MiB of f32, past any cache
//
// The label is the share of a plain copy of as many bytes over the same working set, measured in the same run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "reference/formats/e4m3.h"
#include "reference/formats/encode.h"

namespace assay {
namespace {

constexpr std::int64_t kCached = 1 << 14;
constexpr std::int64_t kMemory = 1 << 26;

// Magnitudes of 24 binades about 1, so that every format sees subnormals, normals and saturation. Integers only: the
// same values everywhere.
std::vector<float> inputs(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t bits = (state & 0x807f'ffff) | ((115 + (state >> 23) % 24) << 23);
    std::memcpy(&value, &bits, sizeof value);
  }
  return values;
}

// Processor time, not wall-clock time, so that other work on the machine matters less.
double seconds_since(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

// Bytes per second, read plus written, of a copy whose two sides together are `bytes`: the best of a few.
double copy_speed(std::int64_t bytes) {
  static std::map<std::int64_t, double> known;
  double& speed = known[bytes];
  if (speed > 0) return speed;
  std::vector<char> from(static_cast<std::size_t>(bytes / 2), 1), to(from.size());
  const int rounds = bytes < (1 << 20) ? 20000 : 1;
  for (int trial = 0; trial < 5; ++trial) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < rounds; ++i) {
      std::memcpy(to.data(), from.data(), from.size());
      benchmark::ClobberMemory();
    }
    speed = std::max(speed, static_cast<double>(bytes) * rounds / seconds_since(start));
  }
  return speed;
}

// Runs `convert` over `elements` of `bytes_per_element` (read plus written) and states the rates.
template <class Convert>
void measure(benchmark::State& state, std::int64_t elements, double bytes_per_element, Convert convert) {
  const auto bytes = static_cast<std::int64_t>(static_cast<double>(elements) * bytes_per_element);
  const double copy = copy_speed(bytes);
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    convert();
    benchmark::ClobberMemory();
  }
  const double seconds = seconds_since(start);
  state.SetItemsProcessed(state.iterations() * elements);
  state.SetBytesProcessed(state.iterations() * bytes);
  char label[64];
  const double speed = static_cast<double>(state.iterations()) * static_cast<double>(bytes) / seconds;
  std::snprintf(label, sizeof label, "%.2f of copy (%.0f GB/s)", speed / copy, copy * 1e-9);
  state.SetLabel(label);
}

void encode_bench(benchmark::State& state, Format format) {
  const std::vector<float> values = inputs(state.range(0));
  if (bits_of(format) == 16) {
    std::vector<std::uint16_t> codes(values.size());
    measure(state, state.range(0), 6, [&] { encode(format, values, codes); });
  } else {
    std::vector<std::uint8_t> codes(values.size());
    measure(state, state.range(0), 5, [&] { encode(format, values, codes); });
  }
}

void decode_bench(benchmark::State& state, Format format) {
  std::vector<float> values = inputs(state.range(0));
  if (bits_of(format) == 16) {
    std::vector<std::uint16_t> codes(values.size());
    encode(format, values, codes);
    measure(state, state.range(0), 6, [&] { decode(format, codes, values); });
  } else {
    std::vector<std::uint8_t> codes(values.size());
    encode(format, values, codes);
    measure(state, state.range(0), 5, [&] { decode(format, codes, values); });
  }
}

void encode_scaled_bench(benchmark::State& state) {
  const std::vector<float> values = inputs(state.range(0));
  std::vector<std::uint8_t> codes(values.size());
  measure(state, state.range(0), 5, [&] { encode_scaled(Format::e4m3, values, 1.37f, codes); });
}

void amax_bench(benchmark::State& state) {
  const std::vector<float> values = inputs(state.range(0));
  measure(state, state.range(0), 4, [&] { benchmark::DoNotOptimize(amax(values)); });
}

void widen_bench(benchmark::State& state, Format type) {
  std::vector<float> values = inputs(state.range(0));
  std::vector<std::uint16_t> source(values.size());
  encode(type, values, source);
  measure(state, state.range(0), 6, [&] { widen(type, source.data(), values); });
}

void pack_bench(benchmark::State& state) {
  const std::vector<float> values = inputs(state.range(0));
  std::vector<std::uint8_t> codes(values.size()), bytes(values.size() / 2);
  encode(Format::e2m1, values, codes);
  measure(state, state.range(0), 1.5, [&] { pack_e2m1(codes, bytes); });
}

void unpack_bench(benchmark::State& state) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(state.range(0))), bytes(codes.size() / 2, 0x5A);
  measure(state, state.range(0), 1.5, [&] { unpack_e2m1(bytes, codes); });
}

// Layer (a), for the ratio between the layers.
void scalar_bench(benchmark::State& state) {
  const std::vector<float> values = inputs(state.range(0));
  std::vector<std::uint8_t> codes(values.size());
  measure(state, state.range(0), 5, [&] {
    for (std::size_t i = 0; i < values.size(); ++i) codes[i] = scalar::encode_e4m3(values[i]);
  });
}

const bool kRegistered = [] {
  const auto both = [](benchmark::internal::Benchmark* each) { each->ArgName("elements")->Arg(kCached)->Arg(kMemory); };
  for (const Format format : {Format::e4m3, Format::e5m2, Format::e4m3_fnuz, Format::e5m2_fnuz, Format::e8m0, Format::e2m1,
                              Format::e3m2, Format::e2m3, Format::bf16, Format::f16}) {
    const std::string name(name_of(format));
    both(benchmark::RegisterBenchmark(("encode/" + name).c_str(), encode_bench, format));
    both(benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode_bench, format));
  }
  both(benchmark::RegisterBenchmark("encode_scaled/e4m3", encode_scaled_bench));
  both(benchmark::RegisterBenchmark("amax/f32", amax_bench));
  both(benchmark::RegisterBenchmark("widen/bf16", widen_bench, Format::bf16));
  both(benchmark::RegisterBenchmark("widen/f16", widen_bench, Format::f16));
  both(benchmark::RegisterBenchmark("pack/e2m1", pack_bench));
  both(benchmark::RegisterBenchmark("unpack/e2m1", unpack_bench));
  benchmark::RegisterBenchmark("scalar_encode/e4m3", scalar_bench)->ArgName("elements")->Arg(kCached);
  return true;
}();

}  // namespace
}  // namespace assay
