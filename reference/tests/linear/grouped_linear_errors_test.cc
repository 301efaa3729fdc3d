// Errors of the grouped linear layer: each names the argument, in both layers, and nothing is written.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "reference/tests/linear/linear_case.h"
#include "reference/types/error.h"

namespace assay::linear_suite {
namespace {

struct Call {
  LinearConfig config;
  std::vector<std::int64_t> splits = {4, 2};
  LinearShape shape;
  LinearForward forward;
  LinearDgrad dgrad;
  LinearWgrad wgrad;
  const void* dbias_dy = nullptr;
  void *y = nullptr, *dx = nullptr, *dw = nullptr, *dbias = nullptr;
  LinearWeightCache* cache = nullptr;
};

struct Fault {
  std::string steps;     // of f(orward), d(grad), w(grad), b(ias)
  std::string argument;  // empty: NotSupported
  std::function<void(Call&)> make;
};

template <class T>
void nudge(T*& pointer) {  // off its alignment
  pointer = reinterpret_cast<T*>(const_cast<char*>(reinterpret_cast<const char*>(pointer)) + 1);
}

TEST(Errors, NameTheArgumentAndWriteNothing) {
  constexpr auto kHuge = std::int64_t{1} << 40;
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  const auto delayed = [](Call& c) { c.config.recipe = LinearRecipe::tensor_delayed; };
  const auto nvfp4 = [](Call& c) { c.config.recipe = LinearRecipe::nvfp4, c.config.architecture = "sm100"; };
  const std::vector<Fault> faults = {
      {"fdwb", "recipe", [](Call& c) { c.config.recipe = static_cast<LinearRecipe>(6); }},
      {"fdwb", "type", [](Call& c) { c.config.type = Format::f32; }},
      {"fdwb", "type", [](Call& c) { c.config.type = static_cast<Format>(77); }},
      {"fdwb", "forward_code", [&](Call& c) { c.config.recipe = LinearRecipe::block, c.config.forward_code = Format::e2m1; }},
      {"fdwb", "backward_code", [&](Call& c) { c.config.recipe = LinearRecipe::mxfp8, c.config.backward_code = Format::bf16; }},
      {"fdwb", "amax_epsilon", [&](Call& c) { c.config.recipe = LinearRecipe::block, c.config.amax_epsilon = -1; }},
      {"fdwb", "amax_epsilon", [&](Call& c) { c.config.recipe = LinearRecipe::tensor_current, c.config.amax_epsilon = NAN; }},
      {"fdwb", "N", [](Call& c) { c.shape.N = -1; }},
      {"fdwb", "K", [](Call& c) { c.shape.K = -1; }},
      {"fdwb", "N", [](Call& c) { c.shape.N = kLast; }},
      {"fdwb", "K", [](Call& c) { c.shape.N = 1, c.shape.K = kLast / 2; }},
      {"fdwb", "K", [](Call& c) { c.shape.N = 0, c.shape.K = kLast; }},
      {"fdwb", "K", [](Call& c) { c.shape.N = c.shape.K = kHuge / 2; }},
      {"fdwb", "rows", [](Call& c) { c.shape.rows = -1; }},
      {"fdwb", "rows", [](Call& c) { c.shape.rows = kLast; }},
      {"fdwb", "splits[1]", [](Call& c) { c.splits[1] = -2; }},
      {"fdwb", "splits[1]", [](Call& c) { c.splits[1] = 4; }},
      {"fdwb", "splits[1]", [](Call& c) { c.splits[0] = 0, c.splits[1] = kLast; }},
      {"f", "x", [](Call& c) { c.forward.x = nullptr; }},
      {"f", "x", [](Call& c) { nudge(c.forward.x); }},
      {"f", "w", [](Call& c) { c.forward.w = nullptr; }},
      {"f", "w", [](Call& c) { nudge(c.forward.w); }},
      {"f", "w", [](Call& c) { c.forward.w = nullptr, c.forward.cache = c.cache; }},  // recipe none: the cache holds nothing
      {"f", "bias", [](Call& c) { nudge(c.forward.bias); }},
      {"f", "y", [](Call& c) { c.y = nullptr; }},
      {"f", "y", [](Call& c) { nudge(c.y); }},
      {"f", "x_scale", [&](Call& c) { delayed(c), c.forward.x_scale = nullptr; }},
      {"f", "x_scale", [&](Call& c) { delayed(c), nudge(c.forward.x_scale); }},
      {"f", "w_scale", [&](Call& c) { delayed(c), c.forward.w_scale = nullptr; }},
      {"d", "dy", [](Call& c) { c.dgrad.dy = nullptr; }},
      {"d", "dy", [](Call& c) { nudge(c.dgrad.dy); }},
      {"d", "w", [](Call& c) { c.dgrad.w = nullptr; }},
      {"d", "dx", [](Call& c) { c.dx = nullptr; }},
      {"d", "dx", [](Call& c) { nudge(c.dx); }},
      {"d", "dy_scale", [&](Call& c) { delayed(c), c.dgrad.dy_scale = nullptr; }},
      {"d", "w_scale", [&](Call& c) { delayed(c), nudge(c.dgrad.w_scale); }},
      {"w", "dy", [](Call& c) { c.wgrad.dy = nullptr; }},
      {"w", "x", [](Call& c) { c.wgrad.x = nullptr; }},
      {"w", "x", [](Call& c) { nudge(c.wgrad.x); }},
      {"w", "dw", [](Call& c) { c.dw = nullptr; }},
      {"w", "dw", [](Call& c) { nudge(c.dw); }},
      {"w", "dw_type", [](Call& c) { c.wgrad.dw_type = Format::e4m3; }},
      {"w", "dw_type", [](Call& c) { c.wgrad.dw_type = static_cast<Format>(77); }},
      {"w", "dy_scale", [&](Call& c) { delayed(c), c.wgrad.dy_scale = nullptr; }},
      {"w", "x_scale", [&](Call& c) { delayed(c), nudge(c.wgrad.x_scale); }},
      {"b", "dy", [](Call& c) { c.dbias_dy = nullptr; }},
      {"b", "dy", [](Call& c) { nudge(c.dbias_dy); }},
      {"b", "dbias", [](Call& c) { c.dbias = nullptr; }},
      {"b", "dbias", [](Call& c) { nudge(c.dbias); }},
      {"f", "K", [&](Call& c) { nvfp4(c), c.shape.K = 5; }},
      {"d", "N", [&](Call& c) { nvfp4(c), c.shape.N = 3; }},
      {"w", "splits[0]", [&](Call& c) { nvfp4(c), c.splits[0] = 3; }},
      {"w", "type", [&](Call& c) { nvfp4(c), c.config.type = Format::f16; }},
      {"fdw", "", [](Call& c) { c.config.recipe = LinearRecipe::mxfp8; }},
      {"fdw", "", [](Call& c) { c.config.recipe = LinearRecipe::nvfp4; }},
      {"fdw", "", [](Call& c) { c.config.recipe = LinearRecipe::block, c.config.architecture = "sm100"; }},
      {"fdw", "", [](Call& c) { c.config.architecture = "sm70"; }},
  };
  const Case c = make_case(LinearRecipe::none, Format::bf16, {{4, 2}, 4, 6, 0});
  const Operands o = make_operands(c);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    for (const Steps& steps : {kFast, kScalar}) {
      for (const char step : faults[i].steps) {
        SCOPED_TRACE("fault " + std::to_string(i) + " (" + faults[i].argument + ") in " + steps.name + " step " + step);
        Matrix written(Format::f32, 4096, kPoison);
        LinearWeightCache cache;
        Call call;
        call.config = c.config;
        call.shape = {{}, 6, 4, 6};
        call.forward = {o.x.data(), o.w.data(), nullptr, o.bias.data(), o.x_scale.data(), o.w_scale.data()};
        call.dgrad = {o.dy.data(), o.w.data(), nullptr, o.dy_scale.data(), o.w_scale.data()};
        call.wgrad = wgrad_operands(c, o);
        call.dbias_dy = o.dy.data();
        call.y = call.dx = call.dw = call.dbias = written.data();
        call.cache = &cache;
        faults[i].make(call);
        call.shape.splits = call.splits;
        const auto made = [&] {
          switch (step) {
            case 'f': return steps.forward(call.config, call.shape, call.forward, call.y);
            case 'd': return steps.dgrad(call.config, call.shape, call.dgrad, call.dx);
            case 'w': return steps.wgrad(call.config, call.shape, call.wgrad, call.dw);
            default: return steps.dbias(call.config, call.shape, call.dbias_dy, call.dbias);
          }
        };
        if (faults[i].argument.empty()) {
          EXPECT_THROW(made(), NotSupported);
        } else {
          try {
            made();
            ADD_FAILURE() << "no error";
          } catch (const InvalidArgument& error) {
            EXPECT_EQ(error.argument(), faults[i].argument) << error.what();
          }
        }
        EXPECT_EQ(written.bytes, Matrix(Format::f32, 4096, kPoison).bytes) << "something was written";
      }
    }
  }
}

}  // namespace
}  // namespace assay::linear_suite
