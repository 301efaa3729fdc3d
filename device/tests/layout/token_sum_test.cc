// The sums of unpermute on the device, as the host compiles them, against the reference's scalar layer: any bits, and sums next to
// the ties of a type, where rounding twice shows.

#include "device/layout/token_sum.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

namespace assay::device {
namespace {

constexpr std::int64_t kTopk = 3;

struct Choices {
  Format type = Format::bf16;
  std::vector<std::uint32_t> values;  // codes, kTopk for each sum
  std::vector<float> weights;
};

template <class Stored>
std::vector<std::uint32_t> by_reference(const Choices& choices, TokenSums sums) {
  const auto tokens = static_cast<std::int64_t>(choices.values.size()) / kTopk;
  std::vector<std::int32_t> rows(choices.values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  const std::vector<Stored> stored(choices.values.begin(), choices.values.end());
  std::vector<Stored> x(static_cast<std::size_t>(tokens));
  UnpermuteProblem problem;
  problem.map = {rows, tokens, kTopk, static_cast<std::int64_t>(rows.size())};
  problem.type = choices.type, problem.columns = 1, problem.permuted = stored.data(), problem.sums = sums;
  problem.weights = choices.weights.data();
  scalar::unpermute(problem, x.data());
  return {x.begin(), x.end()};
}

template <Format type, TokenSums sums>
void expect_the_references(const Choices& choices) {
  const std::vector<std::uint32_t> want =
      type == Format::f32 ? by_reference<std::uint32_t>(choices, sums) : by_reference<std::uint16_t>(choices, sums);
  for (std::size_t t = 0; t < want.size(); ++t) {
    float acc = 0;
    for (std::size_t i = kTopk * t; i < kTopk * (t + 1); ++i)
      acc = with_choice<type, sums>(acc, choices.weights[i], Element<type>::widen_one(choices.values[i]));
    ASSERT_EQ(code_of_sum<type>(acc), want[t])
        << "type " << static_cast<int>(type) << ", sums " << static_cast<int>(sums) << ", " << t << std::hexfloat << ": "
        << choices.weights[3 * t] << " * " << choices.values[3 * t] << " + " << choices.weights[3 * t + 1] << " * "
        << choices.values[3 * t + 1];
  }
}

template <Format type>
void expect_all(const Choices& choices) {
  expect_the_references<type, TokenSums::fma_f32>(choices);
  expect_the_references<type, TokenSums::f32>(choices);
  expect_the_references<type, TokenSums::in_type>(choices);
  expect_the_references<type, TokenSums::fma_in_type>(choices);
}

template <Format type>
Choices any_bits(std::uint32_t seed, std::size_t sums) {
  Choices made;
  made.type = type;
  std::mt19937 random(seed);
  const std::uint32_t mask = type == Format::f32 ? 0xFFFF'FFFFu : 0xFFFFu;
  for (std::size_t i = 0; i < sums * kTopk; ++i) {
    made.values.push_back(static_cast<std::uint32_t>(random()) & mask);
    made.weights.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return made;
}

// 1 * a, then w * b where the product lies near half a unit of the last place of a, above, on or below it, then a third alike. Or a
// is far smaller than the product, which lies on a tie or next to one: then f32 loses a.
template <Format type>
Choices near_ties(std::uint32_t seed, std::size_t sums) {
  Choices made;
  made.type = type;
  std::mt19937 random(seed);
  constexpr int kBits = type == Format::bf16 ? 7 : type == Format::f16 ? 10 : 23;
  const auto encode = [](double value) { return code_of_sum<type>(static_cast<float>(value)); };
  const auto add = [&](double value, double weight) {
    made.values.push_back(encode(value));
    made.weights.push_back(static_cast<float>(weight));
  };
  for (std::size_t t = 0; t < sums; ++t) {
    const auto sign = [&] { return random() % 2 == 0 ? 1.0 : -1.0; };
    const int exponent = static_cast<int>(random() % (type == Format::f16 ? 28 : 200)) - (type == Format::f16 ? 14 : 100);
    const double a = sign() * std::ldexp(1 + static_cast<double>(random() % (1u << kBits)) / (1u << kBits), exponent);
    if (t % 2 == 1) {
      add(std::ldexp(a, -25 - static_cast<int>(random() % 20)), 1);
      const double odd = 1 + static_cast<double>(random() % (1u << kBits) | 1) / (1u << kBits);
      add(sign() * std::ldexp(odd, exponent), 1.5);
      add(a, 0);
      continue;
    }
    add(a, 1);
    for (int i = 0; i < 2; ++i) {  // half a unit, times a factor next to 1
      const double off = 1 + std::ldexp(static_cast<double>(random() % 5) - 2, -static_cast<int>(random() % (kBits + 1)));
      const double near_one = 1 + std::ldexp(static_cast<double>(random() % 3) - 1, -static_cast<int>(random() % (kBits + 1)));
      add(sign() * std::ldexp(1, exponent - kBits - 1 + static_cast<int>(random() % 2)) * off, near_one);
    }
  }
  return made;
}

template <class Body>
void for_each_type(Body body) {
  body(std::integral_constant<Format, Format::bf16>{});
  body(std::integral_constant<Format, Format::f16>{});
  body(std::integral_constant<Format, Format::f32>{});
}

TEST(token_sum, of_any_bits_is_the_references) {
  for_each_type([](auto type) { expect_all<type.value>(any_bits<type.value>(1, 200'000)); });
}

TEST(token_sum, next_to_a_tie_is_the_references) {
  for_each_type([](auto type) { expect_all<type.value>(near_ties<type.value>(2, 200'000)); });
}

// Whether the two ways to round differ in the tested sums at all.
TEST(token_sum, tests_meet_double_rounding) {
  const Choices choices = near_ties<Format::bf16>(2, 200'000);
  int differ = 0;
  for (std::size_t t = 0; t + 1 < choices.values.size(); t += kTopk) {
    const auto value = [&](std::size_t i) { return Element<Format::bf16>::widen_one(choices.values[t + i]); };
    const float weight = rounded_to<Format::bf16>(choices.weights[t + 1]);
    const float once = fused_in<Format::bf16>(weight, value(1), value(0));
    differ += once != rounded_to<Format::bf16>(fused(weight, value(1), value(0)));
  }
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace assay::device
