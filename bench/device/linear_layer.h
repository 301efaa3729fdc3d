#pragma once
// The grouped linear layer of grouped_linear_bench.cc: its cases, buffers and steps, and graphs of them.

#include <cstdint>
#include <cstring>
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

struct Case {
  const char* recipe_name;
  LinearRecipe recipe;
  bool ragged;  // rows of the groups fall as 1/rank, multiples of rows_unit, one group empty
  bool bias;
  std::int64_t rows = 32768, N = 4096, K = 7168;
  int groups = 8;
  std::int64_t rows_unit = 128;
  bool by_library = false;  // products by cuBLASLt, also where choose_linear_path() takes another path

  std::string name() const {
    return std::string(recipe_name) + (by_library ? " cublaslt" : "") + (bias ? " bias" : "") + (ragged ? " ragged" : "") +
           (rows_unit == 1 ? " any" : "") + " " + std::to_string(groups) + "x" + std::to_string(rows / groups) + " " +
           std::to_string(N) + "x" + std::to_string(K);
  }
  double flops() const { return 3 * 2.0 * static_cast<double>(rows) * static_cast<double>(N) * static_cast<double>(K); }
  bool quantizes() const { return recipe != LinearRecipe::none; }
  bool has_vendor() const { return recipe == LinearRecipe::block && !bias && rows_multiple() == 16; }
  std::int64_t rows_multiple() const { return rows_unit % 16 == 0 ? 16 : 1; }
  const char* splits_name() const { return !ragged ? "even" : rows_unit == 1 ? "any" : "ragged"; }
  // Of bench/table.py. `vendor`: routes of x, w and dy; absent, failed or none where there are no figures of it.
  std::string label(const std::string& vendor) const {
    const char* const options = by_library ? (bias ? " options=cublaslt+bias" : " options=cublaslt")
                                : bias     ? " options=bias"
                                           : "";
    return std::string("step=") + recipe_name + options + " splits=" + splits_name() + " groups=" + std::to_string(groups) +
           " rows=" + std::to_string(rows) + " N=" + std::to_string(N) + " K=" + std::to_string(K) + " vendor=" + vendor;
  }
  // Codes of a byte in both directions; the scales of 1x128 and of 128x128 (f32) besides.
  std::int64_t quantized_bytes() const {
    const std::int64_t of_rows = rows * K + rows * N, of_weights = groups * N * K;
    const std::int64_t scales = recipe == LinearRecipe::block ? 2 * 4 * (of_rows / 128 + of_weights / 16384) : 0;
    return (of_rows + of_weights) * (2 + 1 + 1) + scales;
  }
};

inline void no_product(const device::GroupedGemmCall&, const device::CublasLtSettings&, const device::CublasLtAlgorithm*,
                       device::Stream) {}
inline void no_own_product(const device::GroupedGemmCall&, const device::Fp8BlockSettings&, device::Stream) {}
inline void no_quantization(const device::QuantizeCall&, device::Stream) {}
inline void no_sums(const device::DbiasCall&, device::Stream) {}

// The kernels of the layer that is timed. A whole step runs first, so that products read real codes.
inline device::LinearKernels& active_kernels() {
  static device::LinearKernels kernels = device::device_kernels();
  return kernels;
}
inline void leave_out(bool quantizations, bool products) {
  device::LinearKernels& kernels = active_kernels();
  if (products) kernels.multiply_by_cublaslt = no_product, kernels.multiply_by_assay = no_own_product;
  if (quantizations) kernels.quantize_with = no_quantization, kernels.sum_with = no_sums;
}

// Inputs, made once: filling them takes longer than a benchmark.
inline const DeviceBuffer& shared_values(std::int64_t elements, std::uint64_t seed) {
  static std::map<std::pair<std::int64_t, std::uint64_t>, DeviceBuffer> made;
  DeviceBuffer& buffer = made[{elements, seed}];
  if (buffer.bytes() == 0) buffer = normal_values(Format::bf16, elements, seed, Lifetime::process);
  return buffer;
}

// The module's memory lies in the arena too.
inline const device::MemorySource& arena_memory() {
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
        splits(on_device(c.ragged ? zipf_splits(c.groups, c.rows, c.rows_unit)
                                  : std::vector<std::int64_t>(static_cast<std::size_t>(c.groups), c.rows / c.groups))),
        y(2 * c.rows * c.N),
        dx(2 * c.rows * c.K),
        dw(4 * c.groups * c.N * c.K),
        dbias(2 * c.groups * c.N),
        status(on_device(std::vector<std::uint32_t>{0})) {}

  void make(const device::LinearPath& path) {
    active_kernels() = device::device_kernels();
    device::GroupedLinearOptions options;
    options.config.recipe = c.recipe;
    options.path = path;
    options.groups = c.groups;
    options.N = c.N;
    options.K = c.K;
    options.rows_capacity = c.rows;
    options.rows_multiple = c.rows_multiple();  // of the splits above: 16 saves copies for wgrad
    options.fresh_weights = false;
    options.status = status.as<std::uint32_t>();
    module.reset();  // its memory first
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

// The path of a case's products. Errors: device::NotSupported for those of the emulated GEMM, which are not timed here, with the reason.
inline device::LinearPath path_of(const Case& c) {
  if (c.by_library) return {};
  LinearConfig config;
  config.recipe = c.recipe;
  const device::LinearChoice choice = device::choose_linear_path(config, {}, device::device_kernels().architecture());
  if (choice.verdict == device::LinearVerdict::emulated) throw device::NotSupported(choice.reason);
  return device::linear_path_of(choice, config, {});
}

// Creates the module and runs a step, so that the library creates its state. `library_order`: additions in the order of the library's
// kernels, where the path has a choice. Returns why this case cannot be timed; empty: it can.
inline std::string prepare(Layer& layer, bool library_order = false) {
  try {
    device::LinearPath path = path_of(layer.c);
    if (library_order) path.wgrad.fp8_block.order = device::Fp8BlockOrder::rows_first;
    layer.make(path);
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

}  // namespace assay::bench
