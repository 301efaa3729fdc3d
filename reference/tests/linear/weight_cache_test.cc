// The weight cache and its skip flag, and the effect of the position of a microbatch.
//
// Faults of conformance/cases/faults.md that die here:
//   D1, D3 the flag never obeyed, inverted, any value but 0 obeyed, obeyed for data only or for one direction   SkipFlag
//   D4 never renewed, renewed each time, one entry for all groups, a direction missing, one that no longer fits SkipFlag, Fit
//   A21, D4, D5 accumulation and caching by the position of the microbatch                                      Microbatch
// D6: with a master weight that stays the same a skip cannot be seen, so it changes before every call.

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/linear/microbatch.h"
#include "reference/tests/linear/by_hand.h"
#include "reference/types/error.h"

namespace assay::linear_suite {
namespace {

Case make_case(LinearRecipe recipe) {
  Case c;
  c.config.recipe = recipe;
  if (recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4) c.config.architecture = "sm100";
  c.layout = {{4, 0, 6}, 130, 34, 0};
  return c;
}

// Operands whose weights have a different amax.
Operands with_other_weights(const Case& c, std::uint64_t seed) {
  Operands made = make_operands(c, seed);
  for (std::int64_t i = 0; i < c.layout.groups() * c.layout.N * c.layout.K; ++i) {
    made.w.set(i, made.w.value(i) * (1 + static_cast<double>(seed % 64) / 128));
  }
  return made;
}

// Every buffer of a cache by name, group after group.
std::vector<std::pair<std::string, Bytes>> buffers(const LinearWeightCache& cache) {
  const auto bytes = [](const std::vector<std::byte>& from) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(from.data());
    return Bytes(first, first + from.size());
  };
  const auto* amax = reinterpret_cast<const std::uint8_t*>(cache.amax.data());
  return {{"rowwise_data", bytes(cache.rowwise_data)},
          {"rowwise_scale_inv", bytes(cache.rowwise_scale_inv)},
          {"columnwise_data", bytes(cache.columnwise_data)},
          {"columnwise_scale_inv", bytes(cache.columnwise_scale_inv)},
          {"amax", Bytes(amax, amax + 4 * cache.amax.size())}};
}

class SkipFlag : public testing::TestWithParam<LinearRecipe> {};

// D7: 0,1,1,0,1 over weights that change before every call. After each call every buffer is that of the weights used last, and
// forward and dgrad match those weights, computed by hand.
TEST_P(SkipFlag, KeepsOrRenewsAllOfTheCache) {
  for (const Steps& steps : {kFast, kScalar}) {
    Case c = make_case(GetParam());
    c.config.force_pow_2_scales = false;  // other weights change the scales too
    const LinearShape shape = c.layout.shape();
    const Operands inputs = make_operands(c);
    LinearWeightCache cache;
    Operands taken = inputs;
    std::uint64_t seed = 10;
    for (const float flag : {0.0f, 1.0f, 1.0f, 0.0f, 1.0f, 0.5f, 1.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f}) {
      SCOPED_TRACE(std::string(steps.name) + " flag " + std::to_string(flag) + " call " + std::to_string(seed));
      const Operands changed = with_other_weights(c, seed++);
      if (flag != 1.0f) {
        taken.w = changed.w;
        taken.w_scale = changed.w_scale;
      }
      const void* w = flag == 1.0f && seed % 2 == 0 ? nullptr : changed.w.data();  // a skip reads no weights
      steps.quantize_weights(c.config, shape, w, w == nullptr ? nullptr : changed.w_scale.data(), &flag, cache);

      LinearWeightCache fresh, other;
      steps.quantize_weights(c.config, shape, taken.w.data(), taken.w_scale.data(), nullptr, fresh);
      const Operands next = with_other_weights(c, seed + 100);
      steps.quantize_weights(c.config, shape, next.w.data(), next.w_scale.data(), nullptr, other);
      const auto held = buffers(cache), expected = buffers(fresh), different = buffers(other);
      for (std::size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(held[i].second, expected[i].second) << held[i].first;
        // Other weights change every group of every buffer, so that a skip can be detected.
        const std::size_t groups = c.layout.splits.size(), part = expected[i].second.size() / groups;
        for (std::size_t t = 0; part > 0 && t < groups; ++t) {
          const auto first = static_cast<std::ptrdiff_t>(t * part), last = static_cast<std::ptrdiff_t>((t + 1) * part);
          EXPECT_NE(Bytes(expected[i].second.begin() + first, expected[i].second.begin() + last),
                    Bytes(different[i].second.begin() + first, different[i].second.begin() + last))
              << held[i].first << " of group " << t;
        }
      }

      Matrix y(c.config.type, c.layout.rows() * c.layout.N, kPoison), dx(c.config.type, c.layout.rows() * c.layout.K, kPoison);
      steps.forward(c.config, shape, {inputs.x.data(), nullptr, &cache, nullptr, inputs.x_scale.data(), nullptr}, y.data());
      steps.dgrad(c.config, shape, {inputs.dy.data(), nullptr, &cache, inputs.dy_scale.data(), nullptr}, dx.data());
      expect_same(y, forward_by_hand(c, taken), "forward");
      expect_same(dx, dgrad_by_hand(c, taken), "dgrad");
    }
  }
}

// Neighbouring weights have the same power-of-two scale: block and mxfp8 need weights that differ in magnitude.
TEST_P(SkipFlag, ShowsInScalesOfPowersOfTwo) {
  Case c = make_case(GetParam());
  c.config.force_pow_2_scales = true;
  const LinearShape shape = c.layout.shape();
  Operands o = make_operands(c), larger = o;
  for (std::int64_t i = 0; i < c.layout.groups() * c.layout.N * c.layout.K; ++i) larger.w.set(i, 16 * o.w.value(i));
  for (float& scale : larger.w_scale) scale *= 16;
  LinearWeightCache first, second;
  linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), nullptr, first);
  linear_quantize_weights(c.config, shape, larger.w.data(), larger.w_scale.data(), nullptr, second);
  const bool nvfp4 = GetParam() == LinearRecipe::nvfp4;  // its block scales follow the tensor's
  EXPECT_EQ(first.rowwise_scale_inv == second.rowwise_scale_inv, nvfp4);
  EXPECT_EQ(first.amax == second.amax, !nvfp4);
  const float skip = 1;
  const auto before = buffers(first);
  linear_quantize_weights(c.config, shape, larger.w.data(), larger.w_scale.data(), &skip, first);
  EXPECT_EQ(buffers(first), before);
}

TEST_P(SkipFlag, NeedsACacheThatFits) {
  const Case c = make_case(GetParam());
  const Operands o = make_operands(c);
  const LinearShape shape = c.layout.shape();
  LinearWeightCache good;
  linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), nullptr, good);
  struct Fault {
    std::string argument;
    std::function<void(LinearWeightCache&)> make;
  };
  const auto shorten = [](auto member) { return [member](LinearWeightCache& cache) { (cache.*member).pop_back(); }; };
  std::vector<Fault> faults = {
      {"cache.filled", [](LinearWeightCache& cache) { cache = {}; }},
      {"cache.recipe", [](LinearWeightCache& cache) { cache.recipe = LinearRecipe::none; }},
      {"cache.code", [](LinearWeightCache& cache) { cache.code = Format::e5m2; }},
      {"cache.groups", [](LinearWeightCache& cache) { cache.groups = 2; }},
      {"cache.N", [](LinearWeightCache& cache) { std::swap(cache.N, cache.K); }},  // as many bytes
      {"cache.K", [](LinearWeightCache& cache) { ++cache.K; }},
      {"cache.rowwise_data", shorten(&LinearWeightCache::rowwise_data)},
      {"cache.rowwise_scale_inv", shorten(&LinearWeightCache::rowwise_scale_inv)},
      {"cache.columnwise_data", shorten(&LinearWeightCache::columnwise_data)},
      {"cache.columnwise_data", [](LinearWeightCache& cache) { cache.columnwise_data.clear(); }},
      {"cache.amax", [](LinearWeightCache& cache) { cache.amax.push_back(1); }},
  };
  if (!good.columnwise_scale_inv.empty())
    faults.push_back({"cache.columnwise_scale_inv", shorten(&LinearWeightCache::columnwise_scale_inv)});
  Matrix out(Format::bf16, 10 * 130, kPoison);
  const auto expect_error = [&](const std::string& argument, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "no error about " << argument;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), argument) << error.what();
    }
  };
  const float skip = 1;
  for (const Fault& fault : faults) {
    LinearWeightCache cache = good;
    fault.make(cache);
    const auto before = buffers(cache);
    expect_error(fault.argument, [&] { check_weight_cache(c.config, shape, cache); });
    expect_error(fault.argument, [&] { linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), &skip, cache); });
    expect_error(fault.argument, [&] {
      linear_forward(c.config, shape, {o.x.data(), o.w.data(), &cache, nullptr, o.x_scale.data(), nullptr}, out.data());
    });
    expect_error(fault.argument, [&] {
      linear_dgrad(c.config, shape, {o.dy.data(), o.w.data(), &cache, o.dy_scale.data(), nullptr}, out.data());
    });
    EXPECT_EQ(buffers(cache), before) << fault.argument;
    // Without a skip it is computed again.
    linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), nullptr, cache);
    EXPECT_EQ(buffers(cache), buffers(good)) << fault.argument;
  }
  // One direction is enough for a step that reads no other.
  for (const bool rowwise : {true, false}) {
    LinearWeightCache half;
    half.rowwise = rowwise;
    half.columnwise = !rowwise;
    linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), nullptr, half);
    linear_quantize_weights(c.config, shape, nullptr, nullptr, &skip, half);
    EXPECT_EQ((rowwise ? half.rowwise_data : half.columnwise_data), (rowwise ? good.rowwise_data : good.columnwise_data));
    EXPECT_TRUE((rowwise ? half.columnwise_data : half.rowwise_data).empty());
    const LinearForward forward{o.x.data(), nullptr, &half, nullptr, o.x_scale.data(), nullptr};
    const LinearDgrad dgrad{o.dy.data(), nullptr, &half, o.dy_scale.data(), nullptr};
    Matrix y(Format::bf16, c.layout.rows() * c.layout.N, kPoison), dx(Format::bf16, c.layout.rows() * c.layout.K, kPoison);
    if (rowwise) {
      linear_forward(c.config, shape, forward, y.data());
      expect_same(y, forward_by_hand(c, o), "forward");
      expect_error("cache.columnwise", [&] { linear_dgrad(c.config, shape, dgrad, dx.data()); });
    } else {
      linear_dgrad(c.config, shape, dgrad, dx.data());
      expect_same(dx, dgrad_by_hand(c, o), "dgrad");
      expect_error("cache.rowwise", [&] { linear_forward(c.config, shape, forward, y.data()); });
    }
  }
  EXPECT_EQ(out.bytes, Matrix(Format::bf16, 10 * 130, kPoison).bytes);
}

TEST_P(SkipFlag, ABadCallLeavesTheCacheAsItWas) {
  const Case c = make_case(GetParam());
  const Operands o = make_operands(c), other = make_operands(c, 2);
  const LinearShape shape = c.layout.shape();
  LinearWeightCache cache;
  linear_quantize_weights(c.config, shape, o.w.data(), o.w_scale.data(), nullptr, cache);
  const auto before = buffers(cache);
  alignas(8) unsigned char flags[8] = {};
  const auto* misaligned = reinterpret_cast<const float*>(flags + 1);
  EXPECT_THROW(linear_quantize_weights(c.config, shape, nullptr, o.w_scale.data(), nullptr, cache), InvalidArgument);
  EXPECT_THROW(linear_quantize_weights(c.config, shape, o.w.bytes.data() + 1, o.w_scale.data(), nullptr, cache), InvalidArgument);
  EXPECT_THROW(linear_quantize_weights(c.config, shape, other.w.data(), o.w_scale.data(), misaligned, cache), InvalidArgument);
  if (GetParam() == LinearRecipe::tensor_delayed) {
    EXPECT_THROW(linear_quantize_weights(c.config, shape, other.w.data(), nullptr, nullptr, cache), InvalidArgument);
  }
  LinearConfig config = c.config;
  config.type = Format::f32;
  EXPECT_THROW(linear_quantize_weights(config, shape, other.w.data(), o.w_scale.data(), nullptr, cache), InvalidArgument);
  EXPECT_EQ(buffers(cache), before);
}

INSTANTIATE_TEST_SUITE_P(Linear, SkipFlag,
                         testing::Values(LinearRecipe::tensor_current, LinearRecipe::tensor_delayed, LinearRecipe::block,
                                         LinearRecipe::mxfp8, LinearRecipe::nvfp4),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// Padding of compact scales keeps what it held: a cache is renewed in place.
TEST(WeightCache, PaddingIsNotWritten) {
  const Case c = make_case(LinearRecipe::block);  // 130 x 34: one K-block of scales in four, two row blocks in four
  const Operands o = make_operands(c), other = make_operands(c, 2);
  LinearWeightCache cache;
  linear_quantize_weights(c.config, c.layout.shape(), o.w.data(), nullptr, nullptr, cache);
  for (auto* scales : {&cache.rowwise_scale_inv, &cache.columnwise_scale_inv})
    std::fill(scales->begin(), scales->end(), std::byte{0x77});
  linear_quantize_weights(c.config, c.layout.shape(), other.w.data(), nullptr, nullptr, cache);
  const auto poisoned = [](const std::vector<std::byte>& scales) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < scales.size(); i += 4)
      count += std::all_of(&scales[i], &scales[i] + 4, [](std::byte b) { return b == std::byte{0x77}; });
    return count;
  };
  EXPECT_EQ(poisoned(cache.rowwise_scale_inv), 3 * 2 * 3);     // [2, 4] of which [2, 1]
  EXPECT_EQ(poisoned(cache.columnwise_scale_inv), 3 * 1 * 2);  // [1, 4] of which [1, 2]
}

TEST(WeightCache, RecipeNoneKeepsNothing) {
  Case c = make_case(LinearRecipe::none);
  const Operands o = make_operands(c);
  LinearWeightCache cache;
  linear_quantize_weights(c.config, c.layout.shape(), o.w.data(), nullptr, nullptr, cache);
  EXPECT_FALSE(cache.filled);
  EXPECT_EQ(buffers(cache), buffers({}));
  c.cached = true;
  expect_same(forward(kFast, c, o), forward_by_hand(c, o), "forward");
}

TEST(Microbatch, DecidesWhereWeightsComeFrom) {
  EXPECT_EQ(weight_use(std::nullopt, false), WeightUse::fresh);
  EXPECT_EQ(weight_use(true, false), WeightUse::renewed);
  EXPECT_EQ(weight_use(false, false), WeightUse::kept);
  EXPECT_EQ(weight_use(std::nullopt, true), WeightUse::by_flag);
  EXPECT_EQ(weight_use(true, true), WeightUse::by_flag);
  EXPECT_EQ(weight_use(false, true), WeightUse::by_flag);
  EXPECT_EQ(weight_skip_flag(true), 0.0f);
  EXPECT_EQ(weight_skip_flag(false), 1.0f);
  EXPECT_THROW(weight_skip_flag(std::nullopt), InvalidArgument);
}

TEST(Microbatch, DecidesWhetherWgradAccumulates) {
  EXPECT_TRUE(accumulates({}));
  EXPECT_FALSE(accumulates({.is_first_microbatch = true}));
  EXPECT_TRUE(accumulates({.is_first_microbatch = false}));
  EXPECT_TRUE(accumulates({.is_first_microbatch = true, .skip_flag_captured = true})) << "within a graph the first one adds too";
  EXPECT_TRUE(accumulates({.skip_flag_captured = true}));
  for (const bool captured : {false, true}) {
    for (const std::optional<bool> first : {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
      EXPECT_FALSE(accumulates({.fused = false, .is_first_microbatch = first, .skip_flag_captured = captured}));
      EXPECT_FALSE(accumulates({.overwrite = true, .is_first_microbatch = first, .skip_flag_captured = captured}));
    }
  }
}

}  // namespace
}  // namespace assay::linear_suite
