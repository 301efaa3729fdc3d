#pragma once
// The operands of a grouped product and its calls, for the benchmarks: the production path, the bare library with the arrays that
// a set-up has written beforehand, and the kernel of our own where it takes the product.

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device_bench.h"
#include "bench/device/grouped_gemm_cases.h"
#include "device/cublaslt/cublaslt_gemm.h"
#include "device/cublaslt/group_setup.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/quantize/quantize.h"
#include "device/support/error.h"
#include "reference/layout/scale_shape.h"

namespace assay::bench {

using device::CublasLtRoute;
using device::CublasLtSettings;

inline constexpr int kSets = 2;
inline constexpr std::int64_t kApart = 16'000'000;  // elements between what the sets begin with: 32 MB

// Normal bf16 values that every operand is a part of, made once: `elements` of them from `first` on.
inline const char* values(std::int64_t first, std::int64_t elements) {
  static const DeviceBuffer pool = [] {
    std::int64_t most = 0;
    for (const Shape& s : kShapes)
      most = std::max(most, s.rows * std::max(s.K, s.N) + std::max(s.groups * s.N * s.K, s.rows * s.K));
    return normal_values(Format::bf16, most + kSets * kApart, 1, Lifetime::process);
  }();
  if (2 * (first + elements) > pool.bytes()) throw std::logic_error("the pool of values is too small");
  return pool.as<char>() + 2 * first;
}

struct Operand {
  DeviceBuffer data, scales;
  device::GemmOperand operand;
};

// The matrix [rows of all groups, columns] whose bf16 values begin at `x`, in the storage that a sum along its rows, or along
// its columns, reads.
inline Operand make_operand(GemmKind kind, bool weight, bool along_rows, const char* x,
                            const std::vector<std::int64_t>& groups_rows, const DeviceBuffer& splits, std::int64_t columns,
                            const DeviceBuffer& status) {
  Operand made;
  if (kind == GemmKind::bf16) {
    made.operand.data = x;
    return made;
  }
  device::QuantizeCall call;
  call.config.recipe = kind == GemmKind::fp8_per_tensor ? Recipe::tensor_current
                       : weight                         ? Recipe::block_128x128
                                                        : Recipe::block_1x128;
  call.config.rowwise = !along_rows;
  call.config.columnwise = along_rows;
  call.config.force_pow_2_scales = call.config.recipe != Recipe::tensor_current;  // as layers have them
  call.x_type = Format::bf16;
  call.x = x;
  call.rows.splits = splits.as<std::int64_t>();
  call.rows.groups = static_cast<int>(groups_rows.size());
  for (const std::int64_t each : groups_rows) call.rows.capacity += each;
  call.columns = columns;
  call.status = status.as<std::uint32_t>();

  const Direction direction = along_rows ? Direction::columnwise : Direction::rowwise;
  const bool one_per_group = kind == GemmKind::fp8_per_tensor;
  const std::int64_t scales =
      one_per_group ? call.rows.groups : scale_offsets(call.config.recipe, direction, groups_rows, columns).back();
  made.data = DeviceBuffer(call.rows.capacity * columns);
  made.scales = DeviceBuffer(4 * scales);
  check(cudaMemsetAsync(made.scales.as(), 0, static_cast<std::size_t>(made.scales.bytes()), stream()),
        "cudaMemsetAsync");  // padding
  (along_rows ? call.output.columnwise_data : call.output.rowwise_data) = made.data.as();
  (along_rows && !one_per_group ? call.output.columnwise_scale_inv : call.output.rowwise_scale_inv) = made.scales.as();
  const DeviceBuffer workspace(device::quantize_workspace_bytes(call));
  call.workspace = workspace.as();
  call.workspace_bytes = workspace.bytes();
  device::quantize(call, stream());
  check(cudaStreamSynchronize(stream()), "quantization");  // before its workspace goes
  made.operand.type = Format::e4m3;
  made.operand.data = made.data.as();
  made.operand.scale_inv = made.scales.as();
  made.operand.columnwise = along_rows;
  return made;
}

// Calls for each set of operands: one with a workspace for production, and the same with one for the library alone.
class Subjects {
 public:
  explicit Subjects(const Case& c) : status_(on_device(std::vector<std::uint32_t>{0})) {
    const std::vector<std::int64_t> rows = c.splits(), weight_rows(rows.size(), c.shape.N);
    splits_ = on_device(rows);
    weight_splits_ = on_device(weight_rows);
    const bool wgrad = c.weight_gradient();
    const std::int64_t N = c.shape.N, K = c.shape.K, row_columns = c.layout == GemmLayout::TN ? K : N;
    const std::int64_t d_elements = wgrad ? c.shape.groups * N * K : c.shape.rows * (c.layout == GemmLayout::TN ? N : K);
    const std::int64_t row_elements = c.shape.rows * row_columns;
    const std::int64_t column_elements = wgrad ? c.shape.rows * K : c.shape.groups * N * K;
    d_ = DeviceBuffer(bytes_of(c.kind.d_type, d_elements));

    library_settings_.skip_set_up = true;
    const std::string_view route = c.route();
    library_settings_.bare = route == "direct" || route == "faulty";
    production_settings_.bare = c.faulty;
    for (int set = 0; set < kSets; ++set) {
      const std::int64_t first = set * kApart;
      const char *first_values = values(first, row_elements), *second_values = values(first + row_elements, column_elements);
      operands_.push_back(make_operand(c.kind.kind, false, wgrad, first_values, rows, splits_, row_columns, status_));
      operands_.push_back(make_operand(c.kind.kind, !wgrad, c.layout != GemmLayout::TN, second_values, wgrad ? rows : weight_rows,
                                       wgrad ? splits_ : weight_splits_, K, status_));
      device::GroupedGemmCall call;
      call.kind = c.kind.kind;
      call.layout = c.layout;
      call.rows = {c.shape.rows, splits_.as<std::int64_t>(), c.shape.groups};
      call.rows_multiple = c.rows_multiple();
      call.N = N;
      call.K = K;
      (c.layout == GemmLayout::TN ? call.x : call.dy) = operands_[operands_.size() - 2].operand;
      (wgrad ? call.x : call.w) = operands_.back().operand;
      call.split_accumulator = c.kind.split_accumulator;
      call.d_type = c.kind.d_type;
      call.d = d_.as();
      call.status = status_.as<std::uint32_t>();
      production_.push_back(with_workspace(call, production_settings_));
      library_.push_back(with_workspace(call, library_settings_));
      if (c.faulty || !device::fp8_block_gemm_missing(call, {}).empty()) continue;
      own_.push_back(with_workspace(call, device::fp8_block_gemm_workspace_bytes(call, {})));
      if (!wgrad) continue;
      own_of_any_scales_.push_back(own_.back());
      own_.back().pow2_scales = true;
    }
    check_status("quantization");

    // First calls: they create what is created once, and write the arrays for the library alone.
    device::cublaslt_prepare();
    CublasLtSettings writes_arrays = library_settings_;
    writes_arrays.skip_set_up = false;
    for (int set = 0; set < kSets; ++set) {
      run_production(set);
      device::cublaslt_grouped_gemm(library_call(set), writes_arrays, nullptr, stream());
      run_library(set);
      if (has_own()) run_own(set);
    }
    check(cudaStreamSynchronize(stream()), "the first calls");
    check_status("the first calls");
  }

  void run_production(int set) const {
    device::cublaslt_grouped_gemm(production_[index(set)], production_settings_, nullptr, stream());
  }
  void run_library(int set) const { device::cublaslt_grouped_gemm(library_call(set), library_settings_, nullptr, stream()); }
  bool has_own() const { return !own_.empty(); }
  void run_own(int set) const { device::fp8_block_grouped_gemm(own_[index(set)], {}, stream()); }
  // NT: without the promise that scales are powers of two.
  bool promises_scales() const { return !own_of_any_scales_.empty(); }
  void run_own_of_any_scales(int set) const { device::fp8_block_grouped_gemm(own_of_any_scales_[index(set)], {}, stream()); }

  // Writes the arrays of the production call; the other output of the set-up goes to `scratch`.
  void run_set_up(int set, char* scratch) const {
    const device::GroupedGemmCall& call = production_[index(set)];
    const Scratch parts = scratch_of(call);
    device::GroupSetupOptions options;
    options.keep_empty = production_settings_.bare;
    if (parts.expanded != 0) options.expanded_scales = reinterpret_cast<float*>(scratch);
    if (parts.a != 0) options.aligned_a = scratch + parts.expanded;
    if (parts.b != 0) options.aligned_b = scratch + parts.expanded + parts.a;
    device::set_up_groups(call, device::group_arrays(call.workspace, call.rows.groups), options, stream());
  }
  std::int64_t scratch_bytes() const {
    const Scratch parts = scratch_of(production_.front());
    return parts.expanded + parts.a + parts.b;
  }

  std::string algorithm() const {
    return device::cublaslt_algorithms(production_.front(), production_settings_, 1).front().description();
  }

  void clear() const { check(cudaMemsetAsync(d_.as(), 0xA5, static_cast<std::size_t>(d_.bytes()), stream()), "cudaMemsetAsync"); }
  // Beginning, middle and end of D.
  std::vector<std::uint8_t> output() const {
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    const std::int64_t part = std::min<std::int64_t>(d_.bytes(), std::int64_t{1} << 20);
    std::vector<std::uint8_t> all;
    for (const std::int64_t from : {std::int64_t{0}, (d_.bytes() - part) / 2, d_.bytes() - part}) {
      const std::size_t at = all.size();
      all.resize(at + static_cast<std::size_t>(part));
      check(cudaMemcpy(all.data() + at, d_.as<char>() + from, static_cast<std::size_t>(part), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    }
    return all;
  }
  void check_status(const char* after) const {
    std::uint32_t bits = 0;
    check(cudaStreamSynchronize(stream()), after);
    check(cudaMemcpy(&bits, status_.as(), sizeof bits, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (bits != 0) throw std::runtime_error(std::string("status after ") + after + ": " + device::describe_status(bits));
  }

 private:
  struct Scratch {
    std::int64_t expanded = 0, a = 0, b = 0;  // bytes, multiples of 16
  };
  Scratch scratch_of(const device::GroupedGemmCall& call) const {
    const auto rounded = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
    const bool expands = cublaslt_route(call, production_settings_) == CublasLtRoute::expanded_scales;
    const bool copies = !production_settings_.bare;
    const device::GemmSides sides = device::gemm_sides(call);
    return {expands ? rounded(4 * device::expanded_scale_floats(call)) : 0,
            copies ? rounded(device::aligned_copy_bytes(call, sides.columns)) : 0,
            copies ? rounded(device::aligned_copy_bytes(call, sides.rows)) : 0};
  }
  static std::size_t index(int set) { return static_cast<std::size_t>(set % kSets); }
  const device::GroupedGemmCall& library_call(int set) const { return library_[index(set)]; }

  device::GroupedGemmCall with_workspace(const device::GroupedGemmCall& call, const CublasLtSettings& settings) {
    return with_workspace(call, device::cublaslt_gemm_workspace_bytes(call, settings));
  }
  device::GroupedGemmCall with_workspace(device::GroupedGemmCall call, std::int64_t bytes) {
    workspaces_.emplace_back(bytes);
    call.workspace = workspaces_.back().as();
    call.workspace_bytes = workspaces_.back().bytes();
    return call;
  }

  DeviceBuffer status_, splits_, weight_splits_, d_;
  std::vector<Operand> operands_;
  std::vector<DeviceBuffer> workspaces_;
  std::vector<device::GroupedGemmCall> production_, library_, own_, own_of_any_scales_;
  CublasLtSettings production_settings_, library_settings_;
};

// Calls of a replay: enough that beginning and end of a graph do not count, and a multiple of the sets.
inline int calls_of(const Case& c) {
  const double seconds = c.flops() / (c.kind.kind == GemmKind::bf16 ? 0.7e15 : 1.3e15);
  return kSets * std::clamp(static_cast<int>(3e-3 / (kSets * seconds) + 0.5), 1, 8);
}

}  // namespace assay::bench
