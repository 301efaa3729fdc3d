// Calls that the steps of the grouped linear layer refuse, naming the argument or the reason, before anything is launched.

#include <gtest/gtest.h>

#include <exception>

#include "device/tests/linear/linear_steps.h"

namespace assay::device_linear_suite {
namespace {

using device::GemmPath;
using F = device::LinearForwardCall;
using D = device::LinearDgradCall;
using W = device::LinearWgradCall;
using Q = device::LinearWeightsCall;

// A layer whose weights are quantized, and a call of each step, to be made wrong.
class BadCall : public testing::TestWithParam<LinearRecipe> {
 protected:
  void SetUp() override {
    host_device().reset();
    steps_.run(steps_.quantize_weights());
    y_ = poisoned(Format::bf16, steps_.l.rows() * steps_.l.N);
    dx_ = poisoned(Format::bf16, steps_.l.rows() * steps_.l.K);
    dw_ = linear_suite::wgrad_start(case_.layer, steps_.o);
    sums_ = poisoned(Format::bf16, steps_.l.groups() * steps_.l.N);
    hole_ = {steps_.o.w.data(), steps_.o.w.data(), nullptr, steps_.o.w.data()};
    forward_ = steps_.forward(y_);
    dgrad_ = steps_.dgrad(dx_, &sums_);
    wgrad_ = steps_.wgrad(dw_, nullptr);
  }
  LinearRecipe recipe() const { return GetParam(); }
  bool quantizes() const { return recipe() != LinearRecipe::none; }
  bool per_tensor() const { return recipe() == LinearRecipe::tensor_current || recipe() == LinearRecipe::tensor_delayed; }

  // Makes the call after `change`: it must throw `expected`, and launch nothing.
  template <class Call, class Change>
  void refused(const std::string& expected, Call call, Steps::Step<Call> step, Change change) {
    call.workspace = workspace_.data();
    call.workspace_bytes = workspace_.bytes();
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
  }
  template <class Change>
  void bad_forward(const std::string& expected, Change change) {
    refused<F>(expected, forward_, device::linear_forward, change);
  }
  template <class Change>
  void bad_dgrad(const std::string& expected, Change change) {
    refused<D>(expected, dgrad_, device::linear_dgrad, change);
  }
  template <class Change>
  void bad_wgrad(const std::string& expected, Change change) {
    refused<W>(expected, wgrad_, device::linear_wgrad, change);
  }

  const StepCase case_ = [] {
    StepCase c{make_case(GetParam())};
    c.together = true;
    c.layer.bias = true;
    return c;
  }();
  Steps steps_{case_};
  Matrix y_, dx_, dw_, sums_;
  std::vector<const void*> hole_;
  const GuardedMemory workspace_{1 << 20};
  F forward_;
  D dgrad_;
  W wgrad_;
};
INSTANTIATE_TEST_SUITE_P(DeviceLinear, BadCall, testing::ValuesIn(kRecipes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(BadCall, OfForwardLaunchesNothing) {
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
  bad_forward("w.list[2] is null", [&](F& call) { call.w = {nullptr, hole_.data()}; });
  bad_forward("path.forward.arithmetic.plan is null", [](F& call) { call.path.path = GemmPath::emulated; });
  // A plan that the emulated GEMM refuses is refused before x is quantized.
  host_device().wrong_plan = "plan.unit is sm80.mma.tf32";
  bad_forward(host_device().wrong_plan, [&](F& call) {
    call.path.path = GemmPath::emulated;
    call.path.forward.arithmetic = arithmetic_of(case_.layer, GemmLayout::TN);
  });
  host_device().wrong_plan.clear();
  bad_forward("column_alignment is 16: expected 1, but for recipe block by path assay",
              [](F& call) { call.column_alignment = 16; });
  if (recipe() == LinearRecipe::block) {
    bad_forward("column_alignment is 32: expected 1 or 16", [](F& call) {
      call.path.path = GemmPath::assay;
      call.column_alignment = 32;
    });
  }
  bad_forward("path.path is 3", [](F& call) { call.path.path = static_cast<GemmPath>(3); });
  if (recipe() == LinearRecipe::block) {
    host_device().wrong_settings = "cluster of the settings is 3";
    bad_forward(host_device().wrong_settings, [](F& call) { call.path.path = GemmPath::assay; });
    host_device().wrong_settings.clear();
  }
  if (quantizes()) {
    bad_forward("cache.rowwise.data is null", [&](F& call) { call.cache = &steps_.x_saved; });
    bad_forward("x_columnwise.scale_inv is null", [](F& call) { call.x_columnwise.scale_inv = nullptr; });
    QuantizedStorage torn = steps_.cache;
    torn.rowwise.scale_inv = nullptr;
    bad_forward("cache.rowwise.scale_inv is null", [&](F& call) { call.cache = &torn; });
  } else {
    bad_forward("x_columnwise.data is a pointer", [&](F& call) { call.x_columnwise.data = y_.data(); });
  }
  if (recipe() == LinearRecipe::tensor_delayed) {
    bad_forward("x_scale is null", [](F& call) { call.x_scale = nullptr; });
    bad_forward("w_scale is null", [](F& call) { call.w_scale = nullptr; });
  }
  if (!per_tensor()) bad_forward("x_amax is a pointer", [&](F& call) { call.x_amax = steps_.o.x_scale.data(); });
  if (recipe() == LinearRecipe::nvfp4) {
    bad_forward("K is 33", [](F& call) { call.K = 33; });
    bad_forward("config.type is f16", [](F& call) { call.config.type = Format::f16; });
    bad_forward("rows.capacity is 45", [](F& call) { call.rows.capacity = 45; });
    bad_forward("x_columnwise.amax is null", [](F& call) { call.x_columnwise.amax = nullptr; });
  }
}

TEST_P(BadCall, OfDgradLaunchesNothing) {
  bad_dgrad("dy is null", [](D& call) { call.dy = nullptr; });
  bad_dgrad("dx is null", [](D& call) { call.dx = nullptr; });
  bad_dgrad("dbias is misaligned", [](D& call) { call.dbias = static_cast<char*>(call.dbias) + 1; });
  if (recipe() == LinearRecipe::tensor_delayed) bad_dgrad("dy_scale is null", [](D& call) { call.dy_scale = nullptr; });
  if (recipe() == LinearRecipe::nvfp4) bad_dgrad("N is 17", [](D& call) { call.N = 17; });
}

TEST_P(BadCall, OfWgradLaunchesNothing) {
  bad_wgrad("dw is null", [](W& call) { call.dw = nullptr; });
  bad_wgrad("dw_type is e4m3", [](W& call) { call.dw_type = Format::e4m3; });
  bad_wgrad("dw is a pointer", [&](W& call) { call.dw_list = const_cast<void* const*>(hole_.data()); });
  if (quantizes()) {
    bad_wgrad("dbias is a pointer", [&](W& call) { call.dbias = sums_.data(); });
    bad_wgrad("x is null", [](W& call) { call.x_columnwise = {}; });
    bad_wgrad("dy is null", [](W& call) { call.dy_columnwise = {}; });
  } else {
    bad_wgrad("x is null", [](W& call) { call.x = nullptr; });
    bad_wgrad("dy is null", [](W& call) { call.dy = nullptr; });
  }
}

// A product that the library lacks, or a library that is not found, is reported before anything is quantized.
TEST_P(BadCall, WithoutALibraryLaunchesNothing) {
  host_device().missing_library = "libcublasLt.so.13: no such file";
  bad_forward("forward through cuBLASLt: libcublasLt.so.13: no such file", [](F&) {});
  bad_dgrad("dgrad through cuBLASLt: libcublasLt.so.13: no such file", [](D&) {});
  bad_wgrad("wgrad through cuBLASLt: libcublasLt.so.13: no such file", [](W&) {});
  host_device().missing_library.clear();
  host_device().no_candidate = true;
  bad_forward("forward through cuBLASLt: the heuristic has no candidate", [](F&) {});
  host_device().no_candidate = false;
}

// So is one that our own kernel lacks.
TEST_P(BadCall, WithoutAKernelOfOurOwnLaunchesNothing) {
  for (const int architecture : {80, 89, 90, 100}) {
    host_device().architecture = architecture;
    if (recipe() == LinearRecipe::block && architecture == 90) continue;
    const std::string missing = recipe() == LinearRecipe::block ? "this device is no SM90" : "no products of kind ";
    bad_forward("forward: " + missing, [](F& call) { call.path.path = GemmPath::assay; });
    bad_dgrad("dgrad: " + missing, [](D& call) { call.path.path = GemmPath::assay; });
    bad_wgrad("wgrad: " + missing, [](W& call) { call.path.path = GemmPath::assay; });
  }
}

TEST_P(BadCall, OfQuantizeWeightsLaunchesNothing) {
  if (!quantizes()) return;
  const Q weights = steps_.quantize_weights();
  const auto bad_weights = [&](const std::string& expected, auto change) {
    refused<Q>(expected, weights, device::linear_quantize_weights, change);
  };
  bad_weights("w.data is null", [](Q& call) { call.w = {}; });
  bad_weights("cache.rowwise.data is null", [](Q& call) { call.cache = {}; });
  bad_weights("noop is misaligned",
              [&](Q& call) { call.noop = reinterpret_cast<const float*>(static_cast<const char*>(y_.data()) + 1); });
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
