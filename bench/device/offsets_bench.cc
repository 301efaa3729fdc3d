// Offsets as a node of a graph: the time of a node, in a graph of 1000 that follow one another, beside those of kernels that
// do nothing, that store a word, and that store the word they load. No kernel that reads splits and writes offsets is faster
// than the last; the time of an offsets kernel beyond it is the kernel's own.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/layout/offsets.h"

namespace assay::bench {
namespace {

constexpr int kNodes = 1000;

// The kernels to compare with, compiled by the driver: this file is for a host compiler.
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
.visible .entry load_and_store(.param .u64 word) {
  .reg .u64 %at;
  .reg .u32 %value;
  ld.param.u64 %at, [word];
  cvta.to.global.u64 %at, %at;
  ld.global.u32 %value, [%at];
  add.u32 %value, %value, 1;
  st.global.u32 [%at+128], %value;
  ret;
}
)";

cudaKernel_t load_yardstick(const char* name) {
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
  graph.seconds_per_node();
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(graph.seconds_per_node());
    state.SetIterationTime(seconds.back());
  }
  check(cudaGetLastError(), figure.name.c_str());
  report(state, std::move(figure), seconds);
}

// Registers `body(state, figure)` under the figure's name.
template <class Body>
void add_node(const Figure& figure, Body&& body) {
  add(figure.name, [figure, body](benchmark::State& state) { body(state, figure); });
}

struct Yardstick {
  const char *kernel, *name;
  unsigned blocks, threads;
};
constexpr Yardstick kAllYardsticks[] = {
    {"nothing", "nothing", 1, 1},
    {"one_store", "one store", 1, 1},
    {"load_and_store", "one load, one store", 1, 1},
    {"nothing", "nothing, 1024 threads", 1, 1024},  // what the launch of more threads takes
    {"nothing", "nothing, 32 blocks of 32", 32, 32},
};

void run_yardstick(benchmark::State& state, const Figure& figure, const Yardstick& yardstick) {
  const DeviceBuffer words(256);
  void* to = words.as();
  void* arguments[] = {&to};
  const cudaKernel_t kernel = load_yardstick(yardstick.kernel);
  measure_node(state, figure, [&](int) {
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(yardstick.blocks), dim3(yardstick.threads), arguments, 0,
                           stream()),
          "cudaLaunchKernel");
  });
}

DeviceBuffer on_device_as(bool int32, const std::vector<std::int64_t>& values) {
  return int32 ? on_device(std::vector<std::int32_t>(values.begin(), values.end())) : on_device(values);
}
// Splits of a router that distributes 65536 rows.
DeviceBuffer splits_on_device(int groups, bool are_int32) { return on_device_as(are_int32, zipf_splits(groups, 65536)); }
DeviceBuffer columns_on_device(int groups, bool are_int32) {
  return on_device_as(are_int32, std::vector<std::int64_t>(static_cast<std::size_t>(groups), 7168));
}

Figure figure_of(const char* what, bool are_int32, int groups, std::int64_t bytes) {
  const std::string type = are_int32 ? "int32" : "int64", n = std::to_string(groups);
  return {std::string("node: ") + what + " of " + type + ", n = " + n, bytes,
          std::string("node=") + what + " input=" + type + " n=" + n};
}

// `outputs` alternate between exclusive and inclusive prefixes; every fourth of several is int32. A grouped linear
// layer needs eight.
void add_outputs(int outputs, bool are_int32, int groups) {
  const std::int64_t bytes = groups * (are_int32 ? 4 : 8) + outputs * (groups + 1) * 8;
  add_node(figure_of(outputs == 1 ? "offsets" : "8_offsets", are_int32, groups, bytes), [=](benchmark::State& state,
                                                                                            const Figure& figure) {
    const DeviceBuffer splits = splits_on_device(groups, are_int32), offsets(outputs * (groups + 1) * 8), status(4);
    std::vector<device::OffsetsOutput> targets;
    for (int o = 0; o < outputs; ++o) {
      targets.push_back({outputs == 1 ? 7168 : 1 + o, o % 2 == 0, o % 4 == 3, offsets.as<std::int64_t>() + o * (groups + 1)});
    }
    measure_node(state, figure, [&](int) {
      device::splits_to_offsets_multi(splits.as(), are_int32, groups, targets, status.as<std::uint32_t>(), stream());
    });
  });
}

// Elements of matrices of 7168 columns.
void add_two_dimensional(bool are_int32, int groups) {
  const std::int64_t bytes = (3 * groups + 1) * (are_int32 ? 4 : 8);
  add_node(figure_of("2d_offsets", are_int32, groups, bytes), [=](benchmark::State& state, const Figure& figure) {
    const DeviceBuffer first = splits_on_device(groups, are_int32), last = columns_on_device(groups, are_int32);
    const DeviceBuffer offsets((groups + 1) * 8), status(4);
    measure_node(state, figure, [&](int) {
      device::splits_to_offsets_2d(first.as(), last.as(), are_int32, groups, offsets.as(), status.as<std::uint32_t>(), stream());
    });
    std::uint32_t faults = 0;  // a call with a fault writes nothing, so its time is not valid
    check(cudaMemcpy(&faults, status.as(), 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (faults != 0) state.SkipWithError("the products do not fit");
  });
}

void register_all() {
  for (const Yardstick& each : kAllYardsticks) {
    const std::string name = std::string("node: ") + each.name;
    std::string node = each.name;
    std::replace(node.begin(), node.end(), ' ', '_');
    add_node({name, 4, "node=" + node},
             [&each](benchmark::State& state, const Figure& figure) { run_yardstick(state, figure, each); });
  }
  for (const bool are_int32 : {false, true}) {
    for (const int groups : {1, 8, 64, 256, 1024}) {
      add_outputs(1, are_int32, groups);
      add_outputs(8, are_int32, groups);
      add_two_dimensional(are_int32, groups);
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::register_all();
  return assay::bench::run_benchmarks(argc, argv);
}
