#pragma once
// What the device benchmarks share: buffers of random normal data, ragged splits, times from CUDA events, and the copy of
// the same run that every figure is a share of.
//
// A benchmark hands over a launch and the bytes that it must move (each input read once, each output written once):
//
//   void rowwise(benchmark::State& state) {
//     const Subject subject{.kernel = "1x128", .rowwise = true, .rows = rows, .columns = columns};
//     measure(state, {"1x128 rowwise", bytes, subject.label()}, [&](int i) { quantize(call[i % 2], stream()); });
//   }
//   int main(int argc, char** argv) { register_all(); return run_benchmarks(argc, argv); }
//
// Launches follow one another within a pair of events, so that the gap between host and device is not counted; the time of
// an iteration is that of one launch. Inputs should be larger than L2 or rotate with `i`.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/format.h"

namespace assay::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(9);
}

inline cudaStream_t stream() {
  static const cudaStream_t made = [] {
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return s;
  }();
  return made;
}

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::int64_t bytes) : bytes_(bytes) {
    if (bytes > 0) check(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), "cudaMalloc");
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

template <class T>
DeviceBuffer on_device(const std::vector<T>& values) {
  DeviceBuffer buffer(static_cast<std::int64_t>(values.size() * sizeof(T)));
  check(cudaMemcpy(buffer.as(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return buffer;
}

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

// A counter turned into 64 bits that look random (the finalizer of splitmix64).
inline std::uint64_t scramble(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9E3779B97F4A7C15u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// Standard normal values in bf16, f16 or f32. A few million different ones, repeated: more random than any code looks.
inline DeviceBuffer normal_values(Format type, std::int64_t elements, std::uint64_t seed = 1) {
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
    } else {  // truncated, and what is below 2^-14 is 0
      const std::uint32_t exponent = bits >> 23 & 0xFF;
      const std::uint32_t magnitude = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits >> 13 & 0x3FF);
      reinterpret_cast<std::uint16_t*>(host.data())[i] = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | magnitude);
    }
  }
  DeviceBuffer buffer(elements * element_bytes);
  check(cudaMemcpy(buffer.as(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  const std::int64_t bytes = buffer.bytes();
  for (std::int64_t done = distinct * element_bytes; done < bytes;) {
    const std::int64_t part = std::min(done, bytes - done);
    check(cudaMemcpy(buffer.as<char>() + done, buffer.as(), static_cast<std::size_t>(part), cudaMemcpyDeviceToDevice),
          "cudaMemcpy");
    done += part;
  }
  return buffer;
}

// Normal bf16 values of one size, made once a process: filling it takes longer than the benchmarks.
inline const DeviceBuffer& shared_x(std::int64_t elements, int copy) {
  static std::map<std::pair<std::int64_t, int>, DeviceBuffer> made;
  auto& buffer = made[{elements, copy}];
  if (buffer.bytes() == 0) buffer = normal_values(Format::bf16, elements, static_cast<std::uint64_t>(copy + 1));
  return buffer;
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
double seconds_a_launch(int launches, Launch&& launch) {
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
  double seconds_a_node() const {
    return seconds_a_launch(1, [&](int) { check(cudaGraphLaunch(replay_, stream()), "cudaGraphLaunch"); }) / nodes_;
  }

 private:
  int nodes_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Bytes a second, read plus written, of a device-to-device copy of 4 GiB (of less where memory is short).
inline double measure_copy() {
  std::size_t free_bytes = 0, all_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  const std::int64_t bytes = std::min<std::int64_t>(std::int64_t{4} << 30, static_cast<std::int64_t>(free_bytes / 4));
  const DeviceBuffer from = normal_values(Format::bf16, bytes / 2), to(bytes);
  std::vector<double> seconds;
  for (int i = 0; i < 13; ++i) {
    const double once = seconds_a_launch(3, [&](int) {
      check(cudaMemcpyAsync(to.as(), from.as(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream()),
            "cudaMemcpyAsync");
    });
    if (i >= 2) seconds.push_back(once);  // the first ones wake the device
  }
  return 2.0 * static_cast<double>(bytes) / median(seconds);
}
// Measured once, before the first benchmark.
inline double copy_rate() {
  static const double rate = measure_copy();
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
};
inline std::vector<Figure>& figures() {
  static std::vector<Figure> all;
  return all;
}

// Keeps the latest figure of this name for the table.
inline void record(const Figure& figure) {
  for (Figure& known : figures()) {
    if (known.name == figure.name) {
      known = figure;
      return;
    }
  }
  figures().push_back(figure);
}

inline void report(benchmark::State& state, Figure figure, const std::vector<double>& seconds) {
  figure.seconds = median(seconds);
  const double rate = static_cast<double>(figure.bytes) / figure.seconds;
  state.counters["bytes"] = static_cast<double>(figure.bytes);
  state.counters["median_us"] = figure.seconds * 1e6;
  state.counters["TB/s"] = rate * 1e-12;
  state.counters["of_copy"] = rate / copy_rate();
  if (!figure.label.empty()) state.SetLabel(figure.label);
  record(figure);
}

// The body of a benchmark with manual time. `launch(i)`, i = 0, 1, ..., enqueues one launch on stream().
template <class Launch>
void measure(benchmark::State& state, Figure figure, Launch&& launch, int launches = 10) {
  copy_rate();
  seconds_a_launch(launches, launch);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_a_launch(launches, launch));
    state.SetIterationTime(seconds.back());
  }
  check(cudaGetLastError(), figure.name.c_str());
  report(state, std::move(figure), seconds);
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
  const double again = measure_copy();
  std::printf("\ncopy of 4 GiB: %.3f TB/s before, %.3f TB/s after\n\n", copy_rate() * 1e-12, again * 1e-12);
  std::printf("| %-58s | %9s | %11s | %6s | %7s |\n", "kernel", "us", "MB", "TB/s", "of copy");
  std::printf("|%s|%s:|%s:|%s:|%s:|\n", std::string(60, '-').c_str(), std::string(10, '-').c_str(),
              std::string(12, '-').c_str(), std::string(7, '-').c_str(), std::string(8, '-').c_str());
  for (const Figure& figure : figures()) {
    const double rate = static_cast<double>(figure.bytes) / figure.seconds;
    std::printf("| %-58s | %9.2f | %11.3f | %6.3f | %7.3f |\n", figure.name.c_str(), figure.seconds * 1e6,
                static_cast<double>(figure.bytes) * 1e-6, rate * 1e-12, rate / copy_rate());
  }
}

// The rest of main(): runs what was added and prints the table. 9 where there is no device.
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
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
  benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));
  benchmark::AddCustomContext("copy_TB/s", std::to_string(copy_rate() * 1e-12));
  if (benchmark::RunSpecifiedBenchmarks() == 0) return 4;
  benchmark::Shutdown();
  if (!figures().empty()) print_table();
  return 0;
}

}  // namespace assay::bench
