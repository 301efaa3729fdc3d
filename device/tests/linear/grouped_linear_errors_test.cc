// Calls that the module GroupedLinear refuses: with the reason, before anything is launched, and without a change of the module.

#include "device/linear/grouped_linear.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/tests/linear/module.h"

namespace assay::device_linear_suite {
namespace {

// Makes `call`, which must throw `expected` and launch nothing.
template <class Call>
void expect_refused(const std::string& expected, Call call) {
  host_device().log.clear();
  try {
    call();
    ADD_FAILURE() << "no error: " << expected;
  } catch (const device::NotSupported& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  } catch (const device::InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << error.what();
  }
  EXPECT_TRUE(host_device().log.empty()) << expected << ": " << host_device().log.front();
}

TEST_P(EveryRecipe, ARefusedCallChangesNothing) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  Module module(o);
  const auto forward = [&](auto change) {
    return [&, change] {
      GroupedLinearForward call = b.forward();
      change(call);
      module.forward(call, nullptr);
    };
  };
  using F = GroupedLinearForward;
  expect_refused("x is null", forward([](F& call) { call.x = nullptr; }));
  expect_refused("x is misaligned", forward([](F& call) { call.x = static_cast<const char*>(call.x) + 2; }));
  expect_refused("y is null", forward([](F& call) { call.y = nullptr; }));
  expect_refused("w.data is null", forward([](F& call) { call.w = {}; }));
  expect_refused("w.data is a pointer", forward([&](F& call) { call.w.list = b.w_list.data(); }));
  expect_refused("rows.groups is 3", forward([](F& call) { call.rows.groups = 3; }));
  expect_refused("rows.capacity is 47", forward([](F& call) { call.rows.capacity = 47; }));
  expect_refused("rows.capacity is -1", forward([](F& call) { call.rows.capacity = -1; }));
  expect_refused("rows.splits is null", forward([](F& call) { call.rows.splits = nullptr; }));
  expect_refused("bias is a pointer", forward([&](F& call) { call.bias_list = b.bias_list.data(); }));
  expect_refused("bias is misaligned", forward([](F& call) { call.bias = static_cast<const char*>(call.bias) + 1; }));
  expect_refused("skip_weight_update is misaligned", forward([&](F& call) {
                   call.skip_weight_update = reinterpret_cast<const float*>(static_cast<const char*>(b.o.x.data()) + 1);
                 }));
  if (GetParam() == LinearRecipe::tensor_delayed) {
    expect_refused("x_scale is null", forward([](F& call) { call.x_scale = nullptr; }));
    expect_refused("w_scale is null", forward([](F& call) { call.w_scale = nullptr; }));
  } else if (GetParam() != LinearRecipe::tensor_current) {
    expect_refused("x_amax is a pointer", forward([&](F& call) { call.x_amax = b.o.x_scale.data(); }));
  }
  EXPECT_EQ(module.in_flight(), 0);

  const int microbatch = module.forward(b.forward(), nullptr).microbatch;
  const auto backward = [&](auto change) {
    return [&, change] {
      GroupedLinearBackward call = b.backward(microbatch);
      change(call);
      module.backward(call, nullptr);
    };
  };
  using B = GroupedLinearBackward;
  expect_refused("dy is null", backward([](B& call) { call.dy = nullptr; }));
  expect_refused("dw is a pointer", backward([&](B& call) { call.dw_list = b.dw_list.data(); }));
  expect_refused("dbias is a pointer", backward([&](B& call) { call.dbias_list = b.dbias_list.data(); }));
  expect_refused("dw is misaligned", backward([](B& call) { call.dw = static_cast<char*>(call.dw) + 8; }));
  expect_refused("dx is misaligned", backward([](B& call) { call.dx = static_cast<char*>(call.dx) + 2; }));
  std::vector<void*> hole = b.dw_list;
  hole[2] = nullptr;
  expect_refused("dw_list[2] is null", backward([&](B& call) { call.dw = nullptr, call.dw_list = hole.data(); }));
  if (GetParam() == LinearRecipe::tensor_delayed)
    expect_refused("dy_scale is null", backward([](B& call) { call.dy_scale = nullptr; }));
  EXPECT_EQ(module.in_flight(), 1);

  // A product that the library lacks is refused with the reason, and nothing else is tried.
  host_device().missing = [](const device::GroupedGemmCall& call, int architecture) {
    return call.layout == GemmLayout::NT ? "cuBLASLt 13.4.0 has no such thing on sm" + std::to_string(architecture)
                                         : std::string();
  };
  expect_refused("wgrad through cuBLASLt: cuBLASLt 13.4.0 has no such thing on sm90", backward([](B&) {}));
  host_device().missing = nullptr;
  host_device().no_candidate = true;
  expect_refused("wgrad through cuBLASLt: the heuristic has no candidate", backward([](B& call) { call.dx = nullptr; }));
  host_device().no_candidate = false;

  const Matrix before = b.dw;
  module.backward(b.backward(microbatch), nullptr);
  expect_same(b.dx, dx_of(c, b.o), "dx");
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

// A deferred call is checked when it is deferred.
TEST_P(EveryRecipe, ARefusedCallIsNotPutOff) {
  const Case c = layer();
  Buffers b(c);
  GroupedLinearOptions o = options_of(c);
  o.defer_wgrad = true;
  Module module(o);
  const int microbatch = module.forward(b.forward(), nullptr).microbatch;
  const auto expect_refused = [&](auto change) {
    GroupedLinearBackward call = b.backward(microbatch);
    change(call);
    host_device().log.clear();
    EXPECT_ANY_THROW(module.backward(call, nullptr));
    EXPECT_TRUE(host_device().log.empty()) << host_device().log.front();
    EXPECT_EQ(module.pending(), 0);
  };
  std::vector<void*> hole = b.dw_list;
  hole[1] = nullptr;
  using B = GroupedLinearBackward;
  expect_refused([](B& call) { call.dw = static_cast<char*>(call.dw) + 4; });
  expect_refused([&](B& call) { call.dw = nullptr, call.dw_list = hole.data(); });
  expect_refused([](B& call) { call.dy = nullptr; });
  expect_refused([](B& call) { call.dy = nullptr, call.dx = nullptr; });
  host_device().missing = [](const device::GroupedGemmCall& call, int) {
    return std::string(call.layout == GemmLayout::NT ? "not there" : "");
  };
  expect_refused([](B&) {});
  host_device().missing = nullptr;
  const Matrix before = b.dw;
  module.backward(b.backward(microbatch), nullptr);
  module.backward_dw(nullptr);
  expect_same(b.dw, dw_of(c, b.o, true, before), "dw");
}

TEST_P(EveryRecipe, OptionsThatMakeNoSense) {
  const Case c = layer();
  const auto expect_refused = [&](const std::string& expected, auto change) {
    GroupedLinearOptions o = options_of(c);
    change(o);
    try {
      Module module(o);
      ADD_FAILURE() << "no error: " << expected;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << error.what();
    }
    EXPECT_TRUE(host_memory().live.empty());
  };
  using O = GroupedLinearOptions;
  expect_refused("options.groups is -1", [](O& o) { o.groups = -1; });
  expect_refused("options.groups is 1025", [](O& o) { o.groups = 1025; });
  expect_refused("N is -1", [](O& o) { o.N = -1; });
  expect_refused("K is -1", [](O& o) { o.K = -1; });
  expect_refused("options.rows_capacity is -1", [](O& o) { o.rows_capacity = -1; });
  expect_refused("options.microbatches is 0", [](O& o) { o.microbatches = 0; });
  expect_refused("rows_multiple is 0", [](O& o) { o.rows_multiple = 0; });
  expect_refused("rows_multiple is -16", [](O& o) { o.rows_multiple = -16; });
  expect_refused("options.path.settings.library_workspace is a pointer", [&](O& o) { o.path.settings.library_workspace = &o; });
  expect_refused("options.path.settings.group_arrays is a pointer", [&](O& o) { o.path.settings.group_arrays = &o; });
  expect_refused("options.defer_wgrad is true", [](O& o) { o.wgrad = false, o.defer_wgrad = true; });
  expect_refused("options.fresh_weights is false", [](O& o) { o.cache_weights = o.fresh_weights = false; });
  expect_refused("options.dw_type is e4m3", [](O& o) { o.dw_type = Format::e4m3; });
  expect_refused("config.recipe is 6", [](O& o) { o.config.recipe = static_cast<LinearRecipe>(6); });
  expect_refused("config.type is f32", [](O& o) { o.config.type = Format::f32; });
  expect_refused("path.path is 3", [](O& o) { o.path.path = static_cast<GemmPath>(3); });
  expect_refused("path.forward.arithmetic.plan is null", [](O& o) { o.path.path = GemmPath::emulated; });
  if (quantizes() && GetParam() != LinearRecipe::nvfp4) {
    expect_refused("config.forward_code is e2m1", [](O& o) { o.config.forward_code = Format::e2m1; });
    expect_refused("config.backward_code is bf16", [](O& o) { o.config.backward_code = Format::bf16; });
  }
  if (GetParam() == LinearRecipe::nvfp4) {
    expect_refused("K is 33", [](O& o) { o.K = 33; });
    expect_refused("N is 17", [](O& o) { o.N = 17; });
    expect_refused("config.type is f16", [](O& o) { o.config.type = Format::f16; });
    expect_refused("rows.capacity is 45", [](O& o) { o.rows_capacity = 45; });
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
