// Forward, dgrad, wgrad and dbias of the grouped linear layer, every recipe: both layers against a second route that goes
// group by group (by_hand.h), and against exact integers.
//
// Faults of conformance/cases/faults.md that plain functions can have, and where they die:
//   A10 blocks across group borders, A12 swapped operands or bias of group 0, A16 TN for NN, A17 dW transposed or groups
//   mixed, B10 scales of group 0 for all, C1 1-D and 2-D swapped, C8 wrong storage or offsets       EveryStep
//   A14, A15 dbias of q(dy), over all tokens, in bf16, or stale for a group without rows            EveryStep, Integers
//   A17 an empty group's dW left as it was, or cleared while accumulating                       EveryStep, ZeroWork
//   A21 accumulation ignored, always on, or in bf16 where dW is f32                                 EveryStep, Integers
//   A24 the tail of the splits before; rows beyond written                                          EveryStep, ChangedSplits
//   C3, C4, C5 pow2 or epsilon ignored in one step, or obeyed by mxfp8 and nvfp4                    EveryStep, Options
//   C7 dbias only together with dgrad                                                               Dbias
//   C11 fast accumulation for block scaling or per-tensor backward; split for forward               EveryStep (K > 128)
//   A11, A13, D4 a cache of one direction for both, or one weight for all groups                    EveryStep (cached)
// A1 to A7, A18, A22, A23, A25, A26, B6 to B9, C6, C10, C13 to C20 are about modules, devices and graphs.

#include <gtest/gtest.h>

#include "reference/tests/linear/by_hand.h"

namespace assay::linear_suite {
namespace {

constexpr LinearRecipe kRecipes[] = {LinearRecipe::none,  LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                     LinearRecipe::block, LinearRecipe::mxfp8,          LinearRecipe::nvfp4};

bool has_wgrad(const Case& c) { return c.config.recipe != LinearRecipe::nvfp4 || c.config.type == Format::bf16; }

// Every option with every recipe on a small ragged layer, and the borders of blocks on larger ones. nvfp4 packs two rows
// or columns in a byte, so its extents are even.
std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const LinearRecipe recipe : kRecipes) {
    const bool even = recipe == LinearRecipe::nvfp4;
    for (const Format type : {Format::bf16, Format::f16}) {
      for (int options = 0; options < 24; ++options) {
        Case c = make_case(recipe, type,
                           {even ? std::vector<std::int64_t>{6, 0, 34, 2} : std::vector<std::int64_t>{5, 0, 33, 1}, 18, 34, 3});
        c.bias = options % 2 != 0;
        c.cached = options / 2 % 2 != 0;
        c.accumulate = options / 4 % 2 != 0;
        c.dw_type = options / 8 == 0 ? Format::f32 : options / 8 == 1 ? Format::bf16 : Format::f16;
        cases.push_back(c);
      }
      Case c = make_case(
          recipe, type,
          {even ? std::vector<std::int64_t>{0, 126, 128, 130, 2} : std::vector<std::int64_t>{0, 127, 128, 129, 1}, 20, 136, 0});
      c.cached = type == Format::bf16;
      cases.push_back(c);
      c.layout = {{even ? 4 : 3, 0, 2}, 136, even ? 264 : 261, 5};
      c.config.force_pow_2_scales = true;
      c.config.amax_epsilon = 3;
      c.bias = c.accumulate = true;
      cases.push_back(c);
      if (!even && recipe != LinearRecipe::none) {
        c.layout = {{7, 129, 0}, 131, 19, 0};
        c.config.forward_code = Format::e5m2;
        cases.push_back(c);
        c.config.forward_code = Format::e4m3;
        c.config.backward_code = Format::e5m2;
        c.config.force_pow_2_scales = false;
        c.config.amax_epsilon = 0;
        c.cached = !c.cached;
        cases.push_back(c);
      }
    }
    for (const std::vector<std::int64_t>& splits : {std::vector<std::int64_t>{}, {0}, {0, 0, 0}, {2}, {0, 4}}) {
      cases.push_back(make_case(recipe, Format::bf16, {splits, 4, 6, 2}));
    }
    cases.push_back(make_case(recipe, Format::bf16, {{4, 2}, 0, 6, 0}));
    cases.push_back(make_case(recipe, Format::bf16, {{4, 2}, 4, 0, 0}));
    cases.back().bias = true;
  }
  return cases;
}

class EveryStep : public testing::TestWithParam<Case> {};

TEST_P(EveryStep, IsTheSameByHand) {
  const Case& c = GetParam();
  const Operands o = make_operands(c);
  for (const Steps& steps : {kFast, kScalar}) {
    const std::string layer = steps.name;
    expect_same(forward(steps, c, o), forward_by_hand(c, o), layer + " forward");
    expect_same(dgrad(steps, c, o), dgrad_by_hand(c, o), layer + " dgrad");
    if (has_wgrad(c)) expect_same(wgrad(steps, c, o), wgrad_by_hand(c, o), layer + " wgrad");
    expect_same(dbias(steps, c, o), dbias_by_hand(c, o), layer + " dbias");
  }
}

INSTANTIATE_TEST_SUITE_P(Linear, EveryStep, testing::ValuesIn(every_case()));

// ---- Exact integers -------------------------------------------------------------------------------------------------

// Integers of at most 7, so that power-of-two scales lose nothing and no sum exceeds 2^13: every recipe with such scales must
// give the product over the integers, whatever its blocks, storages and order are.
struct Integers : testing::TestWithParam<LinearRecipe> {
  Case c;
  std::vector<std::int64_t> x, dy, w, bias, main_grad;
  Operands o;

  void SetUp() override {
    c = make_case(GetParam(), Format::bf16, {{3, 0, 130, 1}, 136, 150, 2});
    c.config.force_pow_2_scales = true;
    c.bias = true;
    o = make_operands(c);
    std::uint64_t seed = 0;
    const auto fill = [&](Matrix& matrix, std::vector<std::int64_t>& values, std::int64_t used, std::int64_t columns) {
      ++seed;
      for (std::int64_t i = 0; i < used; ++i) {
        const auto r = draw(seed, static_cast<std::uint64_t>(i));
        const std::int64_t limit = (i / columns) % 3 == 0 ? 1 : (i / columns) % 3 == 1 ? 3 : 7;
        values.push_back(static_cast<std::int64_t>(r % static_cast<std::uint64_t>(2 * limit + 1)) - limit);
        matrix.set(i, static_cast<double>(values.back()));
      }
    };
    const Layout& l = c.layout;
    fill(o.x, x, l.used() * l.K, l.K);
    fill(o.dy, dy, l.used() * l.N, l.N);
    fill(o.w, w, l.groups() * l.N * l.K, l.K);
    fill(o.bias, bias, l.groups() * l.N, l.N);
    fill(o.main_grad, main_grad, l.groups() * l.N * l.K, l.K);
    for (std::size_t t = 0; t < l.splits.size(); ++t) {
      o.x_scale[t] = static_cast<float>(1 << t);
      o.dy_scale[t] = static_cast<float>(8 >> t);
      o.w_scale[t] = static_cast<float>(2 << t);
    }
  }

  // sum over `depth` of a[i * a_row + k * a_k] * b[j * b_row + k * b_k]
  static std::int64_t dot(const std::int64_t* a, std::int64_t a_k, const std::int64_t* b, std::int64_t b_k, std::int64_t depth) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) sum += a[k * a_k] * b[k * b_k];
    return sum;
  }
};

TEST_P(Integers, GiveTheExactProduct) {
  const Layout& l = c.layout;
  const std::int64_t N = l.N, K = l.K;
  Matrix y(Format::bf16, l.rows() * N, kPoison), dx(Format::bf16, l.rows() * K, kPoison), sums(Format::bf16, l.groups() * N);
  Matrix dw(Format::f32, l.groups() * N * K), added(Format::f32, l.groups() * N * K);
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    const std::int64_t first = l.first(t), m = l.splits[t], g = static_cast<std::int64_t>(t);
    const std::int64_t* weights = w.data() + g * N * K;
    for (std::int64_t r = first; r < first + m; ++r) {
      for (std::int64_t n = 0; n < N; ++n) {
        const double product = nearest(static_cast<double>(dot(&x[r * K], 1, weights + n * K, 1, K)), 8, -126, 1e38);
        y.set(r * N + n, product + static_cast<double>(bias[static_cast<std::size_t>(g * N + n)]));
      }
      for (std::int64_t k = 0; k < K; ++k) dx.set(r * K + k, static_cast<double>(dot(&dy[r * N], 1, weights + k, K, N)));
    }
    for (std::int64_t n = 0; n < N; ++n) {
      std::int64_t sum = 0;
      for (std::int64_t r = first; r < first + m; ++r) sum += dy[r * N + n];
      sums.set(g * N + n, static_cast<double>(sum));
      for (std::int64_t k = 0; k < K; ++k) {
        const std::int64_t at = (g * N + n) * K + k;
        const std::int64_t product = m == 0 ? 0 : dot(&dy[first * N + n], N, &x[first * K + k], K, m);
        dw.set(at, static_cast<double>(product));
        added.set(at, static_cast<double>(product + main_grad[static_cast<std::size_t>(at)]));
      }
    }
  }
  for (const Steps& steps : {kFast, kScalar}) {
    const std::string layer = steps.name;
    for (const bool cached : {false, true}) {
      c.cached = cached;
      expect_same(forward(steps, c, o), y, layer + " forward");
      expect_same(dgrad(steps, c, o), dx, layer + " dgrad");
    }
    c.accumulate = false;
    expect_same(wgrad(steps, c, o), dw, layer + " wgrad");
    c.accumulate = true;
    expect_same(wgrad(steps, c, o), added, layer + " wgrad, added");
    expect_same(dbias(steps, c, o), sums, layer + " dbias");
  }
}

INSTANTIATE_TEST_SUITE_P(Linear, Integers,
                         testing::Values(LinearRecipe::none, LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                         LinearRecipe::block, LinearRecipe::mxfp8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// ---- Rules one by one -----------------------------------------------------------------------------------------------

// A17: all splits zero, 4 groups: dW becomes zero without accumulation and stays as it is with it, NaN included.
TEST(ZeroWork, LeavesOrClearsTheWeightGradients) {
  for (const LinearRecipe recipe : kRecipes) {
    Case c = make_case(recipe, Format::bf16, {{0, 0, 0, 0}, 256, 256, 0});
    const Operands o = make_operands(c);
    for (const Steps& steps : {kFast, kScalar}) {
      c.accumulate = false;
      expect_same(wgrad(steps, c, o), Matrix(Format::f32, 4 * 256 * 256), "not accumulating");
      c.accumulate = true;
      expect_same(wgrad(steps, c, o), o.main_grad, "accumulating");
    }
  }
}

// A24: the same buffers under other splits, and back: no result of the call before remains.
TEST(ChangedSplits, AnswerForTheSplitsOfTheCall) {
  for (const LinearRecipe recipe : kRecipes) {
    Case c = make_case(recipe, Format::bf16, {{12, 0, 0}, 18, 34, 0});
    const Operands o = [&] {
      Case all = c;
      all.layout.splits = {4, 4, 4};
      return make_operands(all);
    }();
    for (const std::vector<std::int64_t>& splits :
         {std::vector<std::int64_t>{12, 0, 0}, {0, 0, 12}, {0, 12, 0}, {2, 0, 10}, {4, 4, 4}, {2, 2, 2}, {12, 0, 0}}) {
      c.layout.splits = splits;
      c.layout.beyond = 12 - c.layout.used();
      expect_same(forward(kFast, c, o), forward_by_hand(c, o), "forward");
      expect_same(dgrad(kFast, c, o), dgrad_by_hand(c, o), "dgrad");
      expect_same(wgrad(kFast, c, o), wgrad_by_hand(c, o), "wgrad");
      expect_same(dbias(kFast, c, o), dbias_by_hand(c, o), "dbias");
    }
  }
}

// C4, C5: each option changes the result exactly where it applies.
TEST(Options, BelongToTheirRecipes) {
  for (const LinearRecipe recipe : kRecipes) {
    const bool scaled = recipe == LinearRecipe::tensor_current || recipe == LinearRecipe::block;
    Case plain = make_case(recipe, Format::bf16, {{6, 4}, 20, 36, 0});
    const Operands o = make_operands(plain);
    const auto answers = [&](const Case& c) {
      std::vector<Bytes> all = {forward(kFast, c, o).bytes, dgrad(kFast, c, o).bytes, wgrad(kFast, c, o).bytes};
      return all;
    };
    const auto unset = answers(plain);
    plain.config.force_pow_2_scales = false;
    const auto before = answers(plain);
    Case c = plain;
    c.config.force_pow_2_scales = true;
    const auto pow2 = answers(c);
    c = plain;
    c.config.amax_epsilon = 300;
    const auto epsilon = answers(c);
    c = plain;
    c.config.hadamard_sign_mask ^= 0x0101;
    const auto mask = answers(c);
    for (std::size_t step = 0; step < 3; ++step) {
      SCOPED_TRACE(std::string(name_of(recipe)) + " step " + std::to_string(step));
      EXPECT_EQ(pow2[step] != before[step], scaled) << "powers of two";
      EXPECT_EQ(unset[step], recipe == LinearRecipe::block ? pow2[step] : before[step]) << "powers of two unless said otherwise";
      EXPECT_EQ(epsilon[step] != before[step], scaled) << "epsilon";
      EXPECT_EQ(mask[step] != before[step], recipe == LinearRecipe::nvfp4 && step == 2) << "signs of the transform";
    }
  }
}

// C7, A14: the bias gradient needs no other step, and is the sum of dy, not of q(dy): one value far below the scale of its
// block is lost in q(dy).
TEST(Dbias, IsTheSumOfTheGradientItself) {
  for (const LinearRecipe recipe : kRecipes) {
    const Case c = make_case(recipe, Format::bf16, {{2, 0, 2}, 4, 2, 0});
    Operands o = make_operands(c);
    for (std::int64_t i = 0; i < 16; ++i) o.dy.set(i, i % 4 == 0 ? 0x1p-20 : 256);
    for (const Steps& steps : {kFast, kScalar}) {
      const Matrix sums = dbias(steps, c, o);
      for (std::int64_t i = 0; i < 12; ++i) {
        EXPECT_EQ(sums.value(i), i / 4 == 1 ? 0 : i % 4 == 0 ? 0x1p-19 : 512) << name_of(recipe) << " " << i;
      }
    }
  }
}

// Memory beyond the groups may be missing.
TEST(Buffers, EndWithTheLastGroup) {
  for (const LinearRecipe recipe : kRecipes) {
    Case c = make_case(recipe, Format::bf16, {{6, 4}, 20, 36, 0});
    const Operands o = make_operands(c);
    const auto y = forward(kFast, c, o), dx = dgrad(kFast, c, o), dw = wgrad(kFast, c, o), sums = dbias(kFast, c, o);
    LinearShape shape = c.layout.shape();
    shape.rows = 1 << 20;  // far more than any buffer of this test holds
    Matrix y2(Format::bf16, 10 * 20), dx2(Format::bf16, 10 * 36), dw2(Format::f32, 2 * 20 * 36), sums2(Format::bf16, 2 * 20);
    linear_forward(c.config, shape, {o.x.data(), o.w.data(), nullptr, nullptr, o.x_scale.data(), o.w_scale.data()}, y2.data());
    linear_dgrad(c.config, shape, {o.dy.data(), o.w.data(), nullptr, o.dy_scale.data(), o.w_scale.data()}, dx2.data());
    linear_wgrad(c.config, shape, wgrad_operands(c, o), dw2.data());
    linear_dbias(c.config, shape, o.dy.data(), sums2.data());
    expect_same(y2, y, "y");
    expect_same(dx2, dx, "dx");
    expect_same(dw2, dw, "dw");
    expect_same(sums2, sums, "dbias");
  }
}

TEST(Names, GoThereAndBack) {
  for (const LinearRecipe recipe : kRecipes) EXPECT_EQ(linear_recipe_named(name_of(recipe)), recipe);
  EXPECT_FALSE(linear_recipe_named("fp8"));
}

}  // namespace
}  // namespace assay::linear_suite
