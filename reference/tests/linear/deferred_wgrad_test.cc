// Deferred weight gradients.
//
// Faults of conformance/cases/faults.md that die here:
//   A19 carried out at once as well, views of buffers that are used again, twice, or in another order    DeferredWgrad
//   A13, A24 splits read when carried out                                                                DeferredWgrad
//   A20 the bias gradient lost with deferred work                                                        KeepsTheBias
//   A21 accumulation by the setting of another microbatch                                                Microbatches

#include <gtest/gtest.h>

#include "reference/linear/deferred_wgrad.h"
#include "reference/linear/microbatch.h"
#include "reference/tests/linear/by_hand.h"
#include "reference/types/error.h"

namespace assay::linear_suite {
namespace {

Case make_case(LinearRecipe recipe, std::vector<std::int64_t> splits) {
  Case c;
  c.config.recipe = recipe;
  c.config.hadamard_sign_mask = 0x1234;
  if (recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4) c.config.architecture = "sm100";
  c.layout = {std::move(splits), 18, 34, 2};
  return c;
}

class EveryRecipe : public testing::TestWithParam<LinearRecipe> {};

// Two pieces of work of different shape; all their inputs are overwritten before they run.
TEST_P(EveryRecipe, DefersInOrderOnceFromCopies) {
  Case first = make_case(GetParam(), {6, 0, 4}), second = make_case(GetParam(), {2, 8, 0});
  second.accumulate = true;
  Operands a = make_operands(first, 1), b = make_operands(second, 2);
  // Both go to one gradient: the first overwrites, the second adds, so their order shows.
  Case sum = second;
  Operands then = b;
  then.main_grad = wgrad_by_hand(first, a);
  const Matrix one = then.main_grad, both = wgrad_by_hand(sum, then);

  Matrix dw(Format::f32, 3 * 18 * 34, 0xff);
  const Matrix untouched = dw;
  DeferredWgrad deferred;
  {
    std::string architecture(first.config.architecture);  // dies before the work runs
    Case temporary = first;
    temporary.config.architecture = architecture;
    deferred.store(temporary.config, temporary.layout.shape(), wgrad_operands(first, a), dw.data());
    deferred.store(second.config, second.layout.shape(), wgrad_operands(second, b), dw.data());
    architecture.assign(architecture.size(), '?');
    std::fill(temporary.layout.splits.begin(), temporary.layout.splits.end(), 1);
  }
  for (Operands* each : {&a, &b}) {
    for (Matrix* matrix : {&each->x, &each->dy}) std::fill(matrix->bytes.begin(), matrix->bytes.end(), 0xff);
    for (std::vector<float>* scales : {&each->x_scale, &each->dy_scale}) std::fill(scales->begin(), scales->end(), -1.0f);
  }
  EXPECT_EQ(deferred.pending(), 2u);
  expect_same(dw, untouched, "before");
  deferred.backward_dw();
  EXPECT_EQ(deferred.pending(), 1u);
  expect_same(dw, one, "after the first");
  deferred.backward_dw();
  EXPECT_EQ(deferred.pending(), 0u);
  expect_same(dw, both, "after the second");
  EXPECT_THROW(deferred.backward_dw(), InvalidArgument);
  expect_same(dw, both, "after one call too many");
}

// A21: microbatches of a step, immediate and deferred, over a main gradient that is not zero at the start.
TEST_P(EveryRecipe, AccumulatesOverMicrobatches) {
  for (const std::optional<bool> counted : {std::optional<bool>(), std::optional<bool>(true)}) {
    Case c = make_case(GetParam(), {4, 6});
    const Operands start = make_operands(c, 9);
    Matrix want = start.main_grad, immediate = want, late = want;
    DeferredWgrad deferred;
    for (std::uint64_t microbatch = 0; microbatch < 3; ++microbatch) {
      Operands o = make_operands(c, microbatch + 1);
      c.accumulate = accumulates({.is_first_microbatch = counted ? std::optional<bool>(microbatch == 0) : std::nullopt});
      EXPECT_EQ(c.accumulate, !counted || microbatch > 0);
      linear_wgrad(c.config, c.layout.shape(), wgrad_operands(c, o), immediate.data());
      deferred.store(c.config, c.layout.shape(), wgrad_operands(c, o), late.data());
      o.main_grad = want;
      want = wgrad_by_hand(c, o);
    }
    expect_same(immediate, want, "immediate");
    while (deferred.pending() > 0) deferred.backward_dw();
    expect_same(late, want, "put off");
  }
}

TEST_P(EveryRecipe, StoresNothingThatCouldNotBeDone) {
  const Case c = make_case(GetParam(), {6, 4});
  const Operands o = make_operands(c);
  Matrix dw(Format::f32, 2 * 18 * 34, kPoison);
  DeferredWgrad deferred;
  const auto refused = [&](LinearConfig config, LinearShape shape, LinearWgrad operands, void* to) {
    EXPECT_ANY_THROW(deferred.store(config, shape, operands, to));
    EXPECT_EQ(deferred.pending(), 0u);
  };
  const LinearWgrad good = wgrad_operands(c, o);
  LinearWgrad bad = good;
  bad.dy = nullptr;
  refused(c.config, c.layout.shape(), bad, dw.data());
  bad = good;
  bad.x = o.x.bytes.data() + 1;  // copies are aligned, the original must be too
  refused(c.config, c.layout.shape(), bad, dw.data());
  refused(c.config, c.layout.shape(), good, nullptr);
  LinearShape shape = c.layout.shape();
  shape.rows = 9;
  refused(c.config, shape, good, dw.data());
  LinearConfig config = c.config;
  config.architecture = "sm70";
  refused(config, c.layout.shape(), good, dw.data());
  if (GetParam() == LinearRecipe::tensor_delayed) {
    bad = good;
    bad.x_scale = nullptr;
    refused(c.config, c.layout.shape(), bad, dw.data());
  }
  // The rows beyond the groups may be missing.
  shape = c.layout.shape();
  shape.rows = 1 << 20;
  deferred.store(c.config, shape, good, dw.data());
  deferred.backward_dw();
  expect_same(dw, wgrad_by_hand(c, o), "dw");
}

INSTANTIATE_TEST_SUITE_P(DeferredWgrad, EveryRecipe,
                         testing::Values(LinearRecipe::none, LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                         LinearRecipe::block, LinearRecipe::mxfp8, LinearRecipe::nvfp4),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// A20: BF16, splits 64, 96, 128, 64 x 64, bias on: the gradient of the bias comes with backward, the other later, both right.
TEST(DeferredWgradBias, KeepsTheBias) {
  Case c = make_case(LinearRecipe::none, {64, 96, 128});
  c.layout.N = c.layout.K = 64;
  const Operands o = make_operands(c);
  Matrix dw(Format::f32, 3 * 64 * 64, 0xff), sums(Format::bf16, 3 * 64, 0xff);
  DeferredWgrad deferred;
  deferred.store(c.config, c.layout.shape(), wgrad_operands(c, o), dw.data());
  linear_dbias(c.config, c.layout.shape(), o.dy.data(), sums.data());
  expect_same(sums, dbias_by_hand(c, o), "dbias before backward_dw");
  deferred.backward_dw();
  expect_same(sums, dbias_by_hand(c, o), "dbias after backward_dw");
  expect_same(dw, wgrad_by_hand(c, o), "dw");
}

}  // namespace
}  // namespace assay::linear_suite
