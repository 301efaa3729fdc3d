// Offsets as a node of a graph: the time of a node, in a graph of 1000 that follow one another, beside that of a kernel that
// does nothing and of one that stores a word. What an offsets kernel takes beyond those is its own.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/layout/offsets.h"

namespace assay::bench {
namespace {

constexpr int kNodes = 1000;

// The two yardsticks, for the driver to compile: this file is for a host compiler.
constexpr char kYardsticks[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry one_store(.param .u64 word) {
  .reg .u64 %to;
  ld.param.u64 %to, [word];
  cvta.to.global.u64 %to, %to;
  st.global.u32 [%to], 1;
  ret;
}
)";

cudaKernel_t yardstick(const char* name) {
  static const cudaLibrary_t library = [] {
    cudaLibrary_t loaded = nullptr;
    check(cudaLibraryLoadData(&loaded, kYardsticks, nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData");
    return loaded;
  }();
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, name), "cudaLibraryGetKernel");
  return kernel;
}

// The body of a benchmark of one node.
template <class Launch>
void measure_node(benchmark::State& state, Figure figure, Launch&& launch) {
  copy_rate();
  const GraphOf graph(kNodes, launch);
  graph.seconds_a_node();
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(graph.seconds_a_node());
    state.SetIterationTime(seconds.back());
  }
  report(state, std::move(figure), seconds);
}

void run_yardstick(benchmark::State& state, const char* name) {
  const DeviceBuffer word(256);
  void* to = word.as();
  void* arguments[] = {&to};
  const cudaKernel_t kernel = yardstick(name);
  measure_node(state, {std::string("node: ") + name, 4}, [&](int) {
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, stream()), "cudaLaunchKernel");
  });
}

void one_output(benchmark::State& state, int groups) {
  const DeviceBuffer splits = on_device(zipf_splits(groups, 65536)), offsets((groups + 1) * 8), status(256);
  check(cudaMemset(status.as(), 0, 256), "cudaMemset");
  measure_node(state, {"node: offsets, n = " + std::to_string(groups), groups * 16 + 8}, [&](int) {
    device::splits_to_offsets(splits.as<std::int64_t>(), groups, 7168, offsets.as<std::int64_t>(), status.as<std::uint32_t>(),
                              stream());
  });
}

// As many as a grouped linear layer wants.
void eight_outputs(benchmark::State& state, int groups) {
  constexpr int kOutputs = 8;
  const DeviceBuffer splits = on_device(zipf_splits(groups, 65536)), offsets(kOutputs * (groups + 1) * 8), status(256);
  check(cudaMemset(status.as(), 0, 256), "cudaMemset");
  std::vector<device::OffsetsOutput> outputs;
  for (int i = 0; i < kOutputs; ++i) {
    outputs.push_back({1 + i, i % 2 == 0, i % 4 == 3, offsets.as<std::int64_t>() + i * (groups + 1)});
  }
  measure_node(state, {"node: 8 outputs, n = " + std::to_string(groups), groups * 8 + kOutputs * (groups + 1) * 8}, [&](int) {
    device::splits_to_offsets_multi(splits.as(), false, groups, outputs, status.as<std::uint32_t>(), stream());
  });
}

void two_dimensional(benchmark::State& state, int groups) {
  const DeviceBuffer first = on_device(zipf_splits(groups, 65536)), last = on_device(zipf_splits(groups, 65536, 1, 9));
  const DeviceBuffer offsets((groups + 1) * 8), status(256);
  check(cudaMemset(status.as(), 0, 256), "cudaMemset");
  measure_node(state, {"node: 2-D, n = " + std::to_string(groups), groups * 24 + 8}, [&](int) {
    device::splits_to_offsets_2d(first.as(), last.as(), false, groups, offsets.as(), status.as<std::uint32_t>(), stream());
  });
}

void register_all() {
  for (const char* name : {"nothing", "one_store"}) {
    add(std::string("node: ") + name, [name](benchmark::State& state) { run_yardstick(state, name); });
  }
  for (const int groups : {8, 64, 256, 1024}) {
    const std::string n = ", n = " + std::to_string(groups);
    add("node: offsets" + n, [groups](benchmark::State& state) { one_output(state, groups); });
    add("node: 8 outputs" + n, [groups](benchmark::State& state) { eight_outputs(state, groups); });
    add("node: 2-D" + n, [groups](benchmark::State& state) { two_dimensional(state, groups); });
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::register_all();
  return assay::bench::run_benchmarks(argc, argv);
}
