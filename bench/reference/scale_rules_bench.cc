// Quantization by a scale rule on the CPU, beside the recipe of TransformerEngine with the same blocks: elements of x per second, bf16
// 2048 x 4096 from memory, rowwise codes and scales. Pairs have one name but for the last word: rule/... and recipe/...

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/recipes/quantize.h"
#include "reference/rules/quantize_by_rule.h"

namespace assay {
namespace {

constexpr std::int64_t kRows = 2048, kColumns = 4096;

std::vector<std::uint16_t> bf16_values() {
  std::vector<std::uint16_t> x(kRows * kColumns);
  std::uint64_t state = 1;
  for (std::uint16_t& each : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    each = static_cast<std::uint16_t>(state >> 48 & 0x83ff) | 0x3c00;
  }
  return x;
}

void count(benchmark::State& state) {
  state.counters["elements"] =
      benchmark::Counter(static_cast<double>(kRows * kColumns), benchmark::Counter::kIsIterationInvariantRate);
}

void by_rule(benchmark::State& state, const char* preset, BlockShape block) {
  const std::vector<std::uint16_t> x = bf16_values();
  RuleProblem problem;
  problem.rule = find_scale_rule(preset);
  problem.output = problem.rule->outputs.front();
  problem.block = block;
  problem.x = x.data();
  problem.rows = kRows;
  problem.columns = kColumns;
  const RuleShapes shapes = rule_outputs(problem);
  std::vector<std::uint8_t> data(static_cast<std::size_t>(shapes.data_bytes)),
      scale(static_cast<std::size_t>(shapes.scale_bytes));
  for (auto _ : state) {
    quantize_by_rule(problem, {data.data(), scale.data(), nullptr});
    benchmark::ClobberMemory();
  }
  count(state);
}

void by_recipe(benchmark::State& state, Recipe recipe) {
  const std::vector<std::uint16_t> x = bf16_values();
  QuantizeProblem problem;
  problem.config.recipe = recipe;
  problem.config.output = recipe == Recipe::nvfp4 ? Format::e2m1 : Format::e4m3;
  problem.x = x.data();
  problem.rows = kRows;
  problem.columns = kColumns;
  const QuantizeShapes shapes = quantize_outputs(problem);
  std::vector<std::uint8_t> data(static_cast<std::size_t>(shapes.rowwise_data.bytes()));
  std::vector<std::uint8_t> scale(static_cast<std::size_t>(shapes.rowwise_scale_inv.bytes()));
  QuantizeOutput output;
  output.rowwise_data = data.data();
  output.rowwise_scale_inv = scale.data();
  for (auto _ : state) {
    quantize(problem, output);
    benchmark::ClobberMemory();
  }
  count(state);
}

const bool kRegistered = [] {
  struct Pair {
    const char *name, *preset;
    BlockShape block;
    Recipe recipe;
  };
  for (const Pair& each :
       {Pair{"block_1x128", "te", {1, 128}, Recipe::block_1x128}, Pair{"block_128x128", "te", {128, 128}, Recipe::block_128x128},
        Pair{"per_tensor", "te.per_tensor", {0, 0}, Recipe::tensor_current}, Pair{"mx", "te.mx", {1, 32}, Recipe::mxfp8},
        Pair{"nvfp4", "nvfp4.te", {1, 16}, Recipe::nvfp4}}) {
    benchmark::RegisterBenchmark((std::string("scale_rules/") + each.name + "/recipe").c_str(), by_recipe, each.recipe)
        ->UseRealTime();
    benchmark::RegisterBenchmark((std::string("scale_rules/") + each.name + "/rule").c_str(), by_rule, each.preset, each.block)
        ->UseRealTime();
  }
  for (const char* preset : {"deepgemm", "vllm.group", "deepgemm.fp4", "torchao.mx_rceil"}) {
    benchmark::RegisterBenchmark((std::string("scale_rules/") + preset + "/rule").c_str(), by_rule, preset,
                                 find_scale_rule(preset)->blocks.front())
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace assay
