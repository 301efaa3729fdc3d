// Layer (b): rows whole; tokens in parallel. No token writes what another does, and the order within a token is that of its choices.

#include "reference/layout/token_permutation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "reference/formats/encode.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

constexpr std::int64_t kTokens = 16;  // of one piece of work

ASSAY_CLONES void add_fused(float weight, const float* values, float* acc, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) acc[i] = std::fma(weight, values[i], acc[i]);
}

// w * v + acc, rounded to odd: to f32 with the last bit set wherever anything was lost, so that a second rounding to 16 bits is that
// of the exact sum. The product of two numbers of at most 11 bits is exact in double.
float fused_to_odd(float weight, float value, float acc) {
  const double product = static_cast<double>(weight) * value, wide = product + acc;
  if (!std::isfinite(wide)) return static_cast<float>(wide);
  const double added = wide - product, lost = (product - (wide - added)) + (acc - added);
  auto narrow = static_cast<float>(wide);
  const double rest = wide == narrow ? lost : wide - narrow;
  if (rest == 0 || std::bit_cast<std::uint32_t>(narrow) % 2 == 1) return narrow;
  return std::nextafter(narrow, rest > 0 ? INFINITY : -INFINITY);
}

ASSAY_CLONES void multiply(float weight, const float* values, float* products, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) products[i] = weight * values[i];
}

ASSAY_CLONES void add(const float* values, float* acc, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) acc[i] = acc[i] + values[i];
}

// Sums of one token, with the buffers that they need.
class TokenRow {
 public:
  TokenRow(const UnpermuteProblem& problem) : problem_(problem), acc_(columns()), value_(columns()), codes_(columns()) {}

  void sum(std::int64_t token, void* x) {
    const RowMap& map = problem_.map;
    const std::int64_t width = problem_.columns * bits_of(problem_.type) / 8;
    std::fill(acc_.begin(), acc_.end(), 0.0f);
    for (std::int64_t k = 0; k < map.topk; ++k) {
      const std::int64_t row = map.rows[static_cast<std::size_t>(token * map.topk + k)];
      if (row < 0) continue;
      widen(problem_.type, static_cast<const std::uint8_t*>(problem_.permuted) + row * width, value_);
      add_choice(problem_.weights == nullptr ? 1 : problem_.weights[token * map.topk + k]);
    }
    for (float& each : acc_) {
      if (std::isnan(each)) each = kNan;
    }
    auto* to = static_cast<std::uint8_t*>(x) + token * width;
    if (problem_.type != Format::f32) encode(problem_.type, acc_, codes_);
    std::memcpy(to, problem_.type == Format::f32 ? static_cast<const void*>(acc_.data()) : codes_.data(),
                static_cast<std::size_t>(width));
  }

 private:
  std::size_t columns() const { return static_cast<std::size_t>(problem_.columns); }

  void add_choice(float weight) {
    const bool fused = problem_.sums == TokenSums::fma_f32 || problem_.sums == TokenSums::fma_in_type;
    const bool in_type =
        (problem_.sums == TokenSums::in_type || problem_.sums == TokenSums::fma_in_type) && problem_.type != Format::f32;
    if (in_type) {
      std::uint16_t code = 0;
      encode(problem_.type, std::span<const float>(&weight, 1), std::span(&code, 1));
      decode(problem_.type, std::span<const std::uint16_t>(&code, 1), std::span(&weight, 1));
    }
    if (fused && !in_type) return add_fused(weight, value_.data(), acc_.data(), columns());
    if (fused) {
      for (std::size_t i = 0; i < columns(); ++i) acc_[i] = fused_to_odd(weight, value_[i], acc_[i]);
      return round(acc_);
    }
    multiply(weight, value_.data(), value_.data(), columns());
    if (in_type) round(value_);
    add(value_.data(), acc_.data(), columns());
    if (in_type) round(acc_);
  }

  void round(std::vector<float>& values) {
    encode(problem_.type, values, codes_);
    decode(problem_.type, std::span<const std::uint16_t>(codes_), values);
  }

  static constexpr float kNan = std::bit_cast<float>(0x7fff'ffffu);
  const UnpermuteProblem& problem_;
  std::vector<float> acc_, value_;
  std::vector<std::uint16_t> codes_;
};

}  // namespace

void permute_rows(const RowMap& map, std::int64_t row_bytes, const void* from, void* to) {
  check_permute(map, row_bytes, from, to);
  if (row_bytes == 0) return;
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* target = static_cast<std::uint8_t*>(to);
  parallel_for(map.tokens, kTokens, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * map.topk; i < end * map.topk; ++i) {
      const std::int64_t row = map.rows[static_cast<std::size_t>(i)];
      if (row >= 0) std::memcpy(target + row * row_bytes, source + i / map.topk * row_bytes, static_cast<std::size_t>(row_bytes));
    }
  });
}

void unpermute(const UnpermuteProblem& problem, void* x) {
  check_unpermute(problem, x);
  if (problem.columns == 0) return;
  parallel_for(problem.map.tokens, kTokens, [&](std::int64_t begin, std::int64_t end) {
    TokenRow row(problem);
    for (std::int64_t token = begin; token < end; ++token) row.sum(token, x);
  });
}

}  // namespace assay
