// The steps of the device's grouped linear layer with the reference in place of kernels: their results are those of
// reference/linear/grouped_linear.h, bit for bit. Also their reports and the memory that they need.
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

#include "device/tests/linear/linear_steps.h"
#include "reference/layout/scale_shape.h"
#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"

namespace assay::device_linear_suite {
namespace {

using device::DbiasRoute;
using device::GemmPath;
using device::LinearCall;

std::vector<StepCase> every_case() {
  std::vector<StepCase> cases;
  for (const LinearRecipe recipe : kRecipes) {
    const std::vector<GemmPath> paths = paths_of(recipe);
    for (int options = 0; options < 16 * static_cast<int>(paths.size()); ++options) {
      StepCase c{make_case(recipe)};
      c.list = options % 2 != 0;
      c.together = options / 2 % 2 != 0;
      c.layer.cached = options / 4 % 2 != 0;
      c.path = paths[static_cast<std::size_t>(options / 16)];
      c.layer.accumulate = options / 8 % 2 != 0;
      c.layer.bias = options % 3 != 0;
      c.constants = options % 5 == 0;
      c.layer.dw_type = options % 7 == 0 ? Format::bf16 : Format::f32;
      cases.push_back(c);
      if (recipe == LinearRecipe::block) {
        c.layer.config.activation = Activation::swiglu;
        cases.push_back(c);
        c.layer.config.activation = Activation::off;
      }
      if (options % 8 != 3) continue;
      c.layer.config.force_pow_2_scales = true;
      c.layer.config.amax_epsilon = 3;
      c.layer.config.backward_code = Format::e5m2;
      c.layer.layout = {{0, 126, 130, 0, 2}, 136, 264, 6};
      c.layer.accumulate = options % 16 > 7;
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
      c.path = splits.size() % 2 != 0 ? paths.front() : paths.back();
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
  for (const GemmPath path : paths_of(recipe())) {
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
      const std::string own = std::string("assay.sm90.fp8_block.") + (i < 2 ? "scales_first" : "rows_first");
      const bool emulated = path == GemmPath::emulated, by_library = path == GemmPath::cublaslt;
      EXPECT_EQ(product.plan, emulated ? arithmetic.plan->name : by_library ? "" : own);
      EXPECT_EQ(product.unit, emulated ? arithmetic.plan->unit : by_library ? "" : "sm90.wgmma.fp8");
      EXPECT_EQ(product.algorithm.id, by_library ? 60 + static_cast<int>(i) : -1);
      EXPECT_EQ(product.library_version, by_library ? 131000 : 0);
    }
  }
  StepCase c{make_case(recipe())};
  Steps s(c);
  Matrix y = poisoned(Format::bf16, s.l.rows() * s.l.N);
  device::LinearForwardCall call = s.forward(y);
  const std::string forward = "forward by cublaslt 13.10.0 direct: id 60";
  EXPECT_EQ(s.run(call).description(), quantizes() ? "x quantized rowwise; w quantized rowwise; " + forward : forward);
  EXPECT_EQ(LinearReport().description(), "nothing was launched");

  // A pinned algorithm runs, and the heuristic is not called.
  device::CublasLtAlgorithm pinned;
  pinned.id = 7;
  call.path.forward.algorithm = &pinned;
  host_device().heuristic_calls = 0;
  EXPECT_EQ(s.run(call).forward.algorithm.id, 7);
  EXPECT_EQ(host_device().heuristic_calls, 0);
}

// Per-tensor recipes return the amax of each group, for the history of delayed scaling.
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

// The skip flag reaches every quantization of the weights, in both directions and for each one of a list; the cache has the
// contents of the reference's cache.
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
            // Padding of compact scales is not written: it is 0 in the reference's new buffer, and arbitrary here.
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

// The requested size is the maximum over all splits: never less, and reached by some splits.
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
        if (recipe() == LinearRecipe::block) {
          const auto aligned =
              device::quantized_bytes(config, device::LinearTensor::activation, rows, 3, columns, columnwise, 16);
          EXPECT_EQ(aligned.data, columnwise ? (rows + 15) / 16 * 16 * columns + 48 * columns : rows * columns);
          EXPECT_EQ(aligned.scale_inv, bytes.scale_inv);
        }
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

}  // namespace
}  // namespace assay::device_linear_suite
