// A layer whose x is given as gate and up (spec grouped-linear-1.5): its results are those of the layer on x = silu(gate) * up.

#include <gtest/gtest.h>

#include "reference/linear/deferred_wgrad.h"
#include "reference/recipes/swiglu.h"
#include "reference/tests/linear/linear_case.h"
#include "reference/types/error.h"

namespace assay::linear_suite {
namespace {

// The same operands with x in place of gate and up; rows beyond the groups stay as they are.
Operands activated(const Case& c, const Operands& given) {
  Operands made = given;
  const std::int64_t K = c.layout.K;
  made.x = Matrix(c.config.type, c.layout.rows() * K, 0xff);
  for (std::int64_t r = 0; r < c.layout.used(); ++r) {
    for (std::int64_t k = 0; k < K; ++k) {
      const auto gate = static_cast<float>(given.x.value(r * 2 * K + k)),
                 up = static_cast<float>(given.x.value(r * 2 * K + K + k));
      made.x.set(r * K + k, static_cast<double>(scalar::swiglu(c.config.type, gate, up)));
    }
  }
  return made;
}

TEST(LinearActivation, IsTheLayerOfItsResult) {
  for (const Format type : {Format::bf16, Format::f16}) {
    for (const bool accumulate : {false, true}) {
      Case c = make_case(LinearRecipe::block, type, {{7, 0, 133, 2}, 19, 136, 3});
      c.accumulate = accumulate;
      c.bias = !accumulate;
      c.cached = accumulate;
      c.config.activation = Activation::swiglu;
      const Operands given = make_operands(c);
      Case plain = c;
      plain.config.activation = Activation::off;
      const Operands x = activated(c, given);
      for (const Steps& steps : {kFast, kScalar}) {
        expect_same(forward(steps, c, given), forward(kScalar, plain, x), "y");
        expect_same(wgrad(steps, c, given), wgrad(kScalar, plain, x), "dw");
        expect_same(dgrad(steps, c, given), dgrad(kScalar, plain, x), "dx");
      }
    }
  }
}

// Gate and up are kept whole.
TEST(LinearActivation, WorkMayBePutOff) {
  Case c = make_case(LinearRecipe::block, Format::bf16, {{7, 0, 33}, 24, 40, 3});
  c.config.activation = Activation::swiglu;
  const Operands given = make_operands(c);
  const Matrix want = wgrad(kFast, c, given);
  Matrix got(c.dw_type, c.layout.groups() * c.layout.N * c.layout.K, kPoison);
  Operands taken = given;
  DeferredWgrad deferred;
  deferred.store(c.config, c.layout.shape(), {taken.dy.data(), taken.x.data(), nullptr, nullptr, c.dw_type, false}, got.data());
  taken.x = Matrix(c.config.type, taken.x.bytes.size() / 2, 0x11);
  deferred.backward_dw();
  expect_same(got, want, "dw");
}

TEST(LinearActivation, BelongsToBlockScaling) {
  for (const LinearRecipe recipe : {LinearRecipe::none, LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                    LinearRecipe::mxfp8, LinearRecipe::nvfp4}) {
    Case c = make_case(recipe, Format::bf16, {{16, 16}, 32, 32, 0});
    c.config.activation = Activation::swiglu;
    const Operands given = make_operands(c);
    try {
      forward(kFast, c, given);
      FAIL() << name_of(recipe);
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), "activation") << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::linear_suite
