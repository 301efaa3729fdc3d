// Tokens to their experts and back: vectors by hand, sums a second time in double, where they are exact before each rounding, both
// layers, every error.

#include "reference/layout/token_permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/types/error.h"

namespace assay {
namespace {

struct Layer {
  const char* name;
  void (*permute)(const RowMap&, std::int64_t, const void*, void*);
  void (*unpermute)(const UnpermuteProblem&, void*);
};
const Layer kLayers[] = {{"fast", permute_rows, unpermute}, {"scalar", scalar::permute_rows, scalar::unpermute}};

TEST(token_permutation, moves_rows_byte_by_byte) {
  const std::int32_t entries[] = {3, 0, 1, -1};
  const RowMap map{entries, 2, 2, 5};
  const char from[] = "abcdef";
  for (const Layer& layer : kLayers) {
    char to[] = "---------------";
    layer.permute(map, 3, from, to);
    EXPECT_STREQ(to, "abcdef---abc---") << layer.name;
  }
}

// The nearest multiple of the unit in the last place of a type of `bits` fraction bits, ties to even; the value is not subnormal there.
double nearest(double value, int bits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::ldexp(1.0, std::ilogb(value) - bits);
  return std::nearbyint(value / unit) * unit;
}

int fraction_bits(Format type) { return type == Format::bf16 ? 7 : type == Format::f16 ? 10 : 23; }

std::uint32_t code_of(Format type, double value) {  // exact, normal or zero
  if (type == Format::f32) {
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    return bits;
  }
  if (value == 0) return std::signbit(value) ? 0x8000 : 0;
  const int bits = fraction_bits(type), exponent = std::ilogb(value), bias = type == Format::bf16 ? 127 : 15;
  const auto mantissa = static_cast<std::uint32_t>(std::ldexp(std::fabs(value), bits - exponent)) - (1u << bits);
  return (value < 0 ? 0x8000u : 0u) | static_cast<std::uint32_t>(exponent + bias) << bits | mantissa;
}

struct Sum {
  TokenSums sums;
  Format type;
  bool weights;
};

TEST(token_permutation, sums_round_where_they_say) {
  std::mt19937_64 random(7);
  const std::int64_t tokens = 37, topk = 5, columns = 19, rows = 260;
  std::vector<std::int32_t> entries(static_cast<std::size_t>(tokens * topk));
  std::vector<std::int32_t> free(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < free.size(); ++i) free[i] = static_cast<std::int32_t>(i);
  std::shuffle(free.begin(), free.end(), random);
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = random() % 5 == 0 ? -1 : free[i];
  int fused_differs = 0;
  for (const Format type : {Format::bf16, Format::f16, Format::f32}) {
    const int bits = fraction_bits(type);
    const std::size_t width = type == Format::f32 ? 4 : 2;
    std::vector<double> values(static_cast<std::size_t>(rows * columns)), weights(entries.size());
    std::vector<std::uint8_t> permuted(values.size() * width);
    const auto drawn = [&] {
      return nearest((static_cast<double>(random() % 2'000'001) - 1'000'000) / 65536, std::min(bits, 20));
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = drawn();
      const std::uint32_t code = code_of(type, values[i]);
      std::memcpy(permuted.data() + i * width, &code, width);
    }
    std::vector<float> given(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      given[i] = static_cast<float>(weights[i] = nearest(0.25 + static_cast<double>(random() % 1000) / 1024, 12));
    for (const bool weighted : {false, true}) {
      for (const TokenSums sums : {TokenSums::fma_f32, TokenSums::f32, TokenSums::in_type, TokenSums::fma_in_type}) {
        const UnpermuteProblem problem{{entries, tokens, topk, rows},     type, columns, permuted.data(),
                                       weighted ? given.data() : nullptr, sums};
        std::vector<std::uint8_t> out[2] = {std::vector<std::uint8_t>(static_cast<std::size_t>(tokens * columns) * width, 0xEE),
                                            {}};
        out[1] = out[0];
        for (int i = 0; i < 2; ++i) kLayers[i].unpermute(problem, out[i].data());
        EXPECT_EQ(out[0], out[1]);
        for (std::int64_t t = 0; t < tokens; ++t) {
          for (std::int64_t c = 0; c < columns; ++c) {
            double acc = 0, fused = 0;
            for (std::int64_t k = 0; k < topk; ++k) {
              const std::int32_t row = entries[static_cast<std::size_t>(t * topk + k)];
              if (row < 0) continue;
              const double v = values[static_cast<std::size_t>(row * columns + c)];
              const double w = weighted ? weights[static_cast<std::size_t>(t * topk + k)] : 1;
              const bool in_type = sums == TokenSums::in_type || sums == TokenSums::fma_in_type;
              const int inner = in_type ? bits : 23;
              fused = nearest(fused + w * v, 23);  // 13 bits by 21, beside a sum of 24: double is exact
              const double factor = in_type ? nearest(w, bits) : w;
              if (sums == TokenSums::fma_in_type) {
                acc = nearest(acc + factor * v, bits);
                continue;
              }
              acc = sums == TokenSums::fma_f32 ? fused : nearest(acc + nearest(factor * v, inner), inner);
            }
            fused_differs += sums == TokenSums::f32 && acc != fused;
            std::uint32_t code = 0;
            std::memcpy(&code, out[0].data() + static_cast<std::size_t>(t * columns + c) * width, width);
            ASSERT_EQ(code, code_of(type, nearest(acc, bits)))
                << name_of(type) << " " << static_cast<int>(sums) << " token " << t << " column " << c;
          }
        }
      }
    }
  }
  EXPECT_GT(fused_differs, 20);  // the data tell both apart
}

TEST(token_permutation, of_no_choice_is_a_positive_zero) {
  const std::int32_t entries[] = {-1, -1, 0, -1};
  const std::uint16_t permuted[] = {0x8000, 0x7FFF};  // -0, NaN
  const float weights[] = {NAN, NAN, 1, NAN};
  for (const Layer& layer : kLayers) {
    for (const TokenSums sums : {TokenSums::fma_f32, TokenSums::f32, TokenSums::in_type, TokenSums::fma_in_type}) {
      std::uint16_t x[4] = {1, 2, 3, 4};
      layer.unpermute({{entries, 2, 2, 1}, Format::bf16, 2, permuted, weights, sums}, x);
      EXPECT_EQ(x[0], 0) << layer.name;
      EXPECT_EQ(x[1], 0) << layer.name;
      EXPECT_EQ(x[2], 0) << layer.name;  // +0 + -0
      EXPECT_EQ(x[3], 0x7FFF) << layer.name;
    }
  }
}

// Sums in the middle of two codes, and just beside it by less than f32, or even double, holds.
TEST(token_permutation, fused_sums_are_rounded_once) {
  struct Row {
    Format type;
    std::uint16_t first, second, factor;  // the sum of `first` (times 1) and of `second` times `factor`, codes of `type`
    std::uint16_t want;
  };
  const Row rows[] = {
      {Format::bf16, 0x3F80, 0x3B80, 0x3F80, 0x3F80},  // 1 + 2^-8: the middle, to even
      {Format::bf16, 0x3F81, 0x3B80, 0x3F80, 0x3F82},  // 1 + 3 * 2^-8: the middle, to even
      {Format::bf16, 0x3F80, 0x3B81, 0x3F80, 0x3F81},  // beyond the middle
      {Format::bf16, 0x3F81, 0x3BFE, 0x3F01, 0x3F81},  // half a unit times (1 - 2^-7)(1 + 2^-7): below the middle by 2^-22
      {Format::f16, 0x3C00, 0x0C00, 0x4000, 0x3C00},   // 1 + 2^-11: the middle, to even
      {Format::f16, 0x3C01, 0x13FE, 0x3801, 0x3C01},   // half a unit times (1 - 2^-10)(1 + 2^-10): below the middle by 2^-31
      {Format::f16, 0x3C00, 0x0DC8, 0x3D89, 0x3C01},   // half a unit times 1480 * 1417 / 2^21: above the middle by 2^-29
      {Format::f16, 0x7BFF, 0x4BFF, 0x3C00, 0x7BFF},   // below the middle of the largest and 2^16
      {Format::f16, 0x7BFF, 0x4C00, 0x3C00, 0x7C00},   // the middle: infinity
      {Format::bf16, 0x7F7F, 0x7B00, 0x3F80, 0x7F80}, {Format::bf16, 0x7F7F, 0x7AFF, 0x3F80, 0x7F7F},
      {Format::bf16, 0x8D80, 0x3F94, 0x3FE0, 0x4001},  // 37/32 * 7/4, the middle of two codes, less 2^-100, which double loses
      {Format::bf16, 0x0D80, 0x3FE8, 0x3F90, 0x4003},  // 29/16 * 9/8, another middle, and 2^-100
      {Format::bf16, 0x3F80, 0x0001, 0x0001, 0x3F80},  // 2^-266 is nothing beside 1
      {Format::bf16, 0x0000, 0x8001, 0x0001, 0x8000},  // and by itself rounds to -0
  };
  for (const Row& row : rows) {
    const std::int32_t entries[] = {0, 1};
    const std::uint16_t permuted[] = {row.first, row.second};
    const float factor = row.type == Format::bf16 ? scalar::decode_bf16(row.factor) : scalar::decode_f16(row.factor);
    const float weights[] = {1, factor};
    for (const Layer& layer : kLayers) {
      std::uint16_t x = 0;
      layer.unpermute({{entries, 1, 2, 2}, row.type, 1, permuted, weights, TokenSums::fma_in_type}, &x);
      EXPECT_EQ(x, row.want) << layer.name << std::hex << " " << row.first << " " << row.second << " " << row.factor;
    }
  }
}

void expect_named(const std::string& argument, const std::function<void(const Layer&)>& call) {
  for (const Layer& layer : kLayers) {
    try {
      call(layer);
      ADD_FAILURE() << argument << ": no error";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), argument) << error.what();
    }
  }
}

TEST(token_permutation, names_what_is_wrong) {
  char bytes[64] = {};
  const std::int32_t twice[] = {1, 1}, outside[] = {0, 2}, below[] = {-2, 0}, right[] = {0, 1};
  expect_named("row_map", [&](const Layer& layer) { layer.permute({twice, 1, 2, 2}, 1, bytes, bytes + 32); });
  expect_named("row_map", [&](const Layer& layer) { layer.permute({outside, 1, 2, 2}, 1, bytes, bytes + 32); });
  expect_named("row_map", [&](const Layer& layer) { layer.permute({below, 1, 2, 2}, 1, bytes, bytes + 32); });
  expect_named("row_map", [&](const Layer& layer) { layer.permute({right, 2, 2, 2}, 1, bytes, bytes + 32); });
  expect_named("tokens", [&](const Layer& layer) { layer.permute({right, -1, 2, 2}, 1, bytes, bytes + 32); });
  expect_named("row_bytes", [&](const Layer& layer) { layer.permute({right, 1, 2, 2}, -1, bytes, bytes + 32); });
  expect_named("to", [&](const Layer& layer) { layer.permute({right, 1, 2, 2}, 1, bytes, nullptr); });
  expect_named("from", [&](const Layer& layer) { layer.permute({right, 1, 2, 2}, 1, nullptr, bytes); });
  const UnpermuteProblem fine{{right, 1, 2, 2}, Format::bf16, 3, bytes, nullptr, TokenSums::f32};
  const auto with = [&](auto change) {
    UnpermuteProblem changed = fine;
    change(changed);
    return [=](const Layer& layer) mutable { layer.unpermute(changed, bytes + 32); };
  };
  expect_named("type", with([](auto& p) { p.type = Format::e4m3; }));
  expect_named("columns", with([](auto& p) { p.columns = -1; }));
  expect_named("permuted", with([](auto& p) { p.permuted = nullptr; }));
  expect_named("x", [&](const Layer& layer) { layer.unpermute(fine, nullptr); });
}

}  // namespace
}  // namespace assay
