// The update of delayed scales: steps worked out by hand, and both layers against a second route in double.

#include "reference/recipes/delayed_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "reference/tests/recipes/block_scaled_case.h"
#include "reference/types/error.h"

namespace assay {
namespace {

constexpr float kFltMax = 0x1.fffffep127f, kInf = INFINITY, kNan = NAN;

struct Layer {
  const char* name;
  void (*plain)(const DelayedScalingConfig&, const DelayedScalingState&);
  void (*bulk)(const DelayedScalingConfig&, std::span<const DelayedScalingState>, const float*);
};
constexpr Layer kLayers[] = {
    {"scalar", scalar::update_delayed_scaling, scalar::update_delayed_scaling_bulk},
    {"fast", update_delayed_scaling, update_delayed_scaling_bulk},
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), 4 * values.size());
  return bits;
}

// One tensor.
struct Step {
  const char* what;
  bool bulk;
  DelayedScalingConfig config;
  std::vector<float> history;  // newest first
  float scale;
  std::vector<float> reduced;  // empty or one
  std::vector<float> want_history;
  float want_scale;
};
void PrintTo(const Step& step, std::ostream* out) { *out << (step.bulk ? "bulk: " : "plain: ") << step.what; }

constexpr DelayedScalingConfig kMax = {}, kRecent = {.algorithm = AmaxAlgorithm::most_recent};
const Step kSteps[] = {
    {"largest of the window", false, kMax, {1, 7, 2}, 5, {}, {0, 2, 1}, 64},
    {"the newest counts", false, kMax, {8, 7, 2}, 5, {}, {0, 2, 8}, 56},
    {"most recent", false, kRecent, {1, 7, 2}, 5, {}, {0, 2, 1}, 448},
    {"history of one", false, kMax, {14}, 5, {}, {0}, 32},
    {"the plain form rolls an unused tensor", false, kMax, {0, 7, 2}, 5, {}, {0, 2, 0}, 64},
    {"nothing seen keeps the scale", false, kMax, {0, 0, 0}, 5, {}, {0, 0, 0}, 5},
    {"margin divides by a power of two", false, {.margin = 3}, {1, 0}, 5, {}, {0, 1}, 56},
    {"negative margin", false, {.margin = -1}, {1, 0}, 5, {}, {0, 1}, 896},
    {"e5m2", false, {.output = Format::e5m2}, {7, 0}, 5, {}, {0, 7}, 8192},
    {"infinity keeps the scale", false, kMax, {kInf, 1}, 5, {}, {0, kInf}, 5},
    {"NaN is passed over by max", false, kMax, {kNan, 7, 2}, 5, {}, {0, 2, kNan}, 64},
    {"NaN as the most recent keeps the scale", false, kRecent, {kNan, 7}, 5, {}, {0, kNan}, 5},
    {"tiny amax", false, kMax, {0x1p-149f}, 5, {}, {0}, kFltMax},
    {"an old infinite scale", false, kMax, {0}, kInf, {}, {0}, kFltMax},
    {"an old NaN scale stays", false, kMax, {0}, kNan, {}, {0}, kNan},
    {"slot 0 is not in the window of older steps", false, kMax, {1, 2, 100}, 5, {}, {0, 100, 1}, 4.48f},
    {"margin past f32: a maximum of 0", false, {.margin = 150}, {1}, 5, {}, {0}, 0},
    {"margin below f32: an infinite maximum", false, {.margin = -128}, {1}, 5, {}, {0}, kFltMax},
    {"subnormal power", false, {.margin = 149}, {1}, 5, {}, {0}, 0x1.cp-141f},
    {"largest of the window", true, kMax, {1, 7, 2}, 5, {}, {0, 2, 1}, 64},
    {"an unused tensor keeps history and scale", true, kMax, {0, 7, 2}, 5, {}, {0, 7, 2}, 5},
    {"unused, most recent", true, kRecent, {0, 7, 2}, 5, {}, {0, 7, 2}, 5},
    {"unused with an infinite scale", true, kMax, {0, 7, 2}, kInf, {}, {0, 7, 2}, kFltMax},
    {"negative zero is zero", true, kMax, {-0.0f, 7, 2}, 5, {}, {-0.0f, 7, 2}, 5},
    {"the reduced amax replaces slot 0", true, kMax, {1, 2, 4}, 5, {7}, {0, 4, 7}, 64},
    {"a reduced amax of 0 does not", true, kMax, {14, 2, 4}, 5, {0}, {0, 4, 14}, 32},
    {"a reduced amax for a tensor unused here", true, kRecent, {0, 2, 4}, 5, {7}, {0, 4, 7}, 64},
    {"a reduced NaN is not 0", true, kMax, {1, 2, 4}, 5, {kNan}, {0, 4, kNan}, 112},
};

class DelayedScalingStep : public ::testing::TestWithParam<Step> {};

TEST_P(DelayedScalingStep, BothLayers) {
  const Step& step = GetParam();
  for (const Layer& layer : kLayers) {
    std::vector<float> history = step.history;
    float scale = step.scale;
    const DelayedScalingState state = {history.data(), &scale, static_cast<std::int64_t>(history.size()), 1};
    step.bulk ? layer.bulk(step.config, {&state, 1}, step.reduced.empty() ? nullptr : step.reduced.data())
              : layer.plain(step.config, state);
    EXPECT_EQ(bits_of(history), bits_of(step.want_history)) << layer.name;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(scale), std::bit_cast<std::uint32_t>(step.want_scale)) << layer.name << " " << scale;
  }
}
INSTANTIATE_TEST_SUITE_P(Table, DelayedScalingStep, ::testing::ValuesIn(kSteps));

// ---- Many tensors, many steps ---------------------------------------------------------------------------------------

// The update of one tensor as a queue of values in double.
void second_route(const DelayedScalingConfig& config, std::vector<double>& history, double& scale, bool bulk,
                  const double* reduced) {
  double last = history.front();
  if (reduced != nullptr && (*reduced < 0 || *reduced > 0 || std::isnan(*reduced))) last = *reduced;
  double amax = 0;
  if (!bulk || last != 0) {
    history.erase(history.begin());
    history.push_back(last);
    for (const double each : history) amax = std::isnan(each) ? amax : std::max(amax, each);
    history.front() = 0;
  }
  if (config.algorithm == AmaxAlgorithm::most_recent) amax = last;
  const double largest = (config.output == Format::e4m3 ? 448.0 : 57344.0) * std::exp2(-config.margin);
  if (std::isfinite(amax) && amax > 0) scale = static_cast<float>(largest / amax);
  if (std::isinf(scale)) scale = kFltMax;
}

TEST(DelayedScaling, ManyTensorsOverManySteps) {
  for (const Layer& layer : kLayers) {
    for (const bool bulk : {false, true}) {
      for (const AmaxAlgorithm algorithm : {AmaxAlgorithm::max, AmaxAlgorithm::most_recent}) {
        const DelayedScalingConfig config = {
            .output = bulk ? Format::e4m3 : Format::e5m2, .algorithm = algorithm, .margin = bulk ? 2 : 0};
        const std::int64_t counts[] = {1, 1030, 0, 513};
        const std::int64_t lengths[] = {1, 5, 3, 16};
        std::vector<std::vector<float>> histories, scales;
        std::vector<DelayedScalingState> states;
        for (int s = 0; s < 4; ++s) {
          histories.emplace_back(static_cast<std::size_t>(lengths[s] * counts[s]), 0.0f);
          scales.emplace_back(static_cast<std::size_t>(counts[s]), 1.0f);
        }
        for (int s = 0; s < 4; ++s) states.push_back({histories[s].data(), scales[s].data(), lengths[s], counts[s]});
        std::vector<std::vector<double>> model_history;
        std::vector<double> model_scale;
        for (int s = 0; s < 4; ++s) {
          for (std::int64_t i = 0; i < counts[s]; ++i) {
            model_history.emplace_back(static_cast<std::size_t>(lengths[s]), 0.0);
            model_scale.push_back(1);
          }
        }
        for (std::uint64_t step = 0; step < 20; ++step) {
          std::vector<float> reduced;
          std::size_t tensor = 0;
          for (int s = 0; s < 4; ++s) {
            for (std::int64_t i = 0; i < counts[s]; ++i, ++tensor) {
              const std::uint64_t random = block_scaled::draw(step, tensor);
              float amax =
                  std::ldexp(1.0f + static_cast<float>(random & 0xffff) / 65536.0f, static_cast<int>(random >> 16 & 31) - 16);
              if ((random >> 24 & 7) == 0) amax = 0;
              if ((random >> 24 & 63) == 9) amax = kInf;
              if ((random >> 24 & 63) == 10) amax = kNan;
              histories[s][static_cast<std::size_t>(i)] = amax;
              model_history[tensor].front() = amax;
              reduced.push_back((random >> 40 & 3) == 0 ? 0.0f : (random >> 40 & 31) == 1 ? kNan : 2 * amax);
            }
          }
          const bool reduces = bulk && step % 2;
          if (bulk) {
            layer.bulk(config, states, reduces ? reduced.data() : nullptr);
          } else {
            for (const DelayedScalingState& state : states) layer.plain(config, state);
          }
          tensor = 0;
          for (int s = 0; s < 4; ++s) {
            for (std::int64_t i = 0; i < counts[s]; ++i, ++tensor) {
              const double from_reduction = reduced[tensor];
              second_route(config, model_history[tensor], model_scale[tensor], bulk, reduces ? &from_reduction : nullptr);
              ASSERT_EQ(scales[s][static_cast<std::size_t>(i)], static_cast<float>(model_scale[tensor]))
                  << layer.name << " state " << s << " tensor " << i << " step " << step;
              for (std::int64_t back = 0; back < lengths[s]; ++back) {
                const float got = histories[s][static_cast<std::size_t>(back * counts[s] + i)];
                const auto want = static_cast<float>(model_history[tensor][static_cast<std::size_t>(back)]);
                ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
                    << layer.name << " state " << s << " tensor " << i << " step " << step << " entry " << back;
              }
            }
          }
        }
      }
    }
  }
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

TEST(DelayedScalingErrors, NameTheArgumentAndWriteNothing) {
  struct Bad {
    const char* argument;
    void (*spoil)(DelayedScalingConfig&, DelayedScalingState&);
  };
  // clang-format off
  const Bad bad[] = {
      {"output", [](auto& c, auto&) { c.output = Format::e2m1; }},
      {"algorithm", [](auto& c, auto&) { c.algorithm = static_cast<AmaxAlgorithm>(2); }},
      {"margin", [](auto& c, auto&) { c.margin = 1001; }},
      {"states[1].length", [](auto&, auto& s) { s.length = 0; }},
      {"states[1].count", [](auto&, auto& s) { s.count = -1; }},
      {"states[1].length", [](auto&, auto& s) { s.length = std::int64_t{1} << 62; }},
      {"states[1].history", [](auto&, auto& s) { s.history = nullptr; }},
      {"states[1].scale",
       [](auto&, auto& s) { s.scale = reinterpret_cast<float*>(reinterpret_cast<char*>(s.scale) + 1); }},
  };
  // clang-format on
  for (const Layer& layer : kLayers) {
    for (const Bad& each : bad) {
      std::vector<float> history = {1, 2, 3, 4}, scale = {5, 6, 7};
      DelayedScalingConfig config;
      DelayedScalingState states[2] = {{history.data(), scale.data(), 2, 1}, {history.data() + 2, scale.data() + 1, 1, 2}};
      each.spoil(config, states[1]);
      try {
        layer.bulk(config, std::span<const DelayedScalingState>(states), nullptr);
        FAIL() << layer.name << ": no error for " << each.argument;
      } catch (const InvalidArgument& error) {
        EXPECT_EQ(error.argument(), each.argument) << layer.name;
      }
      EXPECT_EQ(history, (std::vector<float>{1, 2, 3, 4})) << layer.name << " " << each.argument;
      EXPECT_EQ(scale, (std::vector<float>{5, 6, 7})) << layer.name << " " << each.argument;
    }
  }
}

}  // namespace
}  // namespace assay
