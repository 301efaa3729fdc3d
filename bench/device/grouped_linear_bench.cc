// A training step of a grouped linear layer: forward, dgrad and wgrad with everything that is quantized on the way (w in both
// directions, as in the first microbatch of a step). 8 groups, 32768 rows, K = 7168 in, N = 4096 out; x, w and dy random
// normal bf16, dw f32.
//
//   eager     the calls of the module, one step after another, and a step by itself
//   replay    the same from one graph
//   quantize  a graph of the step without its products: bytes are those of x, dy and w read once and their codes written
//   products  a graph of the step without its quantization
//   vendor    block scaling without bias: the step made of the vendor's kernels alone, from a graph; its quantizations are those of
//             TransformerEngine (transformer_engine.h; each tensor by its fastest route), its products the library's kernels
//             alone. Offsets of the groups and arrays of the products were written before: what sets them up is not counted
//
// They are timed in turn, round after round, every other round backwards, as clocks drift with power; `of_vendor` is the median
// of the vendor's time over that of the replay in the same round. Before that the outputs of the calls, of the graph and of the
// vendor's step are compared byte for byte, and so are the vendor's codes.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/transformer_engine.h"
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
  bool has_vendor() const { return recipe == LinearRecipe::block && !bias; }
  // Of bench/table.py. `vendor`: routes of x, w and dy; absent, failed or none where there are no figures of it.
  std::string label(const std::string& vendor) const {
    return std::string("step=") + recipe_name + (bias ? " options=bias" : "") + " splits=" + (ragged ? "ragged" : "even") +
           " groups=" + std::to_string(groups) + " rows=" + std::to_string(rows) + " N=" + std::to_string(N) +
           " K=" + std::to_string(K) + " vendor=" + vendor;
  }
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
  double vendor_quantize = 0, vendor_products = 0, vendor = 0, of_vendor = 0;
};
std::vector<Line>& lines() {
  static std::vector<Line> all;
  return all;
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
  if (buffer.bytes() == 0) buffer = normal_values(Format::bf16, elements, seed, Lifetime::process);
  return buffer;
}

// What the module keeps lies in the arena too.
const device::MemorySource& arena_memory() {
  static const device::MemorySource memory = [] {
    device::MemorySource made = device::device_memory();
    made.allocate = [](std::int64_t bytes) { return Arena::get().take(bytes); };
    made.release = [](void* taken) { Arena::get().give_back(taken); };
    return made;
  }();
  return memory;
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
    options.rows_multiple = 16;  // as the splits above are: operands of wgrad are read where they lie
    options.fresh_weights = false;
    options.status = status.as<std::uint32_t>();
    module = std::make_unique<device::GroupedLinear>(options, active_kernels(), arena_memory());
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

// ---- The vendor's step -----------------------------------------------------------------------------------------------

// What a step launches, in its order, as the module hands it over.
struct Launches {
  std::vector<device::QuantizeCall> quantizations;
  std::vector<device::GroupedGemmCall> products;
  std::vector<bool> is_product;
};
Launches& noted() {
  static Launches launches;
  return launches;
}
void note_product(const device::GroupedGemmCall& call, const device::CublasLtSettings& settings, const device::CublasLtAlgorithm* algorithm,
                  device::Stream stream) {
  noted().products.push_back(call);
  noted().is_product.push_back(true);
  device::device_kernels().multiply_by_cublaslt(call, settings, algorithm, stream);
}
void note_quantization(const device::QuantizeCall& call, device::Stream stream) {
  noted().quantizations.push_back(call);
  noted().is_product.push_back(false);
  device::device_kernels().quantize_with(call, stream);
}

// The step of a layer by the vendor's kernels: the same operands in the same memory.
class VendorStep {
 public:
  // Errors: std::exception, the vendor's; std::runtime_error for codes that differ.
  VendorStep(const TransformerEngine& library, Layer& layer) {
    noted() = {};
    active_kernels().multiply_by_cublaslt = note_product;
    active_kernels().quantize_with = note_quantization;
    layer.step();
    active_kernels() = device::device_kernels();
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    launches_ = noted();

    for (const device::QuantizeCall& call : launches_.quantizations) {
      std::vector<std::int64_t> splits{call.rows.capacity};
      if (call.rows.splits != nullptr) {
        splits.resize(static_cast<std::size_t>(call.rows.groups));
        check(cudaMemcpy(splits.data(), call.rows.splits, splits.size() * sizeof splits[0], cudaMemcpyDeviceToHost), "cudaMemcpy");
      }
      const VendorChoice choice = choose_route(library, call, splits);
      if (!routes_.empty()) routes_ += '+';
      routes_ += name_of(choice.route);
      device::QuantizeCall own = call;
      if (choice.route == VendorRoute::whole || !choice.same_scales) {  // what the products read stays as it is
        buffers_.push_back(std::make_unique<QuantizedBuffers>(call, splits));
        own.output = buffers_.back()->output();
      }
      quantizations_.emplace_back(library, own, splits, choice.route);
    }
    settings_.bare = true;
    for (device::GroupedGemmCall& product : launches_.products) {
      workspaces_.emplace_back(device::cublaslt_gemm_workspace_bytes(product, settings_));
      product.workspace = workspaces_.back().as();
      product.workspace_bytes = workspaces_.back().bytes();
      device::cublaslt_grouped_gemm(product, settings_, nullptr, stream());  // writes its arrays
    }
    settings_.skip_set_up = true;
    launch(true, true);
    check(cudaStreamSynchronize(stream()), "the vendor's step");
  }

  void launch(bool quantizations, bool products) const {
    std::size_t quantization = 0, product = 0;
    for (const bool is_product : launches_.is_product) {
      if (is_product) {
        const device::GroupedGemmCall& one = launches_.products[product++];
        if (products) device::cublaslt_grouped_gemm(one, settings_, nullptr, stream());
      } else {
        const VendorQuantization& one = quantizations_[quantization++];
        if (quantizations) one.launch(stream());
      }
    }
  }
  const std::string& routes() const { return routes_; }

 private:
  Launches launches_;
  device::CublasLtSettings settings_;
  std::vector<VendorQuantization> quantizations_;
  std::vector<std::unique_ptr<QuantizedBuffers>> buffers_;
  std::vector<DeviceBuffer> workspaces_;
  std::string routes_;
};

// ---- The benchmark ---------------------------------------------------------------------------------------------------

constexpr int kInARow = 5;

struct Timed {
  const char* counter;
  int in_a_row;
  std::function<void()> launch;
  std::vector<double> seconds{};
};

void measure_step(benchmark::State& state, const Case& c) {
  copy_rate();
  Layer layer(c);
  if (const std::string why = prepare(layer); !why.empty()) return state.SkipWithError(why.c_str());
  layer.clear();
  layer.step();
  const std::vector<std::uint8_t> want = layer.outputs();
  const auto gives_the_same = [&](const Replay& graph) {
    layer.clear();
    graph.launch();
    return layer.outputs() == want;
  };
  const Replay graph([&] { layer.step(); });
  if (!gives_the_same(graph)) return state.SkipWithError("the graph gives other bytes than the calls");
  const auto without = [&](bool quantizations, bool products) {
    leave_out(quantizations, products);
    auto made = std::make_unique<Replay>([&] { layer.step(); });
    active_kernels() = device::device_kernels();
    return made;
  };
  const std::unique_ptr<Replay> quantize = c.quantizes() ? without(false, true) : nullptr, products = without(true, false);

  // Of the vendor, or why there is nothing of it.
  std::unique_ptr<VendorStep> vendor_step;
  std::unique_ptr<Replay> vendor, vendor_quantize, vendor_products;
  std::string vendor_label = c.has_vendor() ? "absent" : "none";
  if (c.has_vendor()) {
    try {
      if (const TransformerEngine* library = TransformerEngine::get(); library != nullptr) {
        vendor_label = "failed";
        vendor_step = std::make_unique<VendorStep>(*library, layer);
        vendor_quantize = std::make_unique<Replay>([&] { vendor_step->launch(true, false); });
        vendor_products = std::make_unique<Replay>([&] { vendor_step->launch(false, true); });
        vendor = std::make_unique<Replay>([&] { vendor_step->launch(true, true); });
        if (!gives_the_same(*vendor)) throw std::runtime_error("the vendor's step gives other bytes");
        vendor_label = vendor_step->routes();
      }
    } catch (const std::exception& error) {
      vendor_label = "failed";
      end_capture();
      active_kernels() = device::device_kernels();
      vendor.reset();
      std::fprintf(stderr, "%s: vendor: not measured, %s\n", c.name().c_str(), error.what());
    }
  }

  std::vector<Timed> all;
  const auto time = [&](const char* counter, int in_a_row, const Replay& subject) {
    all.push_back({counter, in_a_row, [&subject] { subject.launch(); }});
  };
  all.push_back({"eager_us", kInARow, [&] { layer.step(); }});
  all.push_back({"eager_alone_us", 1, [&] { layer.step(); }});
  time("median_us", kInARow, graph);
  if (vendor) time("vendor_us", kInARow, *vendor);
  time("alone_us", 1, graph);
  if (quantize) time("quantize_us", kInARow, *quantize);
  if (vendor) time("vendor_quantize_us", kInARow, *vendor_quantize);
  time("products_us", kInARow, *products);
  if (vendor) time("vendor_products_us", kInARow, *vendor_products);
  const auto once = [](const Timed& one) { return seconds_a_launch(one.in_a_row, [&](int) { one.launch(); }); };
  for (const Timed& one : all) once(one);
  const auto seconds_of = [&](const std::string& counter) -> const std::vector<double>& {
    static const std::vector<double> none;
    for (const Timed& one : all) {
      if (counter == one.counter) return one.seconds;
    }
    return none;
  };
  bool forwards = true;
  for (auto _ : state) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Timed& one = all[forwards ? i : all.size() - 1 - i];
      one.seconds.push_back(once(one));
    }
    forwards = !forwards;
    state.SetIterationTime(seconds_of("median_us").back());
  }
  check(cudaGetLastError(), "a step");
  std::vector<double> host, ratios;
  for (int i = 0; i < 11; ++i) {
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    const auto start = std::chrono::steady_clock::now();
    layer.step();
    host.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < seconds_of("vendor_us").size(); ++i) ratios.push_back(seconds_of("vendor_us")[i] / seconds_of("median_us")[i]);

  state.SetLabel(c.label(vendor_label));
  for (const Timed& one : all) state.counters[one.counter] = median(one.seconds) * 1e6;
  state.counters["host_us"] = median(host) * 1e6;
  state.counters["flops"] = c.flops();
  state.counters["TFLOP/s"] = c.flops() / median(seconds_of("median_us")) * 1e-12;
  if (vendor) state.counters["of_vendor"] = median(ratios);
  if (quantize) record({c.name() + " quantize", c.quantized_bytes(), "", median(seconds_of("quantize_us"))});
  if (vendor) record({c.name() + " quantize, vendor", c.quantized_bytes(), "", median(seconds_of("vendor_quantize_us"))});
  const auto of = [&](const char* counter) { return median(seconds_of(counter)); };
  lines().push_back({c.name(), layer.report.description() + "; vendor " + vendor_label, of("eager_us"), of("eager_alone_us"), median(host),
                     of("median_us"), of("alone_us"), of("quantize_us"), of("products_us"), c.flops(), of("vendor_quantize_us"),
                     of("vendor_products_us"), of("vendor_us"), median(ratios)});
}

void add_all() {
  constexpr int kRounds = 11;
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
        "step " + c.name(), [c](benchmark::State& state) { measure_step(state, c); }, kRounds);
  }
}

void print_steps() {
  std::printf("\nTraining steps, us (a row of %d / by itself), TFLOP/s of the replay, and the vendor's time over the replay's\n\n", kInARow);
  const std::pair<const char*, int> columns[] = {{"eager", 8}, {"alone", 8}, {"replay", 8}, {"alone", 8}, {"host", 7}, {"quantize", 8},
                                                 {"products", 8}, {"TFLOP/s", 7}, {"v.quant.", 8}, {"v.prod.", 8}, {"vendor", 8}, {"of v.", 6}};
  std::printf("| %-36s |", "step");
  for (const auto& [title, width] : columns) std::printf(" %*s |", width, title);
  std::printf("\n|%s|", std::string(38, '-').c_str());
  for (const auto& column : columns) std::printf("%s:|", std::string(static_cast<std::size_t>(column.second) + 1, '-').c_str());
  std::printf("\n");
  for (const Line& line : lines()) {
    std::printf("| %-36s | %8.1f | %8.1f | %8.1f | %8.1f | %7.1f | %8.1f | %8.1f | %7.1f | %8.1f | %8.1f | %8.1f | %6.3f |\n",
                line.name.c_str(), line.eager * 1e6, line.eager_alone * 1e6, line.replay * 1e6, line.replay_alone * 1e6, line.host * 1e6,
                line.quantize * 1e6, line.products * 1e6, line.flops / line.replay * 1e-12, line.vendor_quantize * 1e6,
                line.vendor_products * 1e6, line.vendor * 1e6, line.of_vendor);
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
