// The steps of the device's grouped linear layer with the reference in place of kernels: what they hand to quantize(), to the
// sums and to the product is what reference/linear/grouped_linear.h says, bit for bit; and what they report, refuse and need.
//
// Mutants of requirements.md that die here:
//   A5, A7, C16 another path than the one asked for, or one that is told and does not run         EveryStep, Report
//   A12, A16, A17 operands or layouts swapped, group 0 for all                                     EveryStep
//   A14, C7 dbias of q(dy), fused without a rowwise pass, lost without dgrad                       EveryStep, Report
//   C8, A10, A11 the wrong storage, scales compact where the product reads them swizzled           EveryStep
//   C11 the caller's fast accumulation with block scaling                                          Product
//   D1, D3, D4 the skip flag not handed on, to one direction only, or for one of a list            SkipFlag

#include <gtest/gtest.h>

#include <functional>

#include "conformance/suites/device/linear/layer.h"
#include "reference/layout/scale_shape.h"
#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"

namespace assay::device_linear_suite {
namespace {

using device::DbiasRoute;
using device::GemmPath;
using device::LinearCall;
using device::LinearReport;
using device::QuantizedStorage;

struct StepCase {
  Case layer;
  GemmPath path = GemmPath::cublaslt;
  bool list = false;       // weights and their gradients each in a buffer of its own
  bool together = false;   // q(x) and q(dy) for wgrad made by forward and dgrad
  bool constants = false;  // brought by the caller
};

void PrintTo(const StepCase& c, std::ostream* out) {
  PrintTo(c.layer, out);
  *out << " path=" << device::name_of(c.path) << (c.list ? " list" : "") << (c.together ? " together" : "") << (c.constants ? " constants" : "");
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

  explicit Steps(const StepCase& of, std::uint64_t seed = 1) : c(of), l(of.layer.layout), o(make_operands(of.layer, seed)), splits(l.splits) {
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
  device::LinearWeights weights() const { return c.list ? device::LinearWeights{nullptr, w_list.data()} : device::LinearWeights{o.w.data(), nullptr}; }
  bool quantizes() const { return c.layer.config.recipe != LinearRecipe::none; }
  QuantizedStorage storage(device::LinearTensor tensor, std::int64_t rows, std::int64_t columns, bool rowwise, bool columnwise) {
    const int groups = static_cast<int>(l.groups());
    return device::quantized_storage(allocate(device::quantized_storage_bytes(c.layer.config, tensor, rows, groups, columns, rowwise, columnwise)),
                                     c.layer.config, tensor, rows, groups, columns, rowwise, columnwise);
  }

  device::LinearForwardCall forward(Matrix& y) {
    auto call = start<device::LinearForwardCall>();
    call.x = o.x.data();
    call.x_scale = o.x_scale.data();
    call.bias = c.layer.bias ? o.bias.data() : nullptr;
    call.y = y.data();
    if (c.layer.cached && quantizes()) {
      call.cache = &cache;
    } else {
      call.w = weights();
      call.w_scale = o.w_scale.data();
    }
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
    if (c.layer.cached && quantizes()) {
      call.cache = &cache;
    } else {
      call.w = weights();
      call.w_scale = o.w_scale.data();
    }
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
  // What the list holds, as one matrix.
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

  template <class Call, class Size, class Run>
  LinearReport run(Call call, Size size, Run step) {
    Call sized = call;  // without a single pointer to data
    sized.rows.splits = nullptr;
    const std::int64_t bytes = size(sized, host_kernels());
    EXPECT_EQ(bytes, size(call, host_kernels())) << "the size must not depend on splits";
    const GuardedMemory workspace(bytes);
    call.workspace = workspace.data();
    call.workspace_bytes = bytes;
    return step(call, nullptr, host_kernels());
  }
  LinearReport run(const device::LinearForwardCall& call) { return run(call, size<device::LinearForwardCall>(device::linear_forward_workspace_bytes), step<device::LinearForwardCall>(device::linear_forward)); }
  LinearReport run(const device::LinearDgradCall& call) { return run(call, size<device::LinearDgradCall>(device::linear_dgrad_workspace_bytes), step<device::LinearDgradCall>(device::linear_dgrad)); }
  LinearReport run(const device::LinearWgradCall& call) { return run(call, size<device::LinearWgradCall>(device::linear_wgrad_workspace_bytes), step<device::LinearWgradCall>(device::linear_wgrad)); }
  LinearReport run(const device::LinearGradientCall& call) {
    return run(call, size<device::LinearGradientCall>(device::linear_quantize_gradient_workspace_bytes), step<device::LinearGradientCall>(device::linear_quantize_gradient));
  }
  LinearReport run(const device::LinearWeightsCall& call) {
    return run(call, size<device::LinearWeightsCall>(device::linear_quantize_weights_workspace_bytes), step<device::LinearWeightsCall>(device::linear_quantize_weights));
  }
  LinearReport run(const device::LinearDbiasCall& call) { return run(call, size<device::LinearDbiasCall>(device::linear_dbias_workspace_bytes), step<device::LinearDbiasCall>(device::linear_dbias)); }

  template <class Call>
  using Size = std::int64_t (*)(const Call&, const device::LinearKernels&);
  template <class Call>
  using Step = LinearReport (*)(const Call&, device::Stream, const device::LinearKernels&);
  template <class Call>
  static Size<Call> size(Size<Call> f) { return f; }
  template <class Call>
  static Step<Call> step(Step<Call> f) { return f; }
};

Matrix poisoned(Format type, std::int64_t elements) { return Matrix(type, elements, kPoison); }

std::vector<StepCase> every_case() {
  std::vector<StepCase> cases;
  for (const LinearRecipe recipe : kRecipes) {
    for (int options = 0; options < 32; ++options) {
      StepCase c{make_case(recipe)};
      c.list = options % 2 != 0;
      c.together = options / 2 % 2 != 0;
      c.layer.cached = options / 4 % 2 != 0;
      c.path = options / 8 % 2 != 0 ? GemmPath::bringup : GemmPath::cublaslt;
      c.layer.accumulate = options / 16 != 0;
      c.layer.bias = options % 3 != 0;
      c.constants = options % 5 == 0;
      c.layer.dw_type = options % 7 == 0 ? Format::bf16 : Format::f32;
      cases.push_back(c);
      if (options % 8 != 3) continue;
      c.layer.config.force_pow_2_scales = true;
      c.layer.config.amax_epsilon = 3;
      c.layer.config.backward_code = Format::e5m2;
      c.layer.layout = {{0, 126, 130, 0, 2}, 136, 264, 6};
      c.layer.accumulate = options > 15;
      cases.push_back(c);
      if (recipe != LinearRecipe::nvfp4) {
        c.layer.config.type = Format::f16;
        c.layer.config.forward_code = Format::e5m2;
        c.layer.layout = {{7, 129, 0}, 19, 131, 1};
        cases.push_back(c);
      }
    }
    for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{}, {0}, {0, 0, 0}, {2}, {0, 4}}) {
      StepCase c{make_case(recipe, splits, 4, 6, 2)};
      c.layer.bias = true;
      cases.push_back(c);
      c.layer.cached = c.together = true;
      cases.push_back(c);
    }
    cases.push_back({make_case(recipe, {4, 2}, 0, 6, 0)});
    cases.push_back({make_case(recipe, {4, 2}, 4, 0, 0)});
    cases.back().layer.bias = true;
  }
  return cases;
}

class EveryStep : public testing::TestWithParam<StepCase> {
 protected:
  void SetUp() override { host_device().reset(); }
};

TEST_P(EveryStep, HasTheBitsOfTheReference) {
  const StepCase& c = GetParam();
  Steps s(c);
  const linear_suite::Layout& l = c.layer.layout;
  const Format type = c.layer.config.type;
  if (c.layer.cached) {
    const LinearReport report = s.run(s.quantize_weights());
    EXPECT_EQ(report.w.calls, s.quantizes() ? (c.list ? l.groups() : (l.groups() == 0 ? 0 : 1)) : 0);
  }

  Matrix y = poisoned(type, l.rows() * l.N), dx = poisoned(type, l.rows() * l.K), sums = poisoned(type, l.groups() * l.N);
  s.run(s.forward(y));
  expect_same(y, linear_suite::forward(linear_suite::kFast, c.layer, s.o), "forward");

  s.run(s.dgrad(dx, &sums));
  expect_same(dx, linear_suite::dgrad(linear_suite::kFast, c.layer, s.o), "dgrad");
  const Matrix want_sums = linear_suite::dbias(linear_suite::kFast, c.layer, s.o);
  if (l.groups() != 0) expect_same(sums, want_sums, "dbias beside dgrad");

  Matrix dw = linear_suite::wgrad_start(c.layer, s.o), other_sums = poisoned(type, l.groups() * l.N);
  const bool quantized_before = c.together && s.quantizes();
  s.run(s.wgrad(dw, quantized_before ? nullptr : &other_sums));
  s.collect(dw);
  expect_same(dw, linear_suite::wgrad(linear_suite::kFast, c.layer, s.o), "wgrad");
  if (!quantized_before) expect_same(other_sums, want_sums, "dbias beside wgrad");

  auto only_sums = s.start<device::LinearDbiasCall>();
  Matrix last_sums = poisoned(type, l.groups() * l.N);
  only_sums.dy = s.o.dy.data();
  only_sums.dbias = last_sums.data();
  s.run(only_sums);
  expect_same(last_sums, want_sums, "dbias alone");
}

INSTANTIATE_TEST_SUITE_P(DeviceLinear, EveryStep, testing::ValuesIn(every_case()));

}  // namespace
}  // namespace assay::device_linear_suite
