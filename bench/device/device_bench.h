#pragma once
// Shared by the device benchmarks: buffers of random normal data, ragged splits, times from CUDA events, and the copy of
// the same run, of which every figure is a share.
//
// A benchmark passes a launch and the bytes that it must move (each input read once, each output written once):
//
//   void rowwise(benchmark::State& state) {
//     const Subject subject{.kernel = "1x128", .rowwise = true, .rows = rows, .columns = columns};
//     measure(state, {"1x128 rowwise", bytes, subject.label()}, [&](int i) { quantize(call[i % 2], stream()); });
//   }
//   int main(int argc, char** argv) { register_all(); return run_benchmarks(argc, argv); }
//
// Launches follow one another within a pair of events, so that the gap between host and device is not counted; the time of
// an iteration is that of one launch. Inputs should be larger than L2 or rotate with `i`.
//
// A case should not depend on earlier cases of the process: its buffers lie in the same places with the same contents
// (device_buffer.h), a copy of 4 GiB, a memset and some milliseconds of its own launches run before its time is measured, and
// its share is of that copy and the one after it.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/command_line.h"
#include "bench/device/device_buffer.h"
#include "reference/types/format.h"
#include "reference/types/sizes.h"

namespace assay::bench {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

// A counter turned into 64 bits that look random (the finalizer of splitmix64).
inline std::uint64_t scramble(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9E3779B97F4A7C15u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// Standard normal values in bf16, f16 or f32. A few million different ones, repeated.
inline DeviceBuffer normal_values(Format type, std::int64_t elements, std::uint64_t seed = 1,
                                  Lifetime lifetime = Lifetime::one_case) {
  const std::int64_t element_bytes = bytes_of(type, 1), distinct = std::min<std::int64_t>(elements, 4'000'037);
  std::vector<std::uint8_t> host(static_cast<std::size_t>(distinct * element_bytes));
  for (std::int64_t i = 0; i < distinct; ++i) {
    const std::uint64_t random = scramble(seed << 40 ^ static_cast<std::uint64_t>(i));
    const double u = (static_cast<double>(random >> 32) + 0.5) * 0x1p-32;
    const double v = static_cast<double>(random & 0xFFFFFFFFu) * 0x1p-32;
    const float value = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    if (type == Format::f32) {
      reinterpret_cast<std::uint32_t*>(host.data())[i] = bits;
    } else if (type == Format::bf16) {
      reinterpret_cast<std::uint16_t*>(host.data())[i] = static_cast<std::uint16_t>(bits >> 16);
    } else {  // truncated, and values below 2^-14 are 0
      const std::uint32_t exponent = bits >> 23 & 0xFF;
      const std::uint32_t magnitude = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits >> 13 & 0x3FF);
      reinterpret_cast<std::uint16_t*>(host.data())[i] = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | magnitude);
    }
  }
  DeviceBuffer buffer(elements * element_bytes, lifetime);
  check(cudaMemcpyAsync(buffer.as(), host.data(), host.size(), cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
  const std::int64_t bytes = buffer.bytes();
  for (std::int64_t done = distinct * element_bytes; done < bytes;) {
    const std::int64_t part = std::min(done, bytes - done);
    check(cudaMemcpyAsync(buffer.as<char>() + done, buffer.as(), static_cast<std::size_t>(part), cudaMemcpyDeviceToDevice,
                          stream()),
          "cudaMemcpyAsync");
    done += part;
  }
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  return buffer;
}

// Part of a buffer.
struct DevicePart {
  void* data = nullptr;
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Normal bf16 values, of which `copy` 0, 1, ... have none in common. Parts of one buffer of 2 GiB that is made once per process:
// their places do not depend on the sizes requested before.
inline DevicePart shared_x(std::int64_t elements, int copy) {
  static const DeviceBuffer values = normal_values(Format::bf16, std::int64_t{1} << 30, 1, Lifetime::process);
  const std::int64_t bytes = round_up(2 * elements, BufferPlaces::kPage), first = copy * bytes;
  if (first + bytes > values.bytes()) {
    std::fprintf(stderr, "shared_x: copy %d of %lld elements is beyond 2 GiB\n", copy, static_cast<long long>(elements));
    std::exit(9);
  }
  return {values.as<char>() + first};
}

// Rows of `groups` groups that sum to `rows`, sizes falling as 1/rank, in random order, one in eight empty. Row counts are
// multiples of `unit` (1: ragged).
inline std::vector<std::int64_t> zipf_splits(int groups, std::int64_t rows, std::int64_t unit = 1, std::uint64_t seed = 7) {
  std::vector<int> order(static_cast<std::size_t>(groups));
  for (int i = 0; i < groups; ++i) order[static_cast<std::size_t>(i)] = i;
  for (int i = groups - 1; i > 0; --i) {
    const auto j = scramble(seed + static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(i + 1);
    std::swap(order[static_cast<std::size_t>(i)], order[j]);
  }
  const int taken = groups - groups / 8;
  double total = 0;
  for (int i = 0; i < taken; ++i) total += 1.0 / (i + 1);
  std::vector<std::int64_t> splits(static_cast<std::size_t>(groups), 0);
  std::int64_t left = rows;
  for (int i = taken - 1; i >= 0; --i) {
    const auto share = static_cast<std::int64_t>(static_cast<double>(rows) / total / (i + 1));
    const std::int64_t own = i == 0 ? left : std::min(left, share / unit * unit);
    splits[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = own;
    left -= own;
  }
  return splits;
}

// Seconds of one launch: the mean over `launches` that follow one another in a stream.
template <class Launch>
double seconds_per_launch(int launches, Launch&& launch) {
  static cudaEvent_t events[2] = {};
  for (cudaEvent_t& event : events) {
    if (event == nullptr) check(cudaEventCreate(&event), "cudaEventCreate");
  }
  check(cudaEventRecord(events[0], stream()), "cudaEventRecord");
  for (int i = 0; i < launches; ++i) launch(i);
  check(cudaEventRecord(events[1], stream()), "cudaEventRecord");
  check(cudaEventSynchronize(events[1]), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, events[0], events[1]), "cudaEventElapsedTime");
  return milliseconds * 1e-3 / launches;
}

// Seconds of one launch as a node of a graph of `nodes` launches: for kernels that are shorter than a launch takes.
class GraphOf {
 public:
  template <class Launch>
  GraphOf(int nodes, Launch&& launch) : nodes_(nodes) {
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < nodes; ++i) launch(i);
    check(cudaStreamEndCapture(stream(), &graph_), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&replay_, graph_, 0), "cudaGraphInstantiate");
  }
  GraphOf(const GraphOf&) = delete;
  ~GraphOf() {
    cudaGraphExecDestroy(replay_);
    cudaGraphDestroy(graph_);
  }
  void launch() const { check(cudaGraphLaunch(replay_, stream()), "cudaGraphLaunch"); }
  int nodes() const { return nodes_; }
  double seconds_per_node() const {
    return seconds_per_launch(1, [&](int) { launch(); }) / nodes_;
  }

 private:
  int nodes_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

// After an error within a capture.
inline void end_capture() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(), &status), "cudaStreamIsCapturing");
  if (status == cudaStreamCaptureStatusNone) return;
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream(), &graph);  // an error here is that of the capture, which is known
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Bytes per second, read plus written, of a device-to-device copy of 4 GiB (of less where memory is short): the median of
// `times` rows of `in_a_row` copies.
inline double measure_copy(int times, int in_a_row) {
  static const std::int64_t bytes = std::min(std::int64_t{4} << 30, Arena::get().bytes() / 8);
  static const DeviceBuffer from = normal_values(Format::bf16, bytes / 2, 1, Lifetime::process), to(bytes, Lifetime::process);
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    seconds.push_back(seconds_per_launch(in_a_row, [&](int) {
      check(cudaMemcpyAsync(to.as(), from.as(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream()),
            "cudaMemcpyAsync");
    }));
  }
  return 2.0 * static_cast<double>(bytes) / median(seconds);
}
// Of the process: measured once, before the first benchmark, and printed in its context.
inline double copy_rate() {
  static const double rate = (measure_copy(2, 3), measure_copy(11, 3));  // the first ones wake the device
  return rate;
}
// Beside a case: a median over 12 ms or so, and then a memset of 256 MiB, so that L2 holds the same before each case. What it holds can
// stay for any number of launches of a kernel with evict-first accesses, and slow it down (docs/measured.md).
inline double copy_rate_now() {
  static const DeviceBuffer settled(std::int64_t{256} << 20, Lifetime::process);
  const double rate = measure_copy(3, 2);
  check(cudaMemsetAsync(settled.as(), 0, static_cast<std::size_t>(settled.bytes()), stream()), "cudaMemsetAsync");
  return rate;
}

// A kernel over a matrix, for the tables of bench/table.py.
struct Subject {
  std::string kernel, options{};  // options: words joined by '+'
  bool rowwise = false, columnwise = false;
  Format input = Format::bf16;
  int groups = 0;  // ragged; 0: one tensor
  std::int64_t rows = 0, columns = 0;

  std::string label() const {
    std::string text = "kernel=" + kernel;
    if (!options.empty()) text += " options=" + options;
    if (rowwise || columnwise) text += std::string(" direction=") + (!columnwise ? "rowwise" : !rowwise ? "columnwise" : "both");
    text += " input=" + std::string(name_of(input));
    return text + " groups=" + std::to_string(groups) + " rows=" + std::to_string(rows) + " columns=" + std::to_string(columns);
  }
};

struct Figure {
  std::string name;
  std::int64_t bytes = 0;  // that a launch must move
  std::string label{};     // what was measured, as KEY=VALUE words that bench/table.py reads
  double seconds = 0;      // median of one launch
  double copy_rate = 0;    // bytes per second that it is a share of; 0: that of the process

  double rate() const { return static_cast<double>(bytes) / seconds; }
  double of_copy() const { return rate() / (copy_rate == 0 ? bench::copy_rate() : copy_rate); }
};
inline std::vector<Figure>& figures() {
  static std::vector<Figure> all;
  return all;
}

// Stores the latest figure of this name for the table.
inline void record(const Figure& figure) {
  for (Figure& known : figures()) {
    if (known.name == figure.name) {
      known = figure;
      return;
    }
  }
  figures().push_back(figure);
}

inline Figure report(benchmark::State& state, Figure figure, const std::vector<double>& seconds) {
  figure.seconds = median(seconds);
  state.counters["bytes"] = static_cast<double>(figure.bytes);
  state.counters["median_us"] = figure.seconds * 1e6;
  state.counters["TB/s"] = figure.rate() * 1e-12;
  state.counters["of_copy"] = figure.of_copy();
  if (!figure.label.empty()) state.SetLabel(figure.label);
  record(figure);
  return figure;
}

// The body of a benchmark with manual time. `launch(i)`, i = 0, 1, ..., enqueues one launch on stream(). The figure is a share
// of the mean of the copies just before and just after it.
template <class Launch>
Figure measure(benchmark::State& state, Figure figure, Launch&& launch, int launches = 10) {
  constexpr double kWarmUp = 5e-3;  // seconds
  copy_rate();
  const double before = copy_rate_now();
  for (double warm = 0; warm < kWarmUp;) warm += launches * seconds_per_launch(launches, launch);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_per_launch(launches, launch));
    state.SetIterationTime(seconds.back());
  }
  check(cudaGetLastError(), figure.name.c_str());
  figure.copy_rate = (before + copy_rate_now()) / 2;
  return report(state, std::move(figure), seconds);
}

// Registers `body` under `name` with manual time; iterations enough for a median, few enough for a short run.
template <class Body>
benchmark::internal::Benchmark* add(const std::string& name, Body&& body, int iterations = 31) {
  return benchmark::RegisterBenchmark(name.c_str(), std::forward<Body>(body))
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMicrosecond);
}

inline void print_table() {
  std::printf("\ncopy of 4 GiB: %.3f TB/s before all, %.3f TB/s after; a share is of the copies beside its case\n\n",
              copy_rate() * 1e-12, measure_copy(11, 3) * 1e-12);
  std::printf("| %-58s | %9s | %11s | %6s | %7s |\n", "kernel", "us", "MB", "TB/s", "of copy");
  std::printf("|%s|%s:|%s:|%s:|%s:|\n", std::string(60, '-').c_str(), std::string(10, '-').c_str(), std::string(12, '-').c_str(),
              std::string(7, '-').c_str(), std::string(8, '-').c_str());
  for (const Figure& figure : figures()) {
    std::printf("| %-58s | %9.2f | %11.3f | %6.3f | %7.3f |\n", figure.name.c_str(), figure.seconds * 1e6,
                static_cast<double>(figure.bytes) * 1e-6, figure.rate() * 1e-12, figure.of_copy());
  }
}

// The rest of main(): runs the registered benchmarks and prints the table (bench/command_line.h describes the words). 2 for
// wrong usage, 4 where no name has the words, 9 without a device.
inline int run_benchmarks(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was measured\n");
    return 9;
  }
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  try {
    CommandLine line(argc, argv);
    line.initialize();
    benchmark::AddCustomContext("device", device.name);
    benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
    benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));
    if (!line.lists()) benchmark::AddCustomContext("copy_TB/s", std::to_string(copy_rate() * 1e-12));
    const int code = line.run();
    benchmark::Shutdown();
    if (code == 0 && !figures().empty()) print_table();
    return code;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}

}  // namespace assay::bench
