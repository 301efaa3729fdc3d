// Grouped GEMM on the CPU: multiply-adds per second ("MAC/s"), by unit and plan. The one-thread rows cover one 8 x 64 block
// after another of a problem whose operands do not fit the caches; ASSAY_THREADS sets how many threads the call uses, so
//
//   ASSAY_THREADS=1 grouped_gemm_bench      gives the speed of one core
//   ASSAY_SIMD=portable grouped_gemm_bench  gives that of the plain kernel

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/plan.h"
#include "reference/support/parallel.h"

namespace {

using namespace assay;

// Values whose exponents spread as a normal distribution's do: sign and mantissa uniform, exponents falling off by halves.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }
  std::uint32_t drop() {
    const auto bits = static_cast<std::uint32_t>(next()) | 0x1000u;
    return static_cast<std::uint32_t>(__builtin_ctz(bits));
  }
};

struct Case {
  const char* name;
  GemmKind kind;
  const char* plan;
  Format type;
};

constexpr Case kCases[] = {
    {"bf16_sm90", GemmKind::bf16, "cublaslt.sm90.bf16", Format::bf16},
    {"f16_sm90", GemmKind::f16, "cublaslt.sm90.f16", Format::f16},
    {"fp8_tensor_fast_sm90", GemmKind::fp8_per_tensor, "cublaslt.sm90.fp8_tensor.fast", Format::e4m3},
    {"fp8_tensor_split_sm90", GemmKind::fp8_per_tensor, "cublaslt.sm90.fp8_tensor.split", Format::e4m3},
    {"fp8_block_sm90", GemmKind::fp8_block, "cublaslt.sm90.fp8_block.rows_first", Format::e4m3},
    {"fp8_tensor_sm100", GemmKind::fp8_per_tensor, "sm100.fp8_tensor.chain", Format::e4m3},
    {"mxfp8_sm100", GemmKind::mxfp8, "sm100.mxfp8.chain", Format::e4m3},
    {"nvfp4_sm100", GemmKind::nvfp4, "sm100.nvfp4.chain", Format::e2m1},
    {"bf16_sm80", GemmKind::bf16, "sm80.bf16.chain", Format::bf16},
};

std::vector<std::uint8_t> codes(Format type, std::int64_t count, std::uint64_t seed, bool full_range) {
  Random random{seed};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_of(type, count)));
  if (bits_of(type) == 16) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto code = static_cast<std::uint16_t>(random.next());
      if (type == Format::bf16 && !full_range) code = static_cast<std::uint16_t>((code & 0x807F) | (128 - random.drop()) << 7);
      if (type == Format::bf16 && full_range && (code & 0x7F80) == 0x7F80) code ^= 0x4000;
      if (type == Format::f16) code = static_cast<std::uint16_t>((code & 0x83FF) | (16 - random.drop()) << 10);
      std::memcpy(&bytes[static_cast<std::size_t>(2 * i)], &code, 2);
    }
  } else {
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random.next());
      const auto drop = random.drop();
      if (type == Format::e4m3) byte = static_cast<std::uint8_t>((byte & 0x87) | (drop > 14 ? 0 : 14 - drop) << 3);
    }
  }
  return bytes;
}

void measure(benchmark::State& state, const Case& each, bool full_range) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const std::int64_t splits[] = {m};
  const auto x = codes(each.type, m * k, 1, full_range), w = codes(each.type, n * k, 2, full_range);
  std::vector<float> d(static_cast<std::size_t>(m * n));
  const std::size_t scales = static_cast<std::size_t>((m + 128) * (k / 16 + 4) + (n + 128) * (k / 16 + 4));
  std::vector<float> f32_scales(scales, 0.37f);
  std::vector<std::uint8_t> code_scales(scales, each.kind == GemmKind::nvfp4 ? 0x3A : 0x7D);
  const float amax = 3;

  GroupedGemmProblem problem;
  problem.kind = each.kind;
  problem.splits = splits;
  problem.rows = m;
  problem.N = n;
  problem.K = k;
  const bool codes_for_scales = each.kind == GemmKind::mxfp8 || each.kind == GemmKind::nvfp4;
  const void* scale = codes_for_scales ? static_cast<const void*>(code_scales.data()) : f32_scales.data();
  problem.x = {each.type, x.data(), scale, false, &amax};
  problem.w = {each.type, w.data(), scale, false, &amax};
  problem.weight_block = WeightBlock::b1x128;
  problem.plan = find_accumulation_plan(each.plan);
  for (auto _ : state) {
    grouped_gemm(problem, d.data());
    benchmark::DoNotOptimize(d.data());
  }
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(state.iterations() * m * n * k), benchmark::Counter::kIsRate);
  state.counters["threads"] = thread_count();
}

const int kRegistered = [] {
  const auto add = [](const Case& each, const std::string& name, bool full_range, std::vector<std::int64_t> shape) {
    benchmark::RegisterBenchmark(name.c_str(), [&each, full_range](benchmark::State& state) { measure(state, each, full_range); })
        ->Args(shape)
        ->ArgNames({"m", "n", "k"})
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (const Case& each : kCases) add(each, each.name, false, {64, 512, 2048});
  add(kCases[0], "bf16_sm90_every_exponent", true, {64, 512, 2048});  // the plain kernel: exponents past +-42
  for (const int index : {0, 2, 4}) add(kCases[index], kCases[index].name, false, {256, 4096, 7168});
  return 0;
}();

}  // namespace
