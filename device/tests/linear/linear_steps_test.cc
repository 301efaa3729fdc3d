// The steps of the device's grouped linear layer with the reference in place of kernels: what they hand to quantize(), to the
// sums and to the product is what reference/linear/grouped_linear.h says, bit for bit; and what they report, refuse and need.
//
// Faults of conformance/cases/faults.md that die here:
//   A5, A7, C16 another path than the one asked for, or one that is named and does not run        EveryStep, Report
//   A12, A16, A17 operands or layouts swapped, group 0 for all                                     EveryStep
//   A14, C7 dbias of q(dy), fused without a rowwise pass, lost without dgrad                       EveryStep, Report
//   C8, A10, A11 the wrong storage, scales compact where the product reads them swizzled           EveryStep
//   C11 the caller's fast accumulation with block scaling                                          Product
//   D1, D3, D4 the skip flag not handed on, to one direction only, or for one of a list            SkipFlag

#include <gtest/gtest.h>

#include <functional>

#include "device/tests/linear/layer.h"
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

Matrix poisoned(Format type, std::int64_t elements) { return Matrix(type, elements, kPoison); }

std::vector<StepCase> every_case() {
  std::vector<StepCase> cases;
  for (const LinearRecipe recipe : kRecipes) {
    for (int options = 0; options < 32; ++options) {
      StepCase c{make_case(recipe)};
      c.list = options % 2 != 0;
      c.together = options / 2 % 2 != 0;
      c.layer.cached = options / 4 % 2 != 0;
      c.path = options / 8 % 2 != 0 ? GemmPath::emulated : GemmPath::cublaslt;
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

// ---- What is launched, and what is reported ------------------------------------------------------------------------------

class Report : public testing::TestWithParam<LinearRecipe> {
 protected:
  void SetUp() override { host_device().reset(); }
  LinearRecipe recipe() const { return GetParam(); }
  bool quantizes() const { return recipe() != LinearRecipe::none; }
  bool per_tensor() const { return recipe() == LinearRecipe::tensor_current || recipe() == LinearRecipe::tensor_delayed; }
  std::string rows_recipe() const { return recipe() == LinearRecipe::block ? "block_1x128" : std::string(name_of(recipe())); }
  std::string weight_recipe() const { return recipe() == LinearRecipe::block ? "block_128x128" : rows_recipe(); }
};
INSTANTIATE_TEST_SUITE_P(DeviceLinear, Report, testing::ValuesIn(kRecipes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

using Log = std::vector<std::string>;

TEST_P(Report, ForwardQuantizesEachTensorOnce) {
  for (const bool together : {false, true}) {
    for (const bool cached : {false, true}) {
      StepCase c{make_case(recipe())};
      c.together = together;
      c.layer.cached = cached;
      Steps s(c);
      if (cached) s.run(s.quantize_weights());
      Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N);
      host_device().log.clear();
      const LinearReport report = s.run(s.forward(y));
      Log want;
      if (quantizes() && !cached) want.push_back("constants");
      if (quantizes() && !cached) want.push_back("quantize " + weight_recipe() + " 72x34 rowwise");
      if (quantizes()) want.push_back("quantize " + rows_recipe() + " 46x34 rowwise" + (together ? " columnwise" : ""));
      want.push_back("gemm TN cublaslt");
      EXPECT_EQ(host_device().log, want);
      EXPECT_EQ(report.x.calls, quantizes() ? 1 : 0);
      EXPECT_EQ(report.x.rowwise, quantizes());
      EXPECT_EQ(report.x.columnwise, quantizes() && together);
      EXPECT_EQ(report.w.calls, quantizes() && !cached ? 1 : 0);
      EXPECT_EQ(report.dbias, DbiasRoute::none);
      EXPECT_TRUE(report.forward.ran && !report.dgrad.ran && !report.wgrad.ran);
    }
  }
}

TEST_P(Report, BackwardSumsTheBiasWhereItCan) {
  StepCase c{make_case(recipe())};
  c.constants = true;
  Steps s(c);
  Matrix dx = poisoned(Format::bf16, s.l.rows() * s.l.K), sums = poisoned(Format::bf16, s.l.groups() * s.l.N);
  Matrix dw = linear_suite::wgrad_start(c.layer, s.o);
  const bool fuses = quantizes() && recipe() != LinearRecipe::nvfp4;
  const auto check = [&](const LinearReport& report, bool fused, Log want) {
    EXPECT_EQ(host_device().log, want);
    EXPECT_EQ(report.dbias, fused ? DbiasRoute::fused : DbiasRoute::separate);
    host_device().log.clear();
  };
  const std::string dy = "quantize " + rows_recipe() + " 46x18 ", x = "quantize " + rows_recipe() + " 46x34 columnwise";
  const std::string w = "quantize " + weight_recipe() + " 72x34 columnwise";

  Log dgrad;
  if (quantizes()) dgrad = {w, dy + "rowwise" + (fuses ? " dbias" : "")};
  if (!fuses) dgrad.push_back("dbias");
  dgrad.push_back("gemm NN cublaslt");
  check(s.run(s.dgrad(dx, &sums)), fuses, dgrad);

  const bool fuses_columnwise = fuses && recipe() != LinearRecipe::block;
  Log wgrad;
  if (quantizes()) wgrad = {dy + "columnwise" + (fuses_columnwise ? " dbias" : ""), x};
  if (!fuses_columnwise) wgrad.push_back("dbias");
  wgrad.push_back("gemm NT cublaslt");
  check(s.run(s.wgrad(dw, &sums)), fuses_columnwise, wgrad);

  auto alone = s.start<device::LinearDbiasCall>();
  alone.dy = s.o.dy.data();
  alone.dbias = sums.data();
  check(s.run(alone), false, {"dbias"});

  if (!quantizes()) return;
  auto gradient = s.start<device::LinearGradientCall>();
  gradient.dy = s.o.dy.data();
  gradient.dy_scale = s.o.dy_scale.data();
  gradient.dy_columnwise = s.storage(device::LinearTensor::gradient, s.l.rows(), s.l.N, false, true).columnwise;
  gradient.dbias = sums.data();
  Log later = {dy + "columnwise" + (fuses_columnwise ? " dbias" : "")};
  if (!fuses_columnwise) later.push_back("dbias");
  check(s.run(gradient), fuses_columnwise, later);
  expect_same(sums, linear_suite::dbias(linear_suite::kFast, c.layer, s.o), "dbias");
}

TEST_P(Report, SaysWhatRan) {
  for (const GemmPath path : {GemmPath::cublaslt, GemmPath::emulated}) {
    StepCase c{make_case(recipe())};
    c.path = path;
    Steps s(c);
    Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N), dx = poisoned(Format::bf16, s.l.rows() * s.l.K);
    Matrix dw = linear_suite::wgrad_start(c.layer, s.o);
    const LinearReport::Product products[] = {s.run(s.forward(y)).forward, s.run(s.dgrad(dx, nullptr)).dgrad,
                                              s.run(s.wgrad(dw, nullptr)).wgrad};
    for (std::size_t i = 0; i < 3; ++i) {
      const LinearReport::Product& product = products[i];
      const device::EmulatedArithmetic arithmetic = arithmetic_of(c.layer, static_cast<GemmLayout>(i));
      EXPECT_TRUE(product.ran);
      EXPECT_EQ(product.path, path);
      EXPECT_EQ(product.plan, path == GemmPath::emulated ? arithmetic.plan->name : "");
      EXPECT_EQ(product.unit, path == GemmPath::emulated ? arithmetic.plan->unit : "");
      EXPECT_EQ(product.algorithm.id, path == GemmPath::cublaslt ? 60 + static_cast<int>(i) : -1);
      EXPECT_EQ(product.library_version, path == GemmPath::cublaslt ? 131000 : 0);
    }
  }
  StepCase c{make_case(recipe())};
  Steps s(c);
  Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N);
  device::LinearForwardCall call = s.forward(y);
  const std::string forward = "forward by cublaslt 13.10.0 direct: id 60";
  EXPECT_EQ(s.run(call).description(), quantizes() ? "x quantized rowwise; w quantized rowwise; " + forward : forward);
  EXPECT_EQ(LinearReport().description(), "nothing was launched");

  // A pinned algorithm is what runs, and the heuristic is not asked.
  device::CublasLtAlgorithm pinned;
  pinned.id = 7;
  call.path.forward.algorithm = &pinned;
  host_device().heuristic_calls = 0;
  EXPECT_EQ(s.run(call).forward.algorithm.id, 7);
  EXPECT_EQ(host_device().heuristic_calls, 0);
}

// Per-tensor recipes tell the amax of each group, for the history of delayed scaling.
TEST_P(Report, TellsTheAmax) {
  if (!per_tensor()) return;
  for (const bool list : {false, true}) {
    StepCase c{make_case(recipe())};
    c.list = list;
    Steps s(c);
    Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N), dx = poisoned(Format::bf16, s.l.rows() * s.l.K);
    std::vector<float> x(4, -1), dy(4, -1), w(4, -1);
    device::LinearForwardCall forward = s.forward(y);
    forward.x_amax = x.data();
    s.run(forward);
    device::LinearDgradCall dgrad = s.dgrad(dx, nullptr);
    dgrad.dy_amax = dy.data();
    s.run(dgrad);
    device::LinearWeightsCall weights = s.quantize_weights();
    weights.w_amax = w.data();
    s.run(weights);
    const auto largest = [](const Matrix& matrix, std::int64_t first, std::int64_t count) {
      double found = 0;
      for (std::int64_t i = first; i < first + count; ++i) found = std::max(found, std::fabs(matrix.value(i)));
      return static_cast<float>(found);
    };
    for (std::size_t t = 0; t < 4; ++t) {
      EXPECT_EQ(x[t], largest(s.o.x, s.l.first(t) * s.l.K, s.l.splits[t] * s.l.K)) << t;
      EXPECT_EQ(dy[t], largest(s.o.dy, s.l.first(t) * s.l.N, s.l.splits[t] * s.l.N)) << t;
      EXPECT_EQ(w[t], largest(s.o.w, static_cast<std::int64_t>(t) * s.l.N * s.l.K, s.l.N * s.l.K)) << t;
    }
  }
}

// ---- The cache -------------------------------------------------------------------------------------------------------

// The skip flag reaches every quantization of the weights, in both directions and for each of a list; what the cache holds is
// what the reference's cache holds.
TEST_P(Report, SkipFlag) {
  if (!quantizes()) return;
  const float flags[] = {0, 1, 1, 0.5f, 1, -1, 0, std::nanf("")};
  for (const bool list : {false, true}) {
    for (int directions = 1; directions < 4; ++directions) {
      const bool rowwise = directions % 2 != 0, columnwise = directions / 2 != 0;
      StepCase c{make_case(recipe())};
      c.list = list;
      LinearWeightCache want;
      want.rowwise = rowwise;
      want.columnwise = columnwise;
      QuantizedStorage held;
      std::unique_ptr<Steps> first;
      for (std::size_t i = 0; i < std::size(flags); ++i) {
        Steps s(c, 30 + i);
        if (first == nullptr) {
          held = s.storage(device::LinearTensor::weight, s.l.groups() * s.l.N, s.l.K, rowwise, columnwise);
        }
        s.cache = held;
        const float flag = flags[i];
        linear_quantize_weights(c.layer.config, c.layer.layout.shape(), s.o.w.data(), s.o.w_scale.data(), &flag, want);
        const LinearReport report = s.run(s.quantize_weights(&flag, rowwise, columnwise));
        EXPECT_EQ(report.w.rowwise, rowwise);
        EXPECT_EQ(report.w.columnwise, columnwise);
        const auto same = [&](const void* got, const std::vector<std::byte>& bytes, bool scales, const char* name) {
          if (bytes.empty()) return;
          const auto* from = static_cast<const std::byte*>(got);
          std::size_t differ = 0;
          for (std::size_t at = 0; at < bytes.size(); at += 4) {
            // Padding of compact scales is not written: 0 in the reference's new buffer, rubbish in ours.
            const bool padding = scales && recipe() == LinearRecipe::block &&
                                 std::all_of(from + at, from + at + 4, [](auto b) { return b == std::byte{0xEE}; });
            if (!padding)
              differ +=
                  !std::equal(from + at, from + std::min(at + 4, bytes.size()), bytes.begin() + static_cast<std::ptrdiff_t>(at));
          }
          EXPECT_EQ(differ, 0u) << name << " after flag " << flag << " (" << i << ")";
        };
        same(held.rowwise.data, want.rowwise_data, false, "rowwise data");
        same(held.columnwise.data, want.columnwise_data, false, "columnwise data");
        same(rowwise ? held.rowwise.scale_inv : held.columnwise.scale_inv, want.rowwise_scale_inv, true, "rowwise scales");
        same(held.columnwise.scale_inv, want.columnwise_scale_inv, true, "columnwise scales");
        for (const float* amax : {held.rowwise.amax, held.columnwise.amax}) {
          if (amax != nullptr) {
            EXPECT_TRUE(std::equal(want.amax.begin(), want.amax.end(), amax)) << "amax after flag " << flag;
          }
        }
        if (first == nullptr) {
          first = std::make_unique<Steps>(c);
          first->memory = std::move(s.memory);  // the cache lives on
        }
      }
    }
  }
}

// ---- Sizes -----------------------------------------------------------------------------------------------------------

// The most that any splits need is what is asked for: never less, and reached by some splits.
TEST_P(Report, StorageHoldsTheWorstSplits) {
  if (!quantizes()) return;
  LinearConfig config;
  config.recipe = recipe();
  const auto recipe_of = [&](bool weight) {
    switch (recipe()) {
      case LinearRecipe::block: return weight ? Recipe::block_128x128 : Recipe::block_1x128;
      case LinearRecipe::mxfp8: return Recipe::mxfp8;
      case LinearRecipe::nvfp4: return Recipe::nvfp4;
      default: return Recipe::tensor_current;
    }
  };
  const std::int64_t scale_bytes = recipe() == LinearRecipe::mxfp8 || recipe() == LinearRecipe::nvfp4 ? 1 : 4;
  for (const std::int64_t columns : {std::int64_t{2}, std::int64_t{130}, std::int64_t{512}}) {
    for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
      const bool columnwise = direction == Direction::columnwise;
      for (const std::int64_t rows : {0, 1, 2, 3, 4, 5, 127, 128, 129, 130, 131, 132, 255, 260, 511, 512, 513, 514, 515, 517}) {
        std::int64_t most = 0;
        const auto try_splits = [&](const std::vector<std::int64_t>& splits) {
          most = std::max(most, scale_offsets(recipe_of(false), direction, splits, columns).back() * scale_bytes);
        };
        for (std::int64_t a = 0; a <= rows; ++a) {
          for (const std::int64_t b :
               {std::int64_t{0}, std::int64_t{1}, std::int64_t{64}, std::int64_t{65}, std::int64_t{128}, std::int64_t{129}}) {
            if (a + b <= rows) try_splits({a, b, rows - a - b});
          }
        }
        const device::QuantizedBytes bytes =
            device::quantized_bytes(config, device::LinearTensor::activation, rows, 3, columns, columnwise);
        EXPECT_EQ(bytes.scale_inv, most) << rows << " rows, " << columns << " columns, columnwise " << columnwise;
        EXPECT_EQ(bytes.data, recipe() == LinearRecipe::nvfp4 ? rows * columns / 2 : rows * columns);
        if (rows > 300) continue;
        const std::vector<std::int64_t> same(3, rows);
        const device::QuantizedBytes weights =
            device::quantized_bytes(config, device::LinearTensor::weight, 3 * rows, 3, columns, columnwise);
        EXPECT_EQ(weights.scale_inv, scale_offsets(recipe_of(true), direction, same, columns).back() * scale_bytes) << rows;
        EXPECT_EQ(weights.amax, recipe() == LinearRecipe::nvfp4 ? 12 : 0);
      }
    }
  }
}

// ---- What is refused -------------------------------------------------------------------------------------------------

TEST_P(Report, ABadCallLaunchesNothing) {
  StepCase c{make_case(recipe())};
  c.together = true;
  c.layer.bias = true;
  Steps s(c);
  s.run(s.quantize_weights());
  Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N), dx = poisoned(Format::bf16, s.l.rows() * s.l.K);
  Matrix dw = linear_suite::wgrad_start(c.layer, s.o), sums = poisoned(Format::bf16, s.l.groups() * s.l.N);
  const GuardedMemory workspace(1 << 20);
  const auto refused = [&](const std::string& expected, auto call, auto step, auto change) {
    call.workspace = workspace.data();
    call.workspace_bytes = workspace.bytes();
    change(call);
    host_device().log.clear();
    try {
      step(call, nullptr, host_kernels());
      ADD_FAILURE() << "no error: " << expected;
    } catch (const std::exception& error) {
      const bool known = dynamic_cast<const device::InvalidArgument*>(&error) != nullptr ||
                         dynamic_cast<const device::NotSupported*>(&error) != nullptr;
      EXPECT_TRUE(known) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << "expected '" << expected << "', got: " << error.what();
    }
    EXPECT_TRUE(host_device().log.empty()) << expected << ": " << host_device().log.front();
  };
  using F = device::LinearForwardCall;
  const device::LinearForwardCall forward = s.forward(y);
  const auto bad_forward = [&](const std::string& expected, auto change) {
    refused(expected, forward, Steps::step<F>(device::linear_forward), change);
  };
  bad_forward("N is -1", [](F& call) { call.N = -1; });
  bad_forward("K is -2", [](F& call) { call.K = -2; });
  bad_forward("K is 3000000000", [](F& call) { call.K = 3000000000; });
  bad_forward("N is 2000000000", [](F& call) { call.N = 2000000000; });
  bad_forward("rows.capacity is -1", [](F& call) { call.rows.capacity = -1; });
  bad_forward("rows.groups is 1025", [](F& call) { call.rows.groups = 1025; });
  bad_forward("rows.splits is null", [](F& call) { call.rows.splits = nullptr; });
  bad_forward("config.recipe is 6", [](F& call) { call.config.recipe = static_cast<LinearRecipe>(6); });
  bad_forward("config.type is e5m2", [](F& call) { call.config.type = Format::e5m2; });
  bad_forward("x is null", [](F& call) { call.x = nullptr; });
  bad_forward("w.data is null", [](F& call) { call.w.data = nullptr; });
  bad_forward("w.data is misaligned", [](F& call) { call.w.data = static_cast<const char*>(call.w.data) + 2; });
  bad_forward("bias is misaligned", [](F& call) { call.bias = static_cast<const char*>(call.bias) + 1; });
  bad_forward("y is null", [](F& call) { call.y = nullptr; });
  bad_forward("workspace is null", [](F& call) { call.workspace = nullptr; });
  bad_forward("workspace is misaligned", [](F& call) { call.workspace = static_cast<char*>(call.workspace) + 16; });
  bad_forward("workspace_bytes is 8", [](F& call) { call.workspace_bytes = 8; });
  bad_forward("status is misaligned",
              [](F& call) { call.status = reinterpret_cast<std::uint32_t*>(static_cast<char*>(call.workspace) + 1); });
  std::vector<const void*> hole = {s.o.w.data(), s.o.w.data(), nullptr, s.o.w.data()};
  bad_forward("w.list[2] is null", [&](F& call) { call.w = {nullptr, hole.data()}; });
  bad_forward("path.forward.arithmetic.plan is null", [](F& call) { call.path.path = GemmPath::emulated; });
  if (quantizes()) {
    bad_forward("cache.rowwise.data is null", [&](F& call) { call.cache = &s.x_saved; });
    bad_forward("x_columnwise.scale_inv is null", [](F& call) { call.x_columnwise.scale_inv = nullptr; });
    QuantizedStorage torn = s.cache;
    torn.rowwise.scale_inv = nullptr;
    bad_forward("cache.rowwise.scale_inv is null", [&](F& call) { call.cache = &torn; });
  } else {
    bad_forward("x_columnwise.data is a pointer", [&](F& call) { call.x_columnwise.data = y.data(); });
  }
  if (recipe() == LinearRecipe::tensor_delayed) {
    bad_forward("x_scale is null", [](F& call) { call.x_scale = nullptr; });
    bad_forward("w_scale is null", [](F& call) { call.w_scale = nullptr; });
  }
  if (!per_tensor()) bad_forward("x_amax is a pointer", [&](F& call) { call.x_amax = s.o.x_scale.data(); });
  if (recipe() == LinearRecipe::nvfp4) {
    bad_forward("K is 33", [](F& call) { call.K = 33; });
    bad_forward("config.type is f16", [](F& call) { call.config.type = Format::f16; });
    bad_forward("rows.capacity is 45", [](F& call) { call.rows.capacity = 45; });
    bad_forward("x_columnwise.amax is null", [](F& call) { call.x_columnwise.amax = nullptr; });
  }

  using D = device::LinearDgradCall;
  const device::LinearDgradCall dgrad = s.dgrad(dx, &sums);
  const auto bad_dgrad = [&](const std::string& expected, auto change) {
    refused(expected, dgrad, Steps::step<D>(device::linear_dgrad), change);
  };
  bad_dgrad("dy is null", [](D& call) { call.dy = nullptr; });
  bad_dgrad("dx is null", [](D& call) { call.dx = nullptr; });
  bad_dgrad("dbias is misaligned", [](D& call) { call.dbias = static_cast<char*>(call.dbias) + 1; });
  if (recipe() == LinearRecipe::tensor_delayed) bad_dgrad("dy_scale is null", [](D& call) { call.dy_scale = nullptr; });
  if (recipe() == LinearRecipe::nvfp4) bad_dgrad("N is 17", [](D& call) { call.N = 17; });

  using W = device::LinearWgradCall;
  const device::LinearWgradCall wgrad = s.wgrad(dw, nullptr);
  const auto bad_wgrad = [&](const std::string& expected, auto change) {
    refused(expected, wgrad, Steps::step<W>(device::linear_wgrad), change);
  };
  bad_wgrad("dw is null", [](W& call) { call.dw = nullptr; });
  bad_wgrad("dw_type is e4m3", [](W& call) { call.dw_type = Format::e4m3; });
  bad_wgrad("dw is a pointer", [&](W& call) { call.dw_list = const_cast<void* const*>(hole.data()); });
  if (quantizes()) {
    bad_wgrad("dbias is a pointer", [&](W& call) { call.dbias = sums.data(); });
    bad_wgrad("x is null", [](W& call) { call.x_columnwise = {}; });
    bad_wgrad("dy is null", [](W& call) { call.dy_columnwise = {}; });
  } else {
    bad_wgrad("x is null", [](W& call) { call.x = nullptr; });
    bad_wgrad("dy is null", [](W& call) { call.dy = nullptr; });
  }

  // What the library lacks, or cannot be found, is reported before anything is quantized.
  host_device().missing_library = "libcublasLt.so.13: no such file";
  bad_forward("forward through cuBLASLt: libcublasLt.so.13: no such file", [](F&) {});
  bad_dgrad("dgrad through cuBLASLt: libcublasLt.so.13: no such file", [](D&) {});
  bad_wgrad("wgrad through cuBLASLt: libcublasLt.so.13: no such file", [](W&) {});
  host_device().missing_library.clear();
  host_device().no_candidate = true;
  bad_forward("forward through cuBLASLt: the heuristic has no candidate", [](F&) {});
  host_device().no_candidate = false;

  using Q = device::LinearWeightsCall;
  if (!quantizes()) return;
  const device::LinearWeightsCall weights = s.quantize_weights();
  const auto bad_weights = [&](const std::string& expected, auto change) {
    refused(expected, weights, Steps::step<Q>(device::linear_quantize_weights), change);
  };
  bad_weights("w.data is null", [](Q& call) { call.w = {}; });
  bad_weights("cache.rowwise.data is null", [](Q& call) { call.cache = {}; });
  bad_weights("noop is misaligned",
              [&](Q& call) { call.noop = reinterpret_cast<const float*>(static_cast<const char*>(y.data()) + 1); });
  if (per_tensor())
    bad_weights("cache.columnwise.scale_inv is another address",
                [](Q& call) { call.cache.columnwise.scale_inv = static_cast<char*>(call.cache.columnwise.scale_inv) + 16; });
  if (recipe() == LinearRecipe::nvfp4) {
    bad_weights("cache.columnwise.amax is another address", [](Q& call) { call.cache.columnwise.amax += 1; });
    bad_weights("N is 17", [](Q& call) { call.N = 17; });
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
