#include "reference/gemm/exact_integer_gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/problem.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using Matrix = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kHeldBits = 13;  // fraction bits that every unit of the table keeps

// An operand of one group with its block scales multiplied in: values * 2^unit.
struct IntegerOperand {
  Matrix values;  // [extent, depth]
  int unit = 0;
  int largest_exponent = INT_MIN;  // encoded exponent of a non-zero element plus that of its scale
};

// The exact value of a scale or element as an odd significand (or 0) and an exponent.
struct Dyadic {
  std::int64_t significand = 0;
  int exponent = 0;
};

Dyadic dyadic(const Term& term) {
  if (term.significand == 0) return {};
  const int zeros = std::countr_zero(term.significand);
  const auto odd = static_cast<std::int64_t>(term.significand >> zeros);
  return {term.negative ? -odd : odd, term.exponent - term.fraction + zeros};
}

Term scale_term(const ScaleView& scale, std::int64_t i, std::int64_t k) {
  switch (scale.type) {
    case Format::e8m0: {
      const std::uint8_t code = scale.code(i, k);
      Term term;
      if (code == 0xFF) term.kind = Term::Kind::nan;
      term.significand = 1;
      term.exponent = code - 127;
      return term;
    }
    case Format::e4m3: return decode_term(Format::e4m3, scale.code(i, k) & 0x7Fu);  // the sign is not read
    default: return decode_term(Format::f32, std::bit_cast<std::uint32_t>(scale.value(i, k)));
  }
}

IntegerOperand integers_of(const OperandView& operand, const std::string& name) {
  std::vector<Dyadic> values;
  values.reserve(static_cast<std::size_t>(operand.extent * operand.depth));
  IntegerOperand result;
  result.unit = INT_MAX;
  const bool block_scaled = operand.scale.k_block != 0;
  for (std::int64_t i = 0; i < operand.extent; ++i) {
    for (std::int64_t k = 0; k < operand.depth; ++k) {
      const Term element = decode_term(operand.type, operand.element(i, k));
      require(element.kind == Term::Kind::finite, name, operand.element(i, k), "finite elements for an order-free product");
      Dyadic value = dyadic(element);
      int exponent = element.exponent;
      if (block_scaled) {
        const Term scale = scale_term(operand.scale, i, k);
        require(scale.kind == Term::Kind::finite, name + " scales", "not finite", "finite scales for an order-free product");
        const Dyadic factor = dyadic(scale);
        value = {value.significand * factor.significand, value.exponent + factor.exponent};
        exponent += scale.exponent;
      }
      if (value.significand != 0) {
        result.unit = std::min(result.unit, value.exponent);
        result.largest_exponent = std::max(result.largest_exponent, exponent);
      }
      values.push_back(value);
    }
  }
  result.values = Matrix::Zero(operand.extent, operand.depth);
  if (result.unit == INT_MAX) {
    result.unit = 0;
    return result;
  }
  std::size_t at = 0;
  for (std::int64_t i = 0; i < operand.extent; ++i) {
    for (std::int64_t k = 0; k < operand.depth; ++k) {
      const Dyadic& value = values[at++];
      if (value.significand == 0) continue;
      const int shift = value.exponent - result.unit;
      const bool fits = shift <= kHeldBits && std::abs(value.significand) <= std::int64_t{1} << (kHeldBits - shift);
      require(fits, name, std::ldexp(static_cast<double>(value.significand), value.exponent),
              "magnitudes within 2^13 units for an order-free product");
      result.values(i, k) = value.significand * (std::int64_t{1} << shift);
    }
  }
  return result;
}

bool is_f32(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

double value_of(Format type, const void* base, std::int64_t at) {
  if (type == Format::f32) return static_cast<const float*>(base)[at];
  const std::uint16_t code = static_cast<const std::uint16_t*>(base)[at];
  return type == Format::bf16 ? scalar::decode_bf16(code) : scalar::decode_f16(code);
}

void store(Format type, void* base, std::int64_t at, float value) {
  if (type == Format::f32)
    static_cast<float*>(base)[at] = value;
  else
    static_cast<std::uint16_t*>(base)[at] = type == Format::bf16 ? scalar::encode_bf16(value) : scalar::encode_f16(value);
}

// The factor of the sum, in f32 as every implementation receives it. A product that rounds is an error, except for nvfp4,
// whose factor is rounded by definition.
double sum_factor(const GroupedGemmView& view, const GroupView& group, std::int64_t at) {
  if (view.kind == GemmKind::nvfp4 && group.depth != 0) {
    return group.alpha * group.columns.amax * group.rows.amax * static_cast<float>(1.0 / 7225344.0);
  }
  if (view.kind != GemmKind::fp8_per_tensor || group.depth == 0) return group.alpha;
  const double with_columns = static_cast<double>(group.alpha) * group.columns.scale.value(at % group.n, 0);
  const double factor = with_columns * group.rows.scale.value(at / group.n, 0);
  require(is_f32(with_columns) && is_f32(factor), "alpha", group.alpha, "scales and alpha whose product f32 holds");
  return factor;
}

// The unrounded elements of D_t.
std::vector<float> exact_group(const GroupedGemmView& view, const GroupView& group) {
  std::vector<float> result(static_cast<std::size_t>(group.m * group.n));
  std::vector<std::int64_t> sums(result.size());
  double unit = 1;
  if (group.depth > 0) {
    const IntegerOperand rows = integers_of(group.rows, "rows operand");
    const IntegerOperand columns = integers_of(group.columns, "columns operand");
    const int exponent = rows.unit + columns.unit;
    const bool zero = rows.largest_exponent == INT_MIN || columns.largest_exponent == INT_MIN;
    if (!zero) {
      const int largest = rows.largest_exponent + columns.largest_exponent;
      require(largest <= exponent + kHeldBits, "rows operand", largest, "exponents within 13 of the unit of the products");
      require(exponent >= -100 && exponent <= 100, "rows operand", exponent, "a unit between 2^-100 and 2^100");
    }
    const Matrix magnitudes = rows.values.cwiseAbs() * columns.values.cwiseAbs().transpose();
    const std::int64_t largest_sum = magnitudes.maxCoeff();
    require(largest_sum <= std::int64_t{1} << kHeldBits, "rows operand", largest_sum,
            "magnitudes that sum to at most 2^13 units");
    exact_integer_gemm(group.m, group.n, group.depth, {rows.values.data(), static_cast<std::size_t>(rows.values.size())},
                       {columns.values.data(), static_cast<std::size_t>(columns.values.size())}, sums);
    unit = std::ldexp(1.0, exponent);
  }
  for (std::int64_t at = 0; at < group.m * group.n; ++at) {
    const double factor = sum_factor(view, group, at);
    const double product = static_cast<double>(sums[static_cast<std::size_t>(at)]) * unit * factor;
    require(is_f32(product), "alpha", group.alpha, "a factor whose product with the sum f32 holds");
    double value = product + 0.0;  // -0 and +0 are +0
    if (group.beta != 0) {
      const double c = group.beta * value_of(view.d_type, view.c, group.d_offset + at);
      value = product + c;
      require(is_f32(c) && is_f32(value) && value - product == c, "c", c, "values whose sum with the product f32 holds");
    }
    result[static_cast<std::size_t>(at)] = static_cast<float>(value);
  }
  return result;
}

}  // namespace

void exact_integer_gemm(std::int64_t m, std::int64_t n, std::int64_t depth, std::span<const std::int64_t> rows,
                        std::span<const std::int64_t> columns, std::span<std::int64_t> product) {
  const auto is_size = [](std::span<const std::int64_t> span, std::int64_t a, std::int64_t b) {
    std::int64_t size = 0;
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &size) && static_cast<std::uint64_t>(size) == span.size();
  };
  require(is_size(rows, m, depth), "rows", rows.size(), "m * depth values");
  require(is_size(columns, n, depth), "columns", columns.size(), "n * depth values");
  require(is_size(product, m, n), "product", product.size(), "m * n values");
  if (product.empty()) return;

  const auto largest = [](std::span<const std::int64_t> values) {
    std::uint64_t magnitude = 0;
    for (const std::int64_t value : values) {
      magnitude = std::max(magnitude, value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
    }
    return magnitude;
  };
  std::uint64_t bound = 0;
  const bool fits = !__builtin_mul_overflow(largest(rows), largest(columns), &bound) &&
                    !__builtin_mul_overflow(bound, static_cast<std::uint64_t>(depth), &bound) && bound <= INT64_MAX;
  require(fits, "rows", largest(rows), "values whose products sum within int64");

  const Eigen::Map<const Matrix> a(rows.data(), m, depth);
  const Eigen::Map<const Matrix> b(columns.data(), n, depth);
  Eigen::Map<Matrix>(product.data(), m, n).noalias() = a * b.transpose();
}

void exact_integer_gemm(const GroupedGemmProblem& problem, void* d) {
  const GroupedGemmView view = view_of(problem, d);
  std::vector<std::vector<float>> results;
  for (const GroupView& group : view.groups) results.push_back(exact_group(view, group));
  for (std::size_t t = 0; t < results.size(); ++t) {
    const GroupView& group = view.groups[t];
    for (std::int64_t at = 0; at < group.m * group.n; ++at) {
      store(view.d_type, d, group.d_offset + at, results[t][static_cast<std::size_t>(at)]);
      if (group.bias == nullptr) continue;
      const double rounded = value_of(view.d_type, d, group.d_offset + at);
      const double bias = value_of(view.d_type, group.bias, at % group.n);
      store(view.d_type, d, group.d_offset + at, static_cast<float>(rounded + bias));
    }
  }
}

}  // namespace assay
