// Plain loops over 64 columns at a time; every step below is exact but the one that says "round".

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reference/gemm/fused_kernel.h"
#include "reference/support/simd.h"

namespace assay::gemm {
namespace {

constexpr float kCanonicalNan = std::bit_cast<float>(0x7FFF'FFFFu);

// 2^exponent for exponents of a normal double.
ASSAY_INLINE double power_of_two(std::int32_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Truncates |value| to `kFractionBits` fraction bits (f32 range, gradual underflow); 2^128 and more is infinity.
template <int kFractionBits>
ASSAY_INLINE float truncate_to_f32(double value) {
  constexpr std::uint64_t kKept = ~((std::uint64_t{1} << (52 - kFractionBits)) - 1);
  constexpr std::uint32_t kKeptSubnormal = ~((1u << (23 - kFractionBits)) - 1);
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << 31;
  const double magnitude = std::fabs(value);
  if (magnitude >= 0x1p128) return std::bit_cast<float>(sign | 0x7F80'0000u);
  if (magnitude >= 0x1p-126) return static_cast<float>(std::bit_cast<double>(bits & kKept));
  // A subnormal's bits count units of 2^-149.
  const std::uint32_t units = static_cast<std::uint32_t>(static_cast<std::int64_t>(magnitude * 0x1p149)) & kKeptSubnormal;
  return units == 0 ? 0.0f : std::bit_cast<float>(sign | units);
}

// Nearest f16, ties to even, as its exact value; 65520 and more is infinity, NaN stays NaN.
ASSAY_INLINE float nearest_f16(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520) return value < 0 ? -HUGE_VALF : HUGE_VALF;
  // Adding 2^52 times the spacing leaves no bits below the spacing: the addition rounds.
  const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> 52) - 1023;
  const double shifter = power_of_two(std::clamp(exponent, -14, 15) - 10 + 52);
  const double rounded = (magnitude + shifter) - shifter;
  return rounded == 0 ? 0.0f : static_cast<float>(value < 0 ? -rounded : rounded);
}

ASSAY_INLINE float round_sum(Accumulator accumulator, double value) {
  switch (accumulator) {
    case Accumulator::f32_truncated: return truncate_to_f32<23>(value);
    case Accumulator::e8m13_truncated: return truncate_to_f32<13>(value);
    default: return nearest_f16(value);
  }
}

// Exponent of the accumulator as a term: zero takes the floor, a subnormal that of the smallest normal.
ASSAY_INLINE std::int32_t accumulator_exponent(float c, std::int32_t smallest, std::int32_t zero_floor) {
  const std::int32_t field = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(c) >> 23 & 0xFF);
  return c == 0 ? zero_floor : std::max(field - 127, smallest);
}

// The value with infinities and NaN replaced by 0.
ASSAY_INLINE float finite_part(float value) { return std::fabs(value) < HUGE_VALF ? value : 0.0f; }

// f32 + f32 on CUDA cores, or f16 + f16 for f16 accumulators. The sum of two f16 values is exact in a double.
ASSAY_INLINE float link_sum(Accumulator accumulator, float t, float c) {
  if (accumulator != Accumulator::f16_nearest) return t + c;
  return nearest_f16(static_cast<double>(t) + c);
}

// The chain goes on, multiplied by a ratio of scales; after the last interval it is the partial sum.
ASSAY_INLINE void rescale(const KernelCall& call, std::int64_t step, int row, float* value, float* partial) {
  const float row_scale = call.row_lines.scale[step * kRowGroup + row];
  const float* column_scale = call.column_lines.scale + step * kPanel;
  if (call.steps[step].next_k < 0) {
    for (int lane = 0; lane < kPanel; ++lane) {
      partial[lane] = value[lane] * (row_scale * column_scale[lane]);
      value[lane] = 0;
    }
    return;
  }
  const float row_next = call.row_lines.next_scale[step * kRowGroup + row];
  const float* column_next = call.column_lines.next_scale + step * kPanel;
  const bool by_ratio = call.rule->promotion == Promotion::rescale_by_ratio;
  for (int lane = 0; lane < kPanel; ++lane) {
    const float here = row_scale * column_scale[lane], next = row_next * column_next[lane];
    value[lane] = by_ratio ? value[lane] * (here / next) : value[lane] * here / next;
  }
}

// Clears all but the sign of a value without an exponent: one that is subnormal, or zero.
ASSAY_INLINE float without_subnormal(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7F80'0000u) == 0 ? bits & 0x8000'0000u : bits);
}

// promote() below, where every operand and every result of an operation may lose a subnormal value.
ASSAY_INLINE void promote_flushed(const KernelCall& call, std::int64_t step, int row, float* value, float* partial) {
  const Promotion promotion = call.rule->promotion;
  if (promotion == Promotion::add) {
    for (int lane = 0; lane < kPanel; ++lane)
      partial[lane] = without_subnormal(without_subnormal(partial[lane]) + without_subnormal(value[lane]));
    return;
  }
  const float row_scale = without_subnormal(call.row_lines.scale[step * kRowGroup + row]);
  const float* column_scales = call.column_lines.scale + step * kPanel;
  for (int lane = 0; lane < kPanel; ++lane) {
    const float t = without_subnormal(value[lane]), column_scale = without_subnormal(column_scales[lane]);
    const bool scales_first = promotion == Promotion::fma_scales_first, rows_first = promotion == Promotion::fma_rows_first;
    const float first = without_subnormal(scales_first ? row_scale * column_scale : t * (rows_first ? row_scale : column_scale));
    const float second = scales_first ? t : rows_first ? column_scale : row_scale;
    partial[lane] = without_subnormal(std::fma(first, second, partial[lane]));  // which was flushed when it was written
  }
}

// The value of a finished promotion interval enters the partial sum.
ASSAY_INLINE void promote(const KernelCall& call, std::int64_t step, int row, float* value, float* partial) {
  const Promotion promotion = call.rule->promotion;
  if (call.rule->flushes && promotion != Promotion::none) {
    promote_flushed(call, step, row, value, partial);
    std::fill_n(value, kPanel, 0.0f);
    return;
  }
  const bool scaled = promotion != Promotion::none && promotion != Promotion::add;
  const float row_scale = scaled ? call.row_lines.scale[step * kRowGroup + row] : 1.0f;
  const float* column_scale = scaled ? call.column_lines.scale + step * kPanel : nullptr;
  switch (promotion) {
    case Promotion::none:
      for (int lane = 0; lane < kPanel; ++lane) partial[lane] = value[lane];
      break;
    case Promotion::add:
      for (int lane = 0; lane < kPanel; ++lane) partial[lane] = partial[lane] + value[lane];
      break;
    case Promotion::fma_scales_first:
      for (int lane = 0; lane < kPanel; ++lane) {
        partial[lane] = std::fma(row_scale * column_scale[lane], value[lane], partial[lane]);
      }
      break;
    case Promotion::fma_rows_first:
      for (int lane = 0; lane < kPanel; ++lane) {
        partial[lane] = std::fma(value[lane] * row_scale, column_scale[lane], partial[lane]);
      }
      break;
    case Promotion::fma_cols_first:
      for (int lane = 0; lane < kPanel; ++lane) {
        partial[lane] = std::fma(value[lane] * column_scale[lane], row_scale, partial[lane]);
      }
      break;
    case Promotion::rescale_by_ratio:
    case Promotion::rescale_in_turn: return rescale(call, step, row, value, partial);
  }
  for (int lane = 0; lane < kPanel; ++lane) value[lane] = 0;
}

// Link and promotion after a step, for one row.
ASSAY_INLINE void close_step(const KernelCall& call, std::int64_t step, int row) {
  float* chain = call.state.chain + row * kPanel;
  float* value = chain;
  if (call.rule->linked) {
    value = call.state.link + row * kPanel;
    if (call.steps[step].ends_link) {
      for (int lane = 0; lane < kPanel; ++lane) value[lane] = link_sum(call.rule->accumulator, chain[lane], value[lane]);
      for (int lane = 0; lane < kPanel; ++lane) chain[lane] = 0;
    }
  }
  if (call.steps[step].ends_interval) promote(call, step, row, value, call.state.partial + row * kPanel);
}

// One step of one row. kSpecial: infinities and NaN may be among the operands.
template <bool kSpecial>
ASSAY_INLINE void wide_step(const KernelCall& call, std::int64_t step, int row) {
  const ChainRule& rule = *call.rule;
  const int products = rule.products;
  const float* a = call.row_lines.significand + step * products * kRowGroup + row;
  const std::int32_t* a_exponent = call.row_lines.exponent + step * products * kRowGroup + row;
  const float* b = call.column_lines.significand + step * products * kPanel;
  const std::int32_t* b_exponent = call.column_lines.exponent + step * products * kPanel;
  const bool scaled = rule.scaling == StepScaling::e8m0_per_32;
  const std::int32_t row_scale = scaled ? call.row_lines.scale_exponent[step * kRowGroup + row] : 0;
  const std::int32_t* column_scale = scaled ? call.column_lines.scale_exponent + step * kPanel : nullptr;
  float* c = call.state.chain + row * kPanel;

  // Largest exponent among products. That of C joins them; floor included, since C is the only term it can reach:
  // a C other than zero lies above every floor.
  std::int32_t top[kPanel];
  for (int lane = 0; lane < kPanel; ++lane) top[lane] = kWideZero;
  for (int slot = 0; slot < products; ++slot) {
    const std::int32_t exponent = a_exponent[slot * kRowGroup];
    for (int lane = 0; lane < kPanel; ++lane) top[lane] = std::max(top[lane], exponent + b_exponent[slot * kPanel + lane]);
  }
  const std::int32_t smallest = rule.accumulator == Accumulator::f16_nearest ? -14 : -126;
  std::int32_t shift[kPanel];  // field of the power of two that aligns a product whose exponents add to 0
  for (int lane = 0; lane < kPanel; ++lane) {
    const std::int32_t scale = scaled ? row_scale + column_scale[lane] : 0;
    top[lane] = std::max(top[lane] + scale, accumulator_exponent(c[lane], smallest, rule.zero_floor));
    shift[lane] = 127 + rule.fraction_bits - top[lane] + scale;
  }

  std::int32_t half[2][kPanel];
  float special[kPanel];
  for (int lane = 0; lane < kPanel; ++lane) {
    const double aligned = static_cast<double>(finite_part(c[lane])) * power_of_two(rule.fraction_bits - top[lane]);
    half[0][lane] = static_cast<std::int32_t>(aligned);
    half[1][lane] = 0;
    special[lane] = c[lane];
  }
  for (int slot = 0; slot < products; ++slot) {
    const float significand = a[slot * kRowGroup];
    const std::int32_t exponent = a_exponent[slot * kRowGroup];
    std::int32_t* sum = half[slot < products / 2 ? 0 : 1];
    for (int lane = 0; lane < kPanel; ++lane) {
      float product = significand * b[slot * kPanel + lane];
      if constexpr (kSpecial) {
        special[lane] += product;  // finite ones are below 4: they neither hide nor make an infinity
        product = finite_part(product);
      }
      // A field of 0 makes the factor 0, which is correct: the term would be below 1.
      const std::int32_t field = std::max(exponent + b_exponent[slot * kPanel + lane] + shift[lane], 0);
      sum[lane] += static_cast<std::int32_t>(product * std::bit_cast<float>(field << 23));
    }
  }

  // Round.
  for (int lane = 0; lane < kPanel; ++lane) {
    const double sum = static_cast<double>(half[0][lane]) + half[1][lane];
    float result = round_sum(rule.accumulator, sum * power_of_two(top[lane] - rule.fraction_bits));
    if (!(std::fabs(special[lane]) < HUGE_VALF)) result = std::isnan(special[lane]) ? kCanonicalNan : special[lane];
    c[lane] = result;
  }
}

namespace cloned {  // with internal linkage: see reference/support/simd.h

ASSAY_CLONES void run_wide(const KernelCall& call) {
  const bool special = call.row_lines.special || call.column_lines.special;
  for (std::int64_t step = 0; step < call.step_count; ++step) {
    for (int row = 0; row < call.rows; ++row) {
      if (special) {
        wide_step<true>(call, step, row);
      } else {
        wide_step<false>(call, step, row);
      }
      close_step(call, step, row);
    }
  }
}

// Block-scaled FP4: a term is the exact sum of 16 products times both scale significands; its exponent is that of the
// scales, also where the products cancel. 2^(F+2) times 2^9 and more: doubles hold the terms, and their sum, exactly.
ASSAY_CLONES void run_fp4(const KernelCall& call) {
  const ChainRule& rule = *call.rule;
  for (std::int64_t step = 0; step < call.step_count; ++step) {
    for (int row = 0; row < call.rows; ++row) {
      float* c = call.state.chain + row * kPanel;
      float term[kFp4Groups][kPanel];
      std::int32_t exponent[kFp4Groups][kPanel];
      std::int32_t top[kPanel];
      for (int lane = 0; lane < kPanel; ++lane) top[lane] = accumulator_exponent(c[lane], -126, rule.zero_floor);
      for (int group = 0; group < kFp4Groups; ++group) {
        const std::int64_t block = step * kFp4Groups + group;
        const float* a = call.row_lines.value + block * kFp4Group * kRowGroup + row;
        const float* b = call.column_lines.value + block * kFp4Group * kPanel;
        const float a_scale = call.row_lines.scale[block * kRowGroup + row];
        const float* b_scale = call.column_lines.scale + block * kPanel;
        const std::int32_t a_exponent = call.row_lines.scale_exponent[block * kRowGroup + row];
        const std::int32_t* b_exponent = call.column_lines.scale_exponent + block * kPanel;
        const std::uint32_t a_nonzero = call.row_lines.nonzero[block * kRowGroup + row];
        const std::uint32_t* b_nonzero = call.column_lines.nonzero + block * kPanel;
        float* sum = term[group];
        for (int lane = 0; lane < kPanel; ++lane) sum[lane] = 0;
        for (int slot = 0; slot < kFp4Group; ++slot) {
          const float value = a[slot * kRowGroup];
          for (int lane = 0; lane < kPanel; ++lane) sum[lane] += value * b[slot * kPanel + lane];  // exact: quarters, <= 576
        }
        for (int lane = 0; lane < kPanel; ++lane) {
          sum[lane] *= a_scale * b_scale[lane];  // exact: 12 bits by 8
          exponent[group][lane] = a_exponent + b_exponent[lane];
          const bool counts = (a_nonzero & b_nonzero[lane]) != 0;
          top[lane] = std::max(top[lane], counts ? exponent[group][lane] : kWideZero);
        }
      }
      for (int lane = 0; lane < kPanel; ++lane) {
        float special = c[lane];
        double sum = std::trunc(static_cast<double>(finite_part(c[lane])) * power_of_two(rule.fraction_bits - top[lane]));
        for (int group = 0; group < kFp4Groups; ++group) {
          special += term[group][lane];
          const std::int32_t shift = std::max(exponent[group][lane] + rule.fraction_bits - top[lane], -1000);
          sum += std::trunc(static_cast<double>(finite_part(term[group][lane])) * power_of_two(shift));
        }
        float result = round_sum(rule.accumulator, sum * power_of_two(top[lane] - rule.fraction_bits));
        if (!(std::fabs(special) < HUGE_VALF)) result = std::isnan(special) ? kCanonicalNan : special;
        c[lane] = result;
      }
      close_step(call, step, row);
    }
  }
}

}  // namespace cloned
}  // namespace

void run_wide(const KernelCall& call) { cloned::run_wide(call); }

void run_fp4(const KernelCall& call) { cloned::run_fp4(call); }

}  // namespace assay::gemm
