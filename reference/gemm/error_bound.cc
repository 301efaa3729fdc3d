#include "reference/gemm/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/gemm/error_bound_parts.h"
#include "reference/gemm/quantized_output.h"
#include "reference/recipes/element_scalar.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace bounds {
namespace {

double power(const Term& term) { return std::ldexp(1.0, term.exponent); }

double value_of(const Term& term) {
  const double magnitude = std::ldexp(static_cast<double>(term.significand), term.exponent - term.fraction);
  return term.negative ? -magnitude : magnitude;
}

// One operand of a group with the block scales that the hardware folds into the product (mxfp8, nvfp4), by [i][k], or by
// [k][i] if `transposed`.
struct Factor {
  double value = 0;         // exact: at most 12 significant bits; infinite and NaN as they are
  double reference = 0;     // 2^(encoded exponent), 0 for a zero element
  double unit = kInfinite;  // lowest bit of the value
};
struct Operand {
  std::vector<double> value, reference, unit;  // as in Factor, but 0 in `value` for values that are not finite
  std::vector<double> special;                 // the values again, where one of them is not finite; else empty
  std::vector<std::uint8_t> is_special;        // by i: one of its elements is not finite

  double raw(std::size_t at) const { return special.empty() ? value[at] : special[at]; }
};

Factor factor_at(const OperandView& operand, std::int64_t i, std::int64_t k) {
  const Term element = decode_term(operand.type, operand.element(i, k));
  Factor factor{value_of(element), element.significand == 0 ? 0 : power(element)};
  if (element.kind == Term::Kind::nan) factor.value = std::numeric_limits<double>::quiet_NaN();
  if (element.kind == Term::Kind::infinity) factor.value = element.negative ? -kInfinite : kInfinite;
  if (operand.scale.type == Format::e8m0 && operand.scale.data != nullptr) {
    const std::uint8_t code = operand.scale.code(i, k);
    const double scale = code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
    factor.value *= scale;
    factor.reference *= code == 0xFF ? 0 : scale;
  } else if (operand.scale.type == Format::e4m3 && operand.scale.data != nullptr) {
    const Term scale = decode_term(Format::e4m3, operand.scale.code(i, k) & 0x7Fu);
    factor.value *= scale.kind == Term::Kind::finite ? value_of(scale) : std::numeric_limits<double>::quiet_NaN();
    // The unit aligns by the scales alone, whose elements may all be zero.
    factor.reference = std::max(factor.reference, 1.0) * power(scale);
  }
  if (std::isfinite(factor.value)) factor.unit = lowest_bit(factor.value);
  return factor;
}

Operand operand_of(const OperandView& view, bool transposed) {
  Operand operand;
  const auto size = static_cast<std::size_t>(view.extent * view.depth);
  operand.value.resize(size), operand.reference.resize(size), operand.unit.resize(size);
  operand.is_special.resize(static_cast<std::size_t>(view.extent));
  std::vector<Factor> specials;
  for (std::int64_t i = 0; i < view.extent; ++i) {
    for (std::int64_t k = 0; k < view.depth; ++k) {
      const auto at = static_cast<std::size_t>(transposed ? k * view.extent + i : i * view.depth + k);
      const Factor factor = factor_at(view, i, k);
      const bool finite = std::isfinite(factor.value);
      operand.value[at] = finite ? factor.value : 0;
      operand.reference[at] = factor.reference;
      operand.unit[at] = factor.unit;
      if (finite) continue;
      operand.is_special[static_cast<std::size_t>(i)] = 1;
      if (operand.special.empty()) operand.special.resize(size);
      operand.special[at] = factor.value;
    }
  }
  for (std::size_t at = 0; at < operand.special.size(); ++at) {
    if (operand.special[at] == 0) operand.special[at] = operand.value[at];
  }
  return operand;
}

// The products of one block of every element of a row of D, by column: what the theorem bounds.
struct BlockRow {
  std::vector<double> plus, minus, reference, unit;  // S+, -S-, max w_k, and the largest power of two in all products
  std::vector<double> grid, cut;                     // G, and what cutting the products loses
  std::vector<double> error, largest;                // E and M, the largest over the hardware
  std::vector<std::uint8_t> lossless;
  double operations = 0;  // T, the largest

  explicit BlockRow(std::size_t n)
      : plus(n), minus(n), reference(n), unit(n), grid(n), cut(n), error(n), largest(n), lossless(n) {}
};

void sum_products(const Operand& rows, const Operand& columns, std::size_t row, std::size_t first, std::size_t last,
                  BlockRow& block) {
  const std::size_t n = block.plus.size();
  std::fill(block.plus.begin(), block.plus.end(), 0);
  std::fill(block.minus.begin(), block.minus.end(), 0);
  std::fill(block.reference.begin(), block.reference.end(), 0);
  std::fill(block.unit.begin(), block.unit.end(), kInfinite);
  double *plus = block.plus.data(), *minus = block.minus.data(), *reference = block.reference.data(), *unit = block.unit.data();
  for (std::size_t k = first; k < last; ++k) {
    const double a = rows.value[row + k], a_reference = rows.reference[row + k], a_unit = rows.unit[row + k];
    const double *b = &columns.value[k * n], *b_reference = &columns.reference[k * n], *b_unit = &columns.unit[k * n];
    for (std::size_t j = 0; j < n; ++j) {
      const double product = a * b[j];
      plus[j] += product > 0 ? product : 0;
      minus[j] += product < 0 ? -product : 0;
      const double w = a_reference * b_reference[j], u = a_unit * b_unit[j];
      reference[j] = w > reference[j] ? w : reference[j];
      unit[j] = u < unit[j] ? u : unit[j];
    }
  }
}

// The sum over k of min(|p_k|, grid).
void sum_cuts(const Operand& rows, const Operand& columns, std::size_t row, std::size_t first, std::size_t last,
              BlockRow& block) {
  const std::size_t n = block.plus.size();
  std::fill(block.cut.begin(), block.cut.end(), 0);
  double* cut = block.cut.data();
  const double* grid = block.grid.data();
  for (std::size_t k = first; k < last; ++k) {
    const double a = std::fabs(rows.value[row + k]);
    const double* b = &columns.value[k * n];
    for (std::size_t j = 0; j < n; ++j) {
      const double product = a * std::fabs(b[j]);
      cut[j] += product < grid[j] ? product : grid[j];
    }
  }
}

// The largest power of two that is at most x, or 0.
double leading_bit(double x) { return x > 0 && std::isfinite(x) ? std::ldexp(1.0, std::ilogb(x)) : 0; }

constexpr int kManyBits = 20;  // with more fraction bits than this, n G is near enough to the sum of the cuts

void bound_block(std::span<const AnyOrder> hardware, const Operand& rows, const Operand& columns, std::size_t row,
                 std::size_t first, std::size_t last, BlockRow& block) {
  const std::size_t n = block.plus.size();
  sum_products(rows, columns, row, first, last, block);
  std::fill(block.error.begin(), block.error.end(), 0);
  std::fill(block.largest.begin(), block.largest.end(), 0);
  std::fill(block.lossless.begin(), block.lossless.end(), std::uint8_t{1});
  block.operations = 0;
  const auto count = static_cast<std::int64_t>(last - first);
  for (const AnyOrder& h : hardware) {
    const std::int64_t short_steps = h.short_steps + (h.short_step_interval > 0 ? ceil_div(count, h.short_step_interval) : 0);
    const auto steps = static_cast<double>(ceil_div(count, h.products_per_step) + short_steps);
    const double step_unit = std::ldexp(1.0, -h.step_fraction_bits - (h.step_nearest ? 1 : 0));
    const double smallest = std::ldexp(1.0, h.step_exponent_min), floor = std::max(smallest, std::ldexp(1.0, h.zero_floor));
    const double grown = (1 + growth(kU, steps)) * (1 + (h.step_nearest ? growth(step_unit, steps) : 0));
    const double cut_unit = std::ldexp(1.0, -h.fraction_bits), fits = std::ldexp(1.0, h.step_fraction_bits + 1);
    const double limit = std::ldexp(1.0, h.step_exponent_max);
    bool any_cut = false;
    for (std::size_t j = 0; j < n; ++j) {
      const double largest = std::max(block.plus[j], block.minus[j]), computed = largest * grown;
      const double at_most = cut_unit * std::max({block.reference[j], leading_bit(largest), floor});
      const bool lossless =
          largest < limit && (block.unit[j] == kInfinite || (at_most <= block.unit[j] && largest < fits * block.unit[j] &&
                                                             block.unit[j] >= smallest / fits * 2));
      block.grid[j] = lossless ? 0 : cut_unit * std::max({block.reference[j], leading_bit(computed), floor});
      any_cut = any_cut || !lossless;
    }
    const bool coarse = any_cut && h.fraction_bits <= kManyBits;
    if (coarse) sum_cuts(rows, columns, row, first, last, block);
    for (std::size_t j = 0; j < n; ++j) {
      const double largest = std::max(block.plus[j], block.minus[j]), all = block.plus[j] + block.minus[j], grid = block.grid[j];
      if (grid == 0) {
        block.largest[j] = std::max(block.largest[j], largest);
        continue;
      }
      const double computed = largest * grown;
      double error = coarse ? block.cut[j] : std::min(all, static_cast<double>(count) * grid);
      error +=
          2 * steps * grid + steps * (step_unit * computed + std::ldexp(smallest, -h.step_fraction_bits)) + steps * kU * computed;
      error += static_cast<double>(count + 2) * 0x1p-51 * all;  // of the exact sum, which double rounds
      block.lossless[j] = 0;
      block.largest[j] = std::max(block.largest[j], computed);
      block.error[j] = computed < limit ? std::max(block.error[j], error) : kInfinite;
    }
    block.operations = std::max(block.operations, steps);
  }
}

// Adds a block's sum times its f32 scales, which multiply outside the steps.
void scale_block(const BlockRow& block, std::size_t j, double s_rows, double s_columns, Sum& total) {
  const double sum = block.plus[j] - block.minus[j], s = s_rows * s_columns, largest = block.largest[j];
  if (!std::isfinite(s)) {
    // A NaN, or infinity times zero, is NaN in every association. What an infinite scale makes of a sum depends on the sum's
    // sign, and where that is lost, on whether it is zero: two orders may differ.
    total.is_nan = total.is_nan || std::isnan(s);
    total.error = kInfinite;
    return;
  }
  const bool safe = std::fabs(s) < 0x1p126 && std::fabs(s_rows) * largest < 0x1p126 && std::fabs(s_columns) * largest < 0x1p126;
  total.exact += s * sum;
  if (block.lossless[j] != 0 && safe) {
    const double low_rows = lowest_bit(s_rows), low_columns = lowest_bit(s_columns);
    const double unit = block.unit[j] * low_rows * low_columns;
    const bool fits = s == 0 || (std::fabs(s) < low_rows * low_columns * 0x1p24 && low_rows * low_columns >= kUnderflow);
    const bool deep = std::min({unit, block.unit[j] * low_rows, block.unit[j] * low_columns}) >= kUnderflow;
    if (fits && deep && (unit == kInfinite || std::fabs(s) * largest < unit * 0x1p24)) {
      total.largest += std::fabs(s) * largest;
      total.unit = std::min(total.unit, unit);
      return;
    }
  }
  total.lossless = false;
  total.error += std::fabs(s) * block.error[j];
  const double underflow = kUnderflow * (1 + std::fabs(s_rows) + std::fabs(s_columns) + largest);
  total.error += std::fabs(s) * largest * 4 * kU + block.operations * underflow + std::fabs(s * sum) * 0x1p-50;
  total.largest += std::fabs(s) * largest * (1 + 4 * kU) + block.operations * underflow;
  if (!safe) total.error = kInfinite;
}

// A sum without an error bound; `exact` is its exact value where that is finite.
Sum unknown(double exact) { return {exact, kInfinite, kInfinite, kInfinite, false}; }

// Completes the bound of the sum of all blocks.
void finish(const GroupedGemmView& view, double operations, double merges, Sum& total) {
  if (total.is_nan) total = {.exact = std::numeric_limits<double>::quiet_NaN(), .lossless = false};
  if (std::isnan(total.exact)) return;
  if (!(total.error < kInfinite)) {
    total = unknown(std::isfinite(total.exact) ? total.exact : 0);
    return;
  }
  if (total.lossless && merges == 0 && (total.unit == kInfinite || total.largest < total.unit * 0x1p24)) return;
  const OutputType output = output_of(view.d_type);
  total.lossless = false;
  total.largest *= (1 + growth(kU, operations)) * (1 + growth(output.unit, merges));
  total.largest += (operations + merges) * (kUnderflow + output.smallest);
  total.error += operations * (kU * total.largest + kUnderflow) + merges * (output.unit * total.largest + output.smallest);
  if (!(total.largest < (merges > 0 ? output.largest * 0.5 : 0x1p126))) total.error = kInfinite;
}

// A sum with a NaN, an infinity, or infinity times zero among its products.
Sum special_sum(const GroupedGemmView& view, const GroupView& group, const Operand& rows, const Operand& columns, std::size_t i,
                std::size_t j) {
  const auto depth = static_cast<std::size_t>(group.depth), n = static_cast<std::size_t>(group.n);
  double sum = 0, size = 0, least = 1, largest = 1;
  for (std::size_t k = 0; k < depth; ++k) {
    double scale = 1;
    if (view.kind == GemmKind::fp8_block) {
      const double s_rows = group.rows.scale.value(static_cast<std::int64_t>(i), static_cast<std::int64_t>(k));
      const double s_columns = group.columns.scale.value(static_cast<std::int64_t>(j), static_cast<std::int64_t>(k));
      scale = s_rows * s_columns;
      for (const double each : {s_rows, s_columns}) {
        least = std::min(least, std::isfinite(each) ? std::fabs(each) : 0);
        largest = std::max(largest, std::fabs(each));
      }
    }
    const double product = rows.raw(i * depth + k) * columns.raw(k * n + j);
    sum += product * scale;
    if (std::isfinite(product)) size += std::fabs(product) * std::max(1.0, std::fabs(scale));
  }
  Sum total;
  total.lossless = false;
  total.exact = sum;
  // A finite part that could overflow could meet the infinity with the other sign.
  const bool certain = !std::isfinite(sum) && least > 0x1p-60 && largest < 0x1p60 && size < 0x1p60;
  return certain ? total : unknown(0);
}

void bound_row(const GroupedGemmView& view, const GroupView& group, std::span<const AnyOrder> hardware, const Operand& rows,
               const Operand& columns, std::int64_t i, std::span<CertifiedBound> bounds) {
  const auto n = static_cast<std::size_t>(group.n), row = static_cast<std::size_t>(i * group.depth);
  const bool scales_outside = view.kind == GemmKind::fp8_block;
  const std::int64_t length = scales_outside ? 128 : std::max<std::int64_t>(group.depth, 1);
  BlockRow block(n);
  std::vector<Sum> sums(n);
  double operations = 0, merges = 0;
  for (const AnyOrder& each : hardware) merges = std::max(merges, static_cast<double>(each.output_merges));
  for (std::int64_t k = 0; k < group.depth; k += length) {
    bound_block(hardware, rows, columns, row, static_cast<std::size_t>(k),
                static_cast<std::size_t>(std::min(k + length, group.depth)), block);
    operations += block.operations;
    const double s_rows = scales_outside ? group.rows.scale.value(i, k) : 1;
    for (std::size_t j = 0; j < n; ++j) {
      if (scales_outside) {
        scale_block(block, j, s_rows, group.columns.scale.value(static_cast<std::int64_t>(j), k), sums[j]);
      } else {
        sums[j] = {block.plus[j] - block.minus[j], block.error[j], block.largest[j], block.unit[j], block.lossless[j] != 0};
      }
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    if (rows.is_special[static_cast<std::size_t>(i)] != 0 || columns.is_special[j] != 0) {
      sums[j] = special_sum(view, group, rows, columns, static_cast<std::size_t>(i), j);
    } else {
      finish(view, operations, merges, sums[j]);
    }
    bounds[j] = element_bound(view, group, sums[j], i * group.n + static_cast<std::int64_t>(j));
  }
}

void require_sound(const AnyOrder& hardware) {
  const auto bits = [](int value, std::string_view name) { require(value >= 1 && value <= 60, name, value, "1 to 60 bits"); };
  bits(hardware.fraction_bits, "hardware.fraction_bits");
  bits(hardware.step_fraction_bits, "hardware.step_fraction_bits");
  require(hardware.products_per_step >= 1, "hardware.products_per_step", hardware.products_per_step, "a value of at least 1");
  require(hardware.short_steps >= 0, "hardware.short_steps", hardware.short_steps, "a value of at least 0");
  require(hardware.short_step_interval >= 0, "hardware.short_step_interval", hardware.short_step_interval,
          "a value of at least 0");
  require(hardware.output_merges >= 0, "hardware.output_merges", hardware.output_merges, "a value of at least 0");
  const bool exponents = hardware.step_exponent_min >= -1022 && hardware.step_exponent_min < hardware.step_exponent_max &&
                         hardware.step_exponent_max <= 127;
  require(exponents, "hardware.step_exponent_max", hardware.step_exponent_max, "above step_exponent_min and at most 127");
  require(hardware.zero_floor <= 127, "hardware.zero_floor", hardware.zero_floor, "an exponent of at most 127");
}

}  // namespace

namespace {

// The value of the FP8 code of x * scale: monotonic, so that the ends of a bound become those of the code's.
double quantized(Format type, double x, float scale) {
  const float scaled = static_cast<float>(x) * scale;
  return scalar::decode_fp8(type, scalar::encode_fp8(type, scaled));
}

void quantize(Format type, float scale, CertifiedBound& bound) {
  const bool is_nan = std::isnan(bound.lowest) || std::isnan(scale);
  if (!bound.is_bounded() && !is_nan) return;
  const bool infinite = std::isinf(bound.lowest) || std::isinf(bound.highest);
  if (!is_nan && (std::isinf(scale) || (scale == 0 && infinite))) {  // infinity times what may be 0
    bound = {};
    return;
  }
  const double one = quantized(type, bound.lowest, scale), other = quantized(type, bound.highest, scale);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  bound.lowest = is_nan ? kNone : std::min(one, other), bound.highest = is_nan ? kNone : std::max(one, other);
  bound.exact *= scale, bound.radius *= std::fabs(scale);
}

}  // namespace
}  // namespace bounds

bool CertifiedBound::contains(double value) const {
  if (!is_bounded()) return true;
  return std::isnan(lowest) ? std::isnan(value) : value >= lowest && value <= highest;
}

std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, std::span<const AnyOrder> hardware) {
  require(!hardware.empty(), "hardware", 0, "at least one arithmetic");
  for (const AnyOrder& each : hardware) bounds::require_sound(each);
  const MatrixShape shape = grouped_gemm_shape(problem);
  const std::int64_t elements = checked_product(shape.rows, shape.columns, "rows", shape.rows);
  std::vector<CertifiedBound> result(static_cast<std::size_t>(elements));
  const GroupedGemmView view = view_of(problem, result.data());
  if (is_quantized_output(problem.d_type)) {
    result = error_bounds(with_f32_output(problem, view), hardware);
    for (const GroupView& group : view.groups) {
      for (std::int64_t at = 0; at < group.m * group.n; ++at)
        bounds::quantize(view.d_type, group.d_scale, result[static_cast<std::size_t>(group.d_offset + at)]);
    }
    return result;
  }
  for (const GroupView& group : view.groups) {
    const bounds::Operand rows = bounds::operand_of(group.rows, false), columns = bounds::operand_of(group.columns, true);
    parallel_for(group.m, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto first = static_cast<std::size_t>(group.d_offset + i * group.n);
        bounds::bound_row(view, group, hardware, rows, columns, i, {result.data() + first, static_cast<std::size_t>(group.n)});
      }
    });
  }
  return result;
}

std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, const AnyOrder& hardware) {
  return error_bounds(problem, std::span(&hardware, 1));
}

}  // namespace assay
