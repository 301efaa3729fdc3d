#pragma once
// The second route to a whole grouped GEMM: the fixed-point step of the arithmetic suite, and the plan and epilogue written
// out over logical matrices. Rounding is done in double or written out; no code of reference/gemm is used.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/tests/arithmetic/second_route.h"
#include "reference/tests/gemm/logical_problem.h"

namespace assay::logical {

// A changed rule of the GEMM, to check that the data detect it.
enum class GemmMutation {
  none,
  other_association,
  interval_halved,
  merge_reversed,
  scale_of_first_block,
  epilogue_without_fma,
  other_rescaling,
  tree_in_turn,
  other_vector_order,
  not_flushed
};

inline double number(Format type, std::uint32_t code) { return second_route::value_of(type, code); }

// Nearest even with `fraction_bits`, in exact double arithmetic; overflow to infinity.
inline std::uint32_t half_code(Format type, double value) {
  if (std::isnan(value)) return 0x7FFF;
  const int fraction_bits = type == Format::bf16 ? 7 : 10, smallest = type == Format::bf16 ? -126 : -14;
  const double limit = type == Format::bf16 ? 0x1.FFp127 : 65520.0;
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0, infinity = type == Format::bf16 ? 0x7F80 : 0x7C00;
  value = std::fabs(value);
  if (value >= limit) return sign | infinity;
  int low = 0, high = static_cast<int>(infinity);  // the largest code whose value is at most `value`
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (number(type, static_cast<std::uint32_t>(middle)) <= value ? low : high) = middle;
  }
  const double below = number(type, static_cast<std::uint32_t>(low));
  const double unit = std::ldexp(1.0, std::max(below == 0 ? smallest : std::ilogb(below), smallest) - fraction_bits);
  const double rest = value - below;
  if (rest > unit / 2 || (rest == unit / 2 && low % 2 == 1)) ++low;
  return sign | static_cast<std::uint32_t>(low);
}

inline std::uint32_t output_code(Format type, float value) {
  if (type != Format::f32) return half_code(type, value);
  return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(value);
}

struct Expected {
  const AccumulationPlan& plan;
  const Problem& problem;
  GemmMutation mutation = GemmMutation::none;

  static float number32(std::uint32_t code) { return std::bit_cast<float>(code); }

  float chain(const TensorCoreUnit& unit, const Matrix& a, std::int64_t i, const Matrix& b, std::int64_t j, std::int64_t begin,
              std::int64_t end, float from = 0) const {
    std::uint32_t accumulator = std::bit_cast<std::uint32_t>(from);
    for (std::int64_t k = begin; k < end; k += unit.products_per_step) {
      const bool widens = plan.widen.has_value();
      const Format a_type = widens ? *plan.widen : problem.rows.type, b_type = widens ? *plan.widen : problem.columns.type;
      second_route::Vector v{a_type, b_type, {}, {}, accumulator, {}, {}};
      for (std::int64_t at = k; at < std::min(end, k + unit.products_per_step); ++at) {
        v.a.push_back(widens ? half_code(a_type, number(problem.rows.type, a.code(i, at))) : a.code(i, at));
        v.b.push_back(widens ? half_code(b_type, number(problem.columns.type, b.code(j, at))) : b.code(j, at));
        const bool inside = unit.scaling != StepScaling::none;
        if (inside && (at - k) % a.k_block == 0) {
          v.scale_a.push_back(static_cast<std::uint8_t>(a.scale(i, at)));
          v.scale_b.push_back(static_cast<std::uint8_t>(b.scale(j, at)));
        }
      }
      accumulator = second_route::step(unit, v);
    }
    return static_cast<float>(second_route::accumulator_value(unit.accumulator, accumulator));
  }

  float slice(const TensorCoreUnit& unit, const Matrix& a, std::int64_t i, const Matrix& b, std::int64_t j, std::int64_t begin,
              std::int64_t end) const {
    if (plan.promotion >= Promotion::rescale_by_ratio) return rescaled(unit, a, i, b, j, begin, end);
    float acc = 0;
    std::int64_t interval = plan.promotion_interval == 0 ? std::max<std::int64_t>(end - begin, 1) : plan.promotion_interval;
    if (mutation == GemmMutation::interval_halved && plan.promotion_interval != 0) interval /= 2;
    for (std::int64_t k = begin; k < end; k += interval) {
      const float t = chain(unit, a, i, b, j, k, std::min(end, k + interval));
      Promotion promotion = plan.promotion;
      if (mutation == GemmMutation::other_association) {
        if (promotion == Promotion::fma_scales_first)
          promotion = Promotion::fma_rows_first;
        else if (promotion == Promotion::fma_rows_first)
          promotion = Promotion::fma_cols_first;
        else if (promotion == Promotion::fma_cols_first)
          promotion = Promotion::fma_scales_first;
      }
      const bool block = promotion >= Promotion::fma_scales_first;
      const std::int64_t scale_k = mutation == GemmMutation::scale_of_first_block ? 0 : k;
      const double sr = block ? number32(a.scale(i, scale_k)) : 1, sc = block ? number32(b.scale(j, scale_k)) : 1;
      switch (promotion) {
        case Promotion::none: acc = t; break;
        case Promotion::add: acc = static_cast<float>(static_cast<double>(acc) + t); break;
        case Promotion::fma_scales_first: acc = fma_exact(static_cast<float>(sr * sc), t, acc); break;
        case Promotion::fma_rows_first: acc = fma_exact(static_cast<float>(t * sr), static_cast<float>(sc), acc); break;
        case Promotion::fma_cols_first: acc = fma_exact(static_cast<float>(t * sc), static_cast<float>(sr), acc); break;
        default: break;
      }
    }
    return acc;
  }

  // A chain that is multiplied by S_k / S_k+1 where the scales change, rounded in double and then once to f32.
  float rescaled(const TensorCoreUnit& unit, const Matrix& a, std::int64_t i, const Matrix& b, std::int64_t j, std::int64_t begin,
                 std::int64_t end) const {
    const auto scale = [&](std::int64_t k) {
      return static_cast<double>(static_cast<float>(static_cast<double>(number32(a.scale(i, k))) * number32(b.scale(j, k))));
    };
    const bool ratio_first = (plan.promotion == Promotion::rescale_by_ratio) != (mutation == GemmMutation::other_rescaling);
    float acc = 0;
    for (std::int64_t k = begin; k < end; k += plan.promotion_interval) {
      const std::int64_t stop = std::min(end, k + plan.promotion_interval);
      acc = chain(unit, a, i, b, j, k, stop, acc);
      if (stop == end)
        acc = static_cast<float>(acc * scale(k));
      else if (ratio_first)
        acc = static_cast<float>(acc * static_cast<double>(static_cast<float>(scale(k) / scale(stop))));
      else
        acc = static_cast<float>(static_cast<double>(static_cast<float>(acc * scale(k))) / scale(stop));
    }
    return acc;
  }

  // a * b + c rounded once, through fixed point.
  static float fma_exact(float a, float b, float c) {
    const double product = static_cast<double>(a) * b;  // 48 bits: exact
    if (!std::isfinite(product) || !std::isfinite(c)) return static_cast<float>(product + c);
    const second_route::Fixed sum = second_route::Fixed::of(product) + second_route::Fixed::of(static_cast<double>(c));
    if (sum.zero()) return static_cast<float>(product + c);  // the sign of a zero
    return std::bit_cast<float>(second_route::output(sum, Accumulator::f32_truncated, true));
  }

  struct Word {
    std::size_t at;
    std::uint32_t code;
    bool operator==(const Word&) const = default;
  };

  // Elements of D as written.
  std::size_t elements() const {
    std::size_t count = 0;
    for (std::size_t t = 0; t < problem.rows.groups.size(); ++t) {
      count += static_cast<std::size_t>(problem.rows.groups[t].extent * problem.columns.groups[t].extent);
    }
    return count;
  }

  // The elements of D to be written, row-major by group: all of them, or one in an odd number if there are many. `c` and `bias`
  // are codes of the type of D.
  std::vector<Word> words(const std::vector<float>& alpha, const std::vector<float>& beta, const std::vector<std::uint32_t>& c,
                          const std::vector<std::uint32_t>& bias) const {
    const TensorCoreUnit& unit = *find_tensor_core_unit(plan.unit);
    const Format d_type = problem.setting().d_type;
    std::vector<Word> result;
    const std::size_t stride = elements() / 1200 | 1;
    std::size_t at = 0;
    for (std::size_t t = 0; t < problem.rows.groups.size(); ++t) {
      const Matrix& a = problem.rows.groups[t];
      const Matrix& b = problem.columns.groups[t];
      float factor = alpha[t];
      if (problem.setting().kind == GemmKind::fp8_per_tensor && plan.scale_vectors == ScaleVectors::none) {
        factor = static_cast<float>(static_cast<double>(factor) * number32(b.scales[0]));
        factor = static_cast<float>(static_cast<double>(factor) * number32(a.scales[0]));
      }
      if (problem.setting().kind == GemmKind::nvfp4) {
        factor = static_cast<float>(static_cast<double>(factor) * b.amax);
        factor = static_cast<float>(static_cast<double>(factor) * a.amax);
        factor = static_cast<float>(static_cast<double>(factor) * std::bit_cast<float>(0x34149B93u));  // 1/7225344
      }
      for (std::int64_t i = 0; i < a.extent; ++i) {
        for (std::int64_t j = 0; j < b.extent; ++j, ++at) {
          if (at % stride != 0) continue;
          const double c_value = beta[t] == 0 ? 0 : number(d_type, c[at]);
          const auto scaled_c = static_cast<float>(static_cast<double>(beta[t]) * c_value);
          float value = beta[t] == 0 ? 0 : scaled_c;
          float acc = a.depth > 0 ? merged(unit, a, i, b, j) : 0;
          if (plan.scale_vectors != ScaleVectors::none && a.depth > 0) acc = with_vectors(acc, a.scale(i, 0), b.scale(j, 0));
          if (plan.epilogue != GemmEpilogue::scaled_alpha_beta)
            value = a.depth > 0 ? in_memory(static_cast<float>(c_value), acc, factor) : static_cast<float>(c_value);
          else if (beta[t] == 0)
            value = factor == 1 ? acc : static_cast<float>(static_cast<double>(acc) * factor + 0.0);  // -0 becomes +0
          else if (mutation == GemmMutation::epilogue_without_fma)
            value = static_cast<float>(static_cast<double>(acc) * factor) + scaled_c;
          else
            value = fma_exact(acc, factor, scaled_c);
          std::uint32_t code = output_code(d_type, value);
          if (!bias.empty()) {
            const double biased =
                number(d_type, code) + number(d_type, bias[t * static_cast<std::size_t>(b.extent) + static_cast<std::size_t>(j)]);
            code = output_code(d_type, static_cast<float>(biased));
          }
          result.push_back({at, code});
        }
      }
    }
    return result;
  }

  float with_vectors(float acc, std::uint32_t row, std::uint32_t column) const {
    const double r = number32(row), c = number32(column);
    ScaleVectors order = plan.scale_vectors;
    if (mutation == GemmMutation::other_vector_order)
      order = order == ScaleVectors::rows_first ? ScaleVectors::cols_first : ScaleVectors::rows_first;
    if (order == ScaleVectors::scales_first) return static_cast<float>(acc * static_cast<double>(static_cast<float>(r * c)));
    const double first = order == ScaleVectors::rows_first ? r : c, second = order == ScaleVectors::rows_first ? c : r;
    return static_cast<float>(static_cast<float>(acc * first) * second);
  }

  // C + acc * factor in memory.
  float in_memory(float c, float acc, float factor) const {
    const bool flushes = plan.epilogue == GemmEpilogue::reduce_add_ftz && mutation != GemmMutation::not_flushed;
    const auto kept = [&](float x) {
      return flushes && std::fpclassify(x) == FP_SUBNORMAL ? (std::signbit(x) ? -0.0f : 0.0f) : x;
    };
    const float addend = factor == 1 ? acc : static_cast<float>(static_cast<double>(acc) * factor + 0.0);
    return kept(static_cast<float>(static_cast<double>(kept(c)) + kept(addend)));
  }

  // Slices [first, first + count): the largest power of two below count of them, and the rest.
  static float tree(const std::vector<float>& values, std::size_t first, std::size_t count) {
    if (count == 1) return values[first];
    const std::size_t left = std::bit_floor(count - 1);
    return static_cast<float>(static_cast<double>(tree(values, first, left)) + tree(values, first + left, count - left));
  }

  float merged(const TensorCoreUnit& unit, const Matrix& a, std::int64_t i, const Matrix& b, std::int64_t j) const {
    if (plan.slices == 1) return slice(unit, a, i, b, j, 0, a.depth);
    std::vector<float> partials;
    const Format d_type = problem.setting().d_type;
    const auto kept = [&](float value) {
      if (plan.merge != SliceMerge::sequential_output) return value;
      return static_cast<float>(number(d_type, output_code(d_type, value)));
    };
    for (std::int64_t s = 0; s < plan.slices; ++s) {
      const std::int64_t begin = std::min(a.depth, s * plan.slice_length), end = std::min(a.depth, begin + plan.slice_length);
      partials.push_back(kept(slice(unit, a, i, b, j, begin, end)));
    }
    if (mutation == GemmMutation::merge_reversed) std::reverse(partials.begin(), partials.end());
    if (plan.merge == SliceMerge::tree_f32 && mutation != GemmMutation::tree_in_turn) return tree(partials, 0, partials.size());
    if (plan.merge == SliceMerge::shape_f32) {  // the one shape of the tests: (3+((1+0)+(2+4)))
      const auto sum = [](float x, float y) { return static_cast<float>(static_cast<double>(x) + y); };
      return sum(partials.at(3), sum(sum(partials.at(1), partials.at(0)), sum(partials.at(2), partials.at(4))));
    }
    float total = partials[0];
    for (std::size_t s = 1; s < partials.size(); ++s) total = kept(static_cast<float>(static_cast<double>(total) + partials[s]));
    return total;
  }
};

}  // namespace assay::logical
