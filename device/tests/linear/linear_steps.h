#pragma once
// Calls of the steps of a grouped linear layer over memory of the host.

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "device/tests/linear/layer.h"

namespace assay::device_linear_suite {

using device::LinearReport;
using device::QuantizedStorage;

struct StepCase {
  Case layer;
  device::GemmPath path = device::GemmPath::cublaslt;
  bool list = false;       // weights and their gradients each in a buffer of its own
  bool together = false;   // q(x) and q(dy) for wgrad made by forward and dgrad
  bool constants = false;  // given by the caller
};

inline void PrintTo(const StepCase& c, std::ostream* out) {
  PrintTo(c.layer, out);
  *out << " path=" << device::name_of(c.path) << (c.list ? " list" : "") << (c.together ? " together" : "")
       << (c.constants ? " constants" : "");
}

// Operands on the "device", and one call of each step over them.
struct Steps {
  const StepCase& c;
  const linear_suite::Layout& l;
  Operands o;
  std::vector<std::int64_t> splits, weight_splits;
  float one = 1;
  std::vector<Matrix> w_parts, dw_parts;
  std::vector<const void*> w_list;
  std::vector<void*> dw_list;
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  QuantizedStorage x_saved, dy_saved, cache;

  explicit Steps(const StepCase& of, std::uint64_t seed = 1)
      : c(of), l(of.layer.layout), o(make_operands(of.layer, seed)), splits(l.splits) {
    weight_splits.assign(splits.size(), l.N);
    if (splits.empty()) splits.reserve(1);
    for (std::int64_t t = 0; t < l.groups() && c.list; ++t) {
      w_parts.push_back(part(o.w, t));
      w_list.push_back(w_parts.back().data());
    }
  }
  Matrix part(const Matrix& all, std::int64_t t) const {
    Matrix made(all.type, l.N * l.K);
    for (std::int64_t i = 0; i < l.N * l.K; ++i) made.set_code(i, all.code(t * l.N * l.K + i));
    return made;
  }

  void* allocate(std::int64_t bytes) {
    memory.push_back(std::make_unique<GuardedMemory>(bytes));
    return memory.back()->data();
  }
  template <class Call>
  Call start() {
    Call call;
    call.config = c.layer.config;
    call.rows = {l.rows(), splits.data(), static_cast<int>(l.groups())};
    call.N = l.N;
    call.K = l.K;
    call.path = path_of(c.layer, c.path);
    if (c.constants) call.constants = {weight_splits.data(), &one};
    return call;
  }
  device::LinearWeights weights() const {
    return c.list ? device::LinearWeights{nullptr, w_list.data()} : device::LinearWeights{o.w.data(), nullptr};
  }
  bool quantizes() const { return c.layer.config.recipe != LinearRecipe::none; }
  QuantizedStorage storage(device::LinearTensor tensor, std::int64_t rows, std::int64_t columns, bool rowwise, bool columnwise) {
    const int groups = static_cast<int>(l.groups());
    return device::quantized_storage(
        allocate(device::quantized_storage_bytes(c.layer.config, tensor, rows, groups, columns, rowwise, columnwise)),
        c.layer.config, tensor, rows, groups, columns, rowwise, columnwise);
  }

  // The cache, or the weights themselves.
  template <class Call>
  void set_weights(Call& call) {
    if (c.layer.cached && quantizes()) {
      call.cache = &cache;
    } else {
      call.w = weights();
      call.w_scale = o.w_scale.data();
    }
  }

  device::LinearForwardCall forward(Matrix& y) {
    auto call = start<device::LinearForwardCall>();
    call.x = o.x.data();
    call.x_scale = o.x_scale.data();
    call.bias = c.layer.bias ? o.bias.data() : nullptr;
    call.y = y.data();
    set_weights(call);
    if (c.together && quantizes()) {
      x_saved = storage(device::LinearTensor::activation, l.rows(), l.K, false, true);
      call.x_columnwise = x_saved.columnwise;
    }
    return call;
  }
  device::LinearDgradCall dgrad(Matrix& dx, Matrix* sums) {
    auto call = start<device::LinearDgradCall>();
    call.dy = o.dy.data();
    call.dy_scale = o.dy_scale.data();
    call.dx = dx.data();
    call.dbias = sums == nullptr ? nullptr : sums->data();
    set_weights(call);
    if (c.together && quantizes()) {
      dy_saved = storage(device::LinearTensor::gradient, l.rows(), l.N, false, true);
      call.dy_columnwise = dy_saved.columnwise;
    }
    return call;
  }
  // After forward() and dgrad() where they quantize together.
  device::LinearWgradCall wgrad(Matrix& dw, Matrix* sums) {
    auto call = start<device::LinearWgradCall>();
    call.dw_type = c.layer.dw_type;
    call.accumulate = c.layer.accumulate;
    if (c.together && quantizes()) {
      call.x_columnwise = x_saved.columnwise;
      call.dy_columnwise = dy_saved.columnwise;
    } else {
      call.x = o.x.data();
      call.dy = o.dy.data();
      call.x_scale = o.x_scale.data();
      call.dy_scale = o.dy_scale.data();
      call.dbias = sums == nullptr ? nullptr : sums->data();
    }
    if (!c.list) {
      call.dw = dw.data();
    } else {
      dw_parts.clear();
      dw_list.clear();
      for (std::int64_t t = 0; t < l.groups(); ++t) dw_parts.push_back(part(dw, t));
      for (Matrix& each : dw_parts) dw_list.push_back(each.data());
      call.dw_list = dw_list.data();
    }
    return call;
  }
  // The contents of the list, as one matrix.
  void collect(Matrix& dw) const {
    for (std::size_t t = 0; t < dw_parts.size(); ++t) {
      for (std::int64_t i = 0; i < l.N * l.K; ++i) dw.set_code(static_cast<std::int64_t>(t) * l.N * l.K + i, dw_parts[t].code(i));
    }
  }
  device::LinearWeightsCall quantize_weights(const float* noop = nullptr, bool rowwise = true, bool columnwise = true) {
    auto call = start<device::LinearWeightsCall>();
    call.rows = {0, nullptr, static_cast<int>(l.groups())};
    call.w = weights();
    call.w_scale = o.w_scale.data();
    call.noop = noop;
    if (cache.rowwise.data == nullptr && cache.columnwise.data == nullptr) {
      cache = storage(device::LinearTensor::weight, l.groups() * l.N, l.K, rowwise, columnwise);
    }
    call.cache = cache;
    return call;
  }

  template <class Call>
  LinearReport run(Call call, std::int64_t (*size)(const Call&, const device::LinearKernels&),
                   LinearReport (*step)(const Call&, device::Stream, const device::LinearKernels&)) {
    Call sized = call;  // without a single pointer to data
    sized.rows.splits = nullptr;
    const std::int64_t bytes = size(sized, host_kernels());
    EXPECT_EQ(bytes, size(call, host_kernels())) << "the size must not depend on splits";
    const GuardedMemory workspace(bytes);
    call.workspace = workspace.data();
    call.workspace_bytes = bytes;
    return step(call, nullptr, host_kernels());
  }
  LinearReport run(const device::LinearForwardCall& call) {
    return run<F>(call, device::linear_forward_workspace_bytes, device::linear_forward);
  }
  LinearReport run(const device::LinearDgradCall& call) {
    return run<D>(call, device::linear_dgrad_workspace_bytes, device::linear_dgrad);
  }
  LinearReport run(const device::LinearWgradCall& call) {
    return run<W>(call, device::linear_wgrad_workspace_bytes, device::linear_wgrad);
  }
  LinearReport run(const device::LinearGradientCall& call) {
    return run<G>(call, device::linear_quantize_gradient_workspace_bytes, device::linear_quantize_gradient);
  }
  LinearReport run(const device::LinearWeightsCall& call) {
    return run<Q>(call, device::linear_quantize_weights_workspace_bytes, device::linear_quantize_weights);
  }
  LinearReport run(const device::LinearDbiasCall& call) {
    return run<B>(call, device::linear_dbias_workspace_bytes, device::linear_dbias);
  }
  using F = device::LinearForwardCall;
  using D = device::LinearDgradCall;
  using W = device::LinearWgradCall;
  using G = device::LinearGradientCall;
  using Q = device::LinearWeightsCall;
  using B = device::LinearDbiasCall;

  template <class Call>
  using Step = LinearReport (*)(const Call&, device::Stream, const device::LinearKernels&);
  template <class Call>
  static Step<Call> step(Step<Call> f) {
    return f;
  }
};

inline Matrix poisoned(Format type, std::int64_t elements) { return Matrix(type, elements, kPoison); }

}  // namespace assay::device_linear_suite
