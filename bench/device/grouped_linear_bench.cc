// A training step of a grouped linear layer: forward, dgrad and wgrad with everything that is quantized on the way (w in both
// directions, as in the first microbatch of a step). 8 groups, 32768 rows, K = 7168 in, N = 4096 out; x, w and dy random
// normal bf16, dw f32.
//
//   eager     the calls of the module, one step after another, and a step by itself
//   replay    the same from one graph
//   quantize  a graph of the step without its products: bytes are those of x, dy and w read once and their codes written
//   products  a graph of the step without its quantization
//
// Each case first runs eagerly and from the graph and compares what came out, byte for byte.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/linear/grouped_linear.h"
#include "device/linear/linear_kernels.h"
#include "device/support/error.h"

namespace assay::bench {
namespace {

struct Case {
  const char* recipe_name;
  LinearRecipe recipe;
  bool ragged;  // rows of the groups fall as 1/rank, multiples of 128, one group empty
  bool bias;
  std::int64_t rows = 32768, N = 4096, K = 7168;
  int groups = 8;

  std::string name() const {
    return std::string(recipe_name) + (bias ? " bias" : "") + (ragged ? " ragged" : "") + " " + std::to_string(groups) +
           "x" + std::to_string(rows / groups) + " " + std::to_string(N) + "x" + std::to_string(K);
  }
  double flops() const { return 3 * 2.0 * static_cast<double>(rows) * static_cast<double>(N) * static_cast<double>(K); }
  bool quantizes() const { return recipe != LinearRecipe::none; }
  // Codes of a byte in both directions; the scales of 1x128 and of 128x128 (f32) besides.
  std::int64_t quantized_bytes() const {
    const std::int64_t of_rows = rows * K + rows * N, of_weights = groups * N * K;
    const std::int64_t scales = recipe == LinearRecipe::block ? 2 * 4 * (of_rows / 128 + of_weights / 16384) : 0;
    return (of_rows + of_weights) * (2 + 1 + 1) + scales;
  }
};

// One row of the table.
struct Line {
  std::string name, path;
  double eager = 0, eager_alone = 0, host = 0, replay = 0, replay_alone = 0, quantize = 0, products = 0, flops = 0;
};
std::vector<Line>& lines() {
  static std::vector<Line> all;
  return all;
}
Line& line_of(const std::string& name) {
  for (Line& line : lines()) {
    if (line.name == name) return line;
  }
  lines().push_back({});
  lines().back().name = name;
  return lines().back();
}

void no_product(const device::GroupedGemmCall&, const device::CublasLtSettings&, const device::CublasLtAlgorithm*,
                device::Stream) {}
void no_quantization(const device::QuantizeCall&, device::Stream) {}
void no_sums(const device::DbiasCall&, device::Stream) {}

// The kernels of the layer that is timed. A whole step runs first, so that products read what was really quantized.
device::LinearKernels& active_kernels() {
  static device::LinearKernels kernels = device::device_kernels();
  return kernels;
}
void leave_out(bool quantizations, bool products) {
  device::LinearKernels& kernels = active_kernels();
  if (products) kernels.multiply_by_cublaslt = no_product;
  if (quantizations) kernels.quantize_with = no_quantization, kernels.sum_with = no_sums;
}

// What is read, made once: filling it takes longer than a benchmark.
const DeviceBuffer& shared_values(std::int64_t elements, std::uint64_t seed) {
  static std::map<std::pair<std::int64_t, std::uint64_t>, DeviceBuffer> made;
  DeviceBuffer& buffer = made[{elements, seed}];
  if (buffer.bytes() == 0) buffer = normal_values(Format::bf16, elements, seed);
  return buffer;
}

// The layer with its buffers. Made for one case at a time: they take a few GiB.
struct Layer {
  const Case c;
  const DeviceBuffer &x, &dy, &w, &bias;
  DeviceBuffer splits, y, dx, dw, dbias, status;
  std::unique_ptr<device::GroupedLinear> module;
  device::LinearReport report;

  explicit Layer(const Case& of)
      : c(of),
        x(shared_values(c.rows * c.K, 1)),
        dy(shared_values(c.rows * c.N, 2)),
        w(shared_values(c.groups * c.N * c.K, 3)),
        bias(shared_values(c.groups * c.N, 4)),
        splits(on_device(c.ragged ? zipf_splits(c.groups, c.rows, 128)
                                  : std::vector<std::int64_t>(static_cast<std::size_t>(c.groups), c.rows / c.groups))),
        y(2 * c.rows * c.N),
        dx(2 * c.rows * c.K),
        dw(4 * c.groups * c.N * c.K),
        dbias(2 * c.groups * c.N),
        status(on_device(std::vector<std::uint32_t>{0})) {}

  void make() {
    active_kernels() = device::device_kernels();
    device::GroupedLinearOptions options;
    options.config.recipe = c.recipe;
    options.groups = c.groups;
    options.N = c.N;
    options.K = c.K;
    options.rows_capacity = c.rows;
    options.fresh_weights = false;
    options.status = status.as<std::uint32_t>();
    module = std::make_unique<device::GroupedLinear>(options, active_kernels(), device::device_memory());
  }

  void step() {
    device::GroupedLinearForward forward;
    forward.x = x.as();
    forward.rows = {c.rows, splits.as<std::int64_t>(), c.groups};
    forward.w.data = w.as();
    forward.bias = c.bias ? bias.as() : nullptr;
    forward.is_first_microbatch = true;
    forward.y = y.as();
    device::GroupedLinearForwardResult first = module->forward(forward, stream());
    device::GroupedLinearBackward backward;
    backward.microbatch = first.microbatch;
    backward.dy = dy.as();
    backward.dx = dx.as();
    backward.dbias = c.bias ? dbias.as() : nullptr;
    backward.dw = dw.as();
    const device::LinearReport second = module->backward(backward, stream()).report;
    report = std::move(first.report);
    report.dy = second.dy;
    report.dbias = second.dbias;
    report.dgrad = second.dgrad;
    report.wgrad = second.wgrad;
  }

  void clear() const {
    for (const DeviceBuffer* buffer : {&y, &dx, &dw}) {
      check(cudaMemsetAsync(buffer->as(), 0xA5, static_cast<std::size_t>(buffer->bytes()), stream()), "cudaMemsetAsync");
    }
  }
  // The beginning and the end of each output.
  std::vector<std::uint8_t> outputs() const {
    constexpr std::int64_t kPart = std::int64_t{16} << 20;
    std::vector<std::uint8_t> all;
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    for (const DeviceBuffer* buffer : {&y, &dx, &dw}) {
      const std::int64_t part = std::min(kPart, buffer->bytes());
      for (const std::int64_t from : {std::int64_t{0}, buffer->bytes() - part}) {
        const std::size_t at = all.size();
        all.resize(at + static_cast<std::size_t>(part));
        check(cudaMemcpy(all.data() + at, buffer->as<std::uint8_t>() + from, static_cast<std::size_t>(part),
                         cudaMemcpyDeviceToHost),
              "cudaMemcpy");
      }
    }
    return all;
  }
  std::uint32_t faults() const {
    std::uint32_t bits = 0;
    check(cudaMemcpy(&bits, status.as(), sizeof bits, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bits;
  }
};

// Makes the module and runs a step, which makes what the library makes once. Why this case cannot be timed; empty: it can.
std::string prepare(Layer& layer) {
  LinearConfig config;
  config.recipe = layer.c.recipe;
  const device::LinearChoice choice = device::choose_linear_path(config, {}, device::device_kernels().architecture());
  if (choice.verdict != device::LinearVerdict::cublaslt) return choice.reason;
  try {
    layer.make();
    layer.step();
    check(cudaStreamSynchronize(stream()), "the first step");
  } catch (const std::exception& error) {
    return error.what();
  }
  if (layer.faults() != 0) return "status: " + device::describe_status(layer.faults());
  return "";
}

// Seconds of a launch, `launches` in a row between two events, as a benchmark.
double time_steps(benchmark::State& state, int launches, const std::function<void(int)>& launch) {
  seconds_a_launch(launches, launch);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_a_launch(launches, launch));
    state.SetIterationTime(seconds.back());
  }
  check(cudaGetLastError(), "a step");
  return median(seconds);
}

class Replay {
 public:
  explicit Replay(const std::function<void()>& body) {
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    body();
    check(cudaStreamEndCapture(stream(), &graph_), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&made_, graph_, 0), "cudaGraphInstantiate");
  }
  Replay(const Replay&) = delete;
  ~Replay() {
    cudaGraphExecDestroy(made_);
    cudaGraphDestroy(graph_);
  }
  void launch() const { check(cudaGraphLaunch(made_, stream()), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t made_ = nullptr;
};

constexpr int kInARow = 5;

void told(benchmark::State& state, const Case& c, double seconds) {
  state.counters["TFLOP/s"] = c.flops() / seconds * 1e-12;
}

void eager(benchmark::State& state, const Case& c, bool alone) {
  Layer layer(c);
  if (const std::string why = prepare(layer); !why.empty()) return state.SkipWithError(why.c_str());
  Line& line = line_of(c.name());
  line.path = layer.report.description();
  line.flops = c.flops();
  const double seconds = time_steps(state, alone ? 1 : kInARow, [&](int) { layer.step(); });
  (alone ? line.eager_alone : line.eager) = seconds;
  told(state, c, seconds);
  if (alone) return;
  std::vector<double> host;
  for (int i = 0; i < 11; ++i) {
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    const auto start = std::chrono::steady_clock::now();
    layer.step();
    host.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  line.host = median(host);
  state.counters["host_us"] = line.host * 1e6;
}

void replayed(benchmark::State& state, const Case& c, bool alone) {
  Layer layer(c);
  if (const std::string why = prepare(layer); !why.empty()) return state.SkipWithError(why.c_str());
  layer.clear();
  layer.step();
  const std::vector<std::uint8_t> want = layer.outputs();
  const Replay graph([&] { layer.step(); });
  layer.clear();
  graph.launch();
  if (layer.outputs() != want) return state.SkipWithError("the graph gives other bytes than the calls");
  const double seconds = time_steps(state, alone ? 1 : kInARow, [&](int) { graph.launch(); });
  (alone ? line_of(c.name()).replay_alone : line_of(c.name()).replay) = seconds;
  told(state, c, seconds);
}

void part(benchmark::State& state, const Case& c, bool quantizations) {
  Layer layer(c);
  if (const std::string why = prepare(layer); !why.empty()) return state.SkipWithError(why.c_str());
  leave_out(!quantizations, quantizations);
  const Replay graph([&] { layer.step(); });
  Line& line = line_of(c.name());
  const auto launch = [&](int) { graph.launch(); };
  if (quantizations) {
    measure(state, {c.name() + " quantize", c.quantized_bytes()}, launch, kInARow);
    for (const Figure& figure : figures()) {
      if (figure.name == c.name() + " quantize") line.quantize = figure.seconds;
    }
  } else {
    line.products = time_steps(state, kInARow, launch);
    told(state, c, line.products);
  }
}

void add_all() {
  constexpr int kIterations = 11;
  const Case cases[] = {
      {"block", LinearRecipe::block, false, false},
      {"block", LinearRecipe::block, false, true},
      {"block", LinearRecipe::block, true, false},
      {"bf16", LinearRecipe::none, false, false},
      {"bf16", LinearRecipe::none, false, true},
      {"tensor_current", LinearRecipe::tensor_current, false, false},
      {"tensor_current", LinearRecipe::tensor_current, false, true},
  };
  for (const Case& c : cases) {
    add(
        "step " + c.name() + " eager", [c](benchmark::State& state) { eager(state, c, false); }, kIterations);
    add(
        "step " + c.name() + " eager, alone", [c](benchmark::State& state) { eager(state, c, true); }, kIterations);
    add(
        "step " + c.name() + " replay", [c](benchmark::State& state) { replayed(state, c, false); }, kIterations);
    add(
        "step " + c.name() + " replay, alone", [c](benchmark::State& state) { replayed(state, c, true); }, kIterations);
    add(
        "step " + c.name() + " products", [c](benchmark::State& state) { part(state, c, false); }, kIterations);
    if (c.quantizes())
      add(
          "step " + c.name() + " quantize", [c](benchmark::State& state) { part(state, c, true); }, kIterations);
  }
}

void print_steps() {
  std::printf("\nTraining steps, us (a row of %d / by itself), and TFLOP/s of the replay\n\n", kInARow);
  std::printf("| %-36s | %8s | %8s | %8s | %8s | %7s | %8s | %8s | %7s |\n", "step", "eager", "alone", "replay", "alone",
              "host", "quantize", "products", "TFLOP/s");
  std::printf("|%s|%s:|%s:|%s:|%s:|%s:|%s:|%s:|%s:|\n", std::string(38, '-').c_str(), std::string(9, '-').c_str(),
              std::string(9, '-').c_str(), std::string(9, '-').c_str(), std::string(9, '-').c_str(),
              std::string(8, '-').c_str(), std::string(9, '-').c_str(), std::string(9, '-').c_str(),
              std::string(8, '-').c_str());
  for (const Line& line : lines()) {
    const double rate = line.replay == 0 ? 0 : line.flops / line.replay * 1e-12;
    std::printf("| %-36s | %8.1f | %8.1f | %8.1f | %8.1f | %7.1f | %8.1f | %8.1f | %7.1f |\n", line.name.c_str(),
                line.eager * 1e6, line.eager_alone * 1e6, line.replay * 1e6, line.replay_alone * 1e6, line.host * 1e6,
                line.quantize * 1e6, line.products * 1e6, rate);
  }
  std::printf("\n");
  for (const Line& line : lines()) std::printf("%s: %s\n", line.name.c_str(), line.path.c_str());
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  const int code = assay::bench::run_benchmarks(argc, argv);
  if (code == 0 && !assay::bench::lines().empty()) assay::bench::print_steps();
  return code;
}
