// Grouped GEMM on a rested and on a hot card (two_regimes.h): the production path, the bare cuBLASLt and the kernel of our own in turn,
// with the clock, the power and the energy of an operation beside the times. The same graphs as those of grouped_gemm_bench.cc.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/graph_load.h"
#include "bench/device/grouped_gemm_cases.h"
#include "bench/device/grouped_gemm_subjects.h"
#include "bench/device/two_regimes.h"

namespace assay::bench {
namespace {

// Counters PREFIXshort_us, PREFIXshort_MHz, PREFIXshort_W, PREFIXshort_pJ, and the same of sustained. pJ: of a floating-point operation.
void count(benchmark::State& state, const std::string& prefix, const Regime& regime, double flops) {
  state.counters[prefix + "_us"] = regime.seconds * 1e6;
  state.counters[prefix + "_MHz"] = regime.board.mhz;
  state.counters[prefix + "_W"] = regime.board.watts;
  state.counters[prefix + "_pJ"] = regime.picojoules(flops);
}

void compare_regimes(benchmark::State& state, const Case& c) {
  static const DeviceCard card;
  const Subjects subjects(c);
  const int calls = calls_of(c);
  const GraphOf production(calls, [&](int i) { subjects.run_production(i); });
  const GraphOf library(calls, [&](int i) { subjects.run_library(i); });
  std::optional<GraphOf> own, any_scales;
  if (subjects.has_own()) own.emplace(calls, [&](int i) { subjects.run_own(i); });
  if (subjects.promises_scales()) any_scales.emplace(calls, [&](int i) { subjects.run_own_of_any_scales(i); });
  GraphLoad of_production(production), of_library(library);
  std::optional<GraphLoad> of_own, of_any_scales;
  std::vector<GraphLoad*> loads{&of_production, &of_library};
  if (own) loads.push_back(&of_own.emplace(*own));
  if (any_scales) loads.push_back(&of_any_scales.emplace(*any_scales));
  for (auto _ : state) {
    InTurn all = measure_in_turn(loads, card);
    const char* const names[] = {"", "library_", "own_", "any_scales_"};
    for (std::size_t i = 0; i < all.loads.size(); ++i) {
      for (Regime* const each : {&all.loads[i].short_run, &all.loads[i].sustained}) each->seconds /= calls;
      count(state, std::string(names[i]) + "short", all.loads[i].short_run, c.flops());
      count(state, std::string(names[i]) + "sustained", all.loads[i].sustained, c.flops());
    }
    state.counters["short_of_library"] = all.short_ratios[1];
    state.counters["sustained_of_library"] = all.sustained_ratios[1];
    if (own) {
      state.counters["short_of_own"] = all.short_ratios[2];
      state.counters["sustained_of_own"] = all.sustained_ratios[2];
    }
    if (any_scales) {
      state.counters["short_of_any_scales"] = all.short_ratios[3];
      state.counters["sustained_of_any_scales"] = all.sustained_ratios[3];
    }
    state.SetIterationTime(all.loads[0].sustained.seconds);
  }
  subjects.check_status("the replays");
  state.SetLabel(c.label("regimes"));
  state.counters["flops"] = c.flops();
}

void run_regimes(benchmark::State& state, const Case& c) {
  try {
    compare_regimes(state, c);
  } catch (const std::exception& error) {
    end_capture();
    state.SkipWithError(error.what());
  }
}

void add_all() {
  for (const Case& c : kRegimeCases) {
    add(
        c.name() + " short and sustained", [c](benchmark::State& state) { run_regimes(state, c); }, 1)
        ->Repetitions(1);  // it has turns of its own
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  return assay::bench::run_benchmarks(argc, argv);
}
