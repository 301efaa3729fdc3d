// Steps of a grouped linear layer on the CPU, quantization included: multiply-adds per second ("MAC/s") by recipe and step.
// The weights of forward and dgrad come from a cache, as in every microbatch but the first; quantize_weights renews it.
// ASSAY_THREADS sets the number of threads.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"
#include "reference/support/parallel.h"

namespace {

using namespace assay;

constexpr std::int64_t kSplits[] = {96, 0, 160, 256};
constexpr std::int64_t kRows = 512, kN = 512, kK = 1024, kGroups = 4;

// bf16 whose exponents fall off by halves, as those of a normal distribution do.
std::vector<std::uint16_t> values(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> made(static_cast<std::size_t>(count));
  for (std::uint16_t& each : made) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto drop = static_cast<std::uint32_t>(__builtin_ctzll(seed >> 40 | 0x1000));
    each = static_cast<std::uint16_t>((seed >> 33 & 0x807F) | (127 - drop) << 7);
  }
  return made;
}

enum class Step { quantize_weights, forward, dgrad, wgrad, dbias };
constexpr const char* kStepNames[] = {"quantize_weights", "forward", "dgrad", "wgrad", "dbias"};

void measure(benchmark::State& state, LinearRecipe recipe, Step step) {
  LinearConfig config;
  config.recipe = recipe;
  if (recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4) config.architecture = "sm100";
  const LinearShape shape{kSplits, kRows, kN, kK};
  const auto x = values(kRows * kK, 1), dy = values(kRows * kN, 2), w = values(kGroups * kN * kK, 3);
  const std::vector<float> scales(kGroups, 16.0f);
  std::vector<std::uint16_t> y(kRows * kN), dx(kRows * kK), sums(kGroups * kN);
  std::vector<float> dw(kGroups * kN * kK);
  LinearWeightCache cache;
  linear_quantize_weights(config, shape, w.data(), scales.data(), nullptr, cache);
  for (auto _ : state) {
    switch (step) {
      case Step::quantize_weights: linear_quantize_weights(config, shape, w.data(), scales.data(), nullptr, cache); break;
      case Step::forward:
        linear_forward(config, shape, {x.data(), w.data(), &cache, nullptr, scales.data(), nullptr}, y.data());
        break;
      case Step::dgrad: linear_dgrad(config, shape, {dy.data(), w.data(), &cache, scales.data(), nullptr}, dx.data()); break;
      case Step::wgrad:
        linear_wgrad(config, shape, {dy.data(), x.data(), scales.data(), scales.data(), Format::f32, true}, dw.data());
        break;
      case Step::dbias: linear_dbias(config, shape, dy.data(), sums.data()); break;
    }
    benchmark::ClobberMemory();
  }
  const auto rate = [&](std::int64_t each) {
    return benchmark::Counter(static_cast<double>(state.iterations() * each), benchmark::Counter::kIsRate);
  };
  if (step == Step::quantize_weights) {
    state.counters["elem/s"] = rate(kGroups * kN * kK);
  } else if (step == Step::dbias) {
    state.counters["elem/s"] = rate(kRows * kN);
  } else {
    state.counters["MAC/s"] = rate(kRows * kN * kK);
  }
  state.counters["threads"] = thread_count();
}

const int kRegistered = [] {
  for (const LinearRecipe recipe : {LinearRecipe::none, LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                    LinearRecipe::block, LinearRecipe::mxfp8, LinearRecipe::nvfp4}) {
    for (const Step step : {Step::quantize_weights, Step::forward, Step::dgrad, Step::wgrad, Step::dbias}) {
      if (recipe == LinearRecipe::none && step == Step::quantize_weights) continue;  // nothing is kept
      if (recipe != LinearRecipe::none && step == Step::dbias) continue;             // the same for every recipe
      const std::string name = std::string(name_of(recipe)) + "/" + kStepNames[static_cast<int>(step)];
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { measure(state, recipe, step); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  return 0;
}();

}  // namespace
