// The emulated GEMM: products per second of each kernel, by kind, layout and plan, on 4 groups of unequal rows, quantized
// normal data. MAC/s counts the products of the problem, without what the kernel computes past its edges.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/emulated_gemm/emulated_gemm.h"
#include "device/emulated_gemm/problem.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/layout/scale_shape.h"

namespace assay::bench {
namespace {

using device::emulated::Route;

struct Case {
  std::string_view name;
  GemmKind kind;
  GemmLayout layout;
  std::string_view plan;  // a plan's name, or a unit's for one chain over K
  Format rows_type, columns_type;
  Route route = Route::fastest;
};

constexpr auto bf16 = Format::bf16, f16 = Format::f16, e4m3 = Format::e4m3, e5m2 = Format::e5m2, e2m1 = Format::e2m1;
constexpr auto TN = GemmLayout::TN, NN = GemmLayout::NN, NT = GemmLayout::NT;
constexpr Case kCases[] = {
    {"fp8 tensor, fast", GemmKind::fp8_per_tensor, TN, "cublaslt.sm90.fp8_tensor.fast", e4m3, e4m3},
    {"fp8 tensor, split", GemmKind::fp8_per_tensor, TN, "cublaslt.sm90.fp8_tensor.split", e4m3, e4m3},
    {"fp8 tensor, e5m2 dy", GemmKind::fp8_per_tensor, NN, "cublaslt.sm90.fp8_tensor.split", e5m2, e4m3},
    {"fp8 block", GemmKind::fp8_block, TN, "cublaslt.sm90.fp8_block.scales_first", e4m3, e4m3},
    {"fp8 block, wgrad", GemmKind::fp8_block, NT, "cublaslt.sm90.fp8_block.rows_first", e4m3, e4m3},
    {"fp8 tensor, sm89", GemmKind::fp8_per_tensor, TN, "sm89.fp8_tensor.chain", e4m3, e4m3},
    {"fp8 tensor, sm100", GemmKind::fp8_per_tensor, TN, "sm100.fp8_tensor.chain", e4m3, e4m3},
    {"bf16", GemmKind::bf16, TN, "cublaslt.sm90.bf16", bf16, bf16},
    {"bf16, dgrad", GemmKind::bf16, NN, "cublaslt.sm90.bf16", bf16, bf16},
    {"bf16, wgrad", GemmKind::bf16, NT, "cublaslt.sm90.bf16", bf16, bf16},
    {"bf16, sm80", GemmKind::bf16, TN, "sm80.bf16.chain", bf16, bf16},
    {"f16", GemmKind::f16, TN, "cublaslt.sm90.f16", f16, f16},
    {"mxfp8", GemmKind::mxfp8, TN, "sm100.mxfp8.chain", e4m3, e4m3},
    {"mxfp8, wgrad", GemmKind::mxfp8, NT, "sm100.mxfp8.chain", e4m3, e4m3},
    {"nvfp4", GemmKind::nvfp4, TN, "sm100.nvfp4.chain", e2m1, e2m1},
};
// The generic kernel is for small outputs.
constexpr Case kGenericCases[] = {
    {"generic, fp8 tensor", GemmKind::fp8_per_tensor, TN, "cublaslt.sm90.fp8_tensor.fast", e4m3, e4m3, Route::generic},
    {"generic, fp8 mma.sync", GemmKind::fp8_per_tensor, TN, "sm90.mma.fp8", e4m3, e4m3, Route::generic},
    {"generic, bf16", GemmKind::bf16, TN, "cublaslt.sm90.bf16", bf16, bf16, Route::generic},
    {"generic, nvfp4", GemmKind::nvfp4, TN, "sm100.nvfp4.chain", e2m1, e2m1, Route::generic},
};

struct Size {
  std::int64_t rows, N, K;
};
constexpr int kGroups = 4;

double normal(std::uint64_t counter) {
  const std::uint64_t random = scramble(counter);
  const double u = (static_cast<double>(random >> 32) + 0.5) * 0x1p-32, v = static_cast<double>(random & 0xFFFFFFFFu) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// `distinct` bytes, repeated to `bytes`.
DeviceBuffer repeated(const std::vector<std::uint8_t>& distinct, std::int64_t bytes) {
  DeviceBuffer buffer(bytes);
  for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(distinct.size())) {
    const auto part = std::min<std::int64_t>(static_cast<std::int64_t>(distinct.size()), bytes - done);
    check(cudaMemcpy(buffer.as<char>() + done, distinct.data(), static_cast<std::size_t>(part), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  return buffer;
}

// Normal values that fill the range of the type, as after quantization.
DeviceBuffer elements(Format type, std::int64_t count, std::uint64_t seed) {
  if (type == bf16 || type == f16) return normal_values(type, count, seed);
  std::vector<std::uint8_t> codes(1'000'003);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double value = normal(seed << 40 ^ i);
    if (type == e4m3)
      codes[i] = scalar::encode_e4m3(static_cast<float>(value * 100));
    else if (type == e5m2)
      codes[i] = scalar::encode_e5m2(static_cast<float>(value * 12000));
    else
      codes[i] = static_cast<std::uint8_t>(scalar::encode_e2m1(static_cast<float>(value * 1.5)) |
                                           scalar::encode_e2m1(static_cast<float>(normal(~i) * 1.5)) << 4);
  }
  return repeated(codes, bytes_of(type, count));
}

Recipe recipe_of(GemmKind kind, bool weight, GemmLayout layout) {
  switch (kind) {
    case GemmKind::fp8_block: return weight && layout != NT ? Recipe::block_128x128 : Recipe::block_1x128;
    case GemmKind::mxfp8: return Recipe::mxfp8;
    case GemmKind::nvfp4: return Recipe::nvfp4;
    default: return Recipe::tensor_current;
  }
}

struct Operand {
  DeviceBuffer data, scales, amax;
  device::GemmOperand operand;
};

Operand make_operand(const Case& c, Format type, bool weight, bool along_rows, const std::vector<std::int64_t>& rows,
                     std::int64_t columns, std::uint64_t seed) {
  Operand made;
  std::int64_t all_rows = 0;
  for (const std::int64_t each : rows) all_rows += each;
  made.data = elements(type, all_rows * columns, seed);
  made.operand.type = type;
  made.operand.data = made.data.as();
  if (c.kind == GemmKind::bf16 || c.kind == GemmKind::f16) return made;
  made.operand.columnwise = along_rows;
  const Recipe recipe = recipe_of(c.kind, weight, c.layout);
  const std::int64_t count = scale_offsets(recipe, along_rows ? Direction::columnwise : Direction::rowwise, rows, columns).back();
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(count * bits_of(scale_format(recipe)) / 8));
  if (scale_format(recipe) == Format::f32) {
    for (std::int64_t i = 0; i < count; ++i) {
      reinterpret_cast<float*>(scales.data())[i] =
          0.5f + static_cast<float>(scramble(static_cast<std::uint64_t>(i)) >> 40) * 0x1p-25f;
    }
  } else {
    const std::uint8_t first = recipe == Recipe::mxfp8 ? 118 : 0x50;
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(first + scramble(i) % 8);
  }
  made.scales = on_device(scales);
  made.operand.scale_inv = made.scales.as();
  made.amax = on_device(std::vector<float>(static_cast<std::size_t>(kGroups), 4.0f));
  if (c.kind == GemmKind::nvfp4) made.operand.amax = made.amax.as<float>();
  return made;
}

struct Rate {
  std::string name;
  double seconds, products;
};
std::vector<Rate>& rates() {
  static std::vector<Rate> all;
  return all;
}

void run(benchmark::State& state, const Case& c, const Size& size) {
  const std::int64_t quarter = size.rows / kGroups, lean = quarter / 4;
  const std::vector<std::int64_t> splits = {quarter + lean, quarter - lean, quarter + lean / 2, quarter - lean / 2};
  const std::vector<std::int64_t> weight_rows(kGroups, size.N);
  const bool wgrad = c.layout == NT;
  const Operand rows = make_operand(c, c.rows_type, false, wgrad, splits, c.layout == TN ? size.K : size.N, 1);
  const Operand columns = wgrad ? make_operand(c, c.columns_type, false, true, splits, size.K, 2)
                                : make_operand(c, c.columns_type, true, c.layout == NN, weight_rows, size.K, 2);
  const DeviceBuffer device_splits = on_device(splits);

  device::GroupedGemmCall call;
  call.kind = c.kind;
  call.layout = c.layout;
  call.rows = {size.rows, device_splits.as<std::int64_t>(), kGroups};
  call.N = size.N;
  call.K = size.K;
  (c.layout == TN ? call.x : call.dy) = rows.operand;
  (wgrad ? call.x : call.w) = columns.operand;
  call.d_type = Format::bf16;
  const std::int64_t d_elements = wgrad ? kGroups * size.N * size.K : size.rows * (c.layout == TN ? size.N : size.K);
  const DeviceBuffer d(2 * d_elements), status = on_device(std::vector<std::uint32_t>{0});
  call.d = d.as();
  call.status = status.as<std::uint32_t>();

  AccumulationPlan chain{};
  chain.name = chain.unit = c.plan;
  chain.slices = 1;
  device::EmulatedArithmetic arithmetic;
  arithmetic.plan = find_accumulation_plan(c.plan);
  if (arithmetic.plan == nullptr) arithmetic.plan = &chain;
  arithmetic.unit = find_tensor_core_unit(arithmetic.plan->unit);
  const DeviceBuffer workspace(device::emulated_gemm_workspace_bytes(call, arithmetic));
  call.workspace = workspace.as();
  call.workspace_bytes = workspace.bytes();

  const auto launch = [&](int) { device::emulated::grouped_gemm_by(c.route, call, arithmetic, stream()); };
  seconds_per_launch(1, launch);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_per_launch(1, launch));
    state.SetIterationTime(seconds.back());
  }
  check(cudaGetLastError(), "emulated GEMM");
  std::uint32_t faults = 0;
  check(cudaMemcpy(&faults, status.as(), sizeof faults, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (faults != 0) state.SkipWithError("the status word reports a fault in the splits");

  const double products = static_cast<double>(size.rows) * static_cast<double>(size.N) * static_cast<double>(size.K);
  const char* kernel = c.route == Route::generic ? "generic" : device::emulated::kernel_name(call, arithmetic);
  state.SetLabel(kernel);
  state.counters["GMAC/s"] = products / median(seconds) * 1e-9;
  rates().push_back({std::string(c.name) + " [" + kernel + "] " + std::to_string(size.rows) + "x" + std::to_string(size.N) + "x" +
                         std::to_string(size.K),
                     median(seconds), products});
}

void add_all() {
  const auto register_case = [](const Case& c, const Size& size) {
    const std::string name =
        std::string(c.name) + " " + std::to_string(size.rows) + "x" + std::to_string(size.N) + "x" + std::to_string(size.K);
    add(
        name, [c, size](benchmark::State& state) { run(state, c, size); }, 5);
  };
  for (const Size& size : {Size{2048, 2048, 7168}, Size{16384, 4096, 7168}}) {
    for (const Case& c : kCases) register_case(c, size);
  }
  for (const Case& c : kGenericCases) register_case(c, {2048, 2048, 7168});
}

void print_rates() {
  std::printf("\n| %-62s | %10s | %8s |\n|%s|%s:|%s:|\n", "kind [kernel] rows x N x K", "ms", "GMAC/s",
              std::string(64, '-').c_str(), std::string(11, '-').c_str(), std::string(9, '-').c_str());
  for (const Rate& rate : rates()) {
    std::printf("| %-62s | %10.3f | %8.0f |\n", rate.name.c_str(), rate.seconds * 1e3, rate.products / rate.seconds * 1e-9);
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  assay::bench::add_all();
  const int code = assay::bench::run_benchmarks(argc, argv);
  if (code == 0) assay::bench::print_rates();
  return code;
}
