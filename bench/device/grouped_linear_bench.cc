// A training step of a grouped linear layer: forward, dgrad and wgrad with all quantization (w in both
// directions, as in the first microbatch of a step). 8 groups, 32768 rows, K = 7168 in, N = 4096 out; x, w and dy random
// normal bf16, dw f32. Products by the path that choose_linear_path() takes; `cublaslt` in a name: by the library, also where
// that takes another.
//
//   eager     the calls of the module, one step after another, and a step by itself
//   replay    the same from one graph
//   quantize  a graph of the step without its products: bytes are those of x, dy and w read once and their codes written
//   products  a graph of the step without its quantization
//   vendor    block scaling without bias: the step made of the vendor's kernels alone, from a graph; its quantizations are those of
//             TransformerEngine (transformer_engine.h; each tensor by its fastest route), its products the library's kernels
//             alone. Offsets of the groups and arrays of the products were written before: their set-up is not counted
//
// They are timed in turn, round after round, every other round in reverse order, as clocks drift with power; `of_vendor` is the median
// of the vendor's time over that of the replay in the same round. Before that the outputs of the calls, of the graph and of the
// vendor's step are compared byte for byte, and so are the vendor's codes; wgrad of block for the vendor's in the order of additions that
// the library's kernel has, which is not that of our own kernel's default.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/linear_layer.h"
#include "bench/device/transformer_engine.h"
#include "bench/device/vendor_step.h"

namespace assay::bench {
namespace {

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

constexpr int kInARow = 5;

// Subjects of a case that are timed in turn, round after round.
class Rounds {
 public:
  void add(const char* counter, int in_a_row, std::function<void()> launch) {
    all_.push_back({counter, in_a_row, std::move(launch)});
  }
  void add(const char* counter, int in_a_row, const Replay& subject) {
    add(counter, in_a_row, [&subject] { subject.launch(); });
  }
  void warm_up() const {
    for (const Timed& one : all_) once(one);
  }
  // Every other round in reverse order.
  void measure() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Timed& one = all_[forwards_ ? i : all_.size() - 1 - i];
      one.seconds.push_back(once(one));
    }
    forwards_ = !forwards_;
  }
  const std::vector<double>& seconds_of(const std::string& counter) const {
    static const std::vector<double> none;
    for (const Timed& one : all_) {
      if (counter == one.counter) return one.seconds;
    }
    return none;
  }
  double median_of(const char* counter) const { return median(seconds_of(counter)); }
  void report(benchmark::State& state) const {
    for (const Timed& one : all_) state.counters[one.counter] = median(one.seconds) * 1e6;
  }

 private:
  struct Timed {
    const char* counter;
    int in_a_row;
    std::function<void()> launch;
    std::vector<double> seconds{};
  };
  static double once(const Timed& one) {
    return seconds_per_launch(one.in_a_row, [&](int) { one.launch(); });
  }
  std::vector<Timed> all_;
  bool forwards_ = true;
};

// The vendor's step as graphs; `whole` null: not measured. `label`: the routes, or why there are no figures.
struct VendorGraphs {
  std::string label;
  std::unique_ptr<VendorStep> step;
  std::unique_ptr<Replay> whole, quantize, products;

  template <class GivesTheSame>
  VendorGraphs(const Case& c, Layer& layer, const GivesTheSame& gives_the_same) : label(c.has_vendor() ? "absent" : "none") {
    if (!c.has_vendor()) return;
    try {
      const TransformerEngine* library = TransformerEngine::get();
      if (library == nullptr) return;
      label = "failed";
      step = std::make_unique<VendorStep>(*library, layer);
      quantize = std::make_unique<Replay>([&] { step->launch(true, false); });
      products = std::make_unique<Replay>([&] { step->launch(false, true); });
      whole = std::make_unique<Replay>([&] { step->launch(true, true); });
      if (!gives_the_same(*whole)) throw std::runtime_error("the vendor's step gives other bytes");
      label = step->routes();
    } catch (const std::exception& error) {
      label = "failed";
      end_capture();
      active_kernels() = device::device_kernels();
      whole.reset();
      std::fprintf(stderr, "%s: vendor: not measured, %s\n", c.name().c_str(), error.what());
    }
  }
};

// Seconds that the host needs for the calls of a step.
std::vector<double> host_seconds(Layer& layer) {
  std::vector<double> host;
  for (int i = 0; i < 11; ++i) {
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    const auto start = std::chrono::steady_clock::now();
    layer.step();
    host.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  return host;
}

void measure_step(benchmark::State& state, const Case& c) {
  copy_rate();
  Layer layer(c);
  std::vector<std::uint8_t> want_of_vendor, want;
  for (const bool library_order : {true, false}) {
    if (const std::string why = prepare(layer, library_order); !why.empty()) return state.SkipWithError(why.c_str());
    layer.clear();
    layer.step();
    (library_order ? want_of_vendor : want) = layer.outputs();
  }
  const auto gives = [&](const Replay& graph, const std::vector<std::uint8_t>& wanted) {
    layer.clear();
    graph.launch();
    return layer.outputs() == wanted;
  };
  const Replay graph([&] { layer.step(); });
  if (!gives(graph, want)) return state.SkipWithError("the graph gives other bytes than the calls");
  const auto without = [&](bool quantizations, bool products) {
    leave_out(quantizations, products);
    auto made = std::make_unique<Replay>([&] { layer.step(); });
    active_kernels() = device::device_kernels();
    return made;
  };
  const std::unique_ptr<Replay> quantize = c.quantizes() ? without(false, true) : nullptr, products = without(true, false);
  const VendorGraphs vendor(c, layer, [&](const Replay& vendors) { return gives(vendors, want_of_vendor); });

  Rounds rounds;
  rounds.add("eager_us", kInARow, [&] { layer.step(); });
  rounds.add("eager_alone_us", 1, [&] { layer.step(); });
  rounds.add("median_us", kInARow, graph);
  if (vendor.whole) rounds.add("vendor_us", kInARow, *vendor.whole);
  rounds.add("alone_us", 1, graph);
  if (quantize) rounds.add("quantize_us", kInARow, *quantize);
  if (vendor.whole) rounds.add("vendor_quantize_us", kInARow, *vendor.quantize);
  rounds.add("products_us", kInARow, *products);
  if (vendor.whole) rounds.add("vendor_products_us", kInARow, *vendor.products);
  rounds.warm_up();
  for (auto _ : state) {
    rounds.measure();
    state.SetIterationTime(rounds.seconds_of("median_us").back());
  }
  check(cudaGetLastError(), "a step");
  const double host = median(host_seconds(layer));
  std::vector<double> ratios;
  const std::vector<double>&of_vendor = rounds.seconds_of("vendor_us"), &of_replay = rounds.seconds_of("median_us");
  for (std::size_t i = 0; i < of_vendor.size(); ++i) ratios.push_back(of_vendor[i] / of_replay[i]);

  const auto of = [&](const char* counter) { return rounds.median_of(counter); };
  state.SetLabel(c.label(vendor.label));
  rounds.report(state);
  state.counters["host_us"] = host * 1e6;
  state.counters["flops"] = c.flops();
  state.counters["TFLOP/s"] = c.flops() / of("median_us") * 1e-12;
  if (vendor.whole) state.counters["of_vendor"] = median(ratios);
  if (quantize) record({c.name() + " quantize", c.quantized_bytes(), "", of("quantize_us")});
  if (vendor.whole) record({c.name() + " quantize, vendor", c.quantized_bytes(), "", of("vendor_quantize_us")});
  lines().push_back({c.name(), layer.report.description() + "; vendor " + vendor.label, of("eager_us"), of("eager_alone_us"),
                     host, of("median_us"), of("alone_us"), of("quantize_us"), of("products_us"), c.flops(),
                     of("vendor_quantize_us"), of("vendor_products_us"), of("vendor_us"), median(ratios)});
}

void add_all() {
  constexpr int kRounds = 11;
  const Case cases[] = {
      {"block", LinearRecipe::block, false, false},
      {.recipe_name = "block", .recipe = LinearRecipe::block, .ragged = false, .bias = false, .by_library = true},
      {"block", LinearRecipe::block, false, true},
      {"block", LinearRecipe::block, true, false},
      {.recipe_name = "block", .recipe = LinearRecipe::block, .ragged = true, .bias = false, .by_library = true},
      {.recipe_name = "block", .recipe = LinearRecipe::block, .ragged = true, .bias = false, .rows_unit = 1},
      {.recipe_name = "block", .recipe = LinearRecipe::block, .ragged = true, .bias = false, .rows_unit = 1, .by_library = true},
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
  std::printf(
      "\nTraining steps, us (a row of %d / by itself), TFLOP/s of the replay, and the vendor's time over the replay's\n\n",
      kInARow);
  const std::pair<const char*, int> columns[] = {{"eager", 8},    {"alone", 8},    {"replay", 8},   {"alone", 8},
                                                 {"host", 7},     {"quantize", 8}, {"products", 8}, {"TFLOP/s", 7},
                                                 {"v.quant.", 8}, {"v.prod.", 8},  {"vendor", 8},   {"of v.", 6}};
  std::printf("| %-36s |", "step");
  for (const auto& [title, width] : columns) std::printf(" %*s |", width, title);
  std::printf("\n|%s|", std::string(38, '-').c_str());
  for (const auto& column : columns) std::printf("%s:|", std::string(static_cast<std::size_t>(column.second) + 1, '-').c_str());
  std::printf("\n");
  for (const Line& line : lines()) {
    std::printf("| %-36s | %8.1f | %8.1f | %8.1f | %8.1f | %7.1f | %8.1f | %8.1f | %7.1f | %8.1f | %8.1f | %8.1f | %6.3f |\n",
                line.name.c_str(), line.eager * 1e6, line.eager_alone * 1e6, line.replay * 1e6, line.replay_alone * 1e6,
                line.host * 1e6, line.quantize * 1e6, line.products * 1e6, line.flops / line.replay * 1e-12,
                line.vendor_quantize * 1e6, line.vendor_products * 1e6, line.vendor * 1e6, line.of_vendor);
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
